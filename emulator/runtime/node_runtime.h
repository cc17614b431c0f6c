// The tasks of one node in virtual time: their threads, the memory they share and their way to the
// network. All state is the node's own, so that where nodes run does not matter.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/runtime/cau_window.h"
#include "emulator/runtime/core_caches.h"
#include "emulator/runtime/memory_server.h"
#include "emulator/runtime/message_port.h"
#include "emulator/runtime/rank.h"
#include "emulator/runtime/shared_memory.h"
#include "emulator/scenario/placement.h"
#include "emulator/workload/hub_workload.h"

namespace percs {

class NodeRuntime : public HubWorkload {
 public:
  // `program` makes the program of a task. OWNERSHIP: what it needs lives as long as this.
  using MakeProgram = std::function<Task<>(Rank&)>;

  // REQUIRES: placement.Check is OK. A node beyond the placement's has no task.
  NodeRuntime(const HostParameters& host, const TaskPlacement& placement, HubServices& hub);
  void SetProgram(MakeProgram program) { program_ = std::move(program); }

  Time now() const { return hub_.context().now; }
  HubServices& hub() { return hub_; }
  const HostParameters& host() const { return host_; }
  const TaskPlacement& placement() const { return placement_; }
  MessagePort& port() { return port_; }
  SharedMemory& memory() { return memory_; }
  MemoryServer& memory_server() { return memory_server_; }
  CoreCaches& caches() { return caches_; }
  // Makes the leader of this node a participant of `tree`, by a window of its own; the tree has to
  // be there when the node starts. May be called for several trees.
  void UseTree(CauTreeId tree) { cau_windows_.push_back(std::make_unique<CauWindow>(*this, tree)); }
  // The window on the `i`th of them; null if there are fewer, as for tasks of one node.
  CauWindow* cau_window(std::size_t i = 0) {
    return i < cau_windows_.size() ? cau_windows_[i].get() : nullptr;
  }
  std::vector<std::unique_ptr<Rank>>& local_ranks() { return ranks_; }

  bool IsLocal(std::uint32_t task) const { return placement_.NodeOf(task) == node_; }
  Rank& rank(std::uint32_t task) { return *ranks_[placement_.LocalOf(task)]; }
  Rank& local_rank(std::uint32_t local) { return *ranks_[local]; }
  // Of a line that moves between two cores.
  Time LineLatency(int core, int other) const {
    if (core == other) return host_.line_same_core;
    return core / kCoresPerChip == other / kCoresPerChip ? host_.line_same_chip
                                                         : host_.line_other_chip;
  }

  // One endpoint per task and channel.
  void SetEndpoint(Rank& rank, std::uint8_t channel, Endpoint* endpoint);
  Endpoint& endpoint(Rank& rank, std::uint8_t channel) {
    return *endpoints_[rank.local() * kChannels + channel];
  }
  WindowId WindowOf(std::uint32_t local) const;
  std::uint32_t LocalAt(WindowId window) const;

  // Threads of a core that compute or copy now; the others poll.
  int BusyThreads(int core) const { return busy_[static_cast<std::size_t>(core)]; }
  void SetBusy(int core, bool busy) { busy_[static_cast<std::size_t>(core)] += busy ? 1 : -1; }
  void WakeRank(Rank& rank, Time at) { hub_.SetTimer(at, 2 * rank.local()); }
  void WakeStream(Rank& rank, Time at) { hub_.SetTimer(at, 2 * rank.local() + 1); }
  void WakeMemory(Time at) { hub_.SetTimer(at, 2 * kTasksPerNodeMax); }
  void OnProgramEnd(Rank& rank);
  // Something that makes results worthless, and what; the first of a node is kept.
  void Report(absl::Status error);
  const absl::Status& error() const { return error_; }

  // HubWorkload
  void Start() override;
  void OnTimer(std::uint64_t token) override;
  bool takes_payload() const override { return true; }
  bool checks_payload() const override { return true; }
  void OnPayload(const PacketHeader& header) override;
  void OnArrived() override;
  void OnMessage(const DeliveredMessage& message) override { arrived_.push_back(message); }
  void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) override;
  std::vector<RankResult> ranks() const override;
  RankLog* rank_log() override { return &log_; }

 private:
  struct Partial {
    NodeId source = 0;
    std::uint32_t message = 0;
    std::shared_ptr<std::vector<std::uint8_t>> bytes;
  };
  Content TakeContent(const DeliveredMessage& message);

  const HostParameters& host_;
  const TaskPlacement placement_;
  HubServices& hub_;
  const NodeId node_;
  MakeProgram program_;
  MessagePort port_;
  SharedMemory memory_;
  MemoryServer memory_server_;
  CoreCaches caches_;
  std::vector<std::unique_ptr<CauWindow>> cau_windows_;
  std::array<int, kCoresPerNode> busy_{};
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Endpoint*> endpoints_;
  std::vector<Partial> partial_;           // messages with content whose packets are coming in
  std::vector<DeliveredMessage> arrived_;  // complete but for the payload of this very packet
  absl::Status error_;
  RankLog log_;
};

}  // namespace percs
