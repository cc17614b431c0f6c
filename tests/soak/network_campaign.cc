// Searches random networks for one that fails: the engine against the reference router, with the
// planner's tables and with random ones, and split over several processes. tests/run tries the same
// few thousand every time; this goes on where nobody has looked.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "emulator/base/check.h"
#include "fmt/format.h"
#include "tests/differential/network_check.h"
#include "tests/differential/network_part.h"
#include "tests/differential/random_network.h"

namespace percs::reference {
namespace {

constexpr unsigned kNetworkSeconds = 120;  // then it counts as one that does not end
constexpr std::uint64_t kProgressEvery = 10'000;

constexpr char kUsage[] =
    "usage: network_campaign FIRST COUNT [--jobs N]   tries networks FIRST to FIRST + COUNT - 1\n"
    "       network_campaign --shrink SEED [--out FILE]\n"
    "                                                 writes the smallest part that still fails\n"
    "       network_campaign --replay FILE            runs such a part again\n"
    "Exit code: 0 nothing fails, 1 something fails, 2 wrong usage.\n"
    "Keep a find: add its number to kFoundNetworks in tests/differential/differential_test.cc.\n";

std::string EndOf(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) return fmt::format("did not end in {} s", kNetworkSeconds);
  return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

// In a process of its own, as a failed check of the engine ends the process.
bool FailsApart(const NetworkPart& part) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    alarm(kNetworkSeconds);
    _exit(FailureOf(part).empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status != 0;
}

// One process of a campaign, as both it and the parent see it.
struct Worker {
  std::atomic<std::uint64_t> network{0};  // that it is trying
  std::atomic<std::uint64_t> found{0};
  std::atomic<bool> done{false};
  pid_t process = 0;
};

class Campaign {
 public:
  Campaign(std::uint64_t first, std::uint64_t count, std::uint64_t jobs)
      : first_(first), count_(count), jobs_(jobs) {
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
        Tell(worker.network, EndOf(status));
        ++worker.found;
        Start(i, worker.network + jobs_);
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
      worker.network = seed;
      alarm(kNetworkSeconds);
      for (const bool random_tables : {false, true}) {
        const std::string why = FailureOf(NetworkPart::Whole(seed, random_tables));
        if (why.empty()) continue;
        Tell(seed, why);
        ++worker.found;
        break;
      }
      if (const std::uint64_t tried = seed - first_ + 1; tried % kProgressEvery == 0)
        std::fprintf(stderr, "%s", fmt::format("{} of {} networks\n", tried, count_).c_str());
    }
    worker.done = true;
  }

  static void Tell(std::uint64_t seed, const std::string& why) {
    std::printf("%s", fmt::format("network {}: {}\n", seed, why).c_str());
    std::fflush(stdout);
  }

  const std::uint64_t first_, count_, jobs_;
  Worker* workers_ = nullptr;
};

int RunCampaign(std::uint64_t first, std::uint64_t count, std::uint64_t jobs) {
  const std::uint64_t found = Campaign(first, count, jobs).Run();
  std::printf("%s", fmt::format("networks {} to {}: {} tried, {} failed\n", first,
                                first + count - 1, count, found)
                        .c_str());
  return found == 0 ? 0 : 1;
}

int RunShrink(std::uint64_t seed, const std::string& path) {
  for (const bool random_tables : {false, true}) {
    const NetworkPart whole = NetworkPart::Whole(seed, random_tables);
    if (!FailsApart(whole)) continue;
    const NetworkPart small = Shrink(whole, FailsApart);
    const std::string text = fmt::format(
        "# The smallest part of network {} that fails. To run it: "
        "network_campaign --replay FILE\n{}",
        seed, small.ToText());
    if (path.empty()) {
      std::printf("%s", text.c_str());
      return 1;
    }
    std::ofstream file(path);
    file << text << std::flush;
    if (!file) {
      std::fprintf(stderr, "network_campaign: cannot write %s\n", path.c_str());
      return 2;
    }
    return 1;
  }
  std::printf("%s", fmt::format("network {} does not fail\n", seed).c_str());
  return 0;
}

int RunReplay(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "network_campaign: cannot read %s\n", path.c_str());
    return 2;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto part = NetworkPart::Parse(text);
  if (!part.ok()) {
    std::fprintf(stderr, "network_campaign: %s: %s\n", path.c_str(),
                 std::string(part.status().message()).c_str());
    return 2;
  }
  std::printf("%s", Describe(part->ToScenario()).c_str());
  std::fflush(stdout);
  const std::string why = FailureOf(*part);
  std::printf("%s\n", why.empty() ? "does not fail" : why.c_str());
  return why.empty() ? 0 : 1;
}

int Usage() {
  std::fprintf(stderr, "%s", kUsage);
  return 2;
}

int Main(const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i, std::uint64_t* to) {
    return i < arguments.size() && absl::SimpleAtoi(arguments[i], to);
  };
  const std::size_t count = arguments.size();
  std::uint64_t first = 0, networks = 0, jobs = 1;
  if (count == 1 && arguments[0] == "--help") {
    std::printf("%s", kUsage);
    return 0;
  }
  if (count >= 2 && arguments[0] == "--shrink" && number(1, &first)) {
    if (count == 2) return RunShrink(first, "");
    return count == 4 && arguments[2] == "--out" ? RunShrink(first, arguments[3]) : Usage();
  }
  if (count == 2 && arguments[0] == "--replay") return RunReplay(arguments[1]);
  if (!number(0, &first) || !number(1, &networks) || networks == 0) return Usage();
  const bool with_jobs = count == 4 && arguments[2] == "--jobs" && number(3, &jobs) && jobs > 0;
  if (count != 2 && !with_jobs) return Usage();
  return RunCampaign(first, networks, std::min<std::uint64_t>(jobs, networks));
}

}  // namespace
}  // namespace percs::reference

int main(int argc, char** argv) {
  return percs::reference::Main(std::vector<std::string>(argv + 1, argv + argc));
}
