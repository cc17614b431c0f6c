#include "tests/soak/campaign.h"

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>

#include "absl/strings/numbers.h"
#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs::soak {
namespace {

// Then it counts as one that does not end: seconds of its own, so that a busy machine finds
// nothing, and of wall time, for one that waits for ever.
constexpr unsigned kSeconds = 120, kWallSeconds = 20 * kSeconds;
constexpr std::uint64_t kProgressEvery = 10'000;

std::string Usage(const Campaign& c) {
  return fmt::format(
      "usage: {0} FIRST COUNT [--jobs N]   tries {1} FIRST to FIRST + COUNT - 1\n"
      "       {0} --shrink SEED [--out FILE]\n"
      "                                   writes the smallest part that still fails\n"
      "       {0} --replay FILE            runs such a part again\n"
      "       {0} --print SEED             prints the whole\n"
      "Exit code: 0 nothing fails, 1 something fails, 2 wrong usage.\n"
      "Keep a find: {2}\n",
      c.program, c.things, c.keep);
}

std::string EndOf(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGPROF)
    return fmt::format("did not end in {} s of processor time", kSeconds);
  if (WTERMSIG(status) == SIGALRM) return fmt::format("did not end in {} s", kWallSeconds);
  return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

// From now on.
void LimitTime() {
  const itimerval limit{{0, 0}, {kSeconds, 0}};
  PERCS_CHECK(setitimer(ITIMER_PROF, &limit, nullptr) == 0);
  alarm(kWallSeconds);
}

// One process of a campaign, as both it and the parent see it.
struct Worker {
  std::atomic<std::uint64_t> seed{0};  // that it is trying
  std::atomic<std::uint64_t> found{0};
  std::atomic<bool> done{false};
  pid_t process = 0;
};

class Search {
 public:
  Search(const Campaign& campaign, std::uint64_t first, std::uint64_t count, std::uint64_t jobs)
      : campaign_(campaign), first_(first), count_(count), jobs_(jobs) {
    void* shared = mmap(nullptr, jobs * sizeof(Worker), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PERCS_CHECK(shared != MAP_FAILED);
    workers_ = static_cast<Worker*>(shared);
    for (std::uint64_t i = 0; i < jobs; ++i) new (&workers_[i]) Worker;
  }

  // How many failed.
  std::uint64_t Run() {
    for (std::uint64_t i = 0; i < jobs_; ++i) Start(i, first_ + i);
    int status = 0;
    for (pid_t ended = wait(&status); ended > 0; ended = wait(&status)) {
      for (std::uint64_t i = 0; i < jobs_; ++i) {
        Worker& worker = workers_[i];
        if (worker.process != ended || worker.done) continue;
        Tell(worker.seed, EndOf(status));
        ++worker.found;
        Start(i, worker.seed + jobs_);
      }
    }
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < jobs_; ++i) found += workers_[i].found;
    return found;
  }

 private:
  void Start(std::uint64_t index, std::uint64_t from) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      Work(workers_[index], from);
      _exit(0);
    }
    workers_[index].process = child;
  }

  void Work(Worker& worker, std::uint64_t from) {
    for (std::uint64_t seed = from; seed - first_ < count_; seed += jobs_) {
      worker.seed = seed;
      LimitTime();
      if (const std::string why = campaign_.failure(seed); !why.empty()) {
        Tell(seed, why);
        ++worker.found;
      }
      if (const std::uint64_t tried = seed - first_ + 1; tried % kProgressEvery == 0)
        fmt::print(stderr, "{} of {} {}\n", tried, count_, campaign_.things);
    }
    worker.done = true;
  }

  void Tell(std::uint64_t seed, const std::string& why) {
    fmt::print("{} {}: {}\n", campaign_.thing, seed, why);
    std::fflush(stdout);
  }

  const Campaign& campaign_;
  const std::uint64_t first_, count_, jobs_;
  Worker* workers_ = nullptr;
};

int RunSearch(const Campaign& c, std::uint64_t first, std::uint64_t count, std::uint64_t jobs) {
  const std::uint64_t found = Search(c, first, count, jobs).Run();
  fmt::print("{} {} to {}: {} tried, {} failed\n", c.things, first, first + count - 1, count,
             found);
  return found == 0 ? 0 : 1;
}

int RunShrink(const Campaign& c, std::uint64_t seed, const std::string& path) {
  const std::string small = c.shrink(seed);
  if (small.empty()) {
    fmt::print("{} {} does not fail\n", c.thing, seed);
    return 0;
  }
  const std::string text =
      fmt::format("# The smallest part of {} {} that fails. To run it: {} --replay FILE\n{}",
                  c.thing, seed, c.program, small);
  if (path.empty()) {
    fmt::print("{}", text);
    return 1;
  }
  std::ofstream file(path);
  file << text << std::flush;
  if (file) return 1;
  fmt::print(stderr, "{}: cannot write {}\n", c.program, path);
  return 2;
}

int RunReplay(const Campaign& c, const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    fmt::print(stderr, "{}: cannot read {}\n", c.program, path);
    return 2;
  }
  const auto part = c.replay({std::istreambuf_iterator<char>(file), {}}, path);
  if (!part.ok()) {
    fmt::print(stderr, "{}: {}: {}\n", c.program, path, std::string(part.status().message()));
    return 2;
  }
  fmt::print("{}", part->about);
  std::fflush(stdout);
  const std::string why = part->failure();
  fmt::print("{}\n", why.empty() ? "does not fail" : why);
  return why.empty() ? 0 : 1;
}

int WrongUsage(const Campaign& c) {
  fmt::print(stderr, "{}", Usage(c));
  return 2;
}

}  // namespace

std::string FailureApart(const std::function<std::string()>& failure) {
  int ends[2];
  PERCS_CHECK(pipe(ends) == 0);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    LimitTime();
    const std::string why = failure();
    const ssize_t written = write(ends[1], why.data(), why.size());
    _exit(written == static_cast<ssize_t>(why.size()) && why.empty() ? 0 : 1);
  }
  close(ends[1]);
  std::string why;
  char block[512];
  ssize_t got = 0;
  while ((got = read(ends[0], block, sizeof block)) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) why.append(block, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return why.empty() && status != 0 ? EndOf(status) : why;
}

int Main(const Campaign& campaign, const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i, std::uint64_t* to) {
    return i < arguments.size() && absl::SimpleAtoi(arguments[i], to);
  };
  const std::size_t words = arguments.size();
  std::uint64_t first = 0, count = 0, jobs = 1;
  if (words == 1 && arguments[0] == "--help") {
    fmt::print("{}", Usage(campaign));
    return 0;
  }
  if (words >= 2 && arguments[0] == "--shrink" && number(1, &first)) {
    if (words == 2) return RunShrink(campaign, first, "");
    return words == 4 && arguments[2] == "--out" ? RunShrink(campaign, first, arguments[3])
                                                 : WrongUsage(campaign);
  }
  if (words == 2 && arguments[0] == "--print" && number(1, &first)) {
    fmt::print("{}", campaign.print(first));
    return 0;
  }
  if (words == 2 && arguments[0] == "--replay") return RunReplay(campaign, arguments[1]);
  if (!number(0, &first) || !number(1, &count) || count == 0) return WrongUsage(campaign);
  const bool with_jobs = words == 4 && arguments[2] == "--jobs" && number(3, &jobs) && jobs > 0;
  if (words != 2 && !with_jobs) return WrongUsage(campaign);
  return RunSearch(campaign, first, count, std::min(jobs, count));
}

}  // namespace percs::soak
