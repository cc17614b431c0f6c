#include "emulator/roadrunner/cml_ppe.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

// Reads a value out of main memory.
template <typename T>
T Load(const cell::MainMemory& memory, std::uint64_t at) {
  T value;
  memory.Read(at, &value, sizeof(T));
  return value;
}

bool Matches(const Descriptor& d, const Message& m) {
  return d.to == m.to && d.from == m.from && d.tag == m.tag;
}

}  // namespace

CmlPpe::CmlPpe(CmlDomain& domain, int cell, HostLink& host, const RpcRegistry& registry)
    : domain_(domain),
      cell_(cell),
      host_(host),
      registry_(registry),
      layout_(domain.parameters, cell % cell::kCells) {
  services_.memory = &domain.blade.memory();
  services_.heap = layout_.Heap();
  services_.heap_end = layout_.base + domain.parameters.blade.memory_bytes / cell::kCells;
}

Task<> CmlPpe::Run(cell::Ppe& ppe) {
  while (true) {
    const std::uint64_t token = co_await ppe.WaitEvent();
    const std::uint64_t number = token & 0xffffffffu;
    co_await ppe.Compute(domain_.parameters.cml.ppe_handle);
    switch (static_cast<PpeEvent>(token >> 32)) {
      case PpeEvent::kSendReady:
        co_await OnSendReady(ppe, static_cast<std::uint32_t>(number));
        break;
      case PpeEvent::kSent:
        co_await ppe.Sync();
        Free(kSendQueue, static_cast<std::uint32_t>(number));
        break;
      case PpeEvent::kDescriptor:
        co_await OnDescriptor(ppe, static_cast<std::uint32_t>(number));
        break;
      case PpeEvent::kArrived:
        co_await OnArrived(ppe, number);
        break;
      case PpeEvent::kRpc:
        co_await OnRpc(ppe, static_cast<int>(number));
        break;
      case PpeEvent::kRpcBack:
        co_await OnRpcBack(ppe, number);
        break;
    }
  }
}

void CmlPpe::Free(int queue, std::uint32_t slot) {
  cell::MainMemory& memory = *services_.memory;
  const std::uint64_t at = layout_.Taken(queue);
  memory.Store32(at, memory.Load32(at) & ~(1u << slot));
  domain_.Nudge(cell_on_blade());
}

Task<> CmlPpe::OnSendReady(cell::Ppe& ppe, std::uint32_t slot) {
  const auto d = Load<Descriptor>(*services_.memory, layout_.Send(slot));
  Message message;
  message.from = d.from;
  message.to = d.to;
  message.tag = d.tag;
  message.sequence = d.sequence;
  message.data.resize(d.bytes);
  if (d.bytes > 0) services_.memory->Read(layout_.SendData(slot), message.data.data(), d.bytes);
  co_await ppe.Compute(domain_.parameters.dacs.overhead);
  co_await ppe.Sync();
  const Time sent = host_.SendUp(cell_, std::move(message), ppe.time());
  domain_.Tell(cell_on_blade(), PpeEvent::kSent, slot, sent);
}

Task<> CmlPpe::OnDescriptor(cell::Ppe& ppe, std::uint32_t slot) {
  const auto d = Load<Descriptor>(*services_.memory, layout_.Receive(slot));
  PostedBy(SpeOf(d.to)) = Posted{d, slot};
  const auto waiting = std::find_if(unexpected_.begin(), unexpected_.end(),
                                    [&](const Message& m) { return Matches(d, m); });
  if (waiting == unexpected_.end()) co_return;
  Message message = std::move(*waiting);
  unexpected_.erase(waiting);
  co_await Deliver(ppe, std::move(message));
}

Task<> CmlPpe::OnArrived(cell::Ppe& ppe, std::uint64_t number) {
  Message message = host_.TakeMessage(number);
  co_await ppe.Compute(domain_.parameters.dacs.overhead);
  if (message.kind != Message::Kind::kData) {
    const auto status =
        message.kind == Message::Kind::kFailed ? Completion::kFailed : Completion::kDone;
    const Completion done{message.sequence, 0, message.tag, status, 0};
    co_await ppe.Compute(domain_.parameters.cml.ppe_store);
    co_await ppe.Sync();
    ppe.Store(SpeOf(message.from), kFarSend, &done, sizeof(done));
    co_return;
  }
  const std::optional<Posted>& posted = PostedBy(SpeOf(message.to));
  if (posted && Matches(posted->descriptor, message)) {
    co_await Deliver(ppe, std::move(message));
  } else {
    ++domain_.stats.unexpected;
    unexpected_.push_back(std::move(message));
  }
}

// To the SPE that posted a receive for it: the PPE copies small messages, the SPE gets large ones.
// Then the sender may continue.
Task<> CmlPpe::Deliver(cell::Ppe& ppe, Message message) {
  const int spe = SpeOf(message.to);
  const Posted posted = *std::exchange(PostedBy(spe), std::nullopt);
  const auto bytes = static_cast<std::uint32_t>(message.data.size());
  Completion done{posted.descriptor.sequence, bytes, message.tag, Completion::kDone, 0};
  co_await ppe.Compute(domain_.parameters.cml.ppe_store);
  co_await ppe.Sync();
  if (bytes > posted.descriptor.bytes) {
    done.status = Completion::kTruncated;
  } else if (bytes > domain_.parameters.cml.copy_bytes_max) {
    ++domain_.stats.got_by_spe;
    done.status = Completion::kGet;
    services_.memory->Write(layout_.Landing(spe), message.data.data(), bytes);
  } else {
    ++domain_.stats.copied_by_ppe;
    ppe.Store(spe, static_cast<cell::LsAddress>(posted.descriptor.target), message.data.data(),
              bytes);
  }
  ppe.Store(spe, kFarReceive, &done, sizeof(done));
  Free(kReceiveQueue, posted.slot);
  message.kind = Message::Kind::kTaken;
  message.data.clear();
  co_await ppe.Compute(domain_.parameters.dacs.overhead);
  co_await ppe.Sync();
  host_.SendUp(cell_, std::move(message), ppe.time());
}

// --- Remote procedure calls ----------------------------------------------------------------------

Task<> CmlPpe::OnRpc(cell::Ppe& ppe, int spe) {
  const std::uint64_t at = layout_.Rpc(spe);
  const auto d = Load<Descriptor>(*services_.memory, at);
  Bytes arguments(d.bytes);
  if (d.bytes > 0) services_.memory->Read(at + 128, arguments.data(), d.bytes);
  const auto function = registry_.Ppe(d.tag, arguments.size(), d.target);
  if (!function.ok()) {
    co_await Answer(ppe, spe, d.sequence, function.status());
    co_return;
  }
  co_await ppe.Compute((*function)->cost);
  services_.caller = d.from;
  absl::StatusOr<RpcAnswer> answer = (*function)->body(services_, arguments);
  if (!answer.ok()) {
    co_await Answer(ppe, spe, d.sequence, answer.status());
    co_return;
  }
  if (auto* result = std::get_if<Bytes>(&*answer)) {
    co_await Answer(ppe, spe, d.sequence, std::move(*result));
    co_return;
  }
  PendingCall pending;
  pending.spe = spe;
  pending.sequence = d.sequence;
  pending.result_bytes = d.target;
  if (auto* access = std::get_if<DacsAccess>(&*answer)) {
    co_await BeginAccess(ppe, std::move(pending), std::move(*access));
    co_return;
  }
  // On to the Opteron: numbers in its byte order.
  auto& call = std::get<OpteronCall>(*answer);
  pending.number = call.function;
  pending.unit = call.unit;
  pending.then = std::move(call.then);
  const auto numbers = static_cast<std::ptrdiff_t>(std::min(call.data_from, call.arguments.size()));
  pending.bytes.assign(call.arguments.begin(), call.arguments.begin() + numbers);
  if (absl::Status s = SwapUnits(&pending.bytes, call.unit); !s.ok()) {
    co_await Answer(ppe, spe, d.sequence, std::move(s));
    co_return;
  }
  pending.bytes.insert(pending.bytes.end(), call.arguments.begin() + numbers, call.arguments.end());
  ++domain_.stats.opteron_calls;
  co_await ppe.Compute(domain_.parameters.dacs.overhead);
  co_await ppe.Sync();
  host_.CallUp(cell_, std::move(pending), ppe.time());
}

Task<> CmlPpe::BeginAccess(cell::Ppe& ppe, PendingCall pending, DacsAccess access) {
  const std::uint64_t bytes = access.put ? access.data.size() : access.bytes;
  if (access.offset > kDacsRegionBytes || bytes > kDacsRegionBytes - access.offset) {
    co_await Answer(ppe, pending.spe, pending.sequence,
                    absl::OutOfRangeError(fmt::format("DaCS {}: bytes {} to {} of a region of {}",
                                                      access.put ? "put" : "get", access.offset,
                                                      access.offset + bytes, kDacsRegionBytes)));
    co_return;
  }
  pending.unit = 1;
  pending.then = std::move(access.then);
  pending.access = std::move(access);
  co_await ppe.Compute(domain_.parameters.dacs.overhead);
  co_await ppe.Sync();
  host_.Access(cell_, std::move(pending), ppe.time());
}

Task<> CmlPpe::OnRpcBack(cell::Ppe& ppe, std::uint64_t number) {
  PendingCall call = host_.TakeCall(number);
  co_await ppe.Compute(domain_.parameters.dacs.overhead);
  absl::Status status = call.status;
  if (status.ok()) status = SwapUnits(&call.bytes, call.unit);
  absl::StatusOr<Bytes> result = Bytes();
  if (!status.ok()) {
    result = std::move(status);
  } else {
    result = call.then ? call.then(call.bytes) : call.bytes;
  }
  if (result.ok() && result->size() != call.result_bytes) {
    result = absl::InvalidArgumentError(
        fmt::format("mismatched RPC: Opteron function {} gave {} bytes; the SPE waits for {}",
                    call.number, result->size(), call.result_bytes));
  }
  co_await Answer(ppe, call.spe, call.sequence, std::move(result));
}

Task<> CmlPpe::Answer(cell::Ppe& ppe, int spe, std::uint32_t sequence,
                      absl::StatusOr<Bytes> result) {
  co_await ppe.Compute(domain_.parameters.cml.ppe_store);
  co_await ppe.Sync();
  Completion done{sequence, 0, 0, Completion::kDone, 0};
  if (result.ok()) {
    done.bytes = static_cast<std::uint32_t>(result->size());
    ppe.Store(spe, kRpcResult, result->data(), done.bytes);
  } else {
    done.status = Completion::kFailed;
    domain_.rpc_errors[static_cast<std::size_t>(spe)] = result.status();
  }
  ppe.Store(spe, kRpcDone, &done, sizeof(done));
}

}  // namespace percs::roadrunner
