#include "proto/window/endpoint_codec.h"

#include <limits>
#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

using Wire = v1::EndpointOperation;

static_assert(v1::EndpointOperation::OP_FENCE - 1 == static_cast<int>(WindowOp::kFence));
static_assert(kWindowOps == v1::EndpointOperation::Op_ARRAYSIZE - 1);
static_assert(v1::WINDOW_STATUS_OK + kWindowStatuses - 1 == v1::WINDOW_STATUS_ON_DEVICE);
static_assert(v1::ATOMIC_OPERATION_ADD + kAtomicOps - 1 == v1::ATOMIC_OPERATION_COMPARE_SWAP);
static_assert(v1::EndpointEvent::KIND_NOTIFICATION - 1 ==
              static_cast<int>(WindowEvent::Kind::kNotification));

std::string ToText(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::uint8_t> ToBytes(const std::string& text) { return {text.begin(), text.end()}; }

// Fields narrower than their numbers on the wire.
class Reader {
 public:
  template <typename To>
  To Small(std::uint64_t value, const char* field) {
    constexpr std::uint64_t kMax = std::numeric_limits<To>::max();
    if (value > kMax && status_.ok()) {
      status_ = absl::InvalidArgumentError(fmt::format("{} = {}; at most {}", field, value, kMax));
    }
    return static_cast<To>(value);
  }
  template <typename To>
  To Named(int value, int first, int count, const char* field) {
    if ((value < first || value >= first + count) && status_.ok()) {
      status_ = absl::InvalidArgumentError(
          fmt::format("{} = {}, which this version does not know", field, value));
    }
    return static_cast<To>(value - first);
  }
  void AtMost(std::uint64_t value, std::uint64_t limit, const char* field) {
    if (value <= limit || !status_.ok()) return;
    status_ = absl::ResourceExhaustedError(
        fmt::format("{} = {} bytes in one operation; at most {}", field, value, limit));
  }
  void Entries(int count, const char* field) {
    if (count <= kListMax || !status_.ok()) return;
    status_ = absl::ResourceExhaustedError(
        fmt::format("{} has {} entries in one operation; at most {}", field, count, kListMax));
  }
  const absl::Status& status() const { return status_; }

 private:
  static constexpr int kListMax =
      256;  // the HFI, which has its own limits, has to see what is beyond them
  absl::Status status_;
};

void UpdatesToProto(const WindowOperation& o, Wire* m) {
  for (const AtomicUpdate& update : o.updates) {
    v1::EndpointUpdate* u = m->add_updates();
    u->set_operation(
        static_cast<v1::AtomicOperation>(v1::ATOMIC_OPERATION_ADD + static_cast<int>(update.op)));
    u->set_size(update.size);
    u->set_fetch(update.fetch);
    u->set_address(update.address);
    u->set_operand(update.operand);
    u->set_compare(update.compare);
  }
}

void SegmentsToProto(const WindowOperation& o, Wire* m) {
  for (const MemorySegment& segment : o.segments) {
    v1::EndpointSegment* s = m->add_segments();
    s->set_context(segment.context);
    s->set_address(segment.address);
    s->set_bytes(segment.bytes);
  }
}

void ReadLists(const Wire& m, Reader& read, WindowOperation* o) {
  for (const v1::EndpointSegment& segment : m.segments()) {
    o->segments.push_back({read.Small<ContextId>(segment.context(), "segments.context"),
                           segment.address(), segment.bytes()});
  }
  for (const v1::EndpointUpdate& u : m.updates()) {
    AtomicUpdate& update = o->updates.emplace_back();
    update.op = read.Named<AtomicOp>(u.operation(), v1::ATOMIC_OPERATION_ADD, kAtomicOps,
                                     "updates.operation");
    update.size = read.Small<std::uint8_t>(u.size(), "updates.size");
    update.fetch = u.fetch();
    update.address = u.address();
    update.operand = u.operand();
    update.compare = u.compare();
  }
}

struct Meaning {
  WindowStatus status;
  absl::StatusCode code;
  const char* text;
};

using Code = absl::StatusCode;

constexpr Meaning kMeanings[] = {
    {WindowStatus::kOk, Code::kOk, ""},
    {WindowStatus::kNoWindowFree, Code::kResourceExhausted,
     "all windows of the hub are reserved; detach a program, or raise windows_per_hfi"},
    {WindowStatus::kWindowTaken, Code::kAlreadyExists,
     "this window is reserved already; choose another window, or let the hub choose"},
    {WindowStatus::kNoSuchWindow, Code::kOutOfRange,
     "no window of the hub has this number; windows are 0 to 2 x windows_per_hfi - 1"},
    {WindowStatus::kWindowClosed, Code::kAborted, "the window is no longer reserved"},
    {WindowStatus::kNotConfigured, Code::kFailedPrecondition,
     "the window lacks the FIFO that this operation needs; configure it"},
    {WindowStatus::kWrongKey, Code::kPermissionDenied,
     "the window or its memory belongs to another job"},
    {WindowStatus::kNotRegistered, Code::kNotFound,
     "no registered region has the address; register it first"},
    {WindowStatus::kOutOfRange, Code::kOutOfRange, "the access goes beyond the end of its region"},
    {WindowStatus::kReadOnly, Code::kPermissionDenied, "the region was registered read-only"},
    {WindowStatus::kOverlap, Code::kAlreadyExists,
     "the addresses overlap another region of the context"},
    {WindowStatus::kNoMemory, Code::kResourceExhausted,
     "more than a hub may have registered (parameters.windows.registered_bytes)"},
    {WindowStatus::kTooLarge, Code::kInvalidArgument,
     "more bytes than the format carries: 127 immediate, 2,048 by FIFO, 65,535 a datagram"},
    {WindowStatus::kEmpty, Code::kInvalidArgument,
     "the operation has no bytes, updates or segments"},
    {WindowStatus::kUnaligned, Code::kInvalidArgument,
     "the address of an atomic is a multiple of its size"},
    {WindowStatus::kBadSize, Code::kInvalidArgument,
     "an atomic has 1, 2, 4 or 8 bytes, and a group has at most four"},
    {WindowStatus::kNoSuchNode, Code::kNotFound, "no such hub or multicast group"},
    {WindowStatus::kSendFifoFull, Code::kResourceExhausted,
     "the send FIFO has no free slot; wait for a completion"},
    {WindowStatus::kReceiveFifoFull, Code::kResourceExhausted,
     "the receive FIFO had no free slot, or more slots are returned than are in use"},
    {WindowStatus::kNoImmediateBuffer, Code::kResourceExhausted,
     "all immediate buffers of the HFI are in use; wait for a completion"},
    {WindowStatus::kTooManyOperations, Code::kResourceExhausted,
     "the window has the maximum number of operations in flight; wait for a completion"},
    {WindowStatus::kNoRoute, Code::kUnavailable, "the hub had no route; nothing was sent"},
    {WindowStatus::kUnreachable, Code::kUnavailable,
     "no acknowledgement after the last retransmission; the operation may have been done, in part "
     "or completely"},
    {WindowStatus::kNoAnswer, Code::kUnavailable,
     "acknowledged, but no answer arrived in time; the operation may have been done"},
    {WindowStatus::kRemoteWindowClosed, Code::kFailedPrecondition,
     "the remote window is not reserved: its program has not started, or has ended"},
    {WindowStatus::kInvalid, Code::kInvalidArgument, "the fields contradict each other"},
    {WindowStatus::kNoDevice, Code::kUnavailable,
     "the PCI Express port has no device, or the device was unplugged meanwhile; the operation may "
     "have been done in part"},
    {WindowStatus::kOnDevice, Code::kInvalidArgument,
     "atomics, FIFOs and datagrams need main memory, not a device"},
};

const Meaning& MeaningOf(WindowStatus status) {
  static constexpr Meaning kUnknown{WindowStatus::kOk, Code::kUnknown,
                                    "a status that this version does not know"};
  for (const Meaning& meaning : kMeanings) {
    if (meaning.status == status) return meaning;
  }
  return kUnknown;
}

}  // namespace

void OperationToProto(const WindowOperation& o, Wire* m) {
  m->set_op(static_cast<Wire::Op>(static_cast<int>(o.op) + 1));
  m->set_id(o.id);
  m->set_window(o.window);
  m->set_job(o.job);
  m->set_context(o.context);
  m->set_address(o.address);
  m->set_bytes(o.bytes);
  m->set_read_only(!o.writable);
  if (o.device >= 0) m->set_device(o.device);
  m->set_device_offset(o.device_offset);
  if (o.op == WindowOp::kConfigure) {
    m->mutable_send_fifo()->set_address(o.send_fifo.address);
    m->mutable_send_fifo()->set_slots(o.send_fifo.slots);
    m->mutable_receive_fifo()->set_address(o.receive_fifo.address);
    m->mutable_receive_fifo()->set_slots(o.receive_fifo.slots);
  }
  m->set_cached(o.cached);
  if (!o.data.empty()) m->set_data(ToText(o.data));
  SegmentsToProto(o, m);
  m->set_count(o.count);
  m->set_node(o.node == kNoNode ? 0 : o.node);
  m->set_peer_window(o.peer_window);
  m->set_peer_context(o.peer_context);
  m->set_peer_address(o.peer_address);
  m->set_to_fifo(o.to_fifo);
  m->set_notify(o.notify);
  UpdatesToProto(o, m);
  m->set_fence_writes(o.fence_writes);
  m->set_fence_reads(o.fence_reads);
}

absl::StatusOr<WindowOperation> OperationFromProto(const Wire& m) {
  Reader read;
  WindowOperation o;
  o.op = read.Named<WindowOp>(m.op(), 1, kWindowOps, "op");
  o.id = m.id();
  o.window = read.Small<WindowId>(m.window(), "window");
  o.job = read.Small<JobKey>(m.job(), "job");
  o.context = read.Small<ContextId>(m.context(), "context");
  o.address = m.address();
  o.bytes = m.bytes();
  o.writable = !m.read_only();
  if (m.has_device()) o.device = m.device();
  o.device_offset = m.device_offset();
  o.send_fifo = {m.send_fifo().address(), m.send_fifo().slots()};
  o.receive_fifo = {m.receive_fifo().address(), m.receive_fifo().slots()};
  o.cached = m.cached();
  read.AtMost(m.data().size(), kOperationBytesMax, "data");
  read.Entries(m.segments_size(), "segments");
  read.Entries(m.updates_size(), "updates");
  if (m.op() == Wire::OP_READ_MEMORY) read.AtMost(m.bytes(), kOperationBytesMax, "bytes");
  o.count = m.count();
  o.node = m.node();
  o.peer_window = read.Small<WindowId>(m.peer_window(), "peer_window");
  o.peer_context = read.Small<ContextId>(m.peer_context(), "peer_context");
  o.peer_address = m.peer_address();
  o.to_fifo = m.to_fifo();
  o.notify = m.notify();
  if (read.status().ok()) ReadLists(m, read, &o);
  o.fence_writes = m.fence_writes();
  o.fence_reads = m.fence_reads();
  if (!read.status().ok()) return read.status();
  o.data = ToBytes(m.data());
  return o;
}

void EventToProto(const WindowEvent& e, v1::EndpointEvent* m) {
  m->set_kind(static_cast<v1::EndpointEvent::Kind>(static_cast<int>(e.kind) + 1));
  m->set_at(e.at);
  m->set_id(e.id);
  m->set_op(static_cast<Wire::Op>(static_cast<int>(e.op) + 1));
  m->set_status(static_cast<v1::WindowStatus>(v1::WINDOW_STATUS_OK + static_cast<int>(e.status)));
  m->set_peer(e.peer == kNoNode ? 0 : e.peer);
  m->set_peer_window(e.peer_window);
  m->set_address(e.address);
  m->set_bytes(e.bytes);
  m->set_offset(e.offset);
  if (!e.data.empty()) m->set_data(ToText(e.data));
  for (const std::uint64_t value : e.values) m->add_values(value);
}

absl::StatusOr<WindowEvent> EventFromProto(const v1::EndpointEvent& m) {
  Reader read;
  WindowEvent e;
  e.kind =
      read.Named<WindowEvent::Kind>(m.kind(), 1, v1::EndpointEvent::Kind_ARRAYSIZE - 1, "kind");
  e.at = m.at();
  e.id = m.id();
  e.op = read.Named<WindowOp>(m.op(), 1, kWindowOps, "op");
  e.status = read.Named<WindowStatus>(m.status(), v1::WINDOW_STATUS_OK, kWindowStatuses, "status");
  e.peer = m.peer();
  e.peer_window = read.Small<WindowId>(m.peer_window(), "peer_window");
  e.address = m.address();
  e.bytes = m.bytes();
  e.offset = m.offset();
  if (!read.status().ok()) return read.status();
  e.data = ToBytes(m.data());
  e.values.assign(m.values().begin(), m.values().end());
  return e;
}

absl::Status ToStatus(WindowOp op, WindowStatus status) {
  if (status == WindowStatus::kOk) return absl::OkStatus();
  const Meaning meaning = MeaningOf(status);
  return absl::Status(meaning.code, fmt::format("{}: {}: {}", WindowOpName(op),
                                                WindowStatusName(status), meaning.text));
}

bool HasLongData(const v1::EndpointSubmission& submission) {
  for (const Wire& operation : submission.operations()) {
    if (operation.data().size() > kJournalledBytesMax) return true;
  }
  return false;
}

absl::Status StoreData(v1::EndpointSubmission* submission, StoreBytes store) {
  for (Wire& operation : *submission->mutable_operations()) {
    if (operation.data().size() <= kJournalledBytesMax) continue;
    const auto name = store(operation.data());
    if (!name.ok()) return name.status();
    operation.set_data_hash(*name);
    operation.clear_data();
  }
  return absl::OkStatus();
}

absl::Status FindData(v1::EndpointSubmission* submission, FindBytes find) {
  for (Wire& operation : *submission->mutable_operations()) {
    if (operation.data_hash() == 0) continue;
    auto bytes = find(operation.data_hash());
    if (!bytes.ok()) return bytes.status();
    operation.set_data(*std::move(bytes));
    operation.clear_data_hash();
  }
  return absl::OkStatus();
}

}  // namespace percs
