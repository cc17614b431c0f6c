// The daemons that a run has lost: those declared lost, until the survivors have reported which
// batches they have and the loss is a command; and the places and hubs lost since then.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "daemon/controller/run/sent_batches.h"
#include "emulator/base/ids.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/control.pb.h"
#include "percs/v1/state.pb.h"
#include "percs/v1/sync.pb.h"

namespace percs {

class RunLosses {
 public:
  struct Loss {
    v1::SavedLoss saved;              // with the reports of survivors
    std::set<std::uint32_t> awaited;  // processes that have not reported yet
  };
  // Lives as long as this.
  explicit RunLosses(const Placement& placement) : placement_(placement) {}

  // --- Declared, not yet commands.
  void Declare(const v1::SavedLoss& saved, std::set<std::uint32_t> survivors);
  // A survivor is lost, too: it is awaited no more.
  void LoseSurvivor(std::uint32_t process);
  // Whether it was awaited.
  bool OnAnswer(std::uint32_t survivor, const v1::PeerLostReply& reply);
  bool Awaits(std::uint32_t survivor) const;
  bool awaits_any() const;
  bool any_declared() const { return !declared_.empty(); }
  // All that are declared, to become commands now.
  std::list<Loss> Take();
  // The command, with the number of the loss counted from `count`: where what the lost daemon had
  // sent did not arrive any more, by receiver.
  v1::LostDaemon CommandFor(const Loss& loss, std::uint32_t number, Time boundary,
                            const SentBatches& batches) const;
  // It could not be journalled: it stays declared. Returns whether it is the first since Take.
  bool PutBack(const Loss& loss, const absl::Status& why);
  // OK, or why virtual time is held: a loss cannot be journalled.
  const absl::Status& not_journalled() const { return not_journalled_; }

  // --- That took effect.
  void TakeEffect(const v1::LostDaemon& message);
  // Of this many losses numbers are taken.
  std::uint32_t count() const { return count_; }
  const std::set<NodeId>& nodes() const { return nodes_; }
  // Loss by process, until another daemon has its place.
  const std::map<std::uint32_t, std::uint32_t>& places() const { return places_; }
  void GivePlace(std::uint32_t process) { places_.erase(process); }
  void ReadmitNodes(const std::vector<NodeId>& nodes);

  // --- A controller that takes over. The journal has the loss of this daemon, and what was saved
  // does not.
  void Journalled(const v1::LostDaemon& message);
  bool WasJournalled(std::uint32_t process, std::uint64_t incarnation) const;
  void Save(v1::SavedRun* saved) const;
  void Restore(const v1::SavedRun& saved);

 private:
  const Placement& placement_;
  std::list<Loss> declared_;
  absl::Status not_journalled_;
  std::uint32_t count_ = 0;
  std::set<NodeId> nodes_;
  std::map<std::uint32_t, std::uint32_t> places_;
  std::map<std::uint32_t, std::uint64_t> journalled_;  // incarnations, by process
};

}  // namespace percs
