// A Cell blade as a node of the fabric: the blade itself and its network side, which is built from
// a hub's blocks (an ISR of which one port is plugged in, HFI, message layer), as one partition of
// virtual time.
//
// Order of an instant: the blade, then the network side, again until neither has anything left to
// do.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cell/blade.h"
#include "emulator/node/blade_port.h"
#include "emulator/node/blade_programs.h"
#include "emulator/node/edge_node.h"

namespace percs {

class CellNode : public EdgeNode {
 public:
  // INVALID_ARGUMENT for an unknown blade type.
  static absl::StatusOr<std::unique_ptr<CellNode>> Create(NodeId node, const Scenario& scenario,
                                                          const Topology& topology,
                                                          WorkCounters* work,
                                                          const DeliveryObserver* on_delivery);

  cell::Blade& blade() { return *blade_; }
  Hub& network() override { return network_; }
  void Start() override;
  Time next_time() const override { return std::min(network_.next_time(), blade_->next_time()); }
  Time next_inside() const override { return blade_->next_time(); }
  void Run(Time end) override;
  absl::Status Inject(const BladeFault& fault) override;
  NodeResult Result() override;
  std::vector<cell::SpeInFlight> DmaInFlight() const override { return blade_->InFlight(); }
  void KeepDma(std::size_t slices_max) override { blade_->dma().Keep(slices_max); }
  std::vector<cell::DmaSlice> DmaSlices() const override { return blade_->dma().slices(); }
  std::vector<std::string> Blocked() override;

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
