// A triblade of Roadrunner as a node of the fabric: its blades, PPEs and Opteron cores
// (emulator/roadrunner), and a network side in place of the InfiniBand adapter, plugged into a hub
// by a gateway link of the D class, or into another triblade. Opterons send their MPI messages over
// it; all SPEs of all triblades of a scenario are the ranks of one MPI_COMM_WORLD, in order of the
// triblades.
//
// Not modelled: the gateway that would join PERCS and a host adapter, which was never built; it
// takes no time beyond that of the HFI and the link.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/node/edge_node.h"
#include "emulator/roadrunner/cluster.h"

namespace percs {

inline constexpr const char* kTribladeType = "triblade";

// INVALID_ARGUMENT says what a triblade's program has to be: CML's collectives take all SPEs and
// choose for themselves.
absl::Status CheckTribladeProgram(const CollectiveProgram& program);
// INVALID_ARGUMENT unless all triblades of the scenario have the same programs, which
// CheckTribladeProgram accepts.
absl::Status CheckTriblades(const Scenario& scenario, const Topology& topology);

class TribladeNode : public EdgeNode {
 public:
  // REQUIRES: CheckTriblades was content.
  static absl::StatusOr<std::unique_ptr<TribladeNode>> Create(NodeId node, const Scenario& scenario,
                                                              const Topology& topology,
                                                              WorkCounters* work,
                                                              const DeliveryObserver* on_delivery);

  Hub& network() override { return network_; }
  void Start() override;
  Time next_time() const override { return std::min(network_.next_time(), cluster_->next_time()); }
  Time next_inside() const override { return cluster_->next_time(); }
  void Run(Time end) override;
  absl::Status Inject(const BladeFault& fault) override;
  NodeResult Result() override;
  // Sums over both blades, SPE by SPE.
  std::vector<cell::SpeInFlight> DmaInFlight() const override;
  void KeepDma(std::size_t slices_max) override { cluster_->KeepDma(slices_max); }
  std::vector<cell::DmaSlice> DmaSlices() const override;
  std::vector<std::string> Blocked() override;

 private:
  using Message = roadrunner::Message;
  // Messages of the message layer with one peer, both ways; they are numbered from 0 each way.
  struct Coming {
    roadrunner::Bytes bytes;
    std::uint64_t received = 0;
    bool announced = false;  // the message layer has all of it; its last payload follows
  };
  struct Flow {
    std::uint64_t sent = 0;
    std::map<std::uint32_t, Message> in_flight;  // without data
    std::map<std::uint32_t, Coming> coming;
  };
  TribladeNode(NodeId node, const Scenario& scenario, const Topology& topology, WorkCounters* work,
               const DeliveryObserver* on_delivery, std::vector<NodeId> triblades);
  absl::Status Launch();
  Task<> RunAll(roadrunner::Cml& mpi);
  Task<> RunOne(roadrunner::Cml& mpi, const CollectiveProgram& program);
  void SendOut(Message message, Time at);
  void Transmit(Message message);
  void TakeIfWhole(Flow& flow, std::uint32_t number);
  void Finish();
  // Sums of both blades: "cell0" is the first Cell of each.
  void CountBlades();

  // The network side's workload, which calls the next four.
  class Port;
  void OnTimer(std::uint64_t token);
  void OnPayload(const PacketHeader& header);
  void OnMessage(const DeliveredMessage& message);
  void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered);

  std::vector<CollectiveProgram> programs_;
  const std::vector<NodeId> triblades_;  // of the scenario
  int number_ = 0;                       // of this one among them
  Hub network_;
  std::unique_ptr<roadrunner::Cluster> cluster_;
  std::map<NodeId, Flow> flows_;
  // What the InfiniBand adapter adds to a message; 0 on a gateway link, where it is unknown.
  Time adapter_send_ = 0, adapter_receive_ = 0;
  std::map<std::uint64_t, Message> outgoing_;  // by token of the timer that sends it
  std::uint64_t next_token_ = 0;
  std::vector<BladeProgramResult> results_;
  std::vector<int> ranks_through_;         // by program
  std::vector<std::string> lost_answers_;  // that the network gave up
  std::uint64_t wrong_ = 0;
  bool over_ = false;
};

}  // namespace percs
