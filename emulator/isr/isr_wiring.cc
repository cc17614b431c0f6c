// How the switch of a hub is connected when it is built.
#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/isr/isr.h"

namespace percs {

Isr::Isr(NodeContext& context, IsrListener& listener)
    : context_(context), listener_(listener), router_(context), graph_(context.topology->graph()) {
  for (int port = 0; port < kLinkPorts; ++port) {
    for (int vc = 0; vc < kMaxVcs; ++vc) {
      InputBuffer& buffer = link_buffers_[static_cast<std::size_t>(port * kMaxVcs + vc)];
      buffer.port = static_cast<PortId>(port);
      buffer.vc = static_cast<VcId>(vc);
      buffer.slots = static_cast<std::uint16_t>(BufferSlots(buffer.port));
    }
  }
  for (int port = 0; port < kPorts; ++port) {
    OutputPort& out = outputs_[static_cast<std::size_t>(port)];
    const LinkParameters& link = context_.parameters->link(ClassOf(static_cast<PortId>(port)));
    out.flit_time = link.flit_time;
    out.vcs = VcsOf(static_cast<PortId>(port));
    if (!IsHfi(static_cast<PortId>(port))) continue;
    out.connected = out.up = true;
    out.vc[0].credits.Reset(link.buffer_flits);
  }
}

void Isr::Connect(PortId port, LinkEnd peer, Isr* local, Outbox* outbox) {
  OutputPort& out = outputs_[port];
  out.connected = out.up = true;
  out.edge = std::max(peer.node, context_.node) >= context_.topology->hubs();
  out.peer = peer.node;
  out.peer_port = peer.port;
  SetWay(port, local, outbox);
  out.wire = context_.parameters->link(ClassOf(port)).wire;
  if (context_.topology->ClassOfLink({context_.node, port}) == LinkClass::kIb) out.vcs = 1;
  for (int v = 0; v < out.vcs; ++v)
    out.vc[static_cast<std::size_t>(v)].credits.Reset(BufferSlots(port));
}

void Isr::SetWay(PortId port, Isr* local, Outbox* outbox) {
  OutputPort& out = outputs_[port];
  out.local = local;
  if (local) {
    out.queue = &local->context_.queue;
  } else {
    out.outbox = outbox;
  }
}

void Isr::MakeQueues(PortId hfi_port) {
  std::vector<HfiQueue>& queues = queues_[static_cast<std::size_t>(hfi_port - kHfiFirst)];
  queues.resize(kQueueOutputs);
  queues[kReplication].vc = 1;
  for (PortId output = 0; output < kQueueOutputs; ++output) {
    queues[output].port = hfi_port;
    queues[output].queue = {.output = output, .room_wanted = false};
  }
}

// --- Arrivals ------------------------------------------------------------------------------------

}  // namespace percs
