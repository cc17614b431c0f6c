// The channel between a rank of an MPI program and the process that runs its fabric: one greeting
// over a Unix socket, which passes the memory, and from then on two rings of records in that
// memory. Both sides sleep on futexes. No other part of the project is needed on the rank's side.
//
// The rings carry virtual times. A record of a rank has the time of the rank's own clock; a rank
// that waits has said until when, and virtual time passes it only then.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace percs::mpi {

inline constexpr std::uint32_t kChannelMagic = 0x50455243;  // "PERC"
inline constexpr std::uint32_t kChannelVersion = 5;
inline constexpr const char* kSocketVariable = "PERCS_MPI_SOCKET";
inline constexpr std::uint64_t kRingBytes = 256 * 1024;
inline constexpr std::uint32_t kPayloadMax = 32 * 1024;  // of a record; longer ones continue
inline constexpr std::int64_t kForever = INT64_MAX / 4;  // of a wait: until something comes
inline constexpr std::uint64_t kAnyPeer = ~std::uint64_t{0};
inline constexpr std::uint32_t kRankUnknown = ~std::uint32_t{0};
inline constexpr std::size_t kHubNameBytes = 32;  // longer than any name and its 0

enum class RecordKind : std::uint32_t {
  // Of a rank.
  kSend,        // peer, tag, data, bytes; id 0: its end is not reported
  kReceive,     // peer or kAnyPeer, tag, ignore, bytes: room; flags
  kCancel,      // id, of a receive
  kJoin,        // id; data: the communicator's number; bytes: 32 bits for each rank in it
  kCollective,  // id, tag: the group, flags: a CollectiveKind, ignore: ReductionCode, peer: of the
                // root, bytes: of the operands, which follow where the rank has some
  kLeave,       // tag: the group
  kWait,        // until, computed: it calls nothing before, unless it has heard kResume
  kWake,        // it has to call earlier, and waits for kResume before it does
  kActive,      // the program communicates from now on: virtual time waits for it
  kAway,        // it does not communicate: it starts or ends
  // Of the fabric.
  kComplete,  // id, code, peer, tag, data, bytes: of the message; data: the group, for kJoin
  kResume,    // at: the rank's clock from now on
  kFailed,    // text: the run cannot continue
  // Of both: more bytes of the record before.
  kMore,
};

// Of kReceive; those of libfabric.
inline constexpr std::uint32_t kPeek = 1, kClaim = 2, kDiscard = 4;
// Of kComplete.
inline constexpr std::uint32_t kReceived = 1;  // of a receive; the bytes follow

enum class EndCode : std::uint32_t { kOk, kTruncated, kCancelled, kNoMessage, kUnreachable };

// On the tree of CAUs of a group of ranks.
enum class CollectiveKind : std::uint32_t { kBarrier, kBroadcast, kReduce, kAllreduce };
// Of operation and operand type, as emulator/base/reduce_op.h numbers them.
constexpr std::uint64_t ReductionCode(std::uint32_t op, std::uint32_t type) {
  return std::uint64_t{op} << 8 | type;
}
inline constexpr std::uint64_t kNoGroup = 0;  // the answer to kJoin if there is no tree left

struct Record {
  RecordKind kind = RecordKind::kSend;
  std::uint32_t flags = 0;
  EndCode code = EndCode::kOk;
  std::uint32_t payload = 0;  // bytes that follow in this record
  std::int64_t at = 0;        // virtual picoseconds
  std::int64_t until = 0;     // kWait
  std::int64_t computed = 0;  // kWait: picoseconds of computing so far
  std::uint64_t id = 0;
  std::uint64_t peer = kAnyPeer;  // PeerOf(hub, window)
  std::uint64_t tag = 0, ignore = 0, data = 0;
  std::uint64_t bytes = 0;  // of the whole message
};
static_assert(sizeof(Record) % 8 == 0);

constexpr std::uint64_t PeerOf(std::uint32_t hub, std::uint16_t window) {
  return std::uint64_t{hub} << 16 | window;
}

inline void FutexWait(std::atomic<std::uint32_t>* word, std::uint32_t value, long milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &time, nullptr, 0);
}

inline void FutexWake(std::atomic<std::uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

inline std::int64_t MonotonicNanoseconds() {
  timespec time;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);  // the library's may be virtual
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Whether one side looks for a while before it sleeps: to be woken takes several times as long as
// most answers do. While it looks it gives way to whoever else wants the core. After a look that
// was in vain it sleeps at once some times, twice as often each time, and half as often after one
// that was not.
struct Looking {
  // Longer than an answer takes of sides that all sleep; else nobody would begin to look.
  static constexpr std::int64_t kNanoseconds = 200'000;
  static constexpr int kLooksPerYield = 32;  // about a microsecond
  static constexpr std::uint32_t kSleepsMin = 8, kSleepsMax = 4096;

  std::uint32_t sleeps = 0;  // left before it looks again
  std::uint32_t next_sleeps = kSleepsMin;

  // True: `word` is no longer `seen`.
  bool Changes(const std::atomic<std::uint32_t>& word, std::uint32_t seen) {
    if (sleeps > 0) {
      --sleeps;
      return false;
    }
    const std::int64_t begin = MonotonicNanoseconds();
    bool changed = false, late = false;
    while (!changed && !late) {
      for (int i = 0; i < kLooksPerYield && !changed; ++i) {
        Pause();
        changed = word.load() != seen;
      }
      if (changed) break;
      syscall(SYS_sched_yield);
      late = MonotonicNanoseconds() - begin > kNanoseconds;
    }
    if (late) {
      sleeps = next_sleeps;
      next_sleeps = std::min(2 * next_sleeps, kSleepsMax);
    } else {
      next_sleeps = std::max(next_sleeps / 2, kSleepsMin);
    }
    return changed;
  }
};

// Wakes one side. A side that sleeps sets a flag first, so that a system call is made only then.
struct Bell {
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint32_t> asleep{0};

  void Ring() {
    count.fetch_add(1);
    if (asleep.load() != 0) FutexWake(&count);
  }
  // Until the count is not `seen`, at most for this long.
  void Wait(std::uint32_t seen, long milliseconds, Looking* looking = nullptr) {
    if (looking != nullptr && looking->Changes(count, seen)) return;
    asleep.fetch_add(1);
    if (count.load() == seen) FutexWait(&count, seen, milliseconds);
    asleep.fetch_sub(1);
  }
};

// One writer, one reader. A record is seen as a whole or not at all.
struct Ring {
  alignas(64) std::atomic<std::uint64_t> written{0};
  alignas(64) std::atomic<std::uint64_t> read{0};
  std::atomic<std::uint32_t> wanted{0};  // the writer waits for room
  alignas(64) std::uint8_t bytes[kRingBytes];

  static std::uint64_t Padded(std::uint64_t payload) {
    return sizeof(Record) + ((payload + 7) & ~std::uint64_t{7});
  }
  void Put(std::uint64_t at, const void* from, std::uint64_t count) {
    const std::uint64_t begin = at % kRingBytes;
    const std::uint64_t first = std::min(count, kRingBytes - begin);
    std::memcpy(bytes + begin, from, first);
    std::memcpy(bytes, static_cast<const std::uint8_t*>(from) + first, count - first);
  }
  void Get(std::uint64_t at, void* to, std::uint64_t count) const {
    const std::uint64_t begin = at % kRingBytes;
    const std::uint64_t first = std::min(count, kRingBytes - begin);
    std::memcpy(to, bytes + begin, first);
    std::memcpy(static_cast<std::uint8_t*>(to) + first, bytes, count - first);
  }
  bool HalfFull() const { return written.load() - read.load() > kRingBytes / 2; }
  // False: no room; the reader's MadeRoom will be true. REQUIRES: record.payload <= kPayloadMax.
  bool Write(const Record& record, const void* payload) {
    const std::uint64_t at = written.load(std::memory_order_relaxed);
    const std::uint64_t size = Padded(record.payload);
    const auto is_full = [&] { return kRingBytes - (at - read.load()) < size; };
    if (is_full()) {
      // The reader may have made room meanwhile, and not have seen this.
      wanted.store(1);
      if (is_full()) return false;
    }
    Put(at, &record, sizeof(record));
    if (record.payload > 0) Put(at + sizeof(record), payload, record.payload);
    written.store(at + size, std::memory_order_release);
    return true;
  }
  // False: there is none. The other side writes the memory, so what it says is checked by `valid`.
  bool Front(Record* record, bool* valid) const {
    const std::uint64_t at = read.load(std::memory_order_relaxed);
    const std::uint64_t there = written.load(std::memory_order_acquire) - at;
    *valid = true;
    if (there == 0) return false;
    *valid = there >= sizeof(Record) && there <= kRingBytes;
    if (!*valid) return false;
    Get(at, record, sizeof(*record));
    *valid = record->payload <= kPayloadMax && Padded(record->payload) <= there;
    return *valid;
  }
  // `count` bytes of the front's payload.
  void Payload(void* to, std::uint64_t count) const {
    Get(read.load(std::memory_order_relaxed) + sizeof(Record), to, count);
  }
  void Pop(const Record& front) {
    read.store(read.load(std::memory_order_relaxed) + Padded(front.payload));
  }
  // Whether the writer waits for room, and is to be woken. Asked after records were taken.
  bool MadeRoom() { return wanted.load() != 0 && wanted.exchange(0) != 0; }
};

// What a rank and the fabric share. The bell of the other side is rung when it has to do something:
// of the fabric when a rank waits, of a rank when it is resumed, of both when a ring that was full
// has room again.
struct Channel {
  std::uint32_t magic = kChannelMagic, version = kChannelVersion;
  Bell to_rank;
  Ring from_rank, from_fabric;
};

// What all ranks share with the fabric.
struct Doorbell {
  Bell to_fabric;
};

// First message of a rank over the socket.
struct Hello {
  std::uint32_t magic = kChannelMagic, version = kChannelVersion;
  std::uint32_t rank = kRankUnknown;
  std::uint32_t ranks = 0;
};

// ... and the answer, with the file descriptors of Channel and Doorbell if `refused` is empty.
struct Welcome {
  std::uint32_t magic = kChannelMagic, version = kChannelVersion;
  std::uint32_t rank = 0, ranks = 0;
  std::uint64_t peer = 0;              // of this rank
  char hub[kHubNameBytes] = {};        // ... and the name of its hub
  std::uint64_t eager_bytes = 0;       // longer messages go by rendezvous
  std::uint64_t message_max = 0;       // bytes
  std::int64_t send_cost = 0;          // picoseconds of the rank's clock, of every send,
  std::int64_t post_cost = 0;          // ... of posting a receive,
  std::int64_t poll_cost = 0;          // ... of a test that finds nothing,
  std::int64_t copy_per_kib = 0;       // ... and of copying what is sent eagerly
  double compute_scale = 0;            // virtual per CPU time; 0: computing takes no time
  std::uint64_t collective_bytes = 0;  // of a collective on CAUs, at most; 0: there are none
  bool looks = false;      // ranks look before they sleep: there are cores for all of them
  char refused[256] = {};  // why
};

}  // namespace percs::mpi
