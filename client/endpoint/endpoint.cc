#include "client/endpoint/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include "client/endpoint/window_session.h"
#include "emulator/base/payload.h"
#include "emulator/base/time.h"
#include "emulator/scenario/window_operation.h"
#include "grpcpp/client_context.h"
#include "percs/v1/control.grpc.pb.h"
#include "proto/process/bytes_of.h"
#include "proto/process/grpc_status.h"
#include "proto/security/channel.h"
#include "proto/security/credentials.h"
#include "proto/window/endpoint_codec.h"

namespace percs::client {
namespace {

constexpr Duration kGoodbye(2'000);
constexpr Duration kReattachMax(60'000);
constexpr std::uint64_t kPieceBytes = 1 << 20;  // of what is longer than one operation takes
static_assert(kPieceBytes <= kOperationBytesMax);
// Numbers of the public header are those of the fabric.
static_assert(std::is_same_v<Time, percs::Time> && std::is_same_v<NodeId, percs::NodeId> &&
              std::is_same_v<WindowId, percs::WindowId>);
static_assert(kNanosecond == percs::kNanosecond && kMicrosecond == percs::kMicrosecond);
static_assert(kAnyWindow == percs::kAnyWindow);
static_assert(static_cast<int>(AtomicOp::kCompareSwap) ==
              static_cast<int>(percs::AtomicOp::kCompareSwap));

absl::Status CheckOptions(const EndpointOptions& o) {
  if (o.controller.empty() == o.daemon.empty()) {
    return absl::InvalidArgumentError(
        "options: give either `controller` or `daemon`, to say where to attach");
  }
  if (o.hub.empty() && o.daemon.empty())
    return absl::InvalidArgumentError("options: `hub` is missing, like sn0-d0-h0");
  if (o.job == 0) return absl::InvalidArgumentError("options: job is 0; write 1 to 65535");
  if (o.under_way == 0)
    return absl::InvalidArgumentError("options: under_way is 0; write at least 1");
  if (o.reattach < Duration(0) || o.reattach > kReattachMax) {
    return absl::InvalidArgumentError(fmt::format("options: reattach is {} ms; write 0 to {} ms",
                                                  o.reattach.count(), kReattachMax.count()));
  }
  return absl::OkStatus();
}

// Any role may ask; the server judges.
absl::StatusOr<Credentials> CredentialsOf(const EndpointOptions& options) {
  if (options.tls.empty()) return Credentials();
  return Credentials::Load(options.tls, kAnybody);
}

absl::StatusOr<std::string> AddressOfDaemon(const EndpointOptions& options,
                                            const Credentials& credentials) {
  if (!options.daemon.empty()) return options.daemon;
  const auto stub =
      v1::Control::NewStub(MakeChannel(options.controller, credentials, Role::kController));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + options.deadline);
  v1::FindHubRequest request;
  v1::FindHubReply reply;
  request.set_hub(options.hub);
  const grpc::Status status = stub->FindHub(&context, request, &reply);
  if (!status.ok()) return ControllerError(status, options.controller);
  return reply.address();
}

WindowOperation Operation(const WindowSession& session, WindowOp op) {
  WindowOperation operation;
  operation.op = op;
  operation.window = 0;  // the hub knows which is ours
  operation.context = session.context();
  return operation;
}

Pending Send(WindowSession& session, WindowOp op, const Peer& peer, Bytes data) {
  WindowOperation operation = Operation(session, op);
  operation.node = peer.node;
  operation.peer_window = peer.window;
  operation.data = std::move(data);
  return session.Ask({std::move(operation)});
}

Pending Rdma(WindowSession& session, WindowOp op, const Peer& peer, Address there, Address here,
             std::uint64_t bytes, const RdmaOptions& options) {
  WindowOperation operation = Operation(session, op);
  operation.node = peer.node;
  operation.peer_window = peer.window;
  operation.peer_context = peer.ContextOf();
  operation.peer_address = there;
  operation.address = here;
  operation.bytes = bytes;
  operation.notify = options.notify;
  operation.to_fifo = options.to_fifo;
  operation.cached = options.cached;
  return session.Ask({operation});
}

std::vector<percs::MemorySegment> Segments(const std::vector<MemorySegment>& from) {
  std::vector<percs::MemorySegment> to;
  for (const MemorySegment& s : from) to.push_back({s.context, s.address, s.bytes});
  return to;
}

percs::AtomicUpdate Update(const AtomicUpdate& u) {
  return {static_cast<percs::AtomicOp>(u.op), u.size, u.fetch, u.address, u.operand, u.compare};
}

std::uint64_t BytesOfFifo(std::uint32_t slots) { return std::uint64_t{slots} * kPacketBytesMax; }

Bytes Copy(ByteSpan data) { return {data.begin(), data.end()}; }
Bytes Copy(const std::string& data) { return {data.begin(), data.end()}; }

}  // namespace

// --- Pending -------------------------------------------------------------------------------------

std::string FormatTime(Time time) { return percs::FormatTime(time); }

bool Pending::done() const {
  const MutexLock guard(state_->mutex);
  return state_->done;
}

Completion Pending::Wait(std::optional<Duration> deadline) const {
  absl::Status status;
  if (!done()) {
    if (const auto session = state_->session.lock()) status = session->Wait(state_, deadline);
  }
  const MutexLock guard(state_->mutex);
  if (state_->done) return state_->completion;
  Completion completion;
  completion.status = status;
  return completion;
}

void Pending::Then(std::function<void(const Completion&)> then) const {
  if (done()) return then(Wait());
  if (const auto session = state_->session.lock()) return session->Then(state_, std::move(then));
  then(Wait());
}

void Pending::Cancel() const {
  if (done()) return;
  if (const auto session = state_->session.lock()) session->Cancel(state_);
}

// --- Endpoint ------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Attach(EndpointOptions options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  const auto until = WindowSession::Clock::now() + options.deadline;
  const auto credentials = CredentialsOf(options);
  if (!credentials.ok()) return credentials.status();
  const auto address = AddressOfDaemon(options, *credentials);
  if (!address.ok()) return address.status();
  auto session = std::make_shared<WindowSession>(std::move(options), *address, *credentials);
  if (absl::Status status = session->Open(until); !status.ok()) return status;
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(session)));
  const EndpointOptions& o = endpoint->session_->options();
  const std::uint32_t slots = o.send_slots + o.receive_slots;
  if (slots == 0) return endpoint;
  const Pending memory = endpoint->Register(kFifoAddress, BytesOfFifo(slots));
  WindowOperation configure = Operation(*endpoint->session_, WindowOp::kConfigure);
  configure.send_fifo = {kFifoAddress, o.send_slots};
  configure.receive_fifo = {kFifoAddress + BytesOfFifo(o.send_slots), o.receive_slots};
  const Pending configured = endpoint->session_->Ask({configure});
  for (const Pending& step : {memory, configured}) {
    const auto left = std::chrono::duration_cast<Duration>(until - WindowSession::Clock::now());
    const absl::Status status = step.Wait(std::max(left, Duration(1))).status;
    if (!status.ok()) return status;
  }
  return endpoint;
}

Endpoint::Endpoint(std::shared_ptr<WindowSession> session) : session_(std::move(session)) {}

Endpoint::~Endpoint() {
  session_->Detach(WindowSession::Clock::now() + kGoodbye).IgnoreError();
  session_->Close();
}

NodeId Endpoint::node() const { return session_->node(); }
WindowId Endpoint::window() const { return session_->window(); }
ContextId Endpoint::context() const { return session_->context(); }
Time Endpoint::now() const { return session_->now(); }
absl::Status Endpoint::status() const { return session_->status(); }
std::uint64_t Endpoint::reconnects() const { return session_->reconnects(); }
absl::StatusOr<NodeId> Endpoint::FindNode(const std::string& name) {
  return session_->FindNode(name);
}

absl::Status Endpoint::Detach(std::optional<Duration> deadline) {
  return session_->Detach(WindowSession::Clock::now() +
                          deadline.value_or(session_->options().deadline));
}

Pending Endpoint::Register(Address address, std::uint64_t bytes, bool writable) {
  WindowOperation operation = Operation(*session_, WindowOp::kRegister);
  operation.address = address;
  operation.bytes = bytes;
  operation.writable = writable;
  return session_->Ask({operation});
}

Pending Endpoint::RegisterDevice(Address address, std::uint64_t bytes, int port,
                                 std::uint64_t offset) {
  WindowOperation operation = Operation(*session_, WindowOp::kRegister);
  operation.address = address;
  operation.bytes = bytes;
  operation.device = port;
  operation.device_offset = offset;
  return session_->Ask({operation});
}

Pending Endpoint::Deregister(Address address) {
  WindowOperation operation = Operation(*session_, WindowOp::kDeregister);
  operation.address = address;
  return session_->Ask({operation});
}

Pending Endpoint::Write(Address address, ByteSpan data) {
  std::vector<WindowOperation> pieces;
  for (std::uint64_t done = 0; done < data.size() || pieces.empty(); done += kPieceBytes) {
    WindowOperation& piece = pieces.emplace_back(Operation(*session_, WindowOp::kWriteMemory));
    piece.address = address + done;
    piece.data = Copy(data.subspan(done, kPieceBytes));
  }
  return session_->Ask(pieces);
}

Pending Endpoint::Write(Address address, const std::string& data) {
  return Write(address, BytesOf(data));
}

Pending Endpoint::Read(Address address, std::uint64_t bytes) {
  std::vector<WindowOperation> pieces;
  for (std::uint64_t done = 0; done < bytes || pieces.empty(); done += kPieceBytes) {
    WindowOperation& piece = pieces.emplace_back(Operation(*session_, WindowOp::kReadMemory));
    piece.address = address + done;
    piece.bytes = std::min(bytes - done, kPieceBytes);
  }
  return session_->Ask(pieces);
}

Pending Endpoint::SendImmediate(const Peer& peer, ByteSpan data) {
  return Send(*session_, WindowOp::kImmediateSend, peer, Copy(data));
}
Pending Endpoint::SendFifo(const Peer& peer, ByteSpan data) {
  return Send(*session_, WindowOp::kFifoSend, peer, Copy(data));
}
Pending Endpoint::SendFifo(const Peer& peer, const std::string& data) {
  return Send(*session_, WindowOp::kFifoSend, peer, Copy(data));
}
Pending Endpoint::SendIp(const Peer& peer, ByteSpan data) {
  return Send(*session_, WindowOp::kIpSend, peer, Copy(data));
}

Pending Endpoint::SendIp(const Peer& peer, const std::vector<MemorySegment>& from) {
  WindowOperation operation = Operation(*session_, WindowOp::kIpSend);
  operation.node = peer.node;
  operation.peer_window = peer.window;
  operation.segments = Segments(from);
  return session_->Ask({std::move(operation)});
}

Pending Endpoint::ReceiveIp(const std::vector<MemorySegment>& to) {
  WindowOperation operation = Operation(*session_, WindowOp::kIpReceive);
  operation.segments = Segments(to);
  return session_->Ask({std::move(operation)});
}

Pending Endpoint::JoinMulticast(NodeId group) {
  WindowOperation operation = Operation(*session_, WindowOp::kJoin);
  operation.node = group;
  return session_->Ask({operation});
}

Pending Endpoint::LeaveMulticast(NodeId group) {
  WindowOperation operation = Operation(*session_, WindowOp::kLeave);
  operation.node = group;
  return session_->Ask({operation});
}

Pending Endpoint::RdmaWrite(const Peer& peer, Address there, Address here, std::uint64_t bytes,
                            const RdmaOptions& options) {
  return Rdma(*session_, WindowOp::kRdmaWrite, peer, there, here, bytes, options);
}

Pending Endpoint::RdmaRead(const Peer& peer, Address there, Address here, std::uint64_t bytes,
                           const RdmaOptions& options) {
  return Rdma(*session_, WindowOp::kRdmaRead, peer, there, here, bytes, options);
}

Pending Endpoint::Atomic(const Peer& peer, const AtomicUpdate& update, bool notify) {
  return PackedAtomics(peer, {&update, 1}, notify);
}

Pending Endpoint::PackedAtomics(const Peer& peer, absl::Span<const AtomicUpdate> updates,
                                bool notify) {
  WindowOperation operation = Operation(*session_, WindowOp::kAtomic);
  operation.node = peer.node;
  operation.peer_window = peer.window;
  operation.peer_context = peer.ContextOf();
  for (const AtomicUpdate& update : updates) operation.updates.push_back(Update(update));
  operation.notify = notify;
  return session_->Ask({std::move(operation)});
}

Pending Endpoint::Fence(bool writes, bool reads) {
  WindowOperation operation = Operation(*session_, WindowOp::kFence);
  operation.fence_writes = writes;
  operation.fence_reads = reads;
  return session_->Ask({operation});
}

absl::StatusOr<Packet> Endpoint::Receive(std::optional<Duration> deadline) {
  return session_->Receive(deadline);
}
absl::StatusOr<Notification> Endpoint::WaitNotification(std::optional<Duration> deadline) {
  return session_->WaitNotification(deadline);
}
void Endpoint::OnPacket(std::function<void(Packet)> callback) {
  session_->OnPacket(std::move(callback));
}
void Endpoint::OnNotification(std::function<void(Notification)> callback) {
  session_->OnNotification(std::move(callback));
}
absl::Status Endpoint::WaitAll(std::optional<Duration> deadline) {
  return session_->WaitAll(deadline);
}

}  // namespace percs::client
