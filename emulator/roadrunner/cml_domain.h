// What the CML processes of one blade share: the SPEs that wait for slots of its two PPEs, and the
// way to the rest of the machine.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "emulator/cell/blade.h"
#include "emulator/roadrunner/parameters.h"
#include "emulator/roadrunner/place.h"

namespace percs::roadrunner {

// Who begins a message in one address space.
enum class Protocol : std::uint8_t {
  kReceiverInitiated,  // descriptor, data: two latencies (CML)
  kSenderInitiated,    // request, descriptor, data: three (the conventional way, to compare)
};

struct CmlStats {
  std::uint64_t near_sends = 0, far_sends = 0, bytes = 0;
  std::uint64_t copied_by_ppe = 0, got_by_spe = 0;  // far messages, by how they reached the SPE
  std::uint64_t slot_stalls = 0;                    // waits for a slot of a PPE's queue
  std::uint64_t unexpected = 0;                     // far messages that came before their receive
  std::uint64_t rpcs = 0, opteron_calls = 0;

  template <typename Visitor>
  void Visit(Visitor visit) const {
    visit("near_sends", near_sends);
    visit("far_sends", far_sends);
    visit("bytes", bytes);
    visit("copied_by_ppe", copied_by_ppe);
    visit("got_by_spe", got_by_spe);
    visit("slot_stalls", slot_stalls);
    visit("unexpected", unexpected);
    visit("rpcs", rpcs);
    visit("opteron_calls", opteron_calls);
  }
};

// Events of a PPE, as tokens of Blade::Post.
enum class PpeEvent : std::uint64_t {
  kSendReady,   // a slot of the send queue is full: its number
  kSent,        // DaCS has taken it: its number
  kDescriptor,  // a slot of the receive queue is full: its number
  kArrived,     // a message came by DaCS: its number in the cluster
  kRpc,         // an SPE calls: which
  kRpcBack,     // the Opteron answered: its number in the cluster
};
constexpr std::uint64_t PpeToken(PpeEvent event, std::uint64_t number) {
  return static_cast<std::uint64_t>(event) << 32 | number;
}

struct CmlDomain {
  CmlDomain(const RoadrunnerParameters& parameters, cell::Blade& blade, int ranks,
            Protocol protocol)
      : parameters(parameters), blade(blade), ranks(ranks), protocol(protocol) {}

  bool SharesMemory(Rank a, Rank b) const {
    return parameters.cml.mem_domain_cells == 2 ? BladeOf(a) == BladeOf(b) : CellOf(a) == CellOf(b);
  }
  void Tell(int cell_on_blade, PpeEvent event, std::uint64_t number, Time at) {
    blade.Post(cell_on_blade, PpeToken(event, number), at);
  }
  // A slot of a PPE of this blade is free: those who wait look again.
  void Nudge(int cell_on_blade) {
    for (int i = 0; i < cell::kSpesPerCell; ++i) {
      const int spe = cell_on_blade * cell::kSpesPerCell + i;
      if (!polls[static_cast<std::size_t>(spe)]) continue;
      nudged[static_cast<std::size_t>(spe)] = true;
      blade.spe(spe).OnStored();
    }
  }

  const RoadrunnerParameters& parameters;
  cell::Blade& blade;
  const int ranks;  // of MPI_COMM_WORLD
  const Protocol protocol;
  CmlStats stats;
  std::array<bool, cell::kSpes> polls{},
      nudged{};  // by SPE: it waits for a slot; one was freed since it looked
  // Why an RPC failed, by SPE: what the PPE would print.
  std::array<absl::Status, cell::kSpes> rpc_errors;
  bool aborted = false;
  int abort_code = 0;
  Rank aborted_by = 0;
};

}  // namespace percs::roadrunner
