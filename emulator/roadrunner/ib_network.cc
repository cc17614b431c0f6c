#include "emulator/roadrunner/ib_network.h"

#include <algorithm>

#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

bool Alive(const IbTree& tree, const IbPath& path) {
  for (int i = 0; i < path.size; ++i) {
    if (!tree.alive(path.links[static_cast<std::size_t>(i)])) return false;
  }
  return true;
}

}  // namespace

absl::Status IbNetwork::Inject(const IbFault& fault) {
  State next = states_.back();
  if (fault.at < next.since) {
    return absl::InvalidArgumentError(
        fmt::format("a fault at {} after one at {}; write them in time order", FormatTime(fault.at),
                    FormatTime(next.since)));
  }
  next.since = fault.at;
  if (fault.crossbar) {
    next.tree.SetCrossbar(fault.number, fault.up);
  } else {
    next.tree.SetCable(fault.number, fault.up);
  }
  states_.push_back(std::move(next));
  return absl::OkStatus();
}

const IbTree& IbNetwork::At(Time time) const {
  std::size_t i = states_.size() - 1;
  while (i > 0 && states_[i].since > time) --i;
  return states_[i].tree;
}

Time IbNetwork::Finish(const IbPath& path, std::uint64_t bytes, Time now) const {
  Time head = now;
  for (int i = 0; i < path.size; ++i) {
    head = std::max(head, free_[static_cast<std::size_t>(path.links[static_cast<std::size_t>(i)])]);
    head += parameters_.cable + (i + 1 < path.size ? parameters_.crossbar : 0);
  }
  return head + TransferTime(bytes, parameters_.bytes_per_ns);
}

void IbNetwork::Reserve(const IbPath& path, std::uint64_t bytes, Time now) {
  const Time busy = TransferTime(bytes, parameters_.bytes_per_ns);
  Time head = now;
  for (int i = 0; i < path.size; ++i) {
    Time& free = free_[static_cast<std::size_t>(path.links[static_cast<std::size_t>(i)])];
    stats_.waited += std::max<Time>(0, free - head);
    head = std::max(head, free);
    free = head + busy;
    head += parameters_.cable + parameters_.crossbar;
  }
  ++stats_.messages;
  stats_.bytes += bytes;
  stats_.crossbars += static_cast<std::uint64_t>(path.crossbars());
}

absl::StatusOr<Time> IbNetwork::Send(int from, int to, std::uint64_t bytes, Time now) {
  for (Time time = now;; time += parameters_.retry) {
    const bool swept = time >= parameters_.sweep;
    const auto path = At(swept ? time - parameters_.sweep : 0).Route(from, to);
    if (!path.ok()) {
      ++stats_.failed;
      return path.status();
    }
    const Time finish = Finish(*path, bytes, time);
    const bool intact = states_.size() == 1 || (Alive(At(time), *path) && Alive(At(finish), *path));
    if (intact) {
      Reserve(*path, bytes, time);
      return finish;
    }
    ++stats_.retries;
  }
}

Time IbNetwork::MinimalTime(int from, int to) const {
  const auto path = tree().Route(from, to);
  if (!path.ok()) return kNever;
  return path->size * parameters_.cable + path->crossbars() * parameters_.crossbar;
}

}  // namespace percs::roadrunner
