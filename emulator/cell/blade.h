// A dual-Cell blade as a partition of virtual time: two Cells, each a PPE, eight SPEs, a memory
// interface and an element interconnect bus, joined by a coherent link; driven by one event queue.
//
//   auto blade = Blade::Create(*ParametersOfBlade("QS20"));
//   (*blade)->RunSpe(0, [](Spe& spe) -> Task<> { co_await spe.Compute(kMicrosecond); });
//   (*blade)->Run(kNever);
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cell/blade_context.h"
#include "emulator/cell/chip_link.h"
#include "emulator/cell/eib.h"
#include "emulator/cell/main_memory.h"
#include "emulator/cell/ppe.h"
#include "emulator/cell/spe.h"

namespace percs::cell {

struct BladeResult {
  Digest digest;  // every signal, DMA, mailbox message and atomic operation, and every counter
  BladeStats stats;
  Time last_event = 0;
  absl::Status status;  // of the first program that broke a rule or went down, in SPE order
  std::vector<std::string> blocked;  // programs that wait, and for what
};

class Blade {
 public:
  static absl::StatusOr<std::unique_ptr<Blade>> Create(const BladeParameters& parameters);

  const BladeParameters& parameters() const { return context_.parameters; }
  Spe& spe(int index) { return *spes_[index]; }
  Ppe& ppe(int cell) { return *ppes_[cell]; }
  MainMemory& memory() { return memory_; }
  const BladeStats& stats() const { return context_.stats; }
  Time now() const { return context_.now; }
  // Of the SPEs that have DMA commands which are not complete.
  std::vector<SpeInFlight> InFlight() const;
  DmaLog& dma() { return context_.dma; }
  const DmaLog& dma() const { return context_.dma; }

  // A program for an idle SPE or PPE, from `at` on. INVALID_ARGUMENT if there is none such,
  // FAILED_PRECONDITION if it is busy or down.
  absl::Status RunSpe(int spe, SpeProgram program, Time at = 0);
  absl::Status RunPpe(int cell, PpeProgram program, Time at = 0);

  Time next_time() const { return context_.queue.next_time(); }
  // Runs every event before `end`.
  void Run(Time end);
  // No program is left that has not ended.
  bool done() const;
  BladeResult Result();

  // What a PPE's WaitEvent() gives at `at`; those of one instant in the order of their low 40 bits.
  void Post(int cell, std::uint64_t token, Time at);
  // What happens at `at`, before everything else of that instant.
  void At(Time at, std::function<void()> action);

  // Faults, at `at`. A program on an SPE that goes down ends with UNAVAILABLE; commands to it from
  // then on break a rule. INVALID_ARGUMENT for a place that does not exist.
  absl::Status FailSpe(int spe, Time at);
  absl::Status DegradeChipLink(double share, Time at);  // leaves this share of the rate, both ways
  // FAILED_PRECONDITION if the last ring of a direction would go.
  absl::Status LoseRing(int cell, int ring, Time at);

 private:
  explicit Blade(const BladeParameters& parameters);
  void Dispatch(const Event& event);
  void OnTimer(const Event& event);
  void Perform(Processor* processor);
  void PerformAtomic(Processor* processor);
  std::vector<Processor*> processors();

  BladeContext context_;
  MainMemory memory_;
  std::array<Eib, kCells> buses_;
  std::array<ChipLink, kCells> links_;  // [c]: from Cell c to the other
  std::array<Spe*, kSpes> spes_{};
  std::array<Ppe*, kCells> ppes_{};
  std::vector<std::unique_ptr<Spe>> spe_storage_;
  std::vector<std::unique_ptr<Ppe>> ppe_storage_;
  std::vector<std::function<void()>> actions_;
  std::array<std::uint8_t, kCells> rings_lost_{};  // or to be lost; bit r: ring r
};

}  // namespace percs::cell
