// Memory flow controller of an SPE: a queue of commands that move data between its local store and
// an effective address, or set a signal register elsewhere. Commands start in order, several under
// way at once; what fits one bus transfer passes longer ones at the bus. Tags name groups of
// commands.
//
// A command with a fence waits for all earlier ones of its tag; with a barrier, later ones of its
// tag wait for it as well. Data of a command becomes visible, all of it, when the command is
// complete.
//
// Not modelled: the queue for commands of the PPE, stall-and-notify of lists, translation misses.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "emulator/cell/blade_context.h"
#include "emulator/cell/dma_in_flight.h"
#include "emulator/cell/eib.h"
#include "emulator/cell/main_memory.h"

namespace percs::cell {

class Spe;

enum class DmaOrder : std::uint8_t { kNone, kFence, kBarrier };

// One element of a DMA list, as it lies in the local store: `eal` is the low word of its effective
// address.
struct DmaListElement {
  std::uint32_t size = 0;
  std::uint32_t eal = 0;
};
inline constexpr std::uint32_t kDmaListElementsMax = 2048;

struct DmaCommand {
  enum class Kind : std::uint8_t { kPut, kGet, kPutList, kGetList, kSignal };
  Kind kind = Kind::kPut;
  DmaOrder order = DmaOrder::kNone;
  std::uint8_t tag = 0;
  LsAddress ls = 0;
  EffectiveAddress ea = 0;  // of a list: its high word counts
  std::uint32_t size = 0;   // of a list: bytes of the list itself
  LsAddress list = 0;
  std::uint8_t target_spe = 0, signal_register = 0;  // of a signal
  std::uint32_t value = 0;

  bool is_list() const { return kind == Kind::kPutList || kind == Kind::kGetList; }
  std::uint32_t elements() const {
    return is_list() ? size / static_cast<std::uint32_t>(sizeof(DmaListElement)) : 1;
  }
};

class Mfc {
 public:
  Mfc(Spe* spe, BladeContext* context, std::array<Eib*, kCells> buses, MainMemory* memory);

  int cell() const { return cell_; }
  int unit() const { return unit_; }
  bool full() const { return order_.size() == slots_.size(); }
  // Tags that have commands in the queue or under way.
  std::uint32_t outstanding() const { return outstanding_; }
  // Its commands that are not complete.
  SpeInFlight InFlight() const;

  // INVALID_ARGUMENT names the rule that the command breaks.
  absl::Status Check(const DmaCommand& command) const;
  // From when on the chip link takes another line of this MFC's DMA.
  Time link_free() const { return link_free_; }
  void TakeLink(Time until) { link_free_ = until; }
  // REQUIRES: Check() passed and !full().
  void Enqueue(const DmaCommand& command, Time issued);
  void GoDown();

  // For the blade and the bus.
  void OnRequest(Transfer* transfer);
  void OnLastBeat(Transfer* transfer, Time arrival);
  void OnDone(Transfer* transfer);

 private:
  struct Slot {
    DmaCommand command;
    Time issued = 0;
    bool started = false;
    std::uint32_t elements_left = 0;  // transfers not yet done
    std::uint32_t next_element = 0;
    LsAddress next_ls = 0;
    DmaMove last_move = {};   // of the transfer made last
    Time begun = 0;           // when it was started
    std::uint32_t bytes = 0;  // of the transfers made so far; 0 of a signal
  };
  absl::Status CheckList(const DmaCommand& command) const;
  absl::Status CheckElement(LsAddress ls, EffectiveAddress ea, std::uint32_t size) const;
  bool MayStart(std::size_t position) const;
  void StartWhatMay();
  void Start(int slot, Time at);
  void StartElement(int slot, Time at);
  Time CommandPhase(const Transfer& transfer) const;
  Transfer* MakeTransfer(int slot);
  DmaListElement Element(const DmaCommand& command, std::uint32_t index) const;
  void Complete(int slot);
  void Log(const Slot& slot) const;
  void Locate(EffectiveAddress ea, std::uint8_t* cell, std::uint8_t* unit) const;
  void CopyData(const Transfer& transfer);

  Spe* const spe_;
  BladeContext* const context_;
  const std::array<Eib*, kCells> buses_;
  MainMemory* const memory_;
  int cell_, unit_;
  std::vector<Slot> slots_;
  std::vector<std::uint8_t> free_;
  std::vector<std::uint8_t> order_;  // slots in use, oldest first
  int ordered_ = 0;                  // of them with a fence or barrier
  std::array<std::uint16_t, kTags> per_tag_{};
  std::uint32_t outstanding_ = 0;
  Time link_free_ = 0;
  Time take_up_free_ = 0;  // one command after another
};

}  // namespace percs::cell
