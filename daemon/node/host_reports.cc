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
  programs_->FillReport(message.get());
  v1::WindowReport* report = message->mutable_report();
  SendReport(std::move(message), report);
  programs_->SetInWindow(false);
  programs_->TellAll();
  for (const auto& then : std::exchange(after_window_, {})) then();
}

// The controller gets ready for the next windows while batches are on their way: the report leaves
// before them.
void Host::SendReport(std::unique_ptr<v1::DaemonMessage> message, v1::WindowReport* report) {
  auto batches = EmptyOutboxes(report);
  FillReport(report);
  events_.send(std::move(message));
  for (auto& [peer, batch] : batches) peer->Send(std::move(batch));
}

std::vector<std::pair<LinkPeer*, std::string>> Host::EmptyOutboxes(v1::WindowReport* report) {
  std::vector<std::pair<LinkPeer*, std::string>> batches;
  for (const std::uint32_t process : peers_) {
    Outbox& outbox = fabric_->outbox(process);
    if (outbox.empty()) continue;
    if (tap_) tap_(process, &outbox);
    report->add_peers(process);
    report->add_arrivals(outbox.EarliestEvent());
    report->add_credits(outbox.EarliestCredit());
    std::string& batch = *report->add_carried();
    EncodeOutbox(outbox, &batch);
    outbox.Clear();
    LinkPeer* peer = mesh_->peer(process);
    if (batch.size() <= events_.carried_bytes_max) {
      report->add_batches(0);
      peer->CountCarried();
    } else {
      report->add_batches(peer->next_batch());
      batches.emplace_back(peer, std::move(batch));
      batch.clear();
    }
  }
  for (const auto& [process, accepted] : lost_peers_) fabric_->outbox(process).Clear();
  Outbox& management = fabric_->outbox(manager_);
  if (management.empty()) return batches;
  report->add_peers(manager_);
  report->add_arrivals(management.EarliestArrival());
  report->add_credits(kNever);
  report->add_batches(0);
  report->add_carried();
  EncodeOutbox(management, report->mutable_management());
  management.Clear();
  return batches;
}

void Host::FillReport(v1::WindowReport* report) {
  if (fabric_->now() < grant_.end()) report->set_reached(fabric_->now());
  for (const std::uint32_t process : fabric_->AwaitedForCredits()) report->add_waits_for(process);
  const Time ranks = programs_->ranks().next();
  const Time next = std::min(fabric_->NextEventTime(), ranks), crossing = fabric_->crossing();
  report->set_next_event(next);
  const Time output = std::min(fabric_->EarliestOutput(), ranks + crossing);
  if (output > next + crossing) report->set_earliest_output(output);
  if (fabric_->scenario().has_background())
    report->set_next_foreground(std::min(fabric_->NextForegroundTime(), ranks));
  const WorkLeft left = fabric_->work_left();
  report->set_unfinished(left.unfinished);
  report->set_resident(left.resident_packets);
  report->set_packets_delivered(fabric_->packets_delivered());
  report->set_flits_moved(fabric_->flits_moved());
  report->set_reconnects(mesh_->reconnects());
}

void Host::Collect(const v1::Collect& request) {
  if (computing_ || answer_) return after_window_.push_back([this, request] { Collect(request); });
  // The controller must not wait for an answer that cannot come.
  if (!fabric_) {
    return Fail(absl::FailedPreconditionError(
        fmt::format("run {} cannot answer: its hubs no longer exist", run_)));
  }
  if (request.what() == v1::Collect::WHAT_SNAPSHOT) {
    answer_ = Answer{request};
    return SendSnapshot();
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
    case v1::Collect::WHAT_WAIT_EDGES: {
      v1::WaitEdges* edges = message->mutable_wait_edges();
      edges->set_query(request.query());
      WaitEdgesToProto(fabric_->WaitEdges(), edges);
      edges->set_last_event(fabric_->last_event());
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

void Host::SendSnapshot() {
  const Clock::time_point start = events_.now();
  auto message = events_.prepare();
  v1::Snapshot* snapshot = message->mutable_snapshot();
  snapshot->set_query(answer_->request.query());
  const auto& wanted = answer_->request.nodes();
  std::size_t& next = answer_->next;
  for (bool over = false; next < nodes_.size() && !over; over = events_.now() - start >= kSlice) {
    const NodeId node = nodes_[next++];
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), node) == wanted.end()) continue;
    NodeStateToProto(StateOf(*fabric_, node), snapshot->add_nodes());
  }
  const bool more = next < nodes_.size();
  snapshot->set_more(more);
  events_.send(std::move(message));
  if (more) {
    return events_.later([this, window = computed_] {
      if (window == computed_) SendSnapshot();
    });
  }
  answer_.reset();
  for (const auto& then : std::exchange(after_window_, {})) then();
  Progress();
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
