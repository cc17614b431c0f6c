#include "emulator/management/network_manager.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

// What a probe found; the prober itself if the answer names a hub or port that does not exist.
LinkEnd FoundBy(const ControlItem& alert, const Topology& topology) {
  const std::uint64_t node = alert.hash >> 8;
  const auto port = static_cast<PortId>(alert.hash & 0xff);
  const bool there = node < topology.hubs() && port < kLinkPorts &&
                     topology.connected(static_cast<NodeId>(node), port);
  return there ? LinkEnd{static_cast<NodeId>(node), port} : LinkEnd{alert.source, alert.port};
}

}  // namespace

NetworkManager::NetworkManager(const Topology& topology, const P7ihParameters& parameters,
                               bool reroute, WorkCounters* work, EventLog* log, Send send,
                               Plan plan)
    : topology_(topology),
      parameters_(parameters),
      reroute_(reroute),
      work_(work),
      log_(log),
      send_(std::move(send)),
      trees_(topology, parameters, work, log,
             [this](ControlItem&& item) { send_(std::move(item)); }),
      planner_(topology),
      plan_(plan ? std::move(plan)
                 : [this](const Failures& failures) { return planner_.Replan(failures); }),
      tables_(topology.nodes()) {}

void NetworkManager::Receive(const ControlItem& item) {
  ControlItem* copy = items_.Take();
  *copy = item;
  // A hub may tell of several things at one instant. Events of one key would have no order.
  static_assert(kControlKinds <= 16);
  const auto kind = static_cast<std::uint64_t>(item.kind);
  const std::uint64_t what =
      item.of_tree() ? kind << 16 | item.tree : static_cast<std::uint64_t>(item.port) << 4 | kind;
  const std::uint64_t detail = static_cast<std::uint64_t>(item.source) << 20 | what;
  queue_.Push(item.arrival, EventKey(EventClass::kCommand, item.up ? 1 : 0, 0, detail),
              EventData(copy));
}

void NetworkManager::Schedule(Time at, Step step) {
  queue_.Push(at, EventKey(EventClass::kHfi, 0, 0, static_cast<std::uint64_t>(step)), 0);
}

void NetworkManager::Run(Time end) {
  while (queue_.next_time() < end) {
    const Event event = queue_.Pop();
    now_ = event.time;
    if (event.key.event_class() == EventClass::kCommand) {
      ControlItem* item = event.object<ControlItem>();
      if (item->of_tree()) {
        trees_.Receive(*item, now_);
      } else if (item->kind == ControlItem::Kind::kAlert ||
                 item->kind == ControlItem::Kind::kTableAlert ||
                 item->kind == ControlItem::Kind::kWiringAlert) {
        OnAlert(*item);
      } else {
        OnPrepared(*item);
      }
      items_.Give(item);
      continue;
    }
    switch (static_cast<Step>(event.key.detail())) {
      case Step::kStartPlanning:
        StartPlanning();
        break;
      case Step::kPlanned:
        FinishPlanning();
        break;
      case Step::kCommitted:
        trees_.OnTables(tables_, now_);
        Committed();
        break;
      case Step::kTrees:
        trees_.Execute(now_);
        break;
    }
  }
}

void NetworkManager::Note(const char* kind, const std::string& subject, const std::string& text) {
  if (log_) log_->Add(now_, kind, subject, text);
}

NetworkManager::Link NetworkManager::LinkOf(LinkEnd end) const {
  const LinkEnd far = topology_.Peer(end.node, end.port);
  return std::min(Link(end.node, end.port), Link(far.node, far.port));
}

// The wiring, as a probe from `end` found it.
std::string NetworkManager::Wiring(LinkEnd end, LinkEnd found) const {
  const LinkEnd right = topology_.Peer(end.node, end.port),
                other = topology_.Peer(found.node, found.port);
  return fmt::format("cables {} - {} and {} - {} are swapped: {} is wired to {}, and {} to {}",
                     topology_.LinkName(end), topology_.LinkName(right), topology_.LinkName(other),
                     topology_.LinkName(found), topology_.LinkName(end), topology_.LinkName(found),
                     topology_.LinkName(other), topology_.LinkName(right));
}

bool NetworkManager::Explained(const ControlItem& alert) const {
  const auto& since = alert.up ? rejoined_at_ : lost_at_;
  for (const NodeId node : {alert.source, topology_.Peer(alert.source, alert.port).node}) {
    const auto it = since.find(node);
    if (it != since.end() && it->second == alert.raised) return true;
  }
  return false;
}

std::size_t NetworkManager::LinksOf(const std::vector<NodeId>& nodes) const {
  std::size_t links = 0;
  for (const NodeId node : nodes) {
    for (PortId port = 0; port < kLinkPorts; ++port) {
      if (!topology_.connected(node, port)) continue;
      const NodeId far = topology_.Peer(node, port).node;
      links += !lost_.contains(far) && std::find(nodes.begin(), nodes.end(), far) == nodes.end();
    }
  }
  return links;
}

void NetworkManager::NoteAlert(const ControlItem& alert) {
  const LinkEnd end{alert.source, alert.port};
  switch (alert.kind) {
    case ControlItem::Kind::kTableAlert:
      return Note(
          "alert", topology_.NodeName(alert.source),
          fmt::format("a packet needed a damaged table entry at {}", FormatTime(alert.raised)));
    case ControlItem::Kind::kWiringAlert: {
      if (alert.up) {
        return Note("alert", topology_.LinkName(end),
                    fmt::format("a probe found the correct neighbour again at {}",
                                FormatTime(alert.raised)));
      }
      const LinkEnd found = FoundBy(alert, topology_), right = topology_.Peer(end.node, end.port);
      Note("alert", topology_.LinkName(end),
           fmt::format("a probe found {} at {}, expected {}", topology_.LinkName(found),
                       FormatTime(alert.raised), topology_.LinkName(right)));
      if (swapped_.count(LinkOf(end)) == 0)
        Note("miswired", topology_.LinkName(end), Wiring(end, found));
      return;
    }
    default:
      if (Explained(alert)) return;
      return Note("alert", topology_.LinkName(end),
                  fmt::format("the link went {} at {}", alert.up ? "up" : "down",
                              FormatTime(alert.raised)));
  }
}

void NetworkManager::OnAlert(const ControlItem& alert) {
  --work_->unfinished;  // the hub counted it when it raised it
  NoteAlert(alert);
  if (alert.kind == ControlItem::Kind::kWiringAlert) KeepWiring(alert);
  if (!reroute_) {
    if (alert.kind == ControlItem::Kind::kAlert && alert.up) trees_.OnLinkUp(now_);
    return;
  }
  news_.push_back(alert);
  if (busy_) return;
  busy_ = true;
  ++work_->unfinished;
  Schedule(std::max(now_, alert.raised + parameters_.detect), Step::kStartPlanning);
}

// Two cables are swapped with each other, so the finding of one end applies to both, and when one
// is right both are.
void NetworkManager::KeepWiring(const ControlItem& alert) {
  const Link link = LinkOf({alert.source, alert.port});
  if (!alert.up) {
    const Link other = LinkOf(FoundBy(alert, topology_));
    swapped_[link] = other;
    swapped_[other] = link;
  } else if (const auto it = swapped_.find(link); it != swapped_.end()) {
    swapped_.erase(it->second);
    swapped_.erase(link);
  }
}

absl::StatusOr<LoadedRoutes> NetworkManager::Load(TableSet tables, Time at) {
  if (busy_) {
    return absl::FailedPreconditionError(
        "a reroute is in progress; load route tables when it is committed");
  }
  const auto report = CheckTables(topology_, failures_, tables, parameters_.vc_policy);
  if (!report.ok()) return report.status();
  busy_ = proven_ = true;
  ++work_->unfinished;
  current_ = Reroute();
  current_.raised = current_.alerted = current_.planning_started = at;
  current_.unreachable_pairs = report->unreachable_pairs;
  LoadedRoutes loaded{epoch_ + 1, at + parameters_.install, 0, report->unreachable_pairs};
  for (NodeId node = 0; node < topology_.nodes(); ++node) {
    loaded.hubs_changed += tables[node]->Hash() != tables_[node]->Hash();
  }
  planned_ = std::move(tables);
  Schedule(at, Step::kPlanned);
  return loaded;
}

absl::StatusOr<CauTreeId> NetworkManager::CreateTree(const TreeSpec& spec, Time at) {
  const auto tree = trees_.Create(spec);
  if (tree.ok()) Schedule(at, Step::kTrees);
  return tree;
}

absl::Status NetworkManager::DeleteTree(CauTreeId tree, Time at) {
  const absl::Status status = trees_.Delete(tree);
  if (status.ok()) Schedule(at, Step::kTrees);
  return status;
}

void NetworkManager::StartPlanning() {
  current_ = Reroute();
  current_.raised = kNever;
  current_.alerted = kNever;
  current_.planning_started = now_;
  std::map<Link, AlertTimes> alerts;
  for (const ControlItem& alert : news_) {
    current_.raised = std::min(current_.raised, alert.raised);
    current_.alerted = std::min(current_.alerted, alert.arrival);
    if (alert.kind == ControlItem::Kind::kTableAlert) {
      current_.damaged.push_back(alert.source);
      current_.damaged_alerts.push_back({alert.raised, alert.arrival});
      continue;
    }
    std::vector<Link> links = {LinkOf({alert.source, alert.port})};
    if (alert.kind == ControlItem::Kind::kWiringAlert && !alert.up)
      links.push_back(LinkOf(FoundBy(alert, topology_)));
    for (const Link& link : links) {
      AlertTimes& first = alerts[link];
      if (alert.up || alert.raised >= first.raised) continue;
      first = {alert.raised, alert.arrival};
    }
    if (alert.kind != ControlItem::Kind::kAlert) continue;
    if (alert.up) {
      down_.erase(links[0]);
    } else {
      down_.insert(links[0]);
    }
  }
  news_.clear();
  FollowLinks();
  for (const LinkEnd& link : current_.down)
    current_.down_alerts.push_back(alerts[{link.node, link.port}]);
  proven_ = current_.down.empty() && current_.up.empty();  // only entries to write again
  planned_ = proven_ ? tables_ : plan_(failures_);
  if (proven_ && !reroutes_.empty())
    current_.unreachable_pairs = reroutes_.back().unreachable_pairs;  // still
  Schedule(now_ + parameters_.plan, Step::kPlanned);
}

// Routes use only links that are up and correctly wired.
void NetworkManager::FollowLinks() {
  std::set<Link> failed = down_;
  for (const auto& [link, other] : swapped_) failed.insert(link);
  for (const Link& link : failed) {
    if (failures_.links.count(link) == 0) current_.down.push_back({link.first, link.second});
  }
  for (const Link& link : failures_.links) {
    if (failed.count(link) == 0) current_.up.push_back({link.first, link.second});
  }
  failures_.links = std::move(failed);
}

// Whether planned_ may be installed.
bool NetworkManager::Verified() {
  unchecked_ = !proven_ && topology_.nodes() > kCheckedNodesMax;
  if (proven_ || unchecked_) return true;
  const auto report = CheckTables(topology_, failures_, planned_, parameters_.vc_policy);
  if (!report.ok()) return false;
  current_.unreachable_pairs = report->unreachable_pairs;
  return true;
}

void NetworkManager::FinishPlanning() {
  current_.planned = now_;
  if (!Verified()) {
    Note("plan_refused", fmt::format("epoch {}", epoch_ + 1),
         "the planned tables fail the check; none is installed");
    Committed();  // a table set that fails the check is never installed
    return;
  }
  current_.epoch = ++epoch_;
  for (NodeId node = 0; node < topology_.nodes(); ++node) {
    if (lost_.contains(node)) continue;
    current_.hubs_changed += SendPrepare(node);
  }
}

// Whether its tables change.
bool NetworkManager::SendPrepare(NodeId node) {
  unanswered_.insert(node);
  ControlItem prepare;
  prepare.kind = ControlItem::Kind::kPrepare;
  prepare.source = kManagerNode;
  prepare.target = node;
  prepare.epoch = epoch_;
  prepare.hash = planned_[node]->Hash();
  const bool changed = prepare.hash != tables_[node]->Hash();
  const auto& damaged = current_.damaged;
  if (changed || std::find(damaged.begin(), damaged.end(), node) != damaged.end()) {
    prepare.tables = planned_[node];
  }
  prepare.arrival = now_ + parameters_.management_latency;
  send_(std::move(prepare));
  return changed;
}

void NetworkManager::OnPrepared(const ControlItem& answer) {
  if (answer.epoch == epoch_ && unanswered_.erase(answer.source) > 0 && unanswered_.empty())
    Commit();
}

void NetworkManager::Commit() {
  const Time at =
      std::max(current_.planned + parameters_.install, now_ + parameters_.management_latency);
  current_.committed = at;
  for (NodeId node = 0; node < topology_.nodes(); ++node) {
    if (lost_.contains(node)) continue;
    ControlItem commit;
    commit.kind = ControlItem::Kind::kCommit;
    commit.source = kManagerNode;
    commit.target = node;
    commit.epoch = epoch_;
    commit.arrival = at;
    send_(std::move(commit));
  }
  tables_ = planned_;
  reroutes_.push_back(current_);
  Note("reroute", fmt::format("epoch {}", epoch_),
       fmt::format("{} {} down, {} up, {} damaged {}; raised {}, planned {}, commits at {}; "
                   "{} hubs change, {}",
                   current_.down.size(), current_.down.size() == 1 ? "link" : "links",
                   current_.up.size(), current_.damaged.size(),
                   current_.damaged.size() == 1 ? "table" : "tables", FormatTime(current_.raised),
                   FormatTime(current_.planned), FormatTime(at), current_.hubs_changed,
                   unchecked_
                       ? fmt::format("not checked and unreachable pairs not counted above {} nodes",
                                     kCheckedNodesMax)
                       : fmt::format("{} pairs unreachable", current_.unreachable_pairs)));
  Schedule(at, Step::kCommitted);
}

void NetworkManager::Lose(const LostHubs& lost) {
  now_ = std::max(now_, lost.at);
  Note("daemon_lost", lost.who,
       fmt::format("{} hubs are lost from {} on, and their {} links to others go down",
                   lost.nodes.size(), FormatTime(lost.at), LinksOf(lost.nodes)));
  for (const NodeId node : lost.nodes) lost_at_[node] = lost.at;
  lost_.insert(lost.nodes.begin(), lost.nodes.end());
  const bool waited = !unanswered_.empty();
  std::erase_if(unanswered_, [this](NodeId node) { return lost_.contains(node); });
  if (waited && unanswered_.empty()) Commit();
  trees_.Lose(lost.nodes, now_);
}

void NetworkManager::Rejoin(const RejoinedHubs& rejoined) {
  now_ = std::max(now_, rejoined.at);
  Note("daemon_rejoined", rejoined.who,
       fmt::format("{} hubs rejoin as incarnation {} at {}, and their {} links to others come up",
                   rejoined.nodes.size(), rejoined.incarnation, FormatTime(rejoined.at),
                   LinksOf(rejoined.nodes)));
  for (const NodeId node : rejoined.nodes) rejoined_at_[node] = rejoined.at;
  const bool preparing = !unanswered_.empty();
  for (const NodeId node : rejoined.nodes) {
    lost_.erase(node);
    if (preparing) SendPrepare(node);
    // A swapped cable has been back in its place since the loss.
    for (auto it = swapped_.begin(); it != swapped_.end();) {
      const auto ends_here = [&](Link link) {
        return link.first == node || topology_.Peer(link.first, link.second).node == node;
      };
      it = ends_here(it->first) || ends_here(it->second) ? swapped_.erase(it) : std::next(it);
    }
  }
  trees_.Rejoin(rejoined.nodes);
}

void NetworkManager::Committed() {
  busy_ = !news_.empty();
  if (busy_) {
    Schedule(std::max(now_, news_.front().raised + parameters_.detect), Step::kStartPlanning);
  } else {
    --work_->unfinished;
  }
}

}  // namespace percs
