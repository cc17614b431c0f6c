#include "proto/scenario/route_tables_codec.h"

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "fmt/format.h"
#include "proto/process/bytes_of.h"

namespace percs {

void TablesToProto(const std::vector<NodeId>& nodes,
                   const std::function<std::shared_ptr<const HubTables>(NodeId)>& tables,
                   NodeTablesList* list) {
  const HubTables* last = nullptr;
  for (const NodeId node : nodes) {
    const auto hub = tables(node);
    v1::NodeTables* entry = list->Add();
    entry->set_node(node);
    entry->set_hash(hub->Hash());
    if (hub.get() != last) entry->set_tables(hub->Serialize());
    last = hub.get();
  }
}

absl::StatusOr<TableSet> TablesFromProto(const NodeTablesList& list, NodeId nodes) {
  TableSet tables;
  for (const v1::NodeTables& entry : list) {
    if (entry.node() != tables.size()) {
      return absl::InvalidArgumentError(fmt::format(
          "found route tables of node {}, expected those of node {}", entry.node(), tables.size()));
    }
    std::shared_ptr<const HubTables> hub = tables.empty() ? nullptr : tables.back();
    if (!entry.tables().empty()) {
      auto parsed = HubTables::Parse(BytesOf(entry.tables()));
      if (!parsed.ok()) return parsed.status();
      hub = std::make_shared<const HubTables>(*std::move(parsed));
    }
    if (!hub || hub->Hash() != entry.hash()) {
      return absl::InvalidArgumentError(
          hub ? fmt::format("tables: node {} says hash {:016x}, but its tables have {:016x}",
                            entry.node(), entry.hash(), hub->Hash())
              : fmt::format("tables: node {} says hash {:016x}, but it has no tables, and no node "
                            "before it has any",
                            entry.node(), entry.hash()));
    }
    tables.push_back(std::move(hub));
  }
  if (tables.size() == nodes) return tables;
  return absl::InvalidArgumentError(
      fmt::format("route tables of {} nodes, but the machine has {}", tables.size(), nodes));
}

}  // namespace percs
