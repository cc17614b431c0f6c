// A packet while it is inside one hub: what has arrived of it, what has left, and where it goes.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/base/prefetch.h"
#include "emulator/packet/packet.h"

namespace percs {

// Flits first .. first + count - 1 of a packet; flit first + i arrives at start + i * spacing.
struct Segment {
  Time start = 0, spacing = 0;
  std::uint8_t first = 0, count = 0;
  Time arrival(int i) const { return start + i * spacing; }
  Time last() const { return start + (count - 1) * spacing; }
};

// Three cache lines: most steps of a raw packet touch the first, some the second, none the third.
struct alignas(64) Packet {
  Packet* next = nullptr;  // in the buffer or queue that holds it
  Packet* previous = nullptr;

  // The run that is arriving (before it is linked into its buffer) or the first one (after).
  Segment segment;
  std::uint32_t run_generation = 0;
  bool run_has_tail = false;

  PortId in = 0, out = kNoPort;
  VcId in_vc = 0, out_vc = 0;
  DropReason reason = DropReason::kLinkDown;
  std::uint8_t length = 0;     // flits of the packet, shorter than header.flits after a poison tail
  std::uint8_t announced = 0;  // flits whose arrival is known
  std::uint8_t sent = 0;       // flits committed or dropped
  bool begun = false;          // a flit of it was committed; it owns its output VC
  bool requesting = false;
  bool draining = false;  // to be dropped, under `reason`
  std::uint8_t tail_marks = 0;
  bool ended = false;       // its link died: what is still to come of it is synthesised here
  bool spare_slot = false;  // the poison tail sits in the slot set aside for it
  std::uint16_t branch =
      0;  // not 0: one of the copies of a multicast packet, the replica of this number

  PacketHeader header;

  Time drains_from = 0;  // while draining: not before the end of its running commitment
  std::vector<Segment>
      more;  // later runs, unless one_run(); keeps its capacity for the next packet

  void ResetState() {
    next = nullptr;
    out = kNoPort;
    length = announced = sent = 0;
    begun = requesting = draining = ended = spare_slot = false;
    tail_marks = 0;
    branch = 0;
  }
  bool one_run() const { return announced == segment.count; }
  const Segment& last_segment() const { return one_run() ? segment : more.back(); }
  // Arrival of flit i. REQUIRES: i < announced.
  Time ArrivalOf(int i) const {
    if (i < segment.count) return segment.arrival(i);
    for (const Segment& s : more) {
      if (i < s.first + s.count) return s.arrival(i - s.first);
    }
    return kNever;
  }
  // A further run.
  void Announce(const Segment& s) {
    if (one_run()) more.clear();
    more.push_back(s);
    announced = static_cast<std::uint8_t>(announced + s.count);
  }
  bool complete() const { return announced == length; }
};

// Has the two lines of a packet fetched that will be needed soon.
inline void FetchPacket(const Packet* p) {
  FetchLine(p);
  FetchLine(&p->header);
}

}  // namespace percs
