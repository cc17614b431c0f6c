// The commands of a run: those that wait for the end of the window, those of a journal that is
// replayed, and those that another controller had journalled when it died, before they took effect.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/time.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/control.pb.h"
#include "percs/v1/state.pb.h"

namespace percs {

class RunCommands {
 public:
  struct Command {
    v1::JournalRecord record;
    std::function<void(absl::StatusOr<Time>)> done;  // when it takes effect, or the error
    // A reply of the command's method, filled when it takes effect; null: no caller.
    google::protobuf::Message* answer = nullptr;
    // Null: as the record says. Else the same, for what the record only names.
    std::function<absl::Status(Fabric& manager, Time at)> on_manager = nullptr;
    bool leased = true;       // the lease that it asks for begins; false in a replay
    bool journalled = false;  // by the controller before this one
  };
  // Makes commands durable that take effect now. An error refuses them all.
  using Journal = std::function<absl::Status(const std::vector<v1::JournalRecord>&)>;

  // Null: they are not kept. `replay`: in the order of their times.
  RunCommands(std::uint64_t run, Journal journal, std::deque<v1::JournalRecord> replay)
      : run_(run), journal_(std::move(journal)), replay_(std::move(replay)) {}

  bool durable() const { return journal_ != nullptr; }
  bool any_waits() const { return !waiting_.empty(); }
  void Add(Command command) { waiting_.push_back(std::move(command)); }
  std::list<Command> Take() { return std::exchange(waiting_, {}); }
  // Those that someone waits for: all but daemons that rejoin.
  std::list<Command> TakeAsked();
  void ForgetRejoin(std::uint32_t process);
  // All that take effect at one time are made durable at once, before they do and are acknowledged,
  // unless they are in the journal already.
  absl::Status Record(const std::list<Command>& commands, Time at);
  // How many are in the journal.
  std::uint64_t recorded() const { return recorded_; }

  // --- A replay.
  bool replay_ended() const { return replay_.empty(); }
  // REQUIRES: it has not ended.
  Time next_replay() const { return replay_.front().at(); }
  v1::JournalRecord TakeReplay();

  // --- A controller that takes over: what the one before journalled, but what was saved does not
  // have, takes effect again at its time. Nothing else takes effect before all of it has.
  const std::deque<v1::JournalRecord>& retaken() const { return retaken_; }
  bool any_retaken() const { return !retaken_.empty(); }
  // REQUIRES: any_retaken(), also for TakeRetaken, which is not replayed as well.
  Time next_retaken() const { return retaken_.front().at(); }
  v1::JournalRecord TakeRetaken();
  bool RetakesLossOf(std::uint32_t process) const;
  // Places of which the next that is retaken is a loss, not a rejoin.
  std::set<std::uint32_t> PlacesToLose() const;
  void Save(v1::SavedRun* saved) const;
  // `journal`: the commands of the run. DATA_LOSS if what was saved is not of this journal.
  absl::Status CheckSaved(const v1::SavedRun& saved, std::size_t journalled) const;
  void Restore(const v1::SavedRun& saved, std::vector<v1::JournalRecord> journal);

 private:
  const std::uint64_t run_;
  const Journal journal_;
  std::list<Command> waiting_;
  std::deque<v1::JournalRecord> replay_;
  std::uint64_t recorded_ = 0;
  std::deque<v1::JournalRecord> retaken_;
};

}  // namespace percs
