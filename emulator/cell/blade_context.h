// What the blocks of one blade share.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/base/digest.h"
#include "emulator/base/pool.h"
#include "emulator/cell/blade_parameters.h"
#include "emulator/cell/dma_log.h"
#include "emulator/cell/local_store.h"
#include "emulator/engine/event_queue.h"

namespace percs::cell {

class Mfc;

struct BladeStats {
  std::uint64_t operations = 0;    // of programs: DMA commands, signals, mailboxes, atomics, reads
  std::uint64_t dma_commands = 0;  // completed
  std::uint64_t dma_bytes = 0;
  std::uint64_t signals = 0;  // arrived
  std::uint64_t mailbox_messages = 0;
  std::uint64_t atomics = 0;
  std::uint64_t eib_transfers[kCells] = {};
  std::uint64_t eib_bytes[kCells] = {};
  std::uint64_t eib_wait_ps[kCells] = {};  // sum over transfers, from the request to the grant
  std::uint64_t link_bytes[kCells] = {};   // sent by each Cell to the other
  std::uint64_t link_signals[kCells] = {};
  std::uint64_t link_dmas[kCells] = {};

  // Calls visit(name, value) for every counter, in a fixed order.
  template <typename Visitor>
  void Visit(Visitor visit) const {
    visit("operations", operations);
    visit("dma_commands", dma_commands);
    visit("dma_bytes", dma_bytes);
    visit("signals", signals);
    visit("mailbox_messages", mailbox_messages);
    visit("atomics", atomics);
    for (int c = 0; c < kCells; ++c) {
      visit("eib_transfers", eib_transfers[c]);
      visit("eib_bytes", eib_bytes[c]);
      visit("eib_wait_ps", eib_wait_ps[c]);
      visit("link_bytes", link_bytes[c]);
      visit("link_signals", link_signals[c]);
      visit("link_dmas", link_dmas[c]);
    }
  }
};

// One move over the bus: a signal, a DMA command, or one element of a DMA list.
struct Transfer {
  Mfc* mfc = nullptr;        // whose command it is
  std::uint8_t command = 0;  // its place in the queue of that MFC
  bool is_signal = false, is_put = false;
  std::uint8_t signal_register = 0;
  std::uint8_t target_spe = 0;  // of a signal
  std::uint8_t source_cell = 0, source_unit = 0, target_cell = 0, target_unit = 0;
  LsAddress ls = 0;
  EffectiveAddress ea = 0;
  std::uint32_t bytes = 0;    // of a signal: its value
  std::uint32_t granted = 0;  // bytes whose first bus transfer was granted
  Time requested = 0;
};

// Order of an instant: commands from outside, lines off the chip link, completions, requests, then
// arbitration on both EIBs, then programs.
struct BladeContext {
  explicit BladeContext(const BladeParameters& p) : parameters(p) {}

  const BladeParameters parameters;
  Time now = 0;
  Time last_event = 0;  // of the last thing that a result shows
  EventNodes events;
  EventQueue queue{&events};
  BladeStats stats;
  DigestStream digest;
  std::uint32_t spes_down = 0;  // bit i: SPE i
  Pool<Transfer> transfers;
  DmaLog dma;

  void Fold(std::uint64_t what, std::uint64_t value) {
    digest.Add(static_cast<std::uint64_t>(now));
    digest.Add(what);
    digest.Add(value);
    last_event = now;
  }
};

// Detail (low byte) of keys of class kTimer.
enum class BladeTimer : std::uint64_t { kRequest, kOperation, kBusRetry };

}  // namespace percs::cell
