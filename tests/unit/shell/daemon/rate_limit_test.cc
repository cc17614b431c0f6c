// How often a peer may ask. Method: a clock that the test moves.
#include "daemon/stream/rate_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"

namespace percs {
namespace {

using Clock = RateLimit::Clock;

constexpr Clock::time_point kStart{};

int AdmittedOf(int requests, RateLimit* limit, const std::string& peer, Clock::time_point now) {
  int admitted = 0;
  for (int i = 0; i < requests; ++i) admitted += limit->Admit(peer, now).ok() ? 1 : 0;
  return admitted;
}

TEST(RateLimit, LetsABurstPassAndThenSoManyPerSecond) {
  RateLimit limit(100);
  EXPECT_EQ(AdmittedOf(1000, &limit, "ipv4:10.0.0.1:5", kStart), 500);
  EXPECT_EQ(AdmittedOf(1000, &limit, "ipv4:10.0.0.1:5", kStart + std::chrono::seconds(1)), 100);
  EXPECT_EQ(AdmittedOf(1000, &limit, "ipv4:10.0.0.1:5", kStart + std::chrono::seconds(1)), 0);
  EXPECT_EQ(AdmittedOf(1000, &limit, "ipv4:10.0.0.1:5", kStart + std::chrono::hours(1)), 500)
      << "no more than that";
}

TEST(RateLimit, SaysWhoAsksTooOftenAndCountsIt) {
  RateLimit limit(0.001);
  EXPECT_EQ(AdmittedOf(1000, &limit, "ipv6:[::1]:80", kStart),
            static_cast<int>(RateLimit::kBurstMin));
  const std::uint64_t before = ExcessCount(Excess::kRate);
  const absl::Status status = limit.Admit("ipv6:[::1]:81", kStart);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("ipv6:[::1] makes more than 0.001 requests per second"));
  EXPECT_EQ(ExcessCount(Excess::kRate), before + 1);
}

TEST(RateLimit, IsOfAnAddressWhateverItsPorts) {
  RateLimit limit(1);
  const int burst = static_cast<int>(limit.burst());
  EXPECT_EQ(AdmittedOf(burst, &limit, "ipv4:10.0.0.1:1", kStart), burst);
  EXPECT_EQ(AdmittedOf(1, &limit, "ipv4:10.0.0.1:2", kStart), 0);
  EXPECT_EQ(AdmittedOf(1, &limit, "ipv4:10.0.0.2:1", kStart), 1);
  EXPECT_EQ(AdmittedOf(burst + 1, &limit, "unix:", kStart), burst);
}

TEST(RateLimit, ManyAddressesShareOneBucketWhenThereAreNoMore) {
  RateLimit limit(1);
  const auto peer = [](std::size_t i) {
    return fmt::format("ipv4:10.0.{}.{}:1", i / 256, i % 256);
  };
  for (std::size_t i = 0; i < RateLimit::kPeersMax; ++i)
    EXPECT_TRUE(limit.Admit(peer(i), kStart).ok()) << i;
  int admitted = 0;
  for (std::size_t i = 0; i < 1000; ++i)
    admitted += limit.Admit(peer(RateLimit::kPeersMax + i), kStart).ok();
  EXPECT_EQ(admitted, static_cast<int>(RateLimit::kBurstMin));
  EXPECT_TRUE(limit.Admit(peer(0), kStart).ok()) << "who was there before has its own";
  // Those that have been quiet give theirs up.
  const auto later = kStart + std::chrono::minutes(5);
  EXPECT_EQ(AdmittedOf(1000, &limit, "ipv4:192.168.0.1:1", later),
            static_cast<int>(RateLimit::kBurstMin));
  EXPECT_EQ(AdmittedOf(1000, &limit, "ipv4:192.168.0.2:1", later),
            static_cast<int>(RateLimit::kBurstMin));
}

}  // namespace
}  // namespace percs
