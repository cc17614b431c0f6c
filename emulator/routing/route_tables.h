// Route tables of a hub (paper 000 section VI): source tables used by packets the HFI injects and
// per-port tables used on every further hop; in each, intra- and inter-supernode routes apart,
// direct and indirect apart. An entry is the set of output ports a packet may take, as a mask.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "emulator/base/ids.h"

namespace percs {

// Routes out of one place of a hub. Immutable once installed; shared between ports and hubs when
// equal.
struct RouteTable {
  std::vector<PortMask> intra;  // by hub in supernode; empty mask = no route
  std::vector<PortMask> inter;  // by supernode; own supernode's entry is unused and 0
  bool operator==(const RouteTable&) const = default;
};

// All tables of one hub in one epoch.
struct HubTables {
  std::shared_ptr<const RouteTable> source_direct;
  std::shared_ptr<const RouteTable> source_indirect;
  // By link port 0..46: what arrives there consults these.
  std::array<std::shared_ptr<const RouteTable>, kLinkPorts> port_direct;
  std::array<std::shared_ptr<const RouteTable>, kLinkPorts> port_indirect;

  std::uint64_t Hash() const;     // over contents; the hub verifies it before it acknowledges
  std::string Serialize() const;  // compact binary; equal tables are written once
  static absl::StatusOr<HubTables> Parse(absl::Span<const std::uint8_t> bytes);
};

}  // namespace percs
