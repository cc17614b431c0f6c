// Messages over the InfiniBand tree. A message holds every link of its way for its bytes at the
// link's rate, cut through from one to the next, behind what was there before it; so links and
// adapters are shared in order of arrival.
//
// A cable or crossbar that fails swallows what is on it. Sources send again every `retry`; `sweep`
// after the failure the forwarding tables are those of what is left, and a message goes around or
// fails.
//
// Not modelled: packets and credits of one virtual lane; a link that waits holds nothing up behind
// it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "emulator/roadrunner/parameters.h"
#include "emulator/topology/ib_tree.h"

namespace percs::roadrunner {

struct IbStats {
  std::uint64_t messages = 0, bytes = 0, crossbars = 0, retries = 0, failed = 0;
  Time waited = 0;  // of heads, for links that were taken
};

struct IbFault {
  Time at = 0;
  bool crossbar = false;  // else a cable
  int number = 0;         // crossbar, or a link of the cable
  bool up = false;
};

class IbNetwork {
 public:
  IbNetwork(IbTree tree, const InfinibandParameters& parameters)
      : parameters_(parameters), free_(static_cast<std::size_t>(tree.links())) {
    states_.push_back({0, std::move(tree)});
  }

  const IbTree& tree() const { return states_.front().tree; }
  const IbStats& stats() const { return stats_; }
  // Before the run, in order of time. INVALID_ARGUMENT otherwise.
  absl::Status Inject(const IbFault& fault);

  // Time at which the last byte reaches triblade `to`, of a message given to the adapter of `from`
  // now. Calls come in order of time. UNAVAILABLE: there is no way.
  absl::StatusOr<Time> Send(int from, int to, std::uint64_t bytes, Time now);
  // Of an empty network and a message of no bytes.
  Time MinimalTime(int from, int to) const;

 private:
  struct State {
    Time since = 0;
    IbTree tree;
  };
  const IbTree& At(Time time) const;
  Time Finish(const IbPath& path, std::uint64_t bytes, Time now) const;
  void Reserve(const IbPath& path, std::uint64_t bytes, Time now);

  const InfinibandParameters parameters_;
  std::vector<State> states_;  // by time
  std::vector<Time> free_;     // by link
  IbStats stats_;
};

}  // namespace percs::roadrunner
