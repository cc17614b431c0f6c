// CML's process on one PPE (paper 004, Cell Messaging Layer): forwards messages between its SPEs
// and its Opteron core, puts arrived ones into local stores, and answers remote procedure calls.
// One thing after another: a PPE is a slow core, and every event costs it `ppe_handle`, every DaCS
// transfer the overhead of DaCS.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "emulator/roadrunner/cml_domain.h"
#include "emulator/roadrunner/cml_layout.h"
#include "emulator/roadrunner/rpc.h"

namespace percs::roadrunner {

// What Opteron cores carry: a message, or the answer that its receive took it (or that it cannot
// arrive).
struct Message {
  enum class Kind : std::uint8_t { kData, kTaken, kFailed };
  Kind kind = Kind::kData;
  Rank from = 0, to = 0;  // of the data
  int tag = 0;
  std::uint32_t sequence = 0;  // of the sender's call
  Bytes data;

  Rank destination() const { return kind == Kind::kData ? to : from; }
  Rank origin() const { return kind == Kind::kData ? from : to; }
};

// A call on its way from a PPE to its Opteron core and back.
struct PendingCall {
  int spe = 0;
  std::uint32_t sequence = 0;
  int number = 0;
  std::size_t data_from = 0;
  int unit = 8;
  std::size_t result_bytes = 0;
  Bytes bytes;  // arguments, then result
  absl::Status status;
  std::function<Bytes(const Bytes&)> then;
  std::optional<DacsAccess> access;  // instead of a function of the Opteron
};

// The Opteron side, as a PPE knows it.
class HostLink {
 public:
  virtual ~HostLink() = default;
  // Begins a DaCS transfer now; until the Opteron core has it.
  virtual Time SendUp(int cell, Message message, Time now) = 0;
  virtual void CallUp(int cell, PendingCall call, Time now) = 0;
  // REQUIRES: call.access.
  virtual void Access(int cell, PendingCall call, Time now) = 0;
  // What a PpeEvent's number stands for.
  virtual Message TakeMessage(std::uint64_t number) = 0;
  virtual PendingCall TakeCall(std::uint64_t number) = 0;
};

class CmlPpe {
 public:
  CmlPpe(CmlDomain& domain, int cell, HostLink& host, const RpcRegistry& registry);
  Task<> Run(cell::Ppe& ppe);

 private:
  struct Posted {
    Descriptor descriptor;
    std::uint32_t slot = 0;
  };
  Task<> OnSendReady(cell::Ppe& ppe, std::uint32_t slot);
  Task<> OnDescriptor(cell::Ppe& ppe, std::uint32_t slot);
  Task<> OnArrived(cell::Ppe& ppe, std::uint64_t number);
  Task<> Deliver(cell::Ppe& ppe, Message message);
  Task<> OnRpc(cell::Ppe& ppe, int spe);
  Task<> OnRpcBack(cell::Ppe& ppe, std::uint64_t number);
  Task<> BeginAccess(cell::Ppe& ppe, PendingCall pending, DacsAccess access);
  Task<> Answer(cell::Ppe& ppe, int spe, std::uint32_t sequence, absl::StatusOr<Bytes> result);
  void Free(int queue, std::uint32_t slot);
  int cell_on_blade() const { return cell_ % cell::kCells; }
  std::optional<Posted>& PostedBy(int spe) {
    return posted_[static_cast<std::size_t>(spe % cell::kSpesPerCell)];
  }

  CmlDomain& domain_;
  const int cell_;  // of the machine
  HostLink& host_;
  const RpcRegistry& registry_;
  const PpeLayout layout_;
  PpeServices services_;
  std::array<std::optional<Posted>, cell::kSpesPerCell> posted_;
  std::deque<Message> unexpected_;  // each of another sender, which waits: at most one per rank
};

}  // namespace percs::roadrunner
