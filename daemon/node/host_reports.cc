// The part of Host that reports: windows that are over, and answers to the controller's questions.
#include <algorithm>
#include <utility>

#include "daemon/node/host.h"
#include "daemon/sync/answer_codec.h"
#include "fmt/format.h"
#include "proto/convert/node_result.h"
#include "proto/scenario/trace_codec.h"

namespace percs {

void Host::Report() {
  computing_ = false;
  ++computed_;
  auto message = events_.prepare();
  v1::WindowReport* report = message->mutable_report();
  SendOutboxes(report);
  FillReport(report);
  programs_->FillReport(message.get());
  events_.send(std::move(message));
  programs_->SetInWindow(false);
  programs_->TellAll();
  for (const auto& then : std::exchange(after_window_, {})) then();
}

void Host::SendOutboxes(v1::WindowReport* report) {
  for (const std::uint32_t process : peers_) {
    Outbox& outbox = fabric_->outbox(process);
    if (outbox.empty()) continue;
    if (tap_) tap_(process, &outbox);
    report->add_peers(process);
    report->add_arrivals(outbox.EarliestArrival());
    report->add_batches(mesh_->peer(process)->Send(outbox));
    outbox.Clear();
  }
  for (const auto& [process, accepted] : lost_peers_) fabric_->outbox(process).Clear();
  Outbox& management = fabric_->outbox(manager_);
  if (management.empty()) return;
  report->add_peers(manager_);
  report->add_arrivals(management.EarliestArrival());
  report->add_batches(0);
  EncodeOutbox(management, report->mutable_management());
  management.Clear();
}

void Host::FillReport(v1::WindowReport* report) {
  report->set_next_event(fabric_->NextEventTime());
  if (fabric_->topology().spec().clock) report->set_next_foreground(fabric_->NextForegroundTime());
  const WorkLeft left = fabric_->work_left();
  report->set_unfinished(left.unfinished);
  report->set_resident(left.resident_packets);
  std::uint64_t delivered = 0, flits = 0;
  for (const NodeId node : nodes_) {
    const NodeStats& stats = fabric_->stats(node);
    delivered += stats.packets_delivered;
    for (PortId port = 0; port < kServicePort; ++port) flits += stats.ports[port].sum().flits;
  }
  report->set_packets_delivered(delivered);
  report->set_flits_moved(flits);
  report->set_reconnects(mesh_->reconnects());
}

void Host::Collect(const v1::Collect& request) {
  if (computing_) return after_window_.push_back([this, request] { Collect(request); });
  // The controller must not wait for what cannot come.
  if (!fabric_) {
    return Fail(absl::FailedPreconditionError(
        fmt::format("run {} cannot answer: its hubs no longer exist", run_)));
  }
  auto message = events_.prepare();
  switch (request.what()) {
    case v1::Collect::WHAT_RESULTS: {
      v1::NodeResults* results = message->mutable_results();
      results->set_query(request.query());
      for (const NodeId node : nodes_)
        NodeResultToProto(fabric_->Result(node), results->add_nodes());
      programs_->End(absl::FailedPreconditionError(
          fmt::format("run {} ended at {} of virtual time", run_, FormatTime(fabric_->now()))));
      break;
    }
    case v1::Collect::WHAT_SNAPSHOT: {
      v1::Snapshot* snapshot = message->mutable_snapshot();
      snapshot->set_query(request.query());
      for (const NodeId node : nodes_) {
        const auto& wanted = request.nodes();
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), node) == wanted.end())
          continue;
        NodeStateToProto(StateOf(*fabric_, node), snapshot->add_nodes());
      }
      break;
    }
    case v1::Collect::WHAT_WAIT_EDGES: {
      v1::WaitEdges* edges = message->mutable_wait_edges();
      edges->set_query(request.query());
      WaitEdgesToProto(fabric_->WaitEdges(), edges);
      for (std::string& text : fabric_->BlockedPrograms()) edges->add_blocked(std::move(text));
      programs_->End(absl::FailedPreconditionError(
          fmt::format("run {} ended at {} of virtual time: nothing in it can proceed", run_,
                      FormatTime(fabric_->now()))));
      break;
    }
    case v1::Collect::WHAT_TRACE:
      message->mutable_trace()->set_query(request.query());
      EventsToProto(fabric_->TraceEvents(), message->mutable_trace()->mutable_events());
      break;
    default:
      return Fail(absl::UnimplementedError(
          fmt::format("the controller requests {}, which this version does not have",
                      static_cast<int>(request.what()))));
  }
  events_.send(std::move(message));
}

HostState Host::State() const {
  HostState state;
  state.reconnects = mesh_->reconnects();
  state.endpoints = programs_->Stats();
  if (!fabric_) return state;
  state.topology = fabric_->topology();
  state.now = fabric_->now();
  state.nodes.reserve(nodes_.size());
  for (const NodeId node : nodes_) state.nodes.push_back(StateOf(*fabric_, node));
  return state;
}

}  // namespace percs
