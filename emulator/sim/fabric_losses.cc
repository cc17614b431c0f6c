// Hubs that are lost with their process, and rejoin.
#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/management/network_manager.h"
#include "emulator/sim/fabric_shard.h"

namespace percs {

void Fabric::Sever(const SeveredHubs& severed) {
  losses_.Sever(severed);
  for (const NodeId node : severed.from) {
    Hub* hub = HubAt(node);
    for (PortId port = 0; hub && port < kLinkPorts; ++port) {
      const OutputPort& out = hub->isr().output(port);
      if (!out.connected || !losses_.Severed(node, out.peer)) continue;
      hub->isr().SetWay(port, nullptr, &shards_[shard_of_[node]].nowhere);
    }
  }
}

void Fabric::Lose(const LostHubs& lost) {
  TakeAway(lost.nodes);
  losses_.Lose(lost, topology_.nodes());
  if (!manager_) return;
  manager_->Lose(lost);
  faults_->Lose(lost.nodes, lost.at);
}

void Fabric::Adopt(const LossRecord& losses) {
  losses_ = losses;
  TakeAway(local_nodes());
}

void Fabric::TakeAway(const std::vector<NodeId>& nodes) {
  const auto is_lost = [&](NodeId node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  std::erase_if(local_, [&](Hub* hub) { return is_lost(hub->context().node); });
  std::erase_if(local_blades_,
                [&](EdgeNode* blade) { return is_lost(blade->network().context().node); });
  for (Shard& shard : shards_) {
    for (auto& hub : shard.hubs) {
      if (is_lost(hub->context().node)) gone_.push_back(std::move(hub));
    }
    std::erase(shard.hubs, nullptr);
    for (auto& blade : shard.blades) {
      if (is_lost(blade->network().context().node)) gone_blades_.push_back(std::move(blade));
    }
    std::erase(shard.blades, nullptr);
  }
}

absl::StatusOr<RejoinedHubs> Fabric::Readmit(std::uint32_t loss, const std::string& who, Time at) {
  if (!manager_) return absl::FailedPreconditionError("network management runs in another process");
  auto rejoined = losses_.Returning(loss, topology_);
  if (!rejoined.ok()) return rejoined;
  const auto generation = faults_->NewGeneration();
  if (!generation.ok()) return generation.status();
  rejoined->who = who;
  rejoined->at = at;
  rejoined->generation = *generation;
  rejoined->epoch = manager_->installed_epoch();
  for (const NodeId node : rejoined->nodes) rejoined->tables.push_back(manager_->tables(node));
  rejoined->faults = faults_->ActingOn(rejoined->nodes, at);
  return rejoined;
}

void Fabric::Rejoin(const RejoinedHubs& rejoined) {
  now_ = std::max(now_, rejoined.at);
  losses_.Rejoin(rejoined);
  TakeBack(rejoined);
  if (manager_) {
    faults_->Rejoin(rejoined.nodes);
    manager_->Rejoin(rejoined);
  }
  Exchange();
}

// The new hubs, and what the other hubs of this process have to know of them.
void Fabric::TakeBack(const RejoinedHubs& rejoined) {
  const std::vector<Hub*> others = local_;
  for (const NodeId node : rejoined.nodes) {
    if (placement_.process_of_node[node] != placement_.self) continue;
    hubs_[node] = MakeHub(node, shards_[shard_of_[node]]);
    local_.push_back(hubs_[node]);
  }
  const auto by_node = [](const auto& a, const auto& b) {
    return a->context().node < b->context().node;
  };
  std::sort(local_.begin(), local_.end(), by_node);
  for (Shard& shard : shards_) std::sort(shard.hubs.begin(), shard.hubs.end(), by_node);
  FaultAction peer_anew;
  peer_anew.kind = FaultAction::Kind::kPeerAnew;
  peer_anew.at = rejoined.at;
  for (const NodeId node : rejoined.nodes) {
    peer_anew.peer.node = node;
    for (Hub* hub : others) {
      peer_anew.end.node = hub->context().node;
      PERCS_CHECK(injector_.Inject(peer_anew, now_).ok());
      for (PortId port = 0; port < kLinkPorts; ++port) {
        const OutputPort& out = hub->isr().output(port);
        if (!out.connected || out.peer != node) continue;
        const auto [local, outbox] = WayTo(hub->context().node, node);
        hub->isr().SetWay(port, local, outbox);
      }
    }
  }
  for (std::size_t i = 0; i < rejoined.nodes.size(); ++i) {
    Hub* hub = HubAt(rejoined.nodes[i]);
    if (!hub) continue;
    Wire(hub);
    hub->isr().router().Install(rejoined.tables[i], rejoined.epoch);
    hub->Rejoin(rejoined);
  }
  for (const FaultAction& action :
       ActionsOf(rejoined, topology_, [this](NodeId node) { return losses_.IsLost(node); })) {
    PERCS_CHECK(injector_.Inject(action, now_).ok());
  }
  PERCS_CHECK(injector_.TellAgain(rejoined, now_).ok());
}

}  // namespace percs
