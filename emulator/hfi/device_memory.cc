// Registered memory whose bytes are in a device in a PCI Express port (paper 000 section IV-F):
// RDMA from it and to it, at both ends. A device may be slower than the network, so bytes are read
// from it only when they can leave, and a sender that writes to it gets a signal to wait: no more
// than `read_units` x `read_unit_packets` of an operation are in flight or waiting for the device,
// just as an RDMA read requests no more. Packets sent before the signal arrives come in addition.
#include <algorithm>

#include "emulator/hfi/window_unit.h"

namespace percs {

bool WindowUnit::OnDevice(ContextId context, JobKey job, Address address, std::uint64_t bytes,
                          MemoryPlace* place) const {
  return pcie_.any() &&
         nmmu_.Check(context, job, address, bytes, false, place) == WindowStatus::kOk &&
         place->on_device();
}

// A receiver acknowledges only every `ack_every_packets`. Out of a slow device these take longer
// than the retransmission timeout of the sender.
bool WindowUnit::AskedLongAgo(Time since) const {
  return context_.now - since >= context_.parameters->retransmit_timeout / 2;
}

// --- Out of a device, by RDMA write --------------------------------------------------------------

// False: the packet's bytes are still being read from the device, or it is unplugged and the
// operation has ended.
bool WindowUnit::Fetched(OperationState& op, const MemoryPlace& place, std::uint64_t bytes) {
  if (op.fetched == op.sent) {  // the first one
    op.device.asked = context_.now;
    FetchAhead(op, place, bytes);
    if (op.ready_at > context_.now) return false;
  }
  const WindowStatus status =
      pcie_.End(PcieWay::kFromDevice, place.port, op.device.transfer, bytes);
  if (status != WindowStatus::kOk) End(op, status);
  return status == WindowStatus::kOk;
}

// While one packet leaves, the next one's address is translated and its bytes come.
void WindowUnit::FetchAhead(OperationState& op, const MemoryPlace& place, std::uint64_t bytes) {
  const Address from = op.asked.address + op.fetched;
  const std::uint64_t page = nmmu_.page_of(from + bytes - 1) << 16 | op.asked.context;
  Time translated = context_.now;
  if (op.translated != page) translated += nmmu_.Translate(op.asked.context, from, bytes);
  op.translated = page;
  op.device.transfer =
      pcie_.Begin(PcieWay::kFromDevice, place.port, bytes, context_.now, op.fetched == 0);
  op.fetched += bytes;
  op.ready_at = std::max(translated, op.device.transfer.done);
}

// --- Into a device -------------------------------------------------------------------------------

// When bytes that arrive now are stored.
Time WindowUnit::StoredAt(ContextId context, JobKey job, Address address, std::uint64_t bytes,
                          DevicePart* part) {
  const Time translated = context_.now + nmmu_.Translate(context, address, bytes);
  MemoryPlace place;
  if (!OnDevice(context, job, address, bytes, &place)) return translated + parameters_.memory_write;
  part->transfer = pcie_.Begin(PcieWay::kToDevice, place.port, bytes, translated);
  return part->transfer.done;
}

WindowStatus WindowUnit::Store(ContextId context, JobKey job, Address address,
                               const PacketHeader& from, const DevicePart& part) {
  MemoryPlace place;
  WindowStatus status = nmmu_.Check(context, job, address, from.bytes, true, &place);
  if (status != WindowStatus::kOk) return status;
  if (!place.on_device()) {
    nmmu_.Write(context, address, from.payload.bytes(), from.bytes);
    return status;
  }
  status = pcie_.End(PcieWay::kToDevice, place.port, part.transfer, from.bytes);
  if (status == WindowStatus::kOk)
    pcie_.Write(place.port, place.offset, from.payload.bytes(), from.bytes);
  return status;
}

// A packet of a write has come that has to wait for a device.
void WindowUnit::Pace(const PacketHeader& header, const WindowPacket& packet) {
  Incoming& incoming = incoming_[{header.source, packet.request}];
  incoming.progress = context_.now;
  if (incoming.paced || packet.length <= PacedBytes()) return;
  incoming.paced = true;
  TellProgress(header, packet, 0);
}

void WindowUnit::TellProgress(const PacketHeader& to, const WindowPacket& packet,
                              std::uint64_t done) {
  WindowPacket progress = packet;
  progress.type = WindowPacket::Type::kProgress;
  progress.at_once = true;
  progress.length = static_cast<std::uint32_t>(done);
  SendReliable(progress, to.source, to.destination_window, to.source_window, PayloadRef(), 0);
}

// They overtake each other.
void WindowUnit::OnProgress(OperationState& op, const WindowPacket& packet) {
  if (op.asked.op != WindowOp::kRdmaWrite || packet.length > op.sent) return;
  op.paced = true;
  op.done = std::max<std::uint64_t>(op.done, packet.length);
  if (!windows_[op.asked.window].queue.empty()) PumpAt(op.asked.window, context_.now);
}

// --- Out of a device, for an RDMA read of others -------------------------------------------------

// A packet at a time, so that all reads from this port take turns.
void WindowUnit::ServeReadOfDevice(const PacketHeader& header, const WindowPacket& packet,
                                   const MemoryPlace& place, const DevicePart& part) {
  const WindowId id = header.destination_window;
  const auto bytes = std::min<std::uint32_t>(packet.length, kPacketBytesMax);
  const WindowStatus status = pcie_.End(PcieWay::kFromDevice, place.port, part.transfer, bytes);
  if (status != WindowStatus::kOk) {
    ++Count(id, HfiCounter::kFaults);
    return Answer(header, packet, status);
  }
  Count(id, HfiCounter::kRdmaBytesRead) += bytes;
  PayloadRef payload = PayloadRef::Make();
  pcie_.Read(place.port, place.offset, payload.bytes(), bytes);
  WindowPacket data = packet;
  data.type = WindowPacket::Type::kReadData;
  data.at_once = bytes == packet.length || AskedLongAgo(part.asked);
  SendReliable(data, header.source, id, header.source_window, payload, static_cast<int>(bytes));
  if (bytes == packet.length) return;
  WindowPacket rest = packet;
  rest.address += bytes;
  rest.length -= bytes;
  Deferred d;
  d.kind = Deferred::Kind::kServe;
  d.header = header;
  rest.WriteTo(&d.header);
  d.part.asked = data.at_once ? context_.now : part.asked;
  const auto next = std::min<std::uint32_t>(rest.length, kPacketBytesMax);
  d.part.transfer = pcie_.Begin(PcieWay::kFromDevice, place.port, next, context_.now, false);
  Schedule(d.part.transfer.done, std::move(d));
}

}  // namespace percs
