// Some hubs of one supernode with trees over them, driven by hand: calls of CauPort, what listeners
// hear, and what is told to network management.
#pragma once

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/node/hub.h"
#include "emulator/routing/planner.h"

namespace percs::test {

class Ear final : public CauListener {
 public:
  void OnCauReduced(CauTreeId tree, std::uint32_t sequence, const CauPayload& payload) override {
    reduced[{tree, sequence}] = payload;
  }
  void OnCauMulticast(CauTreeId tree, std::uint32_t sequence, const CauPayload& payload) override {
    multicast[{tree, sequence}] = payload;
    order.push_back(sequence);
  }
  void OnCauFailed(CauTreeId tree, CauOperation operation, std::uint32_t sequence,
                   const absl::Status& why) override {
    failed[{tree, operation, sequence}] = why;
  }
  void OnCauTreeDown(CauTreeId, const absl::Status& why) override { down.push_back(why); }
  void OnCauTreeUp(CauTreeId, const std::vector<NodeId>& participants) override {
    up.push_back(participants);
  }

  std::map<std::pair<CauTreeId, std::uint32_t>, CauPayload> reduced, multicast;
  std::map<std::tuple<CauTreeId, CauOperation, std::uint32_t>, absl::Status> failed;
  std::vector<std::uint32_t> order;  // of multicasts
  std::vector<absl::Status> down;
  std::vector<std::vector<NodeId>> up;
};

class CauHubs {
 public:
  explicit CauHubs(NodeId count, P7ihParameters parameters = {})
      : topology_(
            *Topology::Create({.supernodes = 1, .drawers = 1, .hubs = static_cast<int>(count)})),
        ears(count) {
    scenario_.topology = topology_.spec();
    scenario_.parameters = parameters;
    const TableSet tables = Planner(topology_).Plan(Failures());
    for (NodeId node = 0; node < count; ++node) {
      hubs_.push_back(std::make_unique<Hub>(node, scenario_, topology_, &work_, &observer_));
      hubs_[node]->isr().router().Install(tables[node], 1);
      hubs_[node]->SetControlOutbox(
          [this](ControlItem&& item) { told.push_back(std::move(item)); });
    }
    for (NodeId node = 0; node < count; ++node) {
      for (PortId port = 0; port < kLinkPorts; ++port) {
        const LinkEnd peer = topology_.Peer(node, port);
        if (peer.node != kNoNode)
          hubs_[node]->isr().Connect(port, peer, &hubs_[peer.node]->isr(), &outbox_);
      }
    }
  }

  // A tree over the first `members` hubs, with all of them attached.
  absl::Status AddTree(CauTreeId id, TreeSpec spec) {
    auto plan = PlanTree(topology_, spec, [](NodeId, NodeId) { return true; });
    if (!plan.ok()) return plan.status();
    plan->id = id;
    const auto shared = std::make_shared<const TreePlan>(*std::move(plan));
    for (const auto& hub : hubs_) {
      if (absl::Status status = hub->AddTree(shared); !status.ok()) return status;
    }
    for (const NodeId node : spec.members) {
      if (absl::Status status = cau(node).Attach(id, &ears[node]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  static TreeSpec First(NodeId members, int fan_out = 8) {
    TreeSpec spec{.name = "tree", .fan_out = fan_out};
    for (NodeId node = 0; node < members; ++node) spec.members.push_back(node);
    return spec;
  }

  CauPort& cau(NodeId node) { return *hubs_[node]->cau(); }
  Hub& hub(NodeId node) { return *hubs_[node]; }
  const Topology& topology() const { return topology_; }
  Time now() const { return now_; }
  std::int64_t unfinished() const { return work_.unfinished; }

  // Until nothing happens any more, or `end`.
  void Run(Time end = kSecond) {
    for (const auto& hub : hubs_) hub->Start();
    while (true) {
      Time next = kNever;
      for (const auto& hub : hubs_) next = std::min(next, hub->next_time());
      if (next >= end) break;
      now_ = next + 55 * kNanosecond;
      for (const auto& hub : hubs_) hub->Run(now_);
    }
    // Calls that follow come at one time on all hubs.
    now_ = std::max(now_, end == kSecond ? now_ : end);
    for (const auto& hub : hubs_) hub->context().now = now_;
  }
  // Both ends of the link between two hubs go down or up, from `at` on.
  void SetLink(NodeId a, NodeId b, bool up, Time at) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      ControlItem item;
      item.kind = ControlItem::Kind::kFault;
      item.target = from;
      item.port = topology_.LPort(from, to);
      item.action.begins = !up;
      item.action.end = {from, item.port};
      item.arrival = at;
      hubs_[from]->Receive(item);
    }
  }

  std::uint64_t Count(CauCounter counter) {
    std::uint64_t sum = 0;
    for (const auto& hub : hubs_) sum += hub->context().stats.Cau(counter);
    return sum;
  }

 private:
  const Topology topology_;
  Scenario scenario_;
  WorkCounters work_;
  DeliveryObserver observer_;
  Outbox outbox_;
  std::vector<std::unique_ptr<Hub>> hubs_;
  Time now_ = 0;

 public:
  std::vector<Ear> ears;
  std::vector<ControlItem> told;  // to network management
};

template <typename T>
CauPayload PayloadOf(std::initializer_list<T> values) {
  CauPayload payload;
  for (const T value : values) {
    std::memcpy(payload.bytes.data() + payload.size, &value, sizeof(T));
    payload.size = static_cast<std::uint8_t>(payload.size + sizeof(T));
  }
  return payload;
}
template <typename T>
T ValueOf(const CauPayload& payload, int i = 0) {
  T value;
  std::memcpy(&value, payload.bytes.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

}  // namespace percs::test
