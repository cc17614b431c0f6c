#include "daemon/node/host.h"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/config/log.h"
#include "daemon/sync/answer_codec.h"
#include "daemon/sync/placement.h"
#include "daemon/sync/rejoin_codec.h"
#include "fmt/format.h"
#include "proto/convert/node_result.h"
#include "proto/process/bytes_of.h"
#include "proto/process/out_of_memory.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/trace_codec.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

// Management batches carry no flits, so no packet stays open.
constexpr std::size_t kNoOpenPackets = 0;

// The clock is looked at after stretches of virtual time that take about a quarter of a slice. Most
// windows are shorter than the first one.
constexpr Time kFirstStretch = kMicrosecond;
constexpr auto kStretchMax = Host::kSlice / 4;
constexpr auto kStretchMin = Host::kSlice / 16;

}  // namespace

void Host::Configure(const v1::Configure& message, LinkIdentity self) {
  Drop();
  run_ = message.run();
  attempt_ = message.attempt();
  self.run = run_;
  absl::Status status =
      WithinMemory("building the hubs of the scenario", [&] { return Build(message, self); });
  if (!status.ok()) return Fail(status);
  Progress();
}

absl::Status Host::Build(const v1::Configure& message, const LinkIdentity& self) {
  auto scenario = BuildScenario(message.scenario(), "");
  if (!scenario.ok()) return scenario.status();
  auto topology = percs::Topology::Create(scenario->topology);
  if (!topology.ok()) return topology.status();
  auto placement =
      MakePlacement(topology->nodes(), message.nodes_per_process(), static_cast<int>(self.process));
  if (!placement.ok()) return placement.status();
  auto fabric = Fabric::Create(*scenario, *placement);
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  nodes_ = places_ = fabric_->local_nodes();
  manager_ = static_cast<std::uint32_t>(placement->manager_process);
  if (absl::Status status = InstallTables(message); !status.ok()) return status;
  if (message.has_trace()) {
    const auto selection = SelectionFromProto(message.trace(), *topology);
    if (!selection.ok()) return selection.status();
    fabric_->Trace(*selection);
  }
  if (message.lost().empty()) {
    fabric_->Start();
  } else {
    const auto losses = LossesFromProto(message, *topology);
    if (!losses.ok()) return losses.status();
    fabric_->Adopt(*losses);
    nodes_ = fabric_->local_nodes();
  }
  channels_ = SharedChannels(*topology, *placement, self.process);
  swappable_channels_ = SwappableChannels(*topology, *placement, self.process);
  stretch_ = kFirstStretch;
  return JoinPeers(message, self);
}

absl::Status Host::JoinPeers(const v1::Configure& message, const LinkIdentity& self) {
  std::vector<LinkPeerSpec> specs;
  for (const v1::Peer& peer : message.peers()) {
    specs.push_back(SpecOf(peer));
    AddPeer(peer.process());
  }
  for (const auto& [process, count] : channels_) {
    if (std::find(peers_.begin(), peers_.end(), process) != peers_.end()) continue;
    if (!message.lost().empty()) {
      lost_peers_[process] = 0;
      continue;
    }
    return absl::InvalidArgumentError(fmt::format(
        "the configuration has no address of process {}, which shares links with process {}",
        process, self.process));
  }
  mesh_->Join(self, specs);
  return absl::OkStatus();
}

LinkPeerSpec Host::SpecOf(const v1::Peer& peer) const {
  const auto shared = channels_.find(peer.process());
  return {peer.process(), peer.link_address(), peer.incarnation(),
          (shared == channels_.end() ? 0 : shared->second) + swappable_channels_, peer.name()};
}

void Host::AddPeer(std::uint32_t process) {
  lost_peers_.erase(process);
  if (std::find(peers_.begin(), peers_.end(), process) == peers_.end()) peers_.push_back(process);
}

absl::Status Host::InstallTables(const v1::Configure& message) {
  std::shared_ptr<const HubTables> tables;
  std::size_t installed = 0;
  for (const v1::NodeTables& entry : message.tables()) {
    const bool here = std::binary_search(nodes_.begin(), nodes_.end(), entry.node());
    if (!here) {
      return absl::InvalidArgumentError(
          fmt::format("route tables for node {}, which is not in this process", entry.node()));
    }
    if (!entry.tables().empty()) {
      auto parsed = HubTables::Parse(BytesOf(entry.tables()));
      if (!parsed.ok()) return parsed.status();
      tables = std::make_shared<const HubTables>(*std::move(parsed));
    }
    if (!tables || tables->Hash() != entry.hash()) {
      return absl::DataLossError(
          fmt::format("route tables of node {} have hash {:016x}, not {:016x}", entry.node(),
                      tables ? tables->Hash() : 0, entry.hash()));
    }
    fabric_->InstallTables(entry.node(), tables);
    ++installed;
  }
  if (installed == nodes_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("route tables for {} hubs, but this process has {}", installed, nodes_.size()));
}

void Host::Drop(const absl::Status& why) {
  programs_->End(why);
  mesh_->Leave();
  fabric_.reset();
  nodes_.clear();
  peers_.clear();
  lost_peers_.clear();
  after_window_.clear();
  answer_.reset();
  ++computed_;
  ready_ = granted_ = computing_ = ranks_run_ = false;
}

void Host::Fail(const absl::Status& status) {
  if (!fabric_ && ready_) return;
  auto message = events_.prepare();
  v1::Failure* failure = message->mutable_failure();
  failure->set_run(run_);
  failure->set_attempt(attempt_);
  failure->set_code(static_cast<std::uint32_t>(status.raw_code()));
  failure->set_message(std::string(status.message()));
  Drop(status);
  events_.send(std::move(message));
}

void Host::TellUnreachable(const std::vector<v1::UnreachablePeer>& peers) {
  auto message = events_.prepare();
  message->mutable_link_state()->set_run(run_);
  message->mutable_link_state()->mutable_unreachable()->Assign(peers.begin(), peers.end());
  events_.send(std::move(message));
}

void Host::Grant(v1::WindowGrant* grant) {
  if (!fabric_) return;  // the run was dropped here, and the controller is about to learn it
  if (!ready_ || granted_ || computing_) {
    return Fail(
        absl::FailedPreconditionError("a window was granted before the last one was reported"));
  }
  if (grant->batches_size() != grant->peers_size() ||
      grant->carried_size() != grant->peers_size()) {
    return Fail(absl::InvalidArgumentError(
        fmt::format("a grant has {} peers, {} batches and {} that are carried", grant->peers_size(),
                    grant->batches_size(), grant->carried_size())));
  }
  grant_.Swap(grant);
  granted_ = true;
  // Batches wait in the session until the stream is open, and the receiver waits for them: the
  // window need not.
  for (const v1::Peer& peer : grant_.joined()) {
    if (mesh_->peer(peer.process()) == nullptr) mesh_->Add(SpecOf(peer));
    AddPeer(peer.process());
  }
  if (attempt_ != 0 && !programs_->has_hubs()) programs_->Begin(run_, fabric_.get());
  programs_->SetInWindow(true);
  Progress();
}

void Host::Progress() {
  if (!fabric_) return;
  if (!ready_) {
    if (!mesh_->all_reached()) return;
    ready_ = true;
    auto message = events_.prepare();
    message->mutable_ready()->set_run(run_);
    message->mutable_ready()->set_attempt(attempt_);
    v1::WindowReport* report = message->mutable_ready()->mutable_report();
    SendReport(std::move(message), report);
    // A place is taken again only with the first grant: until then the controller does not listen.
    if (attempt_ == 0) programs_->Begin(run_, fabric_.get());
    return;
  }
  if (!granted_ || answer_) return;
  for (int i = 0; i < grant_.peers_size(); ++i) {
    LinkPeer* peer = mesh_->peer(grant_.peers(i));
    if (peer == nullptr) {
      return Fail(absl::InvalidArgumentError(fmt::format(
          "a grant has batches of process {}, to which there is no stream", grant_.peers(i))));
    }
    if (!peer->Arrived(grant_.batches(i))) return;
  }
  granted_ = false;
  absl::Status status = WithinMemory("a window of the run", [this] { return RunGranted(); });
  if (!status.ok()) return Fail(status);
  computing_ = true;
  Compute();
}

absl::Status Host::TakeArrivals() {
  for (int i = 0; i < grant_.peers_size(); ++i) {
    if (absl::Status status = TakeBatch(i); !status.ok()) return status;
  }
  if (grant_.management().empty()) return absl::OkStatus();
  Outbox management;
  OutboxDecoder decoder(kNoOpenPackets);
  absl::Status status = decoder.Decode(BytesOf(grant_.management()), &management);
  return status.ok() ? fabric_->Accept(std::move(management)) : status;
}

absl::Status Host::TakeBatch(int i) {
  LinkPeer* peer = mesh_->peer(grant_.peers(i));
  if (grant_.carried(i).empty()) return peer->Take(grant_.batches(i), Accept());
  return peer->TakeCarried(std::move(*grant_.mutable_carried(i)), Accept());
}

LinkPeer::TakeOutbox Host::Accept() {
  return [this](Outbox&& outbox) { return fabric_->Accept(std::move(outbox)); };
}

void Host::PeerLost(const v1::PeerLost& message) {
  if (computing_ || answer_) return after_window_.push_back([this, message] { PeerLost(message); });
  const std::uint32_t process = message.process();
  LinkPeer* peer = mesh_->peer(process);
  if (fabric_ && peer != nullptr) {
    const absl::StatusOr<std::uint64_t> accepted = TakeLast(process, message.batches());
    if (!accepted.ok()) return Fail(accepted.status());
    lost_peers_[process] = *accepted;
    mesh_->Remove(process);
    std::erase(peers_, process);
  }
  auto reply = events_.prepare();
  reply->mutable_peer_lost()->set_process(process);
  reply->mutable_peer_lost()->set_accepted(lost_peers_.contains(process) ? lost_peers_[process]
                                                                         : 0);
  events_.send(std::move(reply));
  Progress();
}

// Of a lost process: what has arrived, up to this number, in order, and nothing after what has not.
absl::StatusOr<std::uint64_t> Host::TakeLast(std::uint32_t process, std::uint64_t limit) {
  const std::uint64_t accepted = std::min(mesh_->peer(process)->session().received(), limit);
  v1::WindowGrant others = grant_;
  others.clear_peers();
  others.clear_batches();
  others.clear_carried();
  bool missing = !granted_;  // a grant that was run has nothing more
  for (int i = 0; i < grant_.peers_size(); ++i) {
    if (grant_.peers(i) != process) {
      others.add_peers(grant_.peers(i));
      others.add_batches(grant_.batches(i));
      others.add_carried(grant_.carried(i));
      continue;
    }
    missing = missing || grant_.batches(i) > accepted;
    if (missing) continue;
    if (absl::Status status = TakeBatch(i); !status.ok()) return status;
  }
  grant_.Swap(&others);
  absl::Status status = mesh_->peer(process)->Take(accepted, Accept());
  return status.ok() ? absl::StatusOr<std::uint64_t>(accepted) : status;
}

void Host::PeerBack(const v1::PeerBack& message) {
  if (computing_ || answer_) return after_window_.push_back([this, message] { PeerBack(message); });
  const v1::Peer& peer = message.peer();
  if (fabric_) mesh_->Add(SpecOf(peer));
  auto reply = events_.prepare();
  reply->mutable_peer_back()->set_attempt(message.attempt());
  events_.send(std::move(reply));
}

absl::Status Host::TakeRejoin(const v1::RejoinCommand& message) {
  const auto rejoined =
      RejoinFromProto(message, fabric_->topology(), fabric_->scenario().parameters);
  if (!rejoined.ok()) return rejoined.status();
  // Unless it is lost again already.
  if (message.has_process() && mesh_->peer(message.process()) != nullptr) {
    AddPeer(message.process());
    fabric_->outbox(message.process()).Clear();
  }
  for (const NodeId node : rejoined->nodes) {
    const auto has = [node](const std::vector<NodeId>& nodes) {
      return std::binary_search(nodes.begin(), nodes.end(), node);
    };
    if (rejoined->at >= fabric_->now() && !has(nodes_) &&
        !(has(places_) && rejoined->tables.empty()))
      continue;
    return absl::InvalidArgumentError(fmt::format(
        "node {} cannot rejoin at {}: it must be lost and have route tables; virtual time is {}",
        node, FormatTime(rejoined->at), FormatTime(fabric_->now())));
  }
  fabric_->Rejoin(*rejoined);
  nodes_ = fabric_->local_nodes();
  return absl::OkStatus();
}

// Commands replayed for a lost daemon. At one instant hubs rejoin before they are lost again.
absl::Status Host::TakeLosses() {
  for (const v1::SeveredHubs& message : grant_.severed()) {
    for (const auto* nodes : {&message.from(), &message.to()}) {
      if (absl::Status status = CheckNodes(*nodes, fabric_->topology()); !status.ok())
        return status;
    }
    fabric_->Sever(SeveredFromProto(message));
  }
  auto rejoin = grant_.rejoined().begin();
  for (const v1::LostDaemon& message : grant_.lost()) {
    if (absl::Status status = CheckNodes(message.nodes(), fabric_->topology()); !status.ok())
      return status;
    for (; rejoin != grant_.rejoined().end() && rejoin->hubs().loss() < message.number();
         ++rejoin) {
      if (absl::Status status = TakeRejoin(*rejoin); !status.ok()) return status;
    }
    fabric_->Lose(LostFromProto(message, fabric_->now()));
    nodes_ = fabric_->local_nodes();
  }
  for (; rejoin != grant_.rejoined().end(); ++rejoin) {
    if (absl::Status status = TakeRejoin(*rejoin); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Host::TakeCommands() {
  if (const int faults = grant_.part_faults_size() + grant_.fault_actions_size(); faults > 0) {
    spdlog::debug("run {}: {} fault actions in the window from {}", run_, faults,
                  FormatTime(fabric_->now()));
  }
  for (const v1::Fault& message : grant_.part_faults()) {
    const auto fault = BuildBladeFault(message, fabric_->topology());
    if (!fault.ok()) return fault.status();
    if (absl::Status status = fabric_->InjectBladeFault(*fault); !status.ok()) return status;
  }
  for (const v1::FaultActionCommand& message : grant_.fault_actions()) {
    const auto action = ActionFromProto(message);
    if (!action.ok()) return action.status();
    if (absl::Status status = fabric_->Inject(*action); !status.ok()) return status;
  }
  for (const v1::JournalRecord& record : grant_.commands()) {
    if (ScopeOf(record.event_case()) != CommandScope::kHubs && !record.has_stop())
      return absl::InvalidArgumentError("a grant has a command that hubs do not carry out");
    if (absl::Status status = ActOnFabric(record, *fabric_, record.at()); !status.ok())
      return status;
  }
  for (const v1::EndpointGrant& grant : grant_.endpoints()) {
    if (absl::Status status = programs_->Issue(grant); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Host::RunGranted() {
  // Before arrivals, which may be for hubs that rejoin.
  if (absl::Status status = TakeLosses(); !status.ok()) return status;
  if (absl::Status status = TakeArrivals(); !status.ok()) return status;
  if (absl::Status status = TakeCommands(); !status.ok()) return status;
  if (grant_.end() < fabric_->now()) {
    return absl::InvalidArgumentError(fmt::format("a window up to {}; virtual time is already {}",
                                                  FormatTime(grant_.end()),
                                                  FormatTime(fabric_->now())));
  }
  for (const std::uint32_t process : grant_.waiting()) {
    if (process > manager_)
      return absl::InvalidArgumentError(
          fmt::format("process {} waits for credits; there are {}", process, manager_ + 1));
  }
  SetLogTime(grant_.end());
  return absl::OkStatus();
}

void Host::Compute() {
  const absl::StatusOr<bool> over =
      WithinMemory("a window of the run", [this]() -> absl::StatusOr<bool> {
        const bool computed = ComputeSlice();
        if (computed) Report();
        return computed;
      });
  if (!over.ok()) return Fail(over.status());
  if (*over || ranks_run_) return;
  events_.later([this, window = computed_] {
    if (window == computed_) Compute();
  });
}

void Host::OnRanks() {
  if (computing_ && ranks_run_) Compute();
}

bool Host::ComputeSlice() {
  ranks_run_ = false;
  const Clock::time_point begin = events_.now();
  Clock::time_point from = begin;
  while (true) {
    const Time end = fabric_->WindowReach(grant_.end(), grant_.waiting());
    const Time longest = std::min(stretch_, fabric_->lookahead());
    Time start = fabric_->now();
    if (end - start > longest) start = std::clamp(fabric_->NextEventTime(), start, end);
    const Time until = start + std::min(end - start, longest);
    if (programs_->ranks().empty()) {
      fabric_->RunWindow(until);
    } else if (!programs_->ranks().RunWindow(until)) {
      ranks_run_ = true;
      return false;
    }
    const Clock::time_point now = events_.now();
    if (now - from > kStretchMax) stretch_ = std::max<Time>(stretch_ / 2, 1);
    if (now - from < kStretchMin && stretch_ < end - start) stretch_ *= 2;
    if (fabric_->now() >= end) return true;
    if (now - begin >= kSlice) return false;
    from = now;
  }
}

}  // namespace percs
