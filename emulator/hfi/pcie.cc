#include "emulator/hfi/pcie.h"

#include <algorithm>
#include <cstring>

namespace percs {
namespace {

// Calls f(block, offset in it, bytes done before, bytes) for every piece of [offset, offset +
// bytes).
template <typename F>
void ForBlocks(std::uint64_t block_bytes, std::uint64_t offset, std::uint64_t bytes, F&& f) {
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t in_block = (offset + done) % block_bytes;
    const std::uint64_t piece = std::min(bytes - done, block_bytes - in_block);
    f((offset + done) / block_bytes, in_block, done, piece);
    done += piece;
  }
}

}  // namespace

Pcie::Pcie(const std::vector<PcieDevice>& devices, Time lane_flit_time, NodeStats& stats)
    : stats_(stats), lane_flit_time_(lane_flit_time), any_(!devices.empty()) {
  for (const PcieDevice& device : devices) {
    Port& port = at(device.port);
    port.device = device;
    port.lanes = std::min(device.lanes, kPcieLanes[static_cast<std::size_t>(device.port)]);
    port.plugged = true;
  }
}

void Pcie::SetUnplugged(unsigned ports) {
  for (int p = 0; p < kPciePorts; ++p) {
    Port& port = at(p);
    const bool plugged = port.lanes > 0 && (ports >> p & 1) == 0;
    if (port.plugged && !plugged) {
      ++port.plug;
      port.free_at = {};
    }
    port.plugged = plugged;
  }
}

WindowStatus Pcie::Absent(int port) {
  if (port >= 0 && port < kPciePorts) ++stats_.Pcie(port, PcieCounter::kRefused);
  return WindowStatus::kNoDevice;
}

WindowStatus Pcie::CheckThere(int port) {
  return port >= 0 && port < kPciePorts && at(port).plugged ? WindowStatus::kOk : Absent(port);
}

WindowStatus Pcie::CheckRange(int port, std::uint64_t offset, std::uint64_t bytes) {
  if (const WindowStatus status = CheckThere(port); status != WindowStatus::kOk) return status;
  const std::uint64_t size = at(port).device.bytes;
  return offset <= size && bytes <= size - offset ? WindowStatus::kOk : WindowStatus::kOutOfRange;
}

Time Pcie::LinkTime(int port, std::uint64_t bytes) const {
  const std::uint64_t per_time = 128 * static_cast<std::uint64_t>(at(port).lanes);
  return static_cast<Time>((bytes * static_cast<std::uint64_t>(lane_flit_time_) + per_time - 1) /
                           per_time);
}

PcieTransfer Pcie::Begin(PcieWay way, int number, std::uint64_t bytes, Time at_time, bool first) {
  Port& port = at(number);
  if (!port.plugged) return {at_time, 0};
  Time& free_at = port.free_at[static_cast<std::size_t>(way)];
  free_at = std::max(free_at, at_time) + LinkTime(number, bytes);
  const bool waits = way == PcieWay::kToDevice || first;
  return {free_at + (waits ? port.device.latency : 0), port.plug};
}

WindowStatus Pcie::End(PcieWay way, int number, const PcieTransfer& transfer, std::uint64_t bytes) {
  const Port& port = at(number);
  if (!port.plugged || transfer.plug != port.plug) return Absent(number);
  stats_.Pcie(number, way == PcieWay::kFromDevice ? PcieCounter::kBytesIn
                                                  : PcieCounter::kBytesOut) += bytes;
  return WindowStatus::kOk;
}

void Pcie::Write(int port, std::uint64_t offset, const std::uint8_t* from, std::uint64_t bytes) {
  ForBlocks(kBlockBytes, offset, bytes,
            [&](std::uint64_t block, std::uint64_t in, std::uint64_t done, std::uint64_t size) {
              auto& place = at(port).blocks[block];
              if (!place) place = std::make_unique<std::uint8_t[]>(kBlockBytes);  // zeros
              std::memcpy(place.get() + in, from + done, size);
            });
}

void Pcie::Read(int port, std::uint64_t offset, std::uint8_t* to, std::uint64_t bytes) const {
  const auto& blocks = at(port).blocks;
  ForBlocks(kBlockBytes, offset, bytes,
            [&](std::uint64_t block, std::uint64_t in, std::uint64_t done, std::uint64_t size) {
              const auto found = blocks.find(block);
              if (found == blocks.end()) {
                std::memset(to + done, 0, size);
              } else {
                std::memcpy(to + done, found->second.get() + in, size);
              }
            });
}

}  // namespace percs
