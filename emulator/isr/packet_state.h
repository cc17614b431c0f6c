// A packet while it is inside one hub: what has arrived of it, what has left, and where it goes.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/isr/packet.h"

namespace percs {

// Flits first .. first + count - 1 of a packet; flit first + i arrives at start + i * spacing.
struct Segment {
  Time start = 0, spacing = 0;
  std::uint8_t first = 0, count = 0;
  Time arrival(int i) const { return start + i * spacing; }
  Time last() const { return start + (count - 1) * spacing; }
};

// Three cache lines, the first two enough for most steps.
struct alignas(64) Packet {
  PacketHeader header;
  Packet* next = nullptr;  // in the buffer or queue that holds it
  Packet* previous = nullptr;

  // The run that is arriving (before it is linked into its buffer) or the first one (after).
  Segment segment;
  std::vector<Segment> more;  // later runs; keeps its capacity when the object is reused
  bool run_has_tail = false;
  PortId in = 0, out = kNoPort;
  VcId in_vc = 0, out_vc = 0;
  DropReason reason = DropReason::kLinkDown;
  std::uint32_t run_generation = 0;

  // Side by side, so that ResetState is two stores.
  Time drains_from = 0;        // not before the end of its running commitment
  std::uint8_t length = 0;     // flits of the packet, shorter than header.flits after a poison tail
  std::uint8_t announced = 0;  // flits whose arrival is known
  std::uint8_t sent = 0;       // flits committed or dropped
  bool begun = false;          // a flit of it was committed; it owns its output VC
  bool requesting = false;
  bool draining = false;       // to be dropped, under `reason`
  bool poisoned = false;       // its tail is a poison tail
  bool ended = false;          // its link died: what is still to come of it is synthesised here
  bool spare_slot = false;     // the poison tail sits in the slot set aside for it

  void ResetState() {
    next = nullptr;
    more.clear();
    out = kNoPort;
    drains_from = 0;
    length = announced = sent = 0;
    begun = requesting = draining = poisoned = ended = spare_slot = false;
  }
  const Segment& last_segment() const { return more.empty() ? segment : more.back(); }
  // Arrival of flit i. REQUIRES: i < announced.
  Time ArrivalOf(int i) const {
    if (i < segment.count) return segment.arrival(i);
    for (const Segment& s : more) {
      if (i < s.first + s.count) return s.arrival(i - s.first);
    }
    return kNever;
  }
  void Announce(const Segment& s) {
    if (announced == 0) {
      segment = s;
    } else {
      more.push_back(s);
    }
    announced = static_cast<std::uint8_t>(announced + s.count);
  }
  bool complete() const { return announced == length; }
};

}  // namespace percs
