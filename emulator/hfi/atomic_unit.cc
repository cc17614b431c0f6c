#include "emulator/hfi/atomic_unit.h"

#include <algorithm>
#include <cstring>

#include "emulator/hfi/window_packet.h"

namespace percs {
namespace {

std::uint64_t MaskOf(int size) {
  return size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * size) - 1;
}

bool SizeFits(int size) { return size == 1 || size == 2 || size == 4 || size == 8; }

}  // namespace

WindowStatus CheckUpdates(const std::vector<AtomicUpdate>& updates) {
  if (updates.empty()) return WindowStatus::kEmpty;
  if (updates.size() > kPackedAtomicsMax) return WindowStatus::kBadSize;
  for (const AtomicUpdate& update : updates) {
    if (!SizeFits(update.size) || static_cast<int>(update.op) >= kAtomicOps)
      return WindowStatus::kBadSize;
    if (update.address % update.size != 0) return WindowStatus::kUnaligned;
  }
  return WindowStatus::kOk;
}

std::uint64_t ApplyUpdate(const AtomicUpdate& update, std::uint64_t before) {
  const std::uint64_t mask = MaskOf(update.size), operand = update.operand & mask;
  switch (update.op) {
    case AtomicOp::kAdd:
      return (before + operand) & mask;
    case AtomicOp::kAnd:
      return before & operand;
    case AtomicOp::kOr:
      return before | operand;
    case AtomicOp::kXor:
      return before ^ operand;
    case AtomicOp::kCompareSwap:
      return before == (update.compare & mask) ? operand : before;
  }
  return before;
}

void WriteUpdates(const std::vector<AtomicUpdate>& updates, std::uint8_t* to) {
  for (const AtomicUpdate& update : updates) {
    std::memset(to, 0, kAtomicRecordBytes);
    std::memcpy(to, &update.address, 8);
    std::memcpy(to + 8, &update.operand, 8);
    std::memcpy(to + 16, &update.compare, 8);
    to[24] = static_cast<std::uint8_t>(update.op);
    to[25] = update.size;
    to[26] = update.fetch;
    to += kAtomicRecordBytes;
  }
}

std::vector<AtomicUpdate> ReadUpdates(const std::uint8_t* from, int bytes) {
  std::vector<AtomicUpdate> updates(static_cast<std::size_t>(bytes / kAtomicRecordBytes));
  for (AtomicUpdate& update : updates) {
    std::memcpy(&update.address, from, 8);
    std::memcpy(&update.operand, from + 8, 8);
    std::memcpy(&update.compare, from + 16, 8);
    update.op = static_cast<AtomicOp>(from[24]);
    update.size = from[25];
    update.fetch = from[26] != 0;
    from += kAtomicRecordBytes;
  }
  if (CheckUpdates(updates) != WindowStatus::kOk) updates.clear();
  return updates;
}

// Numbers in memory are little-endian, as the host's; POWER's order of bytes is not modelled.
WindowStatus AtomicUnit::Execute(ContextId context, JobKey job,
                                 const std::vector<AtomicUpdate>& updates,
                                 std::vector<std::uint64_t>* values) {
  for (const AtomicUpdate& update : updates) {
    const WindowStatus status = nmmu_.Check(context, job, update.address, update.size, true);
    if (status != WindowStatus::kOk) return status;
  }
  for (const AtomicUpdate& update : updates) {
    std::uint64_t before = 0;
    nmmu_.Read(context, update.address, reinterpret_cast<std::uint8_t*>(&before), update.size);
    const std::uint64_t after = ApplyUpdate(update, before);
    nmmu_.Write(context, update.address, reinterpret_cast<const std::uint8_t*>(&after),
                update.size);
    if (update.fetch) values->push_back(before);
  }
  return WindowStatus::kOk;
}

}  // namespace percs
