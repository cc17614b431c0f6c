#include "emulator/node/blade_port.h"

#include <utility>

namespace percs {
namespace {

// Timer token of the adapter's own; a workload's are small numbers.
constexpr std::uint64_t kSendToken = ~std::uint64_t{0};

}  // namespace

void BladePort::Send(NodeId peer, cell::EffectiveAddress from, std::uint64_t bytes) {
  auto content = std::make_shared<std::vector<std::uint8_t>>(bytes);
  blade_.memory().Read(from, content->data(), bytes);
  const WindowId window = SpreadWindow(flows_.at(peer).sent++, *network_.context().parameters);
  MessageRequest request;
  request.destination = peer;
  request.source_window = request.destination_window = window;
  request.bytes = bytes;
  request.content = std::move(content);
  // The network side sends in its own turn of this instant.
  if (requests_.empty()) network_.SetTimer(network_.context().now, kSendToken);
  requests_.push_back(std::move(request));
}

void BladePort::OnTimer(std::uint64_t token) {
  if (token != kSendToken) return inner_->OnTimer(token);
  for (const MessageRequest& request : std::exchange(requests_, {})) network_.SendMessage(request);
}

void BladePort::OnPayload(const PacketHeader& header) {
  const auto flow = flows_.find(header.source);
  if (flow == flows_.end() || !header.payload ||
      header.offset + header.bytes > flow->second.slot_bytes) {
    return;
  }
  blade_.memory().Write(Slot(header.source, header.message) + header.offset, header.payload.bytes(),
                        header.bytes);
}

void BladePort::OnMessage(const DeliveredMessage& message) {
  const auto flow = flows_.find(message.source);
  if (flow == flows_.end()) return;
  ++flow->second.arrived;
  Tell(message.source);
}

void BladePort::OnMessageDone(NodeId destination, std::uint32_t, bool delivered) {
  if (delivered) return;
  flows_.at(destination).failed = true;
  Tell(destination);
}

}  // namespace percs
