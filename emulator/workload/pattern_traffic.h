// Synthetic traffic of one hub: open loop at a load, or a fixed count.
#pragma once

#include <algorithm>
#include <array>

#include "emulator/base/random.h"
#include "emulator/workload/hub_workload.h"
#include "emulator/workload/patterns.h"

namespace percs {

// -ln(u) for u in (0, 1], from +, * and / only: the same bits on every host, as the digest needs.
double NegativeLog(double u);

class PatternTraffic final : public HubWorkload {
 public:
  // `token`: of its timers.
  PatternTraffic(const PatternWorkload& workload, DestinationPattern pattern, std::uint64_t seed,
                 HubServices& hub, std::uint64_t token);
  void Start() override;
  void OnTimer(std::uint64_t token) override;
  void OnRawDelivered(const PacketHeader& header) override;
  void OnMessage(const DeliveredMessage& message) override;
  void OnBacklogShrunk() override;
  void Stop() override;

 private:
  static constexpr std::size_t kBacklog = 128;
  void SendOne(NodeId to);
  // Destination of a packet, and the gap after it.
  struct Drawn {
    NodeId to = kNoNode;
    Time gap = 0;
  };
  // Several at once, so that the processor works on their logarithms side by side.
  static constexpr std::size_t kDrawnAhead = 8;
  void DrawAhead();
  const Drawn& Next() const { return drawn_[next_drawn_]; }
  bool more() const { return sending_ && (workload_.count == 0 || sent_ < workload_.count); }
  void Finish();
  Time GapOf(double negative_log) const {
    return std::max<Time>(1, static_cast<Time>(mean_gap_ps_ * negative_log));
  }
  bool Measuring() const { return context_.now >= measure_from_ && context_.now < measure_to_; }

  const PatternWorkload& workload_;
  DestinationPattern pattern_;
  RandomStream random_;
  HubServices& hub_;
  NodeContext& context_;
  Time measure_from_ = 0, measure_to_ = 0;  // the measurement phase, empty if there is none
  double mean_gap_ps_ = 0;
  std::uint64_t sent_ = 0;
  Time next_ = 0;
  std::array<Drawn, kDrawnAhead> drawn_;
  std::size_t next_drawn_ = 0;
  bool sending_ = false;
  const std::uint64_t token_;
};

}  // namespace percs
