// One output of the crossbar and the link behind it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "emulator/isr/credit_counter.h"
#include "emulator/packet/packet_state.h"
#include "emulator/wire/outbox.h"

namespace percs {

class EventQueue;
class Isr;

// Inputs that request one output VC: bit = 3 x input port + VC.
class RequestSet {
 public:
  static constexpr int kWords = 3;
  void Set(int index) { words_[index >> 6] |= std::uint64_t{1} << (index & 63); }
  void Clear(int index) { words_[index >> 6] &= ~(std::uint64_t{1} << (index & 63)); }
  bool Has(int index) const { return (words_[index >> 6] >> (index & 63)) & 1; }
  // One by one: they are few, and not every processor counts bits.
  int Count() const {
    int count = 0;
    for (std::uint64_t bits : words_) {
      for (; bits; bits &= bits - 1) ++count;
    }
    return count;
  }
  bool any() const { return (words_[0] | words_[1] | words_[2]) != 0; }
  // First index above `pointer`, cyclically; -1 if the set is empty.
  int FirstAfter(int pointer) const {
    const int start = pointer + 1;
    for (int w = start >> 6; w < kWords; ++w) {
      std::uint64_t bits = words_[w];
      if (w == (start >> 6)) bits &= ~std::uint64_t{0} << (start & 63);
      if (bits) return (w << 6) + std::countr_zero(bits);
    }
    for (int w = 0; w < kWords; ++w) {
      if (words_[w]) return (w << 6) + std::countr_zero(words_[w]);
    }
    return -1;
  }

 private:
  std::uint64_t words_[kWords] = {};
};

struct alignas(64) OutputVc {
  [[no_unique_address]] CreditCounter credits;
  std::int16_t owner_index = -1;
  std::int16_t pointer = -1;  // round robin over its inputs: index served last
  Packet* owner = nullptr;    // the packet that has begun and not ended on this VC
  // Granted, and the bytes that flits had room for and did not carry; here because a commitment is
  // in this line anyway.
  std::uint64_t flits = 0, packets = 0, unfilled = 0;
};

static_assert(sizeof(OutputVc) == 64, "one cache line");

// An arrival and a commitment read the first cache line and the VC's, and write the second.
// WIDE: what a commitment touches is together in two cache lines.
struct alignas(64) OutputPort {
  // The link. `local` is set when the peer is run by the same thread, and `queue` is that of its
  // events; otherwise `outbox` takes what crosses.
  Isr* local = nullptr;
  union {
    Outbox* outbox = nullptr;
    EventQueue* queue;
  };
  Time flit_time = 0, wire = 0;
  Time busy_until = 0;  // when the last flit of the last commitment has left
  Time stall_since = -1;
  std::uint32_t generation = 0;  // of the link
  NodeId peer = kNoNode;
  PortId peer_port = kNoPort;
  bool connected = false, up = false;
  bool edge = false;  // to or from a blade or a crossbar of InfiniBand: like an HFI's port, it has
                      // no place in L0 D0 L1 D1 L2
  bool errors =
      false;  // its wire has or had errors or latency: link_level.cc looks at every commitment
  std::uint8_t requested_vcs = 0;  // bit v: VC v has a request
  std::uint8_t stalled_vcs = 0;    // bit v: ... which lacks nothing but a credit
  std::int8_t last_vc = -1;        // round robin over VCs: the one served last

  Packet* unfinished = nullptr;  // the packet whose commitment ends at busy_until without its tail
  Time wake_at = kNever;         // pending credit event
  std::uint32_t downs = 0;       // how often it went down
  std::int16_t requests = 0;     // over all VCs
  std::int16_t unfinished_index = -1;
  // The last commitment: its flits leave flit_time apart, the last one at busy_until.
  PortId committed_port = kNoPort;  // input it takes them from
  VcId committed_vc = 0;
  bool committed_spare = false;  // its last flit is a poison tail in the slot set aside for it
  std::uint8_t committed_flits = 0;
  std::uint8_t vcs = 0;
  bool free_scheduled = false;

  std::array<RequestSet, kMaxVcs> requesters;  // by VC
  std::array<Time, kMaxVcs> vc_stall_since{};  // of those that stalled_vcs has
  std::array<OutputVc, kMaxVcs> vc;

  // A control message to the neighbour. What it says, when it was raised and when it arrives is the
  // caller's.
  ControlItem ToPeer(ControlItem::Kind kind, NodeId source) const {
    ControlItem item;
    item.kind = kind;
    item.source = source;
    item.target = peer;
    item.port = peer_port;
    item.epoch = generation;
    return item;
  }
  void TakeRequest(VcId v, int index) {
    RequestSet& set = requesters[v];
    set.Clear(index);
    if (!set.any()) requested_vcs &= static_cast<std::uint8_t>(~(1 << v));
    --requests;
  }
  // Flits of the last commitment, `spacing` apart, that leave after t.
  int FlitsLeavingAfter(Time t, Time spacing) const {
    if (busy_until <= t) return 0;
    const Time left = (busy_until - t + spacing - 1) / spacing;
    return static_cast<int>(left < committed_flits ? left : committed_flits);
  }
};

static_assert(offsetof(OutputPort, unfinished) == 64 && offsetof(OutputPort, vc) == 192);
static_assert(sizeof(OutputPort) == 384, "a hub has 57, the largest machine a million");

}  // namespace percs
