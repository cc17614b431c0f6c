// Synthetic traffic of one hub: open loop at a load, closed by what is outstanding, or a fixed
// count.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/workload/hub_workload.h"
#include "emulator/workload/injection.h"
#include "emulator/workload/patterns.h"

namespace percs {

class PatternTraffic final : public HubWorkload {
 public:
  // `patterns`: of the hub, or of each of its endpoints. `token`: of its timers.
  PatternTraffic(const PatternWorkload& workload, std::vector<DestinationPattern> patterns,
                 std::uint64_t seed, HubServices& hub, std::uint64_t token);
  void Start() override;
  void OnTimer(std::uint64_t token) override;
  void OnRawDelivered(const PacketHeader& header) override;
  void OnMessage(const DeliveredMessage& message) override;
  void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) override;
  void OnBacklogShrunk() override;
  void Stop() override;

 private:
  static constexpr std::size_t kBacklog = 128;
  // Reliable messages under way where neither a load nor `outstanding` bounds them: a flow keeps
  // all that it was given.
  static constexpr std::uint64_t kOpenMessages = 4096;
  // Between endpoints, or between hubs: then the windows are spread over all ports of the HFIs.
  void SendOne(int from_endpoint, NodeId place);
  NodeId HubOf(NodeId place) const {
    return endpoints_ < 2 ? place : place / static_cast<NodeId>(endpoints_);
  }
  // Of what is sent next, or after so many more.
  WindowId WindowOf(int endpoint, std::uint64_t ahead = 0) const {
    return SpreadWindow(endpoints_ > 0 ? static_cast<std::uint64_t>(endpoint) : sent_ + ahead,
                        *context_.parameters);
  }
  void Accept(std::uint64_t bytes);  // in the measurement phase
  // Destination of a packet, and the gap after it.
  struct Drawn {
    NodeId to = kNoNode;
    Time gap = 0;
  };
  // Several at once, so that the processor works on their logarithms side by side.
  static constexpr std::size_t kDrawnAhead = 8;
  // A hub, or an endpoint of it.
  struct Source {
    int endpoint = 0;
    DestinationPattern pattern;
    std::optional<InjectionProcess>
        injection;  // none: as fast as the HFI, or `outstanding`, lets it
    Time next = 0;
    std::array<Drawn, kDrawnAhead> drawn = {};
    std::size_t next_drawn = 0;
  };
  void DrawAhead(Source& source);
  Source& Earliest() { return sources_.size() == 1 ? sources_[0] : EarliestOfAll(); }
  Source& EarliestOfAll();
  void SetTimer(const Source& source);
  bool more() const { return sending_ && (workload_.count == 0 || sent_ < workload_.count); }
  void Finish();
  bool Measuring() const { return context_.now >= measure_from_ && context_.now < measure_to_; }

  const PatternWorkload& workload_;
  std::vector<Source> sources_;  // that are not silent
  const int endpoints_;          // of each hub; 0: traffic is between hubs
  RandomStream random_;
  HubServices& hub_;
  NodeContext& context_;
  const bool by_part_;  // bytes of each part of the phase count, not only of the whole
  Time measure_from_ = 0, measure_to_ = 0;  // the measurement phase, empty if there is none
  Time send_to_ = 0;                        // nothing is offered from then on; 0: no such time
  std::uint64_t sent_ = 0, done_ = 0;       // messages; known to be delivered, or given up
  bool sending_ = false;
  const std::uint64_t token_;
};

}  // namespace percs
