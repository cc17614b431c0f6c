// Limits the requests of a peer: each has a bucket of tokens that fills continuously, and every
// request takes one. A peer is an address without its port, so that all connections of a machine,
// or of a Unix socket, share a bucket. A request beyond that is refused before it is read, and
// counted.
//
// THREAD: may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "proto/process/mutex.h"

namespace percs {

// Why callers with too many requests were refused, counted for the whole process.
enum class Excess : std::uint8_t { kRate, kStreams };
inline constexpr const char* kExcessNames[] = {"rate", "streams"};
inline constexpr std::size_t kExcesses = std::size(kExcessNames);
std::uint64_t ExcessCount(Excess excess);
void CountExcess(Excess excess);

class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  // A bucket has room for this many seconds, and for kBurstMin requests at least.
  static constexpr double kBurstSeconds = 5, kBurstMin = 64;
  // Addresses with a bucket of their own; more share one, so that many addresses cost no memory.
  static constexpr std::size_t kPeersMax = 1024;

  explicit RateLimit(double per_second) : per_second_(per_second) {}
  double burst() const;

  // `peer` as gRPC names it, "ipv4:127.0.0.1:4711". RESOURCE_EXHAUSTED if it asks too often.
  absl::Status Admit(const std::string& peer, Clock::time_point now = Clock::now());

 private:
  struct Bucket {
    double tokens = 0;
    Clock::time_point at;
  };
  Bucket& BucketOf(const std::string& peer, Clock::time_point now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double TokensAt(const Bucket& bucket, Clock::time_point now) const;

  const double per_second_;
  Mutex mutex_;
  // "": of all those that have none of their own.
  absl::flat_hash_map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
};

// "ipv4:127.0.0.1" of "ipv4:127.0.0.1:4711".
std::string PeerAddress(const std::string& peer);

}  // namespace percs
