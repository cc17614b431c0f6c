#include "tests/simulator/client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "emulator/routing/planner.h"
#include "fmt/format.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/route_tables_codec.h"

namespace percs::sim {
namespace {

constexpr Wall kLeast = milliseconds(50), kMost = milliseconds(900);

// What a client asks for once at most. Names of faults and trees are those of no others.
std::string MarkOf(const v1::JournalRecord& record) {
  switch (record.event_case()) {
    case v1::JournalRecord::kCreateFault:
      return "create " + record.create_fault().id();
    case v1::JournalRecord::kDeleteFault:
      return "delete " + record.delete_fault();
    case v1::JournalRecord::kUpdateFault:
      return "update " + record.update_fault().id();
    case v1::JournalRecord::kCreateTree:
      return "plant " + record.create_tree().name();
    case v1::JournalRecord::kDeleteTree:
      return "fell " + record.delete_tree();
    case v1::JournalRecord::kTrace:
      return "trace from " + record.trace().source();
    case v1::JournalRecord::kResetFaults:
      return "reset faults";
    case v1::JournalRecord::kResetArbiters:
      return "reset arbiters";
    case v1::JournalRecord::kLoadRoutes:
    case v1::JournalRecord::kRoutes:
      return "load routes";
    case v1::JournalRecord::kStop:
      return "stop";
    default:
      return "";
  }
}

// The part of a mark that is a name of the client's own.
std::string NameIn(const std::string& mark) { return mark.substr(mark.rfind(' ') + 1); }

// A daemon is lost once: who comes again is another incarnation.
std::string CheckLosses(const std::vector<v1::JournalRecord>& records) {
  std::set<std::uint64_t> lost;
  for (const v1::JournalRecord& record : records) {
    if (record.has_lose() && !lost.insert(record.lose().incarnation()).second)
      return fmt::format("the loss of {} is in the journal twice", record.lose().name());
  }
  return "";
}

}  // namespace

Client::Client(SimulatedFabric* fabric, v1::ApplyRequest request, std::uint32_t commands, bool all,
               std::uint64_t after)
    : fabric_(fabric),
      request_(std::move(request)),
      all_(all),
      after_(after),
      commands_(commands),
      random_(fabric->world().random().Next(), "client") {}

void Client::Start() {
  World& world = fabric_->world();
  world.After(world.Between(kLeast, kMost), [this] {
    if (done_) return;
    if (Controller* controller = fabric_->controller(); controller != nullptr) {
      const auto process = fabric_->controller_process();
      process->Run([this, controller, process] { Act(*controller); });
    }
    Start();
  });
}

void Client::Fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  done_ = true;
}

void Client::Act(Controller& controller) {
  if (run_ == 0) return Apply(controller);
  Look(controller);
  if (done_) return;
  const auto run = controller.ActiveRun();
  if (!run.ok() || (*run)->ended()) return;
  if ((*run)->state() == v1::FABRIC_STATE_PAUSED && (commands_ == 0 || random_.Below(2) == 0))
    fabric_->world().Log(fmt::format("resumed at {}", FormatTime((*run)->Resume())));
  if (commands_ == 0) return;
  if (all_ && random_.Below(2) == 0) return AnyCommand(controller, **run);
  Command(**run);
}

// One that died before it answered may have begun.
void Client::Apply(Controller& controller) {
  if (controller.run() != nullptr && controller.run()->number() > after_) {
    run_ = controller.run()->number();
    return;
  }
  if (const auto before = controller.Result(0); before.ok() && before->run() > after_)
    run_ = before->run();
  if (run_ != 0 || !controller.membership().complete()) return;
  const auto process = fabric_->controller_process();
  controller.Apply(request_, [this, process](const absl::StatusOr<v1::ApplyReply>& reply) {
    if (!process->alive() || !reply.ok()) return;
    fabric_->world().Log(fmt::format("run {} is acknowledged", reply->run()));
    run_ = reply->run();
    acknowledged_run_ = true;
  });
}

void Client::Look(Controller& controller) {
  const FabricRun* run = controller.run();
  if (run != nullptr && run->number() == run_ && !run->ended()) return;
  if (controller.EndIsUnsaved(run_)) return;
  auto result = controller.Result(run_);
  if (absl::IsNotFound(result.status())) {
    if (acknowledged_run_) return Fail(fmt::format("run {} was acknowledged and is gone", run_));
    run_ = 0;  // it had not begun for good
    return;
  }
  done_ = true;
  fabric_->world().Log(fmt::format("run {} has ended: {}", run_, result.status().ToString()));
  result_ = std::move(result);
}

void Client::Command(FabricRun& run) {
  const std::uint32_t what = random_.Below(12);
  if (what < 4) return CreateFault(run);
  if (what == 4) {
    fabric_->world().Log(fmt::format("paused at {}", FormatTime(run.Pause())));
  } else if (what == 5) {
    const Time until = run.StepBy(static_cast<Time>(1 + random_.Below(400'000)));
    fabric_->world().Log(fmt::format("a step until {}", FormatTime(until)));
  } else if (what == 6) {
    run.Snapshot({}, [](const absl::StatusOr<std::vector<NodeState>>&) {});
  } else if (what == 7 && !asked_.empty()) {
    v1::JournalRecord record;
    record.set_delete_fault(AnyName());
    Manage(run, std::move(record));
  } else if (what == 8) {
    fabric_->network().Break(SimulatedFabric::kController, SimulatedFabric::NameOf(AnyDaemon()));
  } else if (what == 9) {
    LookAtFaults(run);
  }
}

void Client::LookAtFaults(FabricRun& run) {
  const auto process = fabric_->controller_process();
  run.WhenRetaken([this, &run, process](const absl::Status& status) {
    if (!status.ok() || !process->alive() || asked_.contains("reset faults")) return;
    for (const auto& [mark, acknowledged] : asked_) {
      const std::string name = NameIn(mark);
      if (!acknowledged || mark != "create " + name || asked_.contains("delete " + name)) continue;
      if (!run.faults().Get(name).ok())
        Fail(fmt::format("fault {} was acknowledged and is gone", name));
    }
  });
}

std::string Client::AnyName() {
  auto it = asked_.begin();
  std::advance(it, random_.Below(static_cast<std::uint32_t>(asked_.size())));
  return NameIn(it->first);
}

void Client::AnyCommand(Controller& controller, FabricRun& run) {
  v1::JournalRecord record;
  const Topology& topology = run.topology();
  const auto any_hub = [&] {
    return topology.NodeName(random_.Below(static_cast<std::uint32_t>(topology.hubs())));
  };
  switch (random_.Below(12)) {
    case 0:
      record.mutable_create_tree()->set_name(fmt::format("t{:04}x", asked_.size()));
      record.mutable_create_tree()->set_members(random_.Below(2) ? "all" : any_hub());
      break;
    case 1:
      if (asked_.empty()) return;
      record.set_delete_tree(AnyName());
      break;
    case 2:
      if (asked_.empty()) return;
      *record.mutable_update_fault() = DrawFault(run, AnyName());
      break;
    case 3:
      record.set_reset_faults(true);
      break;
    case 4:
      record.set_reset_arbiters(true);
      break;
    case 5:
      record.mutable_trace()->set_source(any_hub());
      record.mutable_trace()->set_count(3);
      break;
    case 6:
      return LoadRoutes(controller, run);
    case 7:
      return run.GetTrace([](const absl::StatusOr<std::vector<TracedPacket>>&) {});
    case 8:
      return run.Look([](const absl::StatusOr<std::vector<NodeState>>&) {}, [] {});
    case 9:
      if (const auto at = run.SetPace(random_.Below(5) * kMicrosecond); at.ok())
        fabric_->world().Log(fmt::format("another pace from {} on", FormatTime(*at)));
      return;
    case 10:
      if (v1::BreakStreamsReply reply;
          controller.BreakStreams(SimulatedFabric::NameOf(AnyDaemon()), &reply).ok())
        fabric_->world().Log("streams are broken by a command");
      return;
    default:
      if (random_.Below(4) > 0) return;
      record.set_stop(true);
  }
  Manage(run, std::move(record));
}

// Those that a planner makes for a fabric without failures: with failures they may be refused.
void Client::LoadRoutes(Controller& controller, FabricRun& run) {
  const TableSet tables = Planner(run.topology()).Plan(Failures());
  v1::LoadRoutesRequest request;
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < run.topology().nodes(); ++node) nodes.push_back(node);
  TablesToProto(
      nodes, [&tables](NodeId node) { return tables[node]; }, request.mutable_tables());
  v1::JournalRecord record;
  const absl::Status kept = controller.KeepRoutes(request, &record);
  const std::string mark = MarkOf(record);
  if (!kept.ok() || !Ask(mark)) return;
  run.LoadRoutes(tables, std::move(record),
                 [told = Told(mark)](const absl::StatusOr<LoadedRoutes>& loaded) {
                   told(loaded.ok() ? absl::StatusOr<Time>(loaded->committed) : loaded.status());
                 });
}

void Client::CreateFault(FabricRun& run) {
  v1::JournalRecord record;
  *record.mutable_create_fault() = DrawFault(run, fmt::format("f{:04}x", asked_.size()));
  Manage(run, std::move(record));
}

v1::Fault Client::DrawFault(const FabricRun& run, const std::string& id) {
  v1::Fault fault;
  fault.set_id(id);
  if (random_.Below(2) == 0)
    fault.set_at(run.virtual_time() + static_cast<Time>(random_.Below(1'500'000)));
  auto* inject = fault.mutable_inject();
  const Topology& topology = run.topology();
  const NodeId node = random_.Below(static_cast<std::uint32_t>(topology.hubs()));
  inject->mutable_select()->set_in(topology.NodeName(node));
  static constexpr v1::FaultKind kKinds[] = {v1::FAULT_KIND_LINK_DOWN, v1::FAULT_KIND_FLAP,
                                             v1::FAULT_KIND_BIT_ERRORS};
  inject->set_kind(kKinds[random_.Below(3)]);
  inject->set_mode(v1::FAULT_MODE_ONE);
  inject->set_duration(static_cast<Time>(50'000 + random_.Below(1'000'000)));
  if (inject->kind() == v1::FAULT_KIND_FLAP) inject->set_period(300'000);
  if (inject->kind() == v1::FAULT_KIND_BIT_ERRORS) inject->set_flit_error_rate(0.01);
  return fault;
}

bool Client::Ask(const std::string& mark) {
  if (!asked_.emplace(mark, false).second) return false;
  --commands_;
  return true;
}

void Client::Manage(FabricRun& run, v1::JournalRecord record) {
  const std::string mark = MarkOf(record);
  if (!Ask(mark)) return;
  run.Act(std::move(record), nullptr, Told(mark));
}

std::function<void(const absl::StatusOr<Time>& at)> Client::Told(const std::string& mark) {
  return [this, mark, process = fabric_->controller_process()](const absl::StatusOr<Time>& at) {
    if (!process->alive()) return;  // nobody hears it
    World& world = fabric_->world();
    if (!at.ok()) return world.Log(fmt::format("{}: {}", mark, at.status().ToString()));
    world.Log(fmt::format("{} takes effect at {}", mark, FormatTime(*at)));
    asked_[mark] = true;
    const std::string journal =
        fabric_->disk().Durable(std::string(SimulatedFabric::kFolder) + "/journal");
    const std::string name = NameIn(mark);
    if (name.back() == 'x' && journal.find(name) == std::string::npos)
      Fail(fmt::format("\"{}\" was acknowledged, but is not on the disk", mark));
  };
}

std::uint64_t Client::acknowledged() const {
  return static_cast<std::uint64_t>(
      std::count_if(asked_.begin(), asked_.end(), [](const auto& entry) { return entry.second; }));
}

std::string Client::CheckJournal(const std::vector<v1::JournalRecord>& records) const {
  std::map<std::string, int> times;
  for (const v1::JournalRecord& record : records) {
    if (const std::string mark = MarkOf(record); !mark.empty()) ++times[mark];
  }
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (!records[i].has_end() && records[i].at() < records[i - 1].at())
      return fmt::format("a command took effect at {} after one at {}", FormatTime(records[i].at()),
                         FormatTime(records[i - 1].at()));
  }
  if (std::string why = CheckLosses(records); !why.empty()) return why;
  for (const auto& [mark, count] : times) {
    if (!asked_.contains(mark)) return fmt::format("\"{}\" was never asked for", mark);
    if (count > 1) return fmt::format("\"{}\" is in the journal {} times", mark, count);
  }
  for (const auto& [mark, acknowledged] : asked_) {
    if (acknowledged && !times.contains(mark))
      return fmt::format("\"{}\" was acknowledged and is not in the journal", mark);
  }
  return "";
}

}  // namespace percs::sim
