// Element interconnect bus of one Cell: twelve units on four data rings, two in each direction.
//
// A grant moves up to 128 bytes, 16 per cycle, over at most half the ring. A ring starts a transfer
// every third cycle and carries up to three whose paths do not overlap; a unit sends one and
// receives one at a time; the command bus allows one transfer per cycle over all rings (128 bytes
// at 1.6 GHz: 204.8 GB/s). What the memory interface controller sends goes first; everything else
// takes turns.
//
// Not modelled: retries of the snoop, and the separate command credits of each unit.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/base/ring.h"
#include "emulator/cell/blade_context.h"

namespace percs::cell {

class ChipLink;

// Units in the order in which the rings pass them.
inline constexpr int kUnits = 12;
inline constexpr int kUnitPpe = 0, kUnitIoif1 = 5, kUnitIoif0 = 6, kUnitMic = 11;
inline constexpr std::array<std::uint8_t, kSpesPerCell> kUnitOfSpe = {10, 1, 9, 2, 8, 3, 7, 4};
inline constexpr int kRings = 4;  // 0 and 1 run to higher units, 2 and 3 to lower ones

// One grant's worth of a transfer.
struct BusLine {
  Transfer* transfer = nullptr;
  std::uint8_t source = 0, target = 0, beats = 0;
  bool last = false;  // of the transfer
  Time requested = 0;
};

class Eib {
 public:
  Eib(int cell, BladeContext* context) : context_(context), cell_(cell) {}
  void Connect(ChipLink* outbound) { link_ = outbound; }

  // A transfer whose source is on this bus, once its command phase is over.
  void Request(Transfer* transfer);
  // A line that came over the chip link.
  void RequestLine(Transfer* transfer, int beats, bool last);
  void OnRetry() {
    if (context_->now >= retry_at_) retry_at_ = kNever;
    dirty_ = true;
  }

  bool dirty() const { return dirty_; }
  // After all inputs of an instant.
  void Arbitrate();

  // One ring of each direction must stay.
  void LoseRing(int ring) { rings_[ring].lost = true; }

 private:
  // Those who ask: the units of this Cell, and those of the other one that read from here.
  static constexpr int kRequesters = 2 * kUnits;
  struct DataRing {
    bool lost = false;
    Time next_start = 0;
    std::array<Time, kUnits> segment_free{};  // segment u: between unit u and u + 1
    std::vector<Time> ends;                   // of the transfers it carries
  };
  struct Route {
    int ring = -1;
    int hops = 0;
    Time start = kNever;
  };

  BusLine NextLine(Transfer* transfer) const;
  bool Serve(int requester, bool memory_only, Time* retry);
  bool TryGrant(const BusLine& line, Time* retry);
  Time EarliestAtPorts(const BusLine& line, int hops) const;
  Time EarliestOnRing(const DataRing& ring, int first_segment, int step, int hops, int beats) const;
  Route BestRoute(const BusLine& line) const;
  void Grant(const BusLine& line, const Route& route);

  BladeContext* const context_;
  const int cell_;
  ChipLink* link_ = nullptr;
  bool dirty_ = false;
  Time retry_at_ = kNever;
  Time command_free_ = 0;
  std::uint64_t serves_ = 0;
  std::array<std::uint64_t, kRequesters> last_served_{};
  std::uint32_t pending_ = 0;                           // bit r: requester r has something below
  std::array<Ring<BusLine>, kRequesters> lines_;        // single lines first,
  std::array<Ring<Transfer*>, kRequesters> transfers_;  // then whole transfers in order
  std::array<DataRing, kRings> rings_;
  // During one arbitration: segments kept for those who wait for them, target units kept for
  // memory.
  std::array<std::uint32_t, kRings> reserved_{};
  std::uint32_t kept_for_memory_ = 0;
  std::array<Time, kUnits> out_free_{}, in_free_{};
};

}  // namespace percs::cell
