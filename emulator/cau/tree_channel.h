// One direction pair of one tree link for one kind of operation: what the sender has not seen
// acknowledged, and what the receiver holds (paper 000 section IV-D: sequence numbers and a
// retransmission protocol). Reduces and multicasts have a channel each, so that neither ever waits
// for the other.
//
// The receiver holds at most `depth` packets, in any order of arrival, and acknowledges only what
// it has stored (docs/semantics.md rule 16). Every report to the sender says how far that may go; a
// sender that had to stop gets a grant, which is repeated until it is acknowledged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/base/reduce_op.h"
#include "emulator/base/ring.h"
#include "emulator/base/time.h"
#include "emulator/cau/cau_port.h"

namespace percs {

// One operation on one link of an entry.
struct CauItem {
  std::uint32_t sequence = 0;
  NodeId root = kNoNode;
  ReduceOp op = ReduceOp::kNop;
  OperandType operand = OperandType::kInt32;
  CauPayload payload;
  std::uint64_t order = 0;  // of its arrival at this CAU
};

class TreeSender {
 public:
  struct Sent {
    CauItem item;
    Time deadline = kNever;  // kNever while it waits in the CAU or the HFI
    std::uint8_t tries = 0;
    bool acknowledged = false;
    bool own = false;  // the participant of this hub has a part in it
  };
  explicit TreeSender(int depth = 0) : grant_(static_cast<std::uint32_t>(depth)) {}

  bool HasRoom() const { return next() != grant_; }
  // Link sequence of the item. REQUIRES: HasRoom().
  std::uint32_t Push(const CauItem& item, bool own) {
    in_flight_.push_back({item});
    in_flight_[in_flight_.size() - 1].own = own;
    return next() - 1;
  }
  // Null if it was acknowledged meanwhile.
  Sent* Find(std::uint32_t link_sequence) {
    const std::uint32_t index = link_sequence - base_;
    if (index >= in_flight_.size() || in_flight_[index].acknowledged) return nullptr;
    return &in_flight_[index];
  }
  // The receiver has everything below `expected`, and what the bits of `stored` say above it.
  // How many packets that acknowledges, and how many of them are the participant's own.
  struct Acknowledged {
    int all = 0, own = 0;
  };
  Acknowledged Acknowledge(std::uint32_t expected, std::uint32_t stored, std::uint32_t grant) {
    Acknowledged count;
    for (std::size_t i = 0; i < in_flight_.size(); ++i) {
      const std::int32_t ahead =
          static_cast<std::int32_t>(base_ + static_cast<std::uint32_t>(i) - expected);
      const bool has = ahead < 0 || (ahead >= 1 && ahead <= 32 && (stored >> (ahead - 1) & 1));
      if (!has || in_flight_[i].acknowledged) continue;
      in_flight_[i].acknowledged = true;
      ++count.all;
      count.own += in_flight_[i].own;
    }
    while (!in_flight_.empty() && in_flight_.front().acknowledged) {
      in_flight_.pop_front();
      ++base_;
    }
    // An older report may come late.
    if (static_cast<std::int32_t>(grant - grant_) > 0) grant_ = grant;
    return count;
  }
  std::size_t in_flight() const { return in_flight_.size(); }
  Sent& at(std::size_t i) { return in_flight_[i]; }
  std::uint32_t sequence_at(std::size_t i) const { return base_ + static_cast<std::uint32_t>(i); }
  std::uint32_t grant() const { return grant_; }
  int Unacknowledged() const {
    int count = 0;
    for (std::size_t i = 0; i < in_flight_.size(); ++i) count += !in_flight_[i].acknowledged;
    return count;
  }

 private:
  std::uint32_t next() const { return base_ + static_cast<std::uint32_t>(in_flight_.size()); }
  Ring<Sent> in_flight_;
  std::uint32_t base_ = 0;  // link sequence of in_flight_.front()
  std::uint32_t grant_;
};

class TreeReceiver {
 public:
  enum class Verdict : std::uint8_t { kStored, kDuplicate, kNoSlot };
  explicit TreeReceiver(int depth = 0)
      : slots_(static_cast<std::size_t>(depth)), granted_(static_cast<std::uint32_t>(depth)) {}

  Verdict Store(std::uint32_t link_sequence, const CauItem& item) {
    const std::int32_t ahead = static_cast<std::int32_t>(link_sequence - consumed_);
    if (ahead < 0) return Verdict::kDuplicate;
    if (ahead >= static_cast<std::int32_t>(slots_.size())) return Verdict::kNoSlot;
    Slot& slot = At(link_sequence);
    if (slot.stored) return Verdict::kDuplicate;
    slot = {item, true, false};
    while (expected_ - consumed_ < slots_.size() && At(expected_).stored) ++expected_;
    return Verdict::kStored;
  }
  // The ALU side has taken note of it: from now on it may be part of an operation.
  CauItem& Ready(std::uint32_t link_sequence) {
    Slot& slot = At(link_sequence);
    slot.ready = true;
    return slot.item;
  }
  const CauItem* head() const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[consumed_ % slots_.size()];
    return slot.stored && slot.ready ? &slot.item : nullptr;
  }
  // Takes the head away. True if the sender had to stop before.
  bool Consume() {
    const bool closed = granted_ == expected_;
    At(consumed_++).stored = false;
    return closed;
  }
  std::uint32_t expected() const { return expected_; }
  // What is stored above `expected`.
  std::uint32_t stored() const {
    std::uint32_t bits = 0;
    for (std::uint32_t i = 1; i < slots_.size() && i <= 32; ++i) {
      const std::uint32_t at = expected_ + i;
      if (at - consumed_ < slots_.size() && slots_[at % slots_.size()].stored)
        bits |= 1u << (i - 1);
    }
    return bits;
  }
  // Packets in the holding.
  std::uint32_t held() const {
    std::uint32_t count = 0;
    for (const Slot& slot : slots_) count += slot.stored;
    return count;
  }
  // How far the sender may go from now on; the caller sends it.
  std::uint32_t Grant() { return granted_ = consumed_ + static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t granted() const { return granted_; }

 private:
  struct Slot {
    CauItem item;
    bool stored = false, ready = false;
  };
  Slot& At(std::uint32_t link_sequence) { return slots_[link_sequence % slots_.size()]; }
  std::vector<Slot> slots_;
  std::uint32_t consumed_ = 0, expected_ = 0;  // lowest in the holding, lowest not stored
  std::uint32_t granted_;                      // as last told
};

struct TreeChannel {
  explicit TreeChannel(int depth = 0) : sender(depth), receiver(depth) {}
  TreeSender sender;
  TreeReceiver receiver;
  Time timer_at = kNever;        // of the event that looks after this channel
  Time grant_deadline = kNever;  // when an unacknowledged grant is sent again
  std::uint8_t grant_tries = 0;
  bool report_waiting = false;  // in the HFI: one report per channel at most waits for the ISR
  bool report_again = false;    // ... and there is something newer to say
};

}  // namespace percs
