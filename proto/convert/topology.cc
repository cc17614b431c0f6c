#include "proto/convert/topology.h"

namespace percs {

void TopologyToProto(const TopologySpec& spec, v1::Topology* message) {
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

TopologySpec TopologyFromProto(const v1::Topology& m,
                               const google::protobuf::RepeatedPtrField<v1::BladeSite>& blades) {
  TopologySpec spec;
  if (m.has_supernodes()) spec.supernodes = m.supernodes();
  if (m.has_drawers()) spec.drawers = m.drawers();
  if (m.has_hubs()) spec.hubs = m.hubs();
  if (m.has_d_links_per_pair()) spec.d_links_per_pair = m.d_links_per_pair();
  if (m.has_infiniband())
    spec.infiniband = InfinibandSpec{m.infiniband().cus(), m.infiniband().gateway()};
  for (const v1::BladeSite& blade : blades) spec.blades.push_back({blade.name(), blade.attach()});
  return spec;
}

}  // namespace percs
