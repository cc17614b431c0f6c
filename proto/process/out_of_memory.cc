#include "proto/process/out_of_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "fmt/format.h"

namespace percs {
namespace {

constexpr int kExitStatus = 1;
// A library that aborts with less than this left to allocate most likely did so for want of it.
constexpr std::size_t kScarce = std::size_t{256} << 20;

const char* program_name = "percs";
std::terminate_handler default_terminate = nullptr;

// 0: none.
std::uint64_t LimitMib() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  return limit.rlim_cur >> 20;
}

// Allocates nothing: async-signal-safe, too.
[[noreturn]] void SayAndEnd() {
  char text[256];
  const std::uint64_t limit = LimitMib();
  const auto end =
      limit > 0 ? fmt::format_to_n(text, sizeof(text),
                                   "{}: out of memory: the limit of its address space (ulimit -v) "
                                   "is {} MiB\n",
                                   program_name, limit)
                : fmt::format_to_n(text, sizeof(text),
                                   "{}: out of memory: this machine has no more\n", program_name);
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(end.out - text)) < 0) _exit(kExitStatus);
  _exit(kExitStatus);
}

[[noreturn]] void Terminate() {
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    SayAndEnd();
  } catch (const std::length_error&) {
    SayAndEnd();
  } catch (...) {
  }
  default_terminate();
  std::abort();
}

// C libraries abort when malloc fails.
void OnAbort(int) {
  void* const room =
      mmap(nullptr, kScarce, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) SayAndEnd();
  munmap(room, kScarce);
}

}  // namespace

void EndWhenOutOfMemory(const char* program) {
  program_name = program;
  default_terminate = std::set_terminate(&Terminate);
  std::signal(SIGABRT, &OnAbort);
}

absl::Status OutOfMemory(std::string_view what) {
  const std::uint64_t limit = LimitMib();
  return absl::ResourceExhaustedError(fmt::format(
      "{}: out of memory{}; make it smaller, or give the process more", what,
      limit > 0 ? fmt::format(" (the limit of the address space, ulimit -v, is {} MiB)", limit)
                : ""));
}

}  // namespace percs
