#include "tests/simulator/client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "proto/scenario/commands.h"

namespace percs::sim {
namespace {

constexpr Wall kLeast = milliseconds(50), kMost = milliseconds(900);

// Names of faults are those of no others.
std::string MarkOf(const v1::JournalRecord& record) {
  if (record.has_create_fault()) return "create " + record.create_fault().id();
  if (record.has_delete_fault()) return "delete " + record.delete_fault();
  return "";
}

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

Client::Client(SimulatedFabric* fabric, v1::ApplyRequest request, std::uint32_t commands)
    : fabric_(fabric),
      request_(std::move(request)),
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
  if (commands_ > 0) Command(**run);
}

// One that died before it answered may have begun.
void Client::Apply(Controller& controller) {
  if (controller.run() != nullptr) {
    run_ = controller.run()->number();
    return;
  }
  if (const auto before = controller.Result(0); before.ok()) run_ = before->run();
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
    auto it = asked_.begin();
    std::advance(it, random_.Below(static_cast<std::uint32_t>(asked_.size())));
    const std::string mark = it->first;
    const std::string id = mark.substr(mark.find(' ') + 1);
    if (asked_.contains("delete " + id)) return;
    v1::JournalRecord record;
    record.set_delete_fault(id);
    Manage(run, "delete " + id, std::move(record));
  } else if (what == 8) {
    fabric_->network().Break(SimulatedFabric::kController,
                             SimulatedFabric::NameOf(random_.Below(fabric_->settings().daemons)));
  }
}

void Client::CreateFault(FabricRun& run) {
  v1::JournalRecord record;
  v1::Fault* fault = record.mutable_create_fault();
  fault->set_id(fmt::format("f{:04}x", asked_.size()));
  if (random_.Below(2) == 0)
    fault->set_at(run.virtual_time() + static_cast<Time>(random_.Below(1'500'000)));
  auto* inject = fault->mutable_inject();
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
  const std::string mark = "create " + fault->id();
  Manage(run, mark, std::move(record));
}

void Client::Manage(FabricRun& run, const std::string& mark, v1::JournalRecord record) {
  --commands_;
  asked_[mark] = false;
  const auto process = fabric_->controller_process();
  const std::string journalled = record.has_create_fault() ? record.create_fault().id() : "";
  run.Act(std::move(record), nullptr,
          [this, mark, process, journalled](const absl::StatusOr<Time>& at) {
            if (!process->alive()) return;  // nobody hears it
            World& world = fabric_->world();
            if (!at.ok()) return world.Log(fmt::format("{}: {}", mark, at.status().ToString()));
            world.Log(fmt::format("{} takes effect at {}", mark, FormatTime(*at)));
            asked_[mark] = true;
            const std::string journal =
                fabric_->disk().Durable(std::string(SimulatedFabric::kFolder) + "/journal");
            if (journal.find(journalled) == std::string::npos)
              Fail(fmt::format("\"{}\" was acknowledged, but is not on the disk", mark));
          });
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
