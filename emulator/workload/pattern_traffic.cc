#include "emulator/workload/pattern_traffic.h"

#include <algorithm>
#include <bit>

#include "fmt/format.h"

namespace percs {

double NegativeLog(double u) {
  // u = m x 2^e with m in [1, 2); ln m by the series of atanh, which converges by 1/9 per term
  // here.
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(u);
  const int e = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  const double z = (m - 1.0) / (m + 1.0), z2 = z * z;
  // Divided by the compiler: thirteen divisions would cost more than all else here.
  static constexpr double kTerms[] = {1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17,
                                      1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,  1.0 / 7,
                                      1.0 / 5,  1.0 / 3,  1.0};
  double sum = 0;
#pragma GCC unroll 13
  for (const double term : kTerms) sum = sum * z2 + term;
  return -(2.0 * z * sum + e * 0.69314718055994530942);
}

PatternTraffic::PatternTraffic(const PatternWorkload& workload, DestinationPattern pattern,
                               std::uint64_t seed, HubServices& hub, std::uint64_t token)
    : workload_(workload),
      pattern_(pattern),
      random_(seed, fmt::format("node/{}/traffic", hub.context().node)),
      hub_(hub),
      context_(hub.context()),
      token_(token) {
  if (workload.measure > 0) {
    measure_from_ = context_.now + workload.warm_up;
    measure_to_ = measure_from_ + workload.measure;
  }
  // Load 1.0 is 96 GB/s per hub: one flit per W flit time.
  const double flits = static_cast<double>(workload.message_bytes) / kFlitBytes;
  if (workload.load > 0) {
    mean_gap_ps_ = flits * static_cast<double>(context_.parameters->w_flit_time) / workload.load;
  }
}

void PatternTraffic::Start() {
  if (pattern_.silent()) return;
  sending_ = true;
  ++context_.work->unfinished;
  if (mean_gap_ps_ > 0) {
    next_ = context_.now + GapOf(NegativeLog(random_.Unit()));
    hub_.SetTimer(next_, token_);
    DrawAhead();
  } else {
    OnBacklogShrunk();
  }
}

// In the order in which one after the other would be drawn.
void PatternTraffic::DrawAhead() {
  std::array<double, kDrawnAhead> draws;
  for (std::size_t i = 0; i < kDrawnAhead; ++i) {
    drawn_[i].to = pattern_.Draw(random_);
    draws[i] = random_.Unit();
  }
  for (double& draw : draws) draw = NegativeLog(draw);
  for (std::size_t i = 0; i < kDrawnAhead; ++i) drawn_[i].gap = GapOf(draws[i]);
  next_drawn_ = 0;
}

void PatternTraffic::OnTimer(std::uint64_t) {
  if (!sending_) return;
  if ((measure_to_ > 0 && next_ >= measure_to_) || !more()) {
    Finish();
    return;
  }
  SendOne(Next().to);
  if (!more()) {
    Finish();
    return;
  }
  next_ += Next().gap;
  if (++next_drawn_ == kDrawnAhead) DrawAhead();
  hub_.SetTimer(next_, token_);
  hub_.Expect(Next().to, SpreadWindow(sent_, *context_.parameters));
}

void PatternTraffic::OnBacklogShrunk() {
  if (!sending_ || mean_gap_ps_ > 0) return;
  while (more() && hub_.backlog() < kBacklog) SendOne(pattern_.Draw(random_));
  if (!more()) Finish();
}

void PatternTraffic::SendOne(NodeId to) {
  const WindowId window = SpreadWindow(sent_++, *context_.parameters);
  const bool verified = workload_.payload == PayloadMode::kVerified;
  if (Measuring()) context_.stats.measured_bytes_offered += workload_.message_bytes;
  if (workload_.reliable) {
    hub_.SendMessage({to, window, window, workload_.message_bytes, 0, verified});
  } else {
    hub_.SendRaw(to, window, window, workload_.message_bytes, verified, nullptr);
  }
}

void PatternTraffic::OnRawDelivered(const PacketHeader& header) {
  if (Measuring()) context_.stats.measured_bytes_accepted += header.bytes;
}

void PatternTraffic::OnMessage(const DeliveredMessage& message) {
  if (Measuring()) context_.stats.measured_bytes_accepted += message.bytes;
}

void PatternTraffic::Finish() {
  if (!sending_) return;
  sending_ = false;
  --context_.work->unfinished;
}

void PatternTraffic::Stop() { Finish(); }

}  // namespace percs
