#include "daemon/stream/rate_limit.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "fmt/format.h"

namespace percs {
namespace {

std::array<std::atomic<std::uint64_t>, kExcesses> excesses{};

}  // namespace

std::uint64_t ExcessCount(Excess excess) {
  return excesses[static_cast<std::size_t>(excess)].load(std::memory_order_relaxed);
}

void CountExcess(Excess excess) {
  excesses[static_cast<std::size_t>(excess)].fetch_add(1, std::memory_order_relaxed);
}

std::string PeerAddress(const std::string& peer) {
  const bool has_port = peer.rfind("ipv4:", 0) == 0 || peer.rfind("ipv6:", 0) == 0;
  return has_port ? peer.substr(0, peer.rfind(':')) : peer;
}

double RateLimit::burst() const { return std::max(per_second_ * kBurstSeconds, kBurstMin); }

double RateLimit::TokensAt(const Bucket& bucket, Clock::time_point now) const {
  return std::min(
      burst(),
      bucket.tokens + per_second_ * std::chrono::duration<double>(now - bucket.at).count());
}

RateLimit::Bucket& RateLimit::BucketOf(const std::string& peer, Clock::time_point now) {
  const std::string address = PeerAddress(peer);
  if (const auto found = buckets_.find(address); found != buckets_.end()) return found->second;
  if (buckets_.size() >= kPeersMax) {
    // Full buckets are as good as none.
    absl::erase_if(buckets_,
                   [&](const auto& entry) { return TokensAt(entry.second, now) >= burst(); });
  }
  return buckets_.try_emplace(buckets_.size() < kPeersMax ? address : "", Bucket{burst(), now})
      .first->second;
}

absl::Status RateLimit::Admit(const std::string& peer, Clock::time_point now) {
  const MutexLock guard(mutex_);
  Bucket& bucket = BucketOf(peer, now);
  bucket.tokens = TokensAt(bucket, now);
  bucket.at = now;
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return absl::OkStatus();
  }
  CountExcess(Excess::kRate);
  return absl::ResourceExhaustedError(
      fmt::format("{} makes more than {:g} requests per second, the limit for one address "
                  "(--requests-per-second); try again later",
                  PeerAddress(peer), per_second_));
}

}  // namespace percs
