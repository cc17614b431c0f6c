// A node at the edge of the network: what computes, and its network side, which is built from a
// hub's blocks (an ISR of which one port is plugged in, HFI, message layer), as one partition of
// virtual time. Cell blades and triblades.
//
// Order of an instant: what computes, then the network side, again until neither has anything left
// to do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cell/dma_in_flight.h"
#include "emulator/cell/dma_log.h"
#include "emulator/node/hub.h"

namespace percs {

class EdgeNode {
 public:
  virtual ~EdgeNode() = default;
  virtual Hub& network() = 0;
  virtual void Start() = 0;
  virtual Time next_time() const = 0;
  virtual Time next_inside() const = 0;  // without the network side
  // Runs every event before `end`.
  virtual void Run(Time end) = 0;
  // INVALID_ARGUMENT for a part it does not have, FAILED_PRECONDITION if it cannot continue without
  // it.
  virtual absl::Status Inject(const BladeFault& fault) = 0;
  virtual NodeResult Result() = 0;
  // Of the SPEs that have DMA commands which are not complete.
  virtual std::vector<cell::SpeInFlight> DmaInFlight() const = 0;
  // Keeps what the SPEs do by DMA from now on, at most so many commands of each blade.
  virtual void KeepDma(std::size_t slices_max) = 0;
  // Of all its blades; SPEs are numbered through.
  virtual std::vector<cell::DmaSlice> DmaSlices() const = 0;
  // Programs that wait, and for what.
  virtual std::vector<std::string> Blocked() = 0;
};

// Of the type that the scenario gives the node. INVALID_ARGUMENT for an unknown one.
absl::StatusOr<std::unique_ptr<EdgeNode>> MakeEdgeNode(NodeId node, const Scenario& scenario,
                                                       const Topology& topology, WorkCounters* work,
                                                       const DeliveryObserver* on_delivery);

}  // namespace percs
