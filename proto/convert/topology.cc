#include "proto/convert/topology.h"

#include <optional>

#include "emulator/topology/link_list.h"

namespace percs {

namespace {

void GraphToProto(const GraphSpec& graph, v1::Topology* message) {
  switch (graph.kind) {
    case GraphSpec::Kind::kTorus:
      message->set_kind(v1::TOPOLOGY_KIND_TORUS);
      break;
    case GraphSpec::Kind::kHyperx:
      message->set_kind(v1::TOPOLOGY_KIND_HYPERX);
      break;
    case GraphSpec::Kind::kFatTree:
      message->set_kind(v1::TOPOLOGY_KIND_FAT_TREE);
      message->set_levels(graph.levels);
      message->set_radix(graph.radix);
      message->set_taper(graph.taper);
      break;
    case GraphSpec::Kind::kListed:
      message->set_kind(v1::TOPOLOGY_KIND_FILE);
      message->set_inline_links(FormatLinkList(graph));
      break;
  }
  if (!graph.dims.empty()) message->set_dims(FormatDims(graph.dims));
}

absl::StatusOr<std::optional<GraphSpec>> GraphFromProto(const v1::Topology& m) {
  GraphSpec graph;
  switch (m.kind()) {
    case v1::TOPOLOGY_KIND_FILE:
      return ParseLinkList(m.inline_links());
    case v1::TOPOLOGY_KIND_TORUS:
      break;
    case v1::TOPOLOGY_KIND_HYPERX:
      graph.kind = GraphSpec::Kind::kHyperx;
      break;
    case v1::TOPOLOGY_KIND_FAT_TREE:
      graph.kind = GraphSpec::Kind::kFatTree;
      break;
    default:
      return std::optional<GraphSpec>();
  }
  if (m.has_dims()) {
    auto dims = ParseDims(m.dims());
    if (!dims.ok()) return dims.status();
    graph.dims = *std::move(dims);
  }
  if (m.has_levels()) graph.levels = m.levels();
  if (m.has_radix()) graph.radix = m.radix();
  if (m.has_taper()) graph.taper = m.taper();
  return graph;
}

}  // namespace

void TopologyToProto(const TopologySpec& spec, v1::Topology* message) {
  if (spec.graph) GraphToProto(*spec.graph, message);
  message->set_supernodes(spec.supernodes);
  message->set_drawers(spec.drawers);
  message->set_hubs(spec.hubs);
  message->set_d_links_per_pair(spec.d_links_per_pair);
  if (!spec.infiniband) return;
  message->mutable_infiniband()->set_cus(spec.infiniband->cus);
  message->mutable_infiniband()->set_gateway(spec.infiniband->gateway);
}

void BladesToProto(const TopologySpec& spec,
                   google::protobuf::RepeatedPtrField<v1::BladeSite>* blades) {
  for (const BladeSite& site : spec.blades) {
    v1::BladeSite* blade = blades->Add();
    blade->set_name(site.name);
    blade->set_attach(site.attach);
  }
}

absl::StatusOr<Topology> TopologyFromProto(
    const v1::Topology& m, const google::protobuf::RepeatedPtrField<v1::BladeSite>& blades) {
  TopologySpec spec;
  const auto graph = GraphFromProto(m);
  if (!graph.ok()) return graph.status();
  if (*graph) {
    if (absl::Status used = spec.UseGraph(**graph); !used.ok()) return used;
    return Topology::Create(spec);
  }
  if (m.has_supernodes()) spec.supernodes = m.supernodes();
  if (m.has_drawers()) spec.drawers = m.drawers();
  if (m.has_hubs()) spec.hubs = m.hubs();
  if (m.has_d_links_per_pair()) spec.d_links_per_pair = m.d_links_per_pair();
  if (m.has_infiniband())
    spec.infiniband = InfinibandSpec{m.infiniband().cus(), m.infiniband().gateway()};
  for (const v1::BladeSite& blade : blades) spec.blades.push_back({blade.name(), blade.attach()});
  return Topology::Create(spec);
}

}  // namespace percs
