// The part of Controller that lets the next one continue when this one dies: a decision is saved
// before its messages are sent (docs/protocol.md, "When the controller dies").
#include <unistd.h>

#include <csignal>
#include <utility>

#include "daemon/controller/controller.h"
#include "fmt/format.h"
#include "proto/window/endpoint_codec.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::chrono::seconds kKeepAgain(1);

}  // namespace

void KillPoint::Reached(const char* point) {
  if (name != point || --count > 0) return;
  kill(getpid(), SIGKILL);
}

absl::Status Controller::OpenState() {
  if (options_.state_dir.empty()) return absl::OkStatus();
  const LockGuard guard(lock_.mutex());
  if (absl::Status s = store_.Open(options_.state_dir); !s.ok())
    return s;  // first: it is ours alone from then on
  if (absl::Status s = OpenJournal(); !s.ok()) return s;
  auto kept = store_.Load();
  if (!kept.ok()) return kept.status();
  membership_.HoldBack();
  const bool goes_on = !kept->runs.empty() && kept->runs.back().state == "going_on";
  // Without members and without a run too: daemons that were declared lost may call only now.
  const bool bound = goes_on || !kept->members.empty();
  if (kept->fabric != 0 && (bound || kept->places == membership_.places())) {
    if (kept->places != membership_.places()) {
      return absl::FailedPreconditionError(
          fmt::format("{} belongs to a fabric of {} daemons, but --daemons is {}",
                      options_.state_dir, kept->places, membership_.places()));
    }
    if (absl::Status s = membership_.Restore(kept->fabric, kept->members); !s.ok()) return s;
  }
  for (KeptRun& run : kept->runs) {
    runs_ = std::max(runs_, run.number);
    if (run.state == "going_on") continue;
    absl::Status why(static_cast<absl::StatusCode>(run.code), run.error);
    finished_.Add(run.number, run.state == "finished"
                                  ? absl::StatusOr<v1::GetResultReply>(std::move(run.result))
                                  : why);
  }
  fabric_kept_ = false;
  // The controller before this one died in between.
  if (!goes_on && runs_ > 0 && journal_.last_run() == runs_ && journal_.last_ended() < runs_) {
    auto result = Result(runs_);
    const Time at = result.ok() ? result->result().virtual_time() : 0;
    JournalEnd({runs_, at, std::move(result)});
  }
  if (goes_on) {
    if (absl::Status s = TakeUp(*kept); !s.ok()) return s;
  }
  lock_.mutex().BeforeUnlock([this]() PERCS_LOCKED { Keep(); });
  return absl::OkStatus();
}

void Controller::Abandon() {
  const LockGuard guard(lock_.mutex());
  lock_.mutex().BeforeUnlock(nullptr);
  store_.Close();
  journal_.Close();
  run_.reset();
}

// All in one step: what a daemon sends after the last commit, it sends again to the next
// controller.
void Controller::HandOver() {
  const LockGuard guard(lock_.mutex());
  Keep();
  has_ended_ = true;
  lock_.mutex().BeforeUnlock(nullptr);
  const absl::Status ending = absl::UnavailableError(fmt::format(
      "the controller is shutting down; a controller started with --state-dir {} continues the run",
      options_.state_dir));
  if (run_) run_->HandOver(ending);
  if (ApplyDone answer = std::exchange(apply_done_, nullptr)) answer(ending);
  front_->Leave();
  membership_.HandOver();
  keep_timer_.Cancel();
  loss_timer_.Cancel();
  store_.Close();
  journal_.Close();
  spdlog::info("shutting down; the fabric waits for the next controller with --state-dir {}",
               options_.state_dir);
}

absl::Status Controller::TakeUp(const KeptState& state) {
  const KeptRun& kept = state.runs.back();
  const auto journal = ReadJournal(options_.state_dir, *options_.disk);
  if (!journal.ok()) return journal.status();
  std::vector<v1::JournalRecord> commands;
  for (const v1::JournalRecord& record : journal->records) {
    if (record.run() != kept.number || record.has_apply() || record.has_end()) continue;
    v1::JournalRecord& command = commands.emplace_back(record);
    if (command.has_endpoint()) {
      const auto find = [this](std::uint64_t name) {
        return ReadPayload(options_.state_dir, name, *options_.disk);
      };
      if (absl::Status s = FindData(command.mutable_endpoint(), find); !s.ok()) return s;
    }
    if (record.event_case() != v1::JournalRecord::kLoadRoutes) continue;
    const auto routes = ReadPayload(options_.state_dir, record.load_routes(), *options_.disk);
    if (!routes.ok()) return routes.status();
    if (!command.mutable_routes()->ParseFromString(*routes))
      return absl::DataLossError("route tables in the journal are damaged");
  }
  auto run =
      FabricRun::Create(kept.number, kept.request, membership_.places(), &lock_, this, RunEvents());
  if (!run.ok()) return run.status();
  if (absl::Status s = (*run)->Restore(kept.saved, state.steps, std::move(commands)); !s.ok())
    return s;
  run_ = *std::move(run);
  for (const v1::SavedSteps& windows : state.windows) {
    if (absl::Status s = Repeat(windows); !s.ok()) return s;
  }
  run_->TakeUp();
  for (std::uint32_t place = 0; place < membership_.places(); ++place) {
    const Member* member = membership_.member(place);
    if (member != nullptr && run_->DeclaredLost(place, member->incarnation()))
      membership_.Lose(place, "it was declared lost before this controller was started");
  }
  return absl::OkStatus();
}

absl::Status Controller::Repeat(const v1::SavedSteps& windows) {
  for (const v1::SavedStep& step : windows.steps()) {
    if (step.has_report()) {
      const std::uint32_t place = step.report().process();
      Member* member = place < membership_.places() ? membership_.member(place) : nullptr;
      const auto fresh = member ? member->session().Receive(step.report().message()) : false;
      if (!fresh.ok()) return fresh.status();
      if (!*fresh) return absl::DataLossError("the log of windows has a report that came before");
    }
    if (absl::Status s = run_->Repeat(step); !s.ok()) return s;
  }
  for (std::uint32_t place = 0; place < membership_.places(); ++place) {
    if (Member* member = membership_.member(place)) member->session().LeftBefore();
  }
  return absl::OkStatus();
}

bool Controller::HasNews() const {
  if (HasToldNews()) return true;
  // A window of network management alone sends nothing, but commands may come after it.
  if (run_ && (run_->touched() || !run_->manager_log().new_steps().empty())) return true;
  for (std::uint32_t place = 0; place < membership_.places(); ++place) {
    const Member* member = membership_.member(place);
    if (member && member->session().sends_held_back()) return true;
  }
  return false;
}

bool Controller::HasToldNews() const {
  return !fabric_kept_ || !places_changed_.empty() || begun_ || !ended_runs_.empty();
}

bool Controller::OnlyWindows() const {
  if (HasToldNews() || !run_ || !storage_trouble_.ok() || !run_->OnlyWindows()) return false;
  std::uint64_t sent = 0, received = 0;
  for (std::uint32_t place = 0; place < membership_.places(); ++place) {
    const Member* member = membership_.member(place);
    if (!member || !member->session().changed()) continue;
    if (!member->session().attached()) return false;  // no stream may take what is sent now
    sent += member->session().sent_since();
    received += member->session().received_since();
  }
  return sent == run_->record().grants() && received == run_->record().reports();
}

void Controller::Keep() {
  if (!store_.is_open() || keeping_again_ || !HasNews()) return;
  const bool stepped = run_ && !run_->manager_log().new_steps().empty();
  const bool whole = !OnlyWindows() || !store_.Append(run_->record().steps());
  absl::Status status;
  if (whole) {
    store_.Begin(HasToldNews() ? Survives::kMachine : Survives::kProcess);
    PutNews();
    status = store_.Commit();
  }
  if (status.ok() != storage_trouble_.ok()) {
    if (status.ok()) {
      spdlog::info("the state can be saved again; virtual time resumes");
    } else {
      spdlog::error("virtual time is blocked, because the state cannot be saved: {}",
                    std::string(status.message()));
    }
  }
  storage_trouble_ = status;
  if (!status.ok() && !has_ended_) {
    keeping_again_ = true;
    keep_timer_.Set(kKeepAgain, [this]() PERCS_LOCKED { keeping_again_ = false; });
    return;
  }
  fabric_kept_ = true;
  places_changed_.clear();
  begun_.reset();
  for (EndedRun& run : std::exchange(ended_runs_, {})) {
    if (status.ok()) JournalEnd(run);
    finished_.Add(run.number, std::move(run.result));
    front_->OnRunEnded(run.number);
  }
  if (run_) run_->Kept(whole);
  options_.kill_at.Reached("saved");
  if (stepped) options_.kill_at.Reached("step");
  membership_.Release();
  options_.kill_at.Reached("granted");
}

// It follows the saved state, which decides what the next controller does.
void Controller::JournalEnd(const EndedRun& run) {
  v1::JournalRecord record;
  record.set_run(run.number);
  record.set_at(run.at);
  if (run.result.ok()) {
    record.mutable_end()->set_digest(run.result->result().digest());
  } else {
    record.mutable_end()->set_error(std::string(run.result.status().message()));
  }
  if (const absl::Status status = journal_.Append({&record, 1}); !status.ok()) {
    spdlog::error("run {}: its end could not be written to the journal: {}", run.number,
                  std::string(status.message()));
  }
}

void Controller::PutNews() {
  if (!fabric_kept_) store_.PutFabric(membership_.fabric(), membership_.places());
  PutMembers();
  if (begun_ && run_) store_.PutRun(run_->number(), run_->scenario().name, *begun_);
  for (const EndedRun& run : ended_runs_) store_.EndRun(run.number, run.result);
  if (run_ && !run_->ended()) {
    const ManagerLog& log = run_->manager_log();
    std::uint64_t number = log.steps() - log.new_steps().size();
    for (const v1::ManagerStep& step : log.new_steps())
      store_.PutStep(run_->number(), number++, step);
    v1::SavedRun saved;
    run_->Save(&saved);
    store_.PutSaved(&saved);
  }
}

void Controller::PutMembers() {
  std::vector<std::uint32_t> places;
  for (std::uint32_t place = 0; place < membership_.places(); ++place) {
    const Member* member = membership_.member(place);
    if (places_changed_.contains(place) ||
        (member != nullptr && (store_.has_appended() || member->session().changed())))
      places.push_back(place);
  }
  if (places.size() == membership_.places()) store_.PackMembers();
  for (const std::uint32_t place : places) {
    const Member* member = membership_.member(place);
    if (member == nullptr) {
      store_.RemoveMember(place);
      continue;
    }
    v1::SavedMember saved;
    member->Save(&saved);
    store_.PutMember(place, saved);
  }
}

}  // namespace percs
