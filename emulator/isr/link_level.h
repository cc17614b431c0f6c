// What is wrong with a link, as one of its ends knows it: errors on the wire on which it sends, and
// lanes lost in both directions (docs/semantics.md B.8).
#pragma once

#include <cstdint>

#include "emulator/base/random.h"
#include "emulator/base/time.h"

namespace percs {

class LinkErrors {
 public:
  explicit LinkErrors(RandomStream random) : random_(random) {}

  void SetRate(double flit_error_rate);
  // 0 calls off what is left.
  void CorruptNext(std::uint32_t transmissions) {
    forced_ = transmissions == 0 ? 0 : forced_ + transmissions;
  }
  // Transmissions before the next corrupted one.
  std::uint64_t clean() const { return forced_ > 0 ? 0 : clean_; }
  // One transmission that the receiver waits for; false if it is corrupted.
  bool Transmit();

 private:
  static constexpr std::uint64_t kForEver = std::uint64_t{1} << 62;
  void Draw();

  RandomStream random_;
  double rate_ = 0;
  std::uint64_t clean_ = kForEver;
  std::uint64_t forced_ = 0;  // corrupted whatever was drawn
};

struct LinkLevel {
  explicit LinkLevel(RandomStream random) : errors(random) {}
  LinkErrors errors;
  int lanes_lost_out = 0, lanes_lost_in = 0;
  // Flit time of the commitment that ends at this time, if the rate changed since it was granted.
  Time changed_under = -1, flit_time_before = 0;
  // Added to the wire, by direction, and the most there was of what this end sends.
  Time latency_out = 0, latency_in = 0, latency_most = 0;
  // End of the last commitment before the latency changed, plus its wire: nothing sent later may be
  // there sooner.
  Time under_way = 0;
};

}  // namespace percs
