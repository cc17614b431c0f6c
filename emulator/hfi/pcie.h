// The three PCI Express ports of a hub and what is plugged in (paper 000 section IV-F). A link is
// as wide as port and device both are, and carries the data of a lane times its lanes, each way,
// for all requesters: one transfer after the other in the order of requests. With the default rate
// of a lane the three are 40 GB/s, both ways together (section V).
//
// Hot plug: a device that is unplugged keeps its bytes. Transfers under way are lost, and nothing
// begins, until it is plugged in again.
//
// Not modelled: headers and flow control of the link (its rate is that of data), training,
// interrupts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/scenario/window_operation.h"
#include "emulator/topology/pcie_device.h"

namespace percs {

enum class PcieWay : std::uint8_t { kFromDevice, kToDevice };

struct PcieTransfer {
  Time done = 0;           // the last byte is there
  std::uint32_t plug = 0;  // the device's being plugged in that it belongs to; 0: there is none
};

class Pcie {
 public:
  // lane_flit_time: of 128 bytes over one lane. REQUIRES: at most one device for each port.
  Pcie(const std::vector<PcieDevice>& devices, Time lane_flit_time, NodeStats& stats);

  // False: this hub has no devices; no further checks are needed.
  bool any() const { return any_; }
  // Devices that are unplugged now: bit p for port p.
  void SetUnplugged(unsigned ports);

  // kNoDevice, and counted, if nothing is plugged in there (`port` may be any number).
  WindowStatus CheckThere(int port);
  // Likewise, then kOutOfRange: beyond what the device has.
  WindowStatus CheckRange(int port, std::uint64_t offset, std::uint64_t bytes);

  // `bytes` begin their way over the link at `at` or after what was asked for before. The latency
  // of the device comes on top: of each write, and of a read that is `first`, as for what follows a
  // stream has been asked for in time. At once, and lost, if nothing is plugged in.
  PcieTransfer Begin(PcieWay way, int port, std::uint64_t bytes, Time at, bool first = true);
  // It is done: counts it. kNoDevice if the device was not plugged in all the while.
  WindowStatus End(PcieWay way, int port, const PcieTransfer& transfer, std::uint64_t bytes);
  // Time of `bytes` on the link.
  Time LinkTime(int port, std::uint64_t bytes) const;

  // The bytes. REQUIRES: CheckRange was kOk.
  void Write(int port, std::uint64_t offset, const std::uint8_t* from, std::uint64_t bytes);
  void Read(int port, std::uint64_t offset, std::uint8_t* to, std::uint64_t bytes) const;

 private:
  static constexpr std::uint64_t kBlockBytes = 65536;
  struct Port {
    PcieDevice device;
    int lanes = 0;  // of the link; 0: the machine has no device for this port
    bool plugged = false;
    std::uint32_t plug = 1;
    std::array<Time, 2> free_at = {};  // of the link, by way
    absl::flat_hash_map<std::uint64_t, std::unique_ptr<std::uint8_t[]>>
        blocks;  // that were written to
  };
  Port& at(int port) { return ports_[static_cast<std::size_t>(port)]; }
  const Port& at(int port) const { return ports_[static_cast<std::size_t>(port)]; }
  WindowStatus Absent(int port);

  NodeStats& stats_;
  const Time lane_flit_time_;
  bool any_ = false;
  std::array<Port, kPciePorts> ports_;
};

}  // namespace percs
