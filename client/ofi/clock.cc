// Preloaded into the ranks of an MPI program: the clocks that the application reads are the rank's
// virtual clock, and its sleeping takes virtual time. Open MPI, PMIx and the C library keep the
// real ones: the address of the call identifies the caller. Programs read the clock directly in no
// way that a library could change (rdtsc), see docs/mpi.md.
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "client/ofi/interposed.h"
#include "client/ofi/virtual_clock.h"

PERCS_EXPORT percs::mpi::VirtualClock percs_virtual_clock;
percs::mpi::VirtualClock percs_virtual_clock;

namespace percs::mpi {
namespace {

constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;
// CLOCK_REALTIME at virtual time 0: 1 January 2012.
constexpr std::int64_t kEpochSeconds = 1'325'376'000;
// Reading a clock takes this; more after many reads without a message, so that a loop that waits
// for the time to pass ends.
constexpr std::int64_t kReadCost = 20'000;
constexpr std::uint64_t kSameReads = 4096, kDoublingsMax = 16;

// Objects whose own clocks stay real.
constexpr const char* kReal[] = {
    "/libmpi.",  "/libmpi_",   "/libopen-",   "/openmpi/",  "/libpmix",    "/pmix",     "/libevent",
    "/libhwloc", "/libfabric", "/libpercs-",  "/libc.so",   "/libpthread", "/ld-linux", "/libucp",
    "/libuct",   "/libucs",    "/libibverbs", "/librdmacm", "/libmunge",   "/libprrte"};

bool IsReal(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  return std::any_of(std::begin(kReal), std::end(kReal), [&](const char* name) {
    return std::strstr(info.dli_fname, name) != nullptr;
  });
}

// The same few places call again and again.
bool Virtual(const void* caller) {
  if (!percs_virtual_clock.attached.load(std::memory_order_relaxed)) return false;
  constexpr std::size_t kPlaces = 1024;
  static std::atomic<std::uintptr_t> places[kPlaces];  // address << 1 | is real
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  std::atomic<std::uintptr_t>& place = places[(address ^ address >> 10) % kPlaces];
  const std::uintptr_t known = place.load(std::memory_order_relaxed);
  if (known >> 1 == address << 1 >> 1) return (known & 1) == 0;
  const bool real = IsReal(caller);
  place.store(address << 1 | (real ? 1 : 0), std::memory_order_relaxed);
  return !real;
}

std::int64_t Now() {
  VirtualClock& clock = percs_virtual_clock;
  ChargeComputing(clock);
  const std::uint64_t reads = clock.reads.fetch_add(1);
  const std::int64_t cost = kReadCost << std::min(reads / kSameReads, kDoublingsMax);
  return clock.now.fetch_add(cost) + cost;
}

timespec TimeOf(clockid_t id) {
  const std::int64_t now = Now();
  const bool real_time = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
  return {(real_time ? kEpochSeconds : 0) + now / kPicosecondsPerSecond,
          now % kPicosecondsPerSecond / 1000};
}

// Clocks of CPU time are virtual, too: a rank that polls is busy. Those of other processes are not.
bool IsOurs(clockid_t id) { return id >= 0; }

void Pass(std::int64_t seconds, std::int64_t nanoseconds) {
  ChargeComputing(percs_virtual_clock);
  percs_virtual_clock.now += seconds * kPicosecondsPerSecond + nanoseconds * 1000;
}

class Testing {
 public:
  Testing() { ++percs_virtual_clock.testing; }
  ~Testing() { --percs_virtual_clock.testing; }
};

}  // namespace
}  // namespace percs::mpi

using percs::mpi::NextOf;
using percs::mpi::Now;
using percs::mpi::Pass;
using percs::mpi::Testing;
using percs::mpi::TimeOf;
using percs::mpi::Virtual;

#define PERCS_CALLER __builtin_return_address(0)

// --- MPI. Calls that only test tell the provider, which otherwise would wait. The arguments are
// handles and pointers, which registers pass alike.

#define PERCS_TEST_CALL(name)                                                       \
  PERCS_EXPORT int name(void* a, void* b, void* c, void* d, void* e) {              \
    static const auto next = NextOf<int(void*, void*, void*, void*, void*)>(#name); \
    const Testing testing;                                                          \
    return next(a, b, c, d, e);                                                     \
  }
#define PERCS_TEST_CALLS(name) PERCS_TEST_CALL(MPI_##name) PERCS_TEST_CALL(PMPI_##name)

PERCS_TEST_CALLS(Test)
PERCS_TEST_CALLS(Testall)
PERCS_TEST_CALLS(Testany)
PERCS_TEST_CALLS(Testsome)
PERCS_TEST_CALLS(Iprobe)
PERCS_TEST_CALLS(Improbe)
PERCS_TEST_CALLS(Cancel)
// These look for a message and make progress in turn, and no message ends anything.
PERCS_TEST_CALLS(Probe)
PERCS_TEST_CALLS(Mprobe)
PERCS_TEST_CALLS(Request_get_status)

// --- A rank's processor is its hub.

PERCS_EXPORT int PMPI_Get_processor_name(char* name, int* length) {
  static const auto next = NextOf<int(char*, int*)>("PMPI_Get_processor_name");
  const percs::mpi::VirtualClock& clock = percs_virtual_clock;
  const int status = next(name, length);
  if (status != 0 || !clock.attached.load()) return status;
  *length = static_cast<int>(std::strlen(clock.hub));
  std::memcpy(name, clock.hub, static_cast<std::size_t>(*length) + 1);
  return status;
}
PERCS_EXPORT int MPI_Get_processor_name(char* name, int* length) {
  return PMPI_Get_processor_name(name, length);
}

// --- Open MPI's progress (opal/runtime/opal_progress.h): the provider has to know whether all its
// parts have looked for work before it says that the rank waits.

PERCS_EXPORT void opal_progress() {
  static const auto next = NextOf<void()>("opal_progress");
  percs::mpi::VirtualClock& clock = percs_virtual_clock;
  const std::uint64_t acts = clock.acts;
  ++clock.passing;
  next();
  if (void (*const look)() = clock.look.load()) look();
  --clock.passing;
  if (clock.acts == acts) ++clock.quiet;
}

#define PERCS_PART_CALL(name, change)                       \
  PERCS_EXPORT int name(int (*part)()) {                    \
    static const auto next = NextOf<int(int (*)())>(#name); \
    const int status = next(part);                          \
    if (status == 0) percs_virtual_clock.parts += (change); \
    percs::mpi::NoteAct(percs_virtual_clock);               \
    return status;                                          \
  }
PERCS_PART_CALL(opal_progress_register, 1)
PERCS_PART_CALL(opal_progress_register_lp, 1)
PERCS_PART_CALL(opal_progress_unregister, -1)

// --- Time

PERCS_EXPORT double PMPI_Wtime() { return static_cast<double>(Now()) * 1e-12; }
PERCS_EXPORT double MPI_Wtime() { return PMPI_Wtime(); }
PERCS_EXPORT double PMPI_Wtick() { return 1e-12; }
PERCS_EXPORT double MPI_Wtick() { return PMPI_Wtick(); }

// --- The C library

PERCS_EXPORT int clock_gettime(clockid_t id, timespec* time) {
  if (!percs::mpi::IsOurs(id) || !Virtual(PERCS_CALLER))
    return static_cast<int>(syscall(SYS_clock_gettime, id, time));
  *time = TimeOf(id);
  return 0;
}

PERCS_EXPORT int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  if (Virtual(PERCS_CALLER)) {
    now = TimeOf(CLOCK_REALTIME);
  } else {
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  }
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

PERCS_EXPORT time_t time(time_t* to) noexcept {
  timespec now{};
  if (Virtual(PERCS_CALLER)) {
    now = TimeOf(CLOCK_REALTIME);
  } else {
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  }
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

PERCS_EXPORT clock_t clock() noexcept {
  timespec now{};
  if (Virtual(PERCS_CALLER)) {
    now = TimeOf(CLOCK_PROCESS_CPUTIME_ID);
  } else {
    syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &now);
  }
  return now.tv_sec * CLOCKS_PER_SEC + now.tv_nsec / (1'000'000'000 / CLOCKS_PER_SEC);
}

PERCS_EXPORT int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  const int status = static_cast<int>(syscall(SYS_getrusage, who, usage));
  if (status != 0 || who == RUSAGE_CHILDREN || !Virtual(PERCS_CALLER)) return status;
  const timespec now = TimeOf(CLOCK_PROCESS_CPUTIME_ID);
  usage->ru_utime = {now.tv_sec, now.tv_nsec / 1000};
  usage->ru_stime = {};
  return 0;
}

PERCS_EXPORT int nanosleep(const timespec* time, timespec* left) {
  if (!Virtual(PERCS_CALLER)) return static_cast<int>(syscall(SYS_nanosleep, time, left));
  Pass(time->tv_sec, time->tv_nsec);
  return 0;
}

PERCS_EXPORT int clock_nanosleep(clockid_t id, int flags, const timespec* time, timespec* left) {
  if (!percs::mpi::IsOurs(id) || !Virtual(PERCS_CALLER)) {
    return syscall(SYS_clock_nanosleep, id, flags, time, left) == 0 ? 0 : errno;
  }
  timespec wait = *time;
  if (flags & TIMER_ABSTIME) {
    const timespec now = TimeOf(id);
    wait.tv_sec -= now.tv_sec;
    wait.tv_nsec -= now.tv_nsec;
  }
  if (wait.tv_sec > 0 || (wait.tv_sec == 0 && wait.tv_nsec > 0)) Pass(wait.tv_sec, wait.tv_nsec);
  return 0;
}

PERCS_EXPORT int usleep(useconds_t microseconds) {
  const timespec wait{microseconds / 1'000'000, static_cast<long>(microseconds % 1'000'000) * 1000};
  if (!Virtual(PERCS_CALLER)) return static_cast<int>(syscall(SYS_nanosleep, &wait, nullptr));
  Pass(wait.tv_sec, wait.tv_nsec);
  return 0;
}

PERCS_EXPORT unsigned sleep(unsigned seconds) {
  timespec left{};
  const timespec wait{static_cast<time_t>(seconds), 0};
  if (Virtual(PERCS_CALLER)) {
    Pass(wait.tv_sec, 0);
    return 0;
  }
  const bool interrupted = syscall(SYS_nanosleep, &wait, &left) != 0;
  return interrupted ? static_cast<unsigned>(left.tv_sec) : 0;
}
