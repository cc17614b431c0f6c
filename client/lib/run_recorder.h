// A run as the page shows it afterwards: what is seen of its fabric at regular virtual times, as
// messages of the feed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/page/local_sight.h"
#include "emulator/sim/fabric.h"

namespace percs {

class RunRecorder {
 public:
  // `number` of the run, from 1.
  RunRecorder(const Topology& topology, std::uint64_t number);

  // RunOptions::watch. The first windows are all seen; later, as many as there is room for, at
  // equal distances in virtual time, and the end of the run always.
  void Watch(const Fabric& fabric, std::uint64_t windows, bool ended);

  std::size_t frames() const { return frames_.size(); }
  // A page with as many frames as fit in `bytes_max`, but at least the first and the last.
  std::string Page(std::size_t bytes_max) const;

 private:
  struct Frame {
    FabricSight sight;
    v1::StatusReply status;
    std::size_t events = 0;  // of events_, that had happened
  };

  std::string Messages(std::size_t every) const;

  const LocalSight sight_;
  const std::size_t frames_max_;
  std::vector<Frame> frames_;
  std::vector<v1::FabricEvent> events_;
  Time interval_ = 0, next_ = 0;  // virtual
};

}  // namespace percs
