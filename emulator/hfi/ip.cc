// Datagrams of the Internet Protocol (paper 000 section IV-B): one packet by way of the FIFOs, or
// scatter/gather descriptors, with the HFI taking a datagram apart and assembling it again. If a
// part of a datagram is lost, the whole is lost; its content is not interpreted. The ISRs replicate
// datagrams to a multicast group.
#include <algorithm>

#include "emulator/hfi/window_unit.h"

namespace percs {
namespace {

constexpr std::size_t kSegmentsMax = 64;  // choice: of one descriptor

}  // namespace

WindowStatus WindowUnit::CheckSegments(const WindowOperation& asked, bool write,
                                       std::uint64_t* bytes) const {
  if (asked.segments.empty()) return WindowStatus::kEmpty;
  if (asked.segments.size() > kSegmentsMax) return WindowStatus::kTooLarge;
  *bytes = 0;
  for (const MemorySegment& segment : asked.segments) {
    if (segment.bytes == 0) return WindowStatus::kEmpty;
    const WindowStatus status =
        nmmu_.Check(segment.context, asked.job, segment.address, segment.bytes, write);
    if (status != WindowStatus::kOk) return status;
    *bytes += segment.bytes;
  }
  return *bytes > kIpBytesMax ? WindowStatus::kTooLarge : WindowStatus::kOk;
}

// Calls f(segment's context, address, offset in the range, bytes) for every piece of [offset,
// offset + bytes).
template <typename F>
static void ForPieces(const std::vector<MemorySegment>& segments, std::uint64_t offset,
                      std::uint64_t bytes, F&& f) {
  std::uint64_t start = 0;  // of the segment
  for (const MemorySegment& segment : segments) {
    const std::uint64_t from = std::max(start, offset),
                        to = std::min(start + segment.bytes, offset + bytes);
    if (from < to) f(segment.context, segment.address + (from - start), from - offset, to - from);
    start += segment.bytes;
  }
}

void WindowUnit::Gather(const std::vector<MemorySegment>& segments, std::uint64_t offset,
                        std::uint8_t* to, std::uint64_t bytes) const {
  ForPieces(segments, offset, bytes,
            [&](ContextId context, Address address, std::uint64_t at, std::uint64_t size) {
              nmmu_.Read(context, address, to + at, size);
            });
}

bool WindowUnit::SendFragment(OperationState& op) {
  std::uint64_t total = 0;
  if (const WindowStatus status = CheckSegments(op.asked, false, &total);
      status != WindowStatus::kOk) {
    End(op, status);  // no regions any more
    return true;
  }
  const std::uint64_t bytes = std::min<std::uint64_t>(op.bytes - op.sent, kPacketBytesMax);
  if (op.sent > 0) {
    Time cost = 0;
    const std::uint64_t mark = ~op.sent;  // translated once for each packet
    if (op.translated != mark) {
      ForPieces(op.asked.segments, op.sent, bytes,
                [&](ContextId context, Address address, std::uint64_t, std::uint64_t size) {
                  cost += nmmu_.Translate(context, address, size);
                });
      op.translated = mark;
      op.ready_at = context_.now + cost;
      if (cost > 0) return false;
    }
  }
  PayloadRef payload = PayloadRef::Make();
  Gather(op.asked.segments, op.sent, payload.bytes(), bytes);
  WindowPacket packet = PacketOf(op, WindowPacket::Type::kIpFragment);
  packet.address = op.sent;
  op.sent += bytes;
  if (op.sent == op.bytes) Leaves(op, windows_[op.asked.window]);
  SendUnreliable(op, packet, payload, static_cast<int>(bytes));
  return true;
}

std::optional<DropReason> WindowUnit::OnFragment(WindowId id, const PacketHeader& header,
                                                 const WindowPacket& packet) {
  Window& window = windows_[id];
  const auto matches = [&](const Assembly& a) {
    return a.window == id && a.source == header.source && a.source_window == header.source_window &&
           a.datagram == packet.request;
  };
  auto found = std::find_if(assemblies_.begin(), assemblies_.end(), matches);
  if (found == assemblies_.end()) {
    if (window.ip_receives.empty() || window.ip_receives.front()->bytes < packet.length)
      return DropReason::kNoIpReceive;
    Assembly assembly;
    assembly.source = header.source;
    assembly.source_window = header.source_window;
    assembly.window = id;
    assembly.datagram = packet.request;
    assembly.place = window.ip_receives.front();
    assembly.until = context_.now + parameters_.reassembly;
    window.ip_receives.pop_front();
    found = assemblies_.insert(assemblies_.end(), assembly);
    ++context_.work->unfinished;  // so that losses count wherever windows of time end
    Deferred d;
    d.kind = Deferred::Kind::kAssembly;
    Schedule(assembly.until, std::move(d));
  }
  const std::uint64_t part = std::uint64_t{1} << packet.address / kPacketBytesMax;
  if (found->parts & part)
    return DropReason::kDuplicate;  // tables changed while a group's packet was on its way
  found->parts |= part;
  const auto dropped = Scatter(*found, header, packet);
  if (dropped || found->done < packet.length) return dropped;
  WindowEvent completion = CompletionOf(*found->place, WindowStatus::kOk);
  completion.bytes = packet.length;
  completion.peer = header.source;
  completion.peer_window = header.source_window;
  OperationState& place = *found->place;
  assemblies_.erase(found);
  --context_.work->unfinished;
  ++Count(id, HfiCounter::kDatagrams);
  End(place, std::move(completion), context_.now + parameters_.receive);
  return std::nullopt;
}

std::optional<DropReason> WindowUnit::Scatter(Assembly& assembly, const PacketHeader& header,
                                              const WindowPacket& packet) {
  const WindowOperation& place = assembly.place->asked;
  WindowStatus status = WindowStatus::kOk;
  ForPieces(place.segments, packet.address, header.bytes,
            [&](ContextId context, Address address, std::uint64_t at, std::uint64_t size) {
              if (status == WindowStatus::kOk)
                status = nmmu_.Check(context, place.job, address, size, true);
              if (status != WindowStatus::kOk) return;
              nmmu_.Translate(context, address, size);
              nmmu_.Write(context, address, header.payload.bytes() + at, size);
            });
  if (status != WindowStatus::kOk) return DropReason::kNoIpReceive;
  assembly.done += header.bytes;
  return std::nullopt;
}

// An incomplete datagram is lost; the next one gets its place.
void WindowUnit::OnAssemblyTimeout() {
  for (std::size_t i = 0; i < assemblies_.size();) {
    Assembly& a = assemblies_[i];
    if (a.until > context_.now) {
      ++i;
      continue;
    }
    windows_[a.window].ip_receives.push_front(a.place);
    ++Count(a.window, HfiCounter::kDatagramsLost);
    assemblies_.erase(assemblies_.begin() + static_cast<std::ptrdiff_t>(i));
    --context_.work->unfinished;
    context_.last_event = context_.now;
  }
}

void WindowUnit::DropAssemblies(WindowId window) {
  const auto gone =
      std::erase_if(assemblies_, [window](const Assembly& a) { return a.window == window; });
  context_.work->unfinished -= static_cast<std::int64_t>(gone);
}

}  // namespace percs
