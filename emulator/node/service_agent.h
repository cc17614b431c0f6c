// The software behind a hub's service port (docs/semantics.md B.10): it asks other hubs for an
// answer, and its neighbours who they are, and answers what it is asked. Answers may be lost, as
// requests may: it asks again.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "emulator/isr/isr.h"
#include "emulator/scenario/scenario.h"

namespace percs {

// INVALID_ARGUMENT for a ping from or to what is no hub, or less than one.
absl::Status CheckPing(const ServicePing& ping, const Topology& topology);
// INVALID_ARGUMENT for such a ping, no try, no time to wait, too many requests.
absl::Status CheckService(const ServiceTraffic& traffic, const Topology& topology);

class ServiceAgent {
 public:
  static constexpr std::uint64_t kRequestsMax = 1'000'000;  // of one hub

  // What was found over a port (node << 8 | port), and whether that is what the wiring has there.
  using TellWiring = std::function<void(PortId, std::uint64_t found, bool right)>;

  // `tell_wiring` is called when a probe's answer does not fit the wiring, and when one does so
  // again; not for every answer.
  ServiceAgent(NodeContext& context, Isr& isr, const ServiceTraffic& traffic,
               TellWiring tell_wiring);
  void Start();
  // In the middle of a run: asks what is due from `now` on, with packets numbered from `first`.
  void StartAt(Time now, std::uint64_t first);
  // Request number `id` is due: for the first time, or because no answer arrived.
  void OnTimer(std::uint64_t id);
  // One that the service port gave out; `in` is where it came into the ISR.
  void OnPacket(const PacketHeader& header, PortId in);

 private:
  // In PacketHeader::tag, beside kServiceDirected.
  static constexpr std::uint32_t kAnswer = 2;
  struct Request {
    Time at = 0;
    NodeId to = kNoNode;    // for a probe, as far as the wiring is known here
    PortId port = kNoPort;  // of a probe: the link it asks over
    int tries = 0;
    Time sent = 0;
    bool done = false;
  };
  void Send(NodeId to, PortId port, std::uint32_t tag, std::uint64_t id, std::uint64_t identity);
  void OnAnswer(const PacketHeader& header, Request& request);
  static std::uint64_t Identity(NodeId node, PortId port) {
    return std::uint64_t{node} << 8 | port;
  }

  NodeContext& context_;
  Isr& isr_;
  const ServiceTraffic& traffic_;
  TellWiring tell_wiring_;
  std::array<std::uint64_t, kLinkPorts>
      wrong_{};  // what was found last where the wiring has something else; 0: none
  std::vector<Request> requests_;
  std::uint64_t sequence_ = std::uint64_t{1} << 62;  // apart from the packets of the HFIs
};

}  // namespace percs
