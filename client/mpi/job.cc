#include "client/mpi/job.h"

#include <algorithm>
#include <utility>

#include "emulator/base/check.h"
#include "emulator/routing/planner.h"
#include "fmt/format.h"

namespace percs::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kListenMilliseconds = 100;
constexpr std::size_t kNamedMax = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> Job::Start(JobOptions options) {
  std::unique_ptr<Job> job(new Job(std::move(options)));
  if (absl::Status status = job->Build(); !status.ok()) return status;
  if (absl::Status status = job->Listen(); !status.ok()) return status;
  job->thread_ = std::thread([raw = job.get()] { raw->Serve(); });
  return job;
}

absl::Status Job::MakeFabric() {
  const auto topology = Topology::Create(options_.machine.topology);
  if (!topology.ok()) return topology.status();
  Scenario machine = options_.machine;
  const TreeSpec world = WorldTree(options_.places);
  if (options_.collective_bytes > 0 && !world.members.empty())
    machine.trees.insert(machine.trees.begin(), world);
  auto fabric = Fabric::Create(machine, Placement::Single(topology->nodes()));
  if (!fabric.ok()) return fabric.status();
  own_fabric_ = *std::move(fabric);
  fabric_ = own_fabric_.get();
  const TableSet tables = Planner(fabric_->topology()).Plan(Failures());
  for (NodeId node = 0; node < topology->nodes(); ++node)
    fabric_->InstallTables(node, tables[node]);
  return absl::OkStatus();
}

absl::Status Job::Build() {
  if (fabric_ == nullptr) {
    if (absl::Status status = MakeFabric(); !status.ok()) return status;
  }
  const int windows = kHfisPerHub * fabric_->scenario().parameters.windows_per_hfi;
  for (const RankPlace& place : options_.places) {
    if (place.hub < topology().hubs() && place.window < windows) continue;
    return absl::InvalidArgumentError(
        fmt::format("a rank at window {} of {}, which has {} windows; use more hubs, or raise "
                    "parameters.windows_per_hfi",
                    place.window, topology().NodeName(place.hub), windows));
  }
  const TransportParameters& costs = options_.transport;
  cost_min_ = std::min({costs.send_cost, costs.post_cost, costs.poll_cost});
  window_ = std::min(fabric_->lookahead(), cost_min_);
  transport_ =
      std::make_unique<Transport>(*fabric_, options_.places, options_.job, costs, window_, *this);
  if (options_.collective_bytes > 0) {
    CollectiveTrees trees;
    trees.makes = own_fabric_ != nullptr;
    if (!WorldTree(options_.places).members.empty()) trees.world = options_.world_tree;
    collectives_ = std::make_unique<Collectives>(*fabric_, options_.places, trees, *transport_,
                                                 *this, options_.transport.host);
  }
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    rank_of_peer_[PeerOf(options_.places[r].hub, options_.places[r].window)] = r;
  return absl::OkStatus();
}

absl::Status Job::Listen() {
  std::vector<RankSeat> seats;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const RankPlace& place = options_.places[r];
    seats.push_back({PeerOf(place.hub, place.window), topology().NodeName(place.hub), here(r)});
  }
  const TransportParameters& costs = options_.transport;
  Welcome welcome;
  welcome.ranks = static_cast<std::uint32_t>(seats.size());
  welcome.eager_bytes = costs.eager_bytes;
  welcome.message_max = costs.message_max;
  welcome.send_cost = costs.send_cost;
  welcome.post_cost = costs.post_cost;
  welcome.poll_cost = costs.poll_cost;
  welcome.copy_per_kib = costs.host.write_per_kib;
  welcome.compute_scale = options_.compute_scale;
  welcome.collective_bytes = options_.collective_bytes;
  welcome.looks = seats.size() <= std::thread::hardware_concurrency();
  auto server = RankServer::Start(welcome, std::move(seats));
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  return absl::OkStatus();
}

Job::~Job() {
  finish_ = true;
  if (!thread_.joinable()) return;
  server_->doorbell().to_fabric.Ring();
  thread_.join();
}

JobResult Job::Finish() {
  finish_ = true;
  server_->doorbell().to_fabric.Ring();
  thread_.join();
  return Collect();
}

void Job::Serve() {
  fabric_->Start();
  Open(0);
  Bell& bell = server_->doorbell().to_fabric;
  Looking looking;
  while (!finish_) {
    const std::uint32_t seen = bell.count.load();
    const bool heard = Hear();
    bool moved = false;
    RunManaged();
    while (!failed_ && Step()) {
      moved = true;
      RunManaged();
    }
    if (heard || moved) {
      idle_since_ = {};
      continue;
    }
    CheckDeadlock();
    bell.Wait(seen, lines_wait_ ? 1 : kListenMilliseconds, &looking);
  }
  RefuseManaged();
  Hear();
  End();
}

absl::StatusOr<JobResult> Job::Replay(JobOptions options, JobReplay replay) {
  Job job(std::move(options));
  if (absl::Status status = job.Build(); !status.ok()) return status;
  job.replay_ = std::move(replay);
  for (Rank& rank : job.ranks_) rank.state = State::kAttached;
  job.fabric_->Start();
  job.Open(0);
  bool moved = true;
  while (moved && !job.failed_) {
    moved = job.HearReplayed();
    moved = job.RunReplayed() || moved;
    moved = job.Step(kNever, job.command_at_) || moved;
    if (moved || job.command_at_ == kNever) continue;
    // Nothing is to happen before the next command.
    job.RunWindow(job.command_at_);
    moved = true;
  }
  job.End();
  return job.Collect();
}

// The ranks here get their windows, and MPI_COMM_WORLD its tree.
void Job::Open(Time at) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (here(r)) transport_->Open(r, at);
  }
  if (collectives_) collectives_->Begin(at);
}

// No rank calls any more.
void Job::End() {
  for (Rank& rank : ranks_) rank.state = State::kGone;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) transport_->Leave(r);
  if (!failed_) Drain();
}

bool Job::Step(Time others, Time end, bool alone) {
  if (!started_) {
    // Where others have a part of the machine, StartAt starts.
    started_ = own_fabric_ && standing().absent == 0;
    if (!started_) return false;
  }
  Time earliest = kNever;
  for (const Rank& rank : ranks_) {
    if (rank.state == State::kRunning) earliest = std::min(earliest, rank.earliest);
  }
  const Time next = NextTime();
  if (ResumeUntil(std::min({next, earliest, others, end - 1}))) return true;
  if (next == kNever || next >= end || std::min(next + window_, end) > earliest) return false;
  // At one time who has something to do goes first, and then the fabric.
  if (next > others || (next == others && NextAction() > next)) return false;
  RunAt(next, std::min(others, end));
  if (alone) RunWindows(earliest, end);
  return true;
}

// Of a rank that waits: when it is to continue, as far as is known.
Time Job::WakeOf(const Rank& rank) {
  if (rank.state != State::kWaiting) return kNever;
  const Time first = rank.completions.empty() ? kNever : rank.completions.begin()->first;
  return std::max(rank.clock, std::min(first, rank.until));
}

Time Job::NextInFabric() {
  if (!std::exchange(knows_next_, true)) next_in_fabric_ = fabric_->NextEventTime();
  return next_in_fabric_;
}

void Job::RunWindow(Time end) {
  knows_next_ = false;
  fabric_->RunWindow(end);
  ++windows_;
}

// What is to happen next, apart from ranks that continue.
Time Job::NextTime() {
  Time next = NextAction();
  const bool wakes = std::any_of(ranks_.begin(), ranks_.end(),
                                 [](const Rank& rank) { return WakeOf(rank) < kNever; });
  if (!own_fabric_) return std::max(std::min(next, NextInFabric()), fabric_->now());
  // What only keeps the clock of the fabric is done while there is more to come.
  if (wakes || next < kNever || !topology().spec().clock || fabric_->NextForegroundTime() < kNever)
    next = std::min(next, NextInFabric());
  return next == kNever ? kNever : std::max(next, fabric_->now());
}

Time Job::NextAction() const {
  Time next = transport_->next_time();
  for (const Rank& rank : ranks_) {
    if (!rank.calls.empty()) next = std::min(next, rank.calls.front().at);
  }
  return next;
}

bool Job::ResumeUntil(Time horizon) {
  bool resumed = false;
  while (true) {
    Time first = kNever;
    std::uint32_t which = 0;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      const Time wake = WakeOf(ranks_[r]);
      if (wake < first) first = wake, which = r;
    }
    if (first == kNever || first > horizon) return resumed;
    Resume(which, first);
    resumed = true;
    horizon = std::min(horizon, first + cost_min_);
  }
}

// Everything at `now`, and a window of the fabric from there that ends before the next call and not
// after `until`.
void Job::RunAt(Time now, Time until) {
  now_ = now;
  knows_next_ = false;
  do {
    transport_->Run(now);
    IssueCalls(now);
  } while (transport_->next_time() <= now);
  const Time first = NextInFabric();
  const Time end = std::min({now + window_, NextAction(), until});
  if (first < end) RunWindow(end);
}

// What Step would do as long as only the fabric has something to do, without looking at every rank
// for each window.
void Job::RunWindows(Time earliest, Time until) {
  if (topology().spec().clock) return;
  Time ranks = kNever;
  for (const Rank& rank : ranks_) {
    ranks = std::min(ranks, WakeOf(rank));
    if (!rank.calls.empty()) ranks = std::min(ranks, rank.calls.front().at);
  }
  completed_ = false;
  while (!completed_ && !failed_ && fabric_->now() < command_at_ &&
         !managed_waits_.load(std::memory_order_relaxed)) {
    const Time next = std::max(NextInFabric(), fabric_->now());
    const Time others = std::min({ranks, transport_->next_time(), until});
    const Time end = std::min(next + window_, others);
    if (next == kNever || next >= others || end > earliest) return;
    now_ = next;
    RunWindow(end);
  }
}

void Job::IssueCalls(Time now) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    std::deque<Call>& calls = ranks_[r].calls;
    while (!calls.empty() && calls.front().at <= now) {
      Call call = std::move(calls.front());
      calls.pop_front();
      PERCS_CHECK(call.at == now);  // OnCall refuses what is late
      IssueCall(r, now, std::move(call));
    }
  }
}

void Job::IssueCall(std::uint32_t r, Time now, Call&& call) {
  absl::Status status;
  if (auto* send = std::get_if<SendCall>(&call.what)) {
    ++messages_;
    Note(r, now, send->to, send->bytes.size());
    transport_->Send(r, now, std::move(*send));
  } else if (const auto* receive = std::get_if<ReceiveCall>(&call.what)) {
    Note(r, now, receive->from, receive->room);
    transport_->Receive(r, now, *receive);
  } else if (const auto* cancel = std::get_if<Cancelling>(&call.what)) {
    transport_->Cancel(r, now, cancel->id);
  } else if (auto* collective = std::get_if<CollectiveCall>(&call.what)) {
    Note(r, now, collectives_->communicator(collective->group), collective->bytes);
    status = collectives_->Call(r, now, std::move(*collective));
  } else if (const auto* join = std::get_if<JoinCall>(&call.what)) {
    status = collectives_->Join(r, now, *join);
  } else {
    status = collectives_->Leave(r, now, std::get<Leaving>(call.what).group);
  }
  if (!status.ok()) OnFailure("collectives: " + std::string(status.message()));
}

void Job::Note(std::uint32_t rank, Time at, std::uint64_t peer, std::uint64_t bytes) {
  for (const std::uint64_t word : {static_cast<std::uint64_t>(at - base_), peer, bytes})
    ranks_[rank].times.Add(word);
  ++changes_;
}

// Every rank waits for a message, and nothing is under way: the program has a deadlock. That is
// said after a while, because what a rank waits for may come from outside MPI.
void Job::CheckDeadlock() {
  const bool stuck = started_ && !failed_ && NextTime() == kNever &&
                     std::none_of(ranks_.begin(), ranks_.end(),
                                  [](const Rank& r) { return r.state == State::kRunning; }) &&
                     std::any_of(ranks_.begin(), ranks_.end(),
                                 [](const Rank& r) { return r.state == State::kWaiting; });
  if (!stuck) {
    idle_since_ = {};
  } else if (idle_since_ == Clock::time_point()) {
    idle_since_ = Clock::now();
  } else if (Clock::now() - idle_since_ > options_.deadlock_after) {
    OnFailure(fmt::format("the program waits for ever at {}: {}", FormatTime(fabric_->now(), 3),
                          WhoWaits()));
  }
}

std::string Job::WhoWaits() const {
  std::string text;
  std::size_t named = 0, more = 0;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].state != State::kWaiting) continue;
    if (named == kNamedMax) {
      ++more;
      continue;
    }
    text += fmt::format(
        "{}rank {} on {} has {} receives without a message and {} messages "
        "without a receive",
        named++ > 0 ? "; " : "", r, fabric_->topology().NodeName(options_.places[r].hub),
        transport_->posted(r), transport_->unexpected(r));
  }
  return more > 0 ? text + fmt::format("; and {} more ranks wait", more) : text;
}

// All that is under way arrives.
void Job::Drain() {
  fabric_->faults()->EndRepeating(fabric_->now());
  knows_next_ = false;
  while (!failed_) {
    const Time next = NextTime();
    if (next == kNever) break;
    RunAt(next);
  }
}

// The links that carried the most, at the end that sends.
std::vector<LinkUse> Job::BusiestLinks() const {
  std::vector<LinkUse> links;
  for (const NodeId node : fabric_->local_nodes()) {
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const std::uint64_t flits = fabric_->stats(node).ports[port].sum().flits;
      if (flits > 0) links.push_back({fabric_->topology().LinkName({node, port}), flits});
    }
  }
  std::stable_sort(links.begin(), links.end(),
                   [](const LinkUse& a, const LinkUse& b) { return a.flits > b.flits; });
  links.resize(std::min(links.size(), kNamedMax));
  return links;
}

std::vector<RankSummary> Job::Summaries() {
  std::vector<RankSummary> summaries;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    summaries.push_back({rank.clock - base_, rank.computed, rank.waited, rank.has_channel,
                         rank.ended, transport_->counts(r), rank.times.Finish()});
  }
  return summaries;
}

void JobResult::Combine() {
  DigestStream all, calls;
  all.Add(run.digest);
  virtual_time = 0;
  for (const RankSummary& rank : ranks) {
    virtual_time = std::max(virtual_time, rank.total);
    all.Add(static_cast<std::uint64_t>(rank.total));
    calls.Add(rank.times);
    calls.Add(static_cast<std::uint64_t>(rank.total));
  }
  digest = all.Finish();
  times = calls.Finish();
}

JobResult Job::Collect() {
  JobResult result;
  result.links = BusiestLinks();
  std::vector<NodeResult> nodes;
  for (const NodeId node : fabric_->local_nodes()) nodes.push_back(fabric_->Result(node));
  result.run = MergeResults(fabric_->scenario(), fabric_->topology(), std::move(nodes),
                            fabric_->reroutes(), windows_, fabric_->losses());
  result.ranks = Summaries();
  result.Combine();
  result.run.faults = fabric_->faults()->List();
  result.failure = failure_;
  result.late_calls = late_calls_;
  result.collectives = collectives();
  if (!failure_.empty()) result.run.violations.clear();  // packets are still under way
  return result;
}

}  // namespace percs::mpi
