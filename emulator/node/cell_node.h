// A Cell blade as a node of the fabric: the blade itself and its network side, which is built from a
// hub's blocks (an ISR of which one port is plugged in, HFI, message layer), as one partition of
// virtual time.
//
// Order of an instant: the blade, then the network side, again until neither has anything left to do.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cell/blade.h"
#include "emulator/node/blade_port.h"
#include "emulator/node/blade_programs.h"
#include "emulator/node/hub.h"

namespace percs {

class CellNode {
 public:
  // INVALID_ARGUMENT for an unknown blade type.
  static absl::StatusOr<std::unique_ptr<CellNode>> Create(NodeId node, const Scenario& scenario,
                                                          const Topology& topology,
                                                          WorkCounters* work,
                                                          const DeliveryObserver* on_delivery);

  Hub& network() { return network_; }
  cell::Blade& blade() { return *blade_; }
  void Start();
  Time next_time() const { return std::min(network_.next_time(), blade_->next_time()); }
  // Runs every event before `end`.
  void Run(Time end);
  // Errors as those of cell::Blade.
  absl::Status Inject(const BladeFault& fault);
  NodeResult Result();
  // Programs that wait, and for what.
  std::vector<std::string> Blocked() const;

 private:
  CellNode(NodeId node, const Scenario& scenario, const Topology& topology, WorkCounters* work,
           const DeliveryObserver* on_delivery, std::unique_ptr<cell::Blade> blade);
  void CountBlade();

  const BladeConfig config_;
  Hub network_;
  std::unique_ptr<cell::Blade> blade_;
  BladePort* port_ = nullptr;  // network_'s workload
  std::unique_ptr<BladePrograms> programs_;
};

}  // namespace percs
