// Looks a packet's next port up in the installed tables (docs/semantics.md B.2).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "emulator/isr/packet_state.h"
#include "emulator/node/node_context.h"
#include "emulator/routing/route_tables.h"

namespace percs {

class Router {
 public:
  explicit Router(const NodeContext& context) : context_(context) {}

  void Install(std::shared_ptr<const HubTables> tables, Epoch epoch) {
    tables_ = std::move(tables);
    epoch_ = epoch;
  }
  const std::shared_ptr<const HubTables>& tables() const { return tables_; }
  Epoch epoch() const { return epoch_; }

  // Output port of a packet that came in on `in`; kNoPort if the tables have none.
  PortId Route(const PacketHeader& header, PortId in);
  // HFI port that a window is pinned to (rule 15).
  PortId WindowPort(WindowId window) const {
    const int per_hfi = context_.parameters->windows_per_hfi;
    return static_cast<PortId>(kHfiFirst + 4 * (window / per_hfi) + window % per_hfi % 4);
  }

 private:
  PortId Choose(PortMask mask, PortId in, int supernode);

  const NodeContext& context_;
  std::shared_ptr<const HubTables> tables_;
  Epoch epoch_ = 0;
  // Port chosen last + 1, by destination supernode; made when an input first has a choice.
  std::array<std::vector<std::uint8_t>, kPorts> pointers_;
};

}  // namespace percs
