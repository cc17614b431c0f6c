// The rules of DMA commands. Every refusal names the rule and what would be right.
#include "emulator/cell/mfc.h"
#include "emulator/cell/spe.h"
#include "fmt/format.h"

namespace percs::cell {
namespace {

absl::Status Broken(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status CheckSize(std::uint32_t size) {
  if (size > kDmaBytesMax) {
    return Broken(
        fmt::format("DMA size rule: {} bytes; a command moves at most {} (longer moves need "
                    "a list or several commands)",
                    size, kDmaBytesMax));
  }
  const bool small = size == 1 || size == 2 || size == 4 || size == 8;
  if (!small && (size == 0 || size % 16 != 0)) {
    return Broken(
        fmt::format("DMA size rule: {} bytes; it must be 1, 2, 4, 8 or a multiple of 16", size));
  }
  return absl::OkStatus();
}

absl::Status CheckAlignment(LsAddress ls, EffectiveAddress ea, std::uint32_t size) {
  const std::uint32_t natural = size < 16 ? size : 16;
  if (ls % natural != 0 || ea % natural != 0) {
    return Broken(
        fmt::format("DMA alignment rule: {} bytes from local store {:#x} and effective "
                    "address {:#x}; both must be multiples of {}",
                    size, ls, ea, natural));
  }
  if (size < 16 && ls % 16 != ea % 16) {
    return Broken(
        fmt::format("DMA alignment rule: for {} bytes the low four bits of local store {:#x} "
                    "and effective address {:#x} must be the same",
                    size, ls, ea));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Mfc::CheckElement(LsAddress ls, EffectiveAddress ea, std::uint32_t size) const {
  if (absl::Status s = CheckSize(size); !s.ok()) return s;
  if (absl::Status s = CheckAlignment(ls, ea, size); !s.ok()) return s;
  if (ls > kLocalStoreBytes || size > kLocalStoreBytes - ls) {
    return Broken(
        fmt::format("local store rule: {} bytes at {:#x} end outside the local store of {} "
                    "bytes",
                    size, ls, kLocalStoreBytes));
  }
  if (ea < kLocalStoreBase) {
    if (!memory_->holds(ea, size) || memory_->cell_of(ea) != memory_->cell_of(ea + size - 1)) {
      return Broken(
          fmt::format("effective address rule: {} bytes at {:#x} are not in main memory of "
                      "{} bytes (one half at each Cell)",
                      size, ea, memory_->size()));
    }
    return absl::OkStatus();
  }
  const EffectiveAddress offset = ea - kLocalStoreBase;
  const EffectiveAddress spe = offset / kLocalStoreStride, at = offset % kLocalStoreStride;
  if (spe >= kSpes || at + size > kLocalStoreBytes) {
    return Broken(
        fmt::format("effective address rule: {} bytes at {:#x} are in no local store", size, ea));
  }
  if (context_->spes_down & (1u << spe)) {
    return Broken(fmt::format("target rule: SPE {} is down", spe));
  }
  if (static_cast<int>(spe) == spe_->index()) {
    return Broken(
        fmt::format("effective address rule: {:#x} is in the SPE's own local store; copy it "
                    "with loads and stores",
                    ea));
  }
  return absl::OkStatus();
}

absl::Status Mfc::CheckList(const DmaCommand& c) const {
  if (c.size == 0 || c.size % sizeof(DmaListElement) != 0 ||
      c.size > kDmaListElementsMax * sizeof(DmaListElement)) {
    return Broken(
        fmt::format("DMA list rule: a list of {} bytes; it must hold 1 to {} elements of {} "
                    "bytes",
                    c.size, kDmaListElementsMax, sizeof(DmaListElement)));
  }
  if (c.list % 8 != 0 || c.list > kLocalStoreBytes || c.size > kLocalStoreBytes - c.list) {
    return Broken(
        fmt::format("DMA list rule: the list at {:#x} must lie in the local store at a "
                    "multiple of 8",
                    c.list));
  }
  LsAddress ls = c.ls;
  for (std::uint32_t i = 0; i < c.size / sizeof(DmaListElement); ++i) {
    const DmaListElement e = Element(c, i);
    const EffectiveAddress ea = (c.ea & ~EffectiveAddress{0xffffffff}) | e.eal;
    if (absl::Status s = CheckElement(ls, ea, e.size); !s.ok()) {
      return Broken(fmt::format("list element {}: {}", i, std::string(s.message())));
    }
    ls = (ls + e.size + 15) / 16 * 16;
  }
  return absl::OkStatus();
}

absl::Status Mfc::Check(const DmaCommand& c) const {
  if (c.tag >= kTags) {
    return Broken(fmt::format("tag rule: tag {}; tags are 0 to {}", c.tag, kTags - 1));
  }
  switch (c.kind) {
    case DmaCommand::Kind::kPut:
    case DmaCommand::Kind::kGet:
      return CheckElement(c.ls, c.ea, c.size);
    case DmaCommand::Kind::kPutList:
    case DmaCommand::Kind::kGetList:
      return CheckList(c);
    case DmaCommand::Kind::kSignal:
      break;
  }
  if (c.target_spe >= kSpes || c.target_spe == spe_->index()) {
    return Broken(
        fmt::format("signal rule: SPE {} signals SPE {}; the target is another one of 0 to {}",
                    spe_->index(), c.target_spe, kSpes - 1));
  }
  if (c.signal_register < 1 || c.signal_register > 2) {
    return Broken(
        fmt::format("signal rule: register {}; an SPE has registers 1 and 2", c.signal_register));
  }
  if (context_->spes_down & (1u << c.target_spe)) {
    return Broken(fmt::format("target rule: SPE {} is down", c.target_spe));
  }
  return absl::OkStatus();
}

}  // namespace percs::cell
