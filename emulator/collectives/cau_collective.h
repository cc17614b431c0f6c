// Collectives on a tree of CAUs, among the leaders of nodes (paper 003 section 3.6): a reduce, of
// which the root adds its own operands in software to what the tree brings, and a broadcast. Up to
// 64 bytes; operations and types of the ALU. An allreduce is the one and then the other (chain.h).
#pragma once

#include <string>

#include "emulator/collectives/collective.h"
#include "emulator/runtime/cau_window.h"
#include "emulator/scenario/operation.h"

namespace percs {

class CauCollective final : public Collective, private CauWindow::Client {
 public:
  // `leaders`: task 0 of each node. `operation`: kReduce or kBroadcast. `window`: which of the
  // node's. REQUIRES: it is on a tree whose participants are those nodes.
  CauCollective(Rank& rank, const TaskGroup& leaders, Operation operation, std::size_t window = 0);

  void Reset(const CollectiveCall& call) override;
  void Start() override;
  std::string Waits() const override;

 private:
  void OnCauSent() override { Finish(); }
  void OnCauReceived(const CauPayload& payload) override;
  void Finish();

  Rank& rank_;
  const TaskGroup leaders_;
  const std::uint32_t me_;
  const Operation operation_;
  CauWindow* const window_;
  CollectiveCall call_;
  bool running_ = false;
};

}  // namespace percs
