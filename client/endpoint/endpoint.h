// A window of the Host Fabric Interface of a running fabric, for a program of your own: registered
// memory, messages, RDMA, atomics (docs/endpoint.md explains them, client/examples has two programs
// to copy).
//
//   EndpointOptions options;
//   options.controller = "127.0.0.1:18515";
//   options.hub = "sn0-d0-h0";
//   auto endpoint = Endpoint::Attach(options);
//   if (!endpoint.ok()) ...
//   Pending sent = (*endpoint)->SendFifo({*(*endpoint)->FindNode("sn0-d1-h3"), 0}, "hello");
//   if (absl::Status status = sent.Wait().status; !status.ok()) ...
//
// WHAT HAPPENS WHEN. The program runs in wall time, the hub in virtual time. An operation is sent
// to the percsd of the hub, written to the journal of the controller, and takes effect at the
// beginning of the next window of virtual time; `Completion::at` and `Packet::at` are virtual
// times. Operations begin in the order of the calls and end in any order, unless there are fences.
// A call returns a Pending at once, unless its comment says that it blocks.
//
// MODE. kShared: virtual time continues whatever the program does. kExclusive: it is held from
// every event that the program receives (and from Attach on) until the program waits again, in
// Wait, Receive or another call that blocks. So work between two waits takes no virtual time, and
// if all programs of a fabric are exclusive, have one thread each and name their windows, every run
// has the same result. A wait that ends at its deadline is a wait, too: virtual time continues
// until the next event that the program receives.
//
// ERRORS. A Completion has a code and, if the hub refused the operation, a `reason` like
// "wrong_key":
//
//   RESOURCE_EXHAUSTED   no window free; too many operations or bytes in flight; send FIFO, receive
//                        FIFO or immediate buffers full; registered memory of the hub used up; the
//                        journal is full
//   ALREADY_EXISTS       the window is taken; a region overlaps a registered one
//   INVALID_ARGUMENT     message empty or too large for its format; atomic unaligned, oversized, in
//                        memory of a device, or one of more than four; fields that contradict each
//                        other; no such job, window or mode
//   NOT_FOUND            no such hub here; no such node or group; address not registered, here or
//                        at the other hub
//   OUT_OF_RANGE         begins in a region and goes beyond its end; no window has this number
//   PERMISSION_DENIED    window or memory of another job; read-only region; certificate of another
//                        role
//   FAILED_PRECONDITION  the remote window is not reserved; the window has no FIFO for this; no
//                        scenario is applied, or the run has ended; another protocol version
//   ABORTED              the window was released: by Detach, or because the program was
//                        disconnected for too long
//   UNAVAILABLE          the other hub is unreachable or does not answer (the operation may have
//                        been done); the device is unplugged, here or there; the percsd of this
//                        hub was away for longer than `reattach` (the message names the hub)
//   CANCELLED            by Cancel, or the window was detached by its token
//   DEADLINE_EXCEEDED    of a call that blocks; the operation continues
//
// After the window is lost, all operations and all later calls end with the reason, and status()
// has it.
//
// A stream that breaks is reopened, for up to `reattach` of wall time; nothing is lost or done
// twice. If a percsd ends, its hubs and their windows are lost: attach again, at another hub.
//
// THREAD: all methods may be called from any thread, but calls that block not from callbacks.
// Callbacks run one at a time on a thread of the Endpoint, without locks held; a slow callback
// delays the others, and reattaching.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace percs::client {

using Duration = std::chrono::milliseconds;  // of wall time
using Time = std::int64_t;                   // virtual, in picoseconds
inline constexpr Time kNanosecond = 1'000, kMicrosecond = 1'000'000;
std::string FormatTime(Time time);  // "1.5us"

using NodeId = std::uint32_t;     // a hub or a multicast group; Endpoint::FindNode has its number
using WindowId = std::uint16_t;   // of a hub: 0 to 2 x windows_per_hfi - 1
using JobKey = std::uint16_t;     // owner of a window and its memory; in every packet
using ContextId = std::uint16_t;  // of an address space of a job on a hub
using Address = std::uint64_t;    // effective address in a context
inline constexpr WindowId kAnyWindow = 0xffff;

using Bytes = std::vector<std::uint8_t>;
using ByteSpan = absl::Span<const std::uint8_t>;

enum class Mode { kShared, kExclusive };

// Format of a packet, or kind of access to memory.
enum class Transfer : std::uint8_t {
  kImmediateSend,
  kFifoSend,
  kIpSend,
  kRdmaWrite,
  kRdmaRead,
  kAtomic,
};

enum class AtomicOp : std::uint8_t { kAdd, kAnd, kOr, kXor, kCompareSwap };

struct AtomicUpdate {
  AtomicOp op = AtomicOp::kAdd;
  std::uint8_t size = 8;                   // bytes: 1, 2, 4, 8
  bool fetch = false;                      // returns the previous value
  Address address = 0;                     // a multiple of size
  std::uint64_t operand = 0, compare = 0;  // compare: kCompareSwap only
};

struct MemorySegment {
  ContextId context = 0;
  Address address = 0;
  std::uint32_t bytes = 0;
};

struct EndpointOptions {
  std::string controller;  // its address; it knows which percsd has the hub. Or
  std::string daemon;      // the percsd itself: unix:/path or host:port
  // Folder of an identity of the role endpoint or operator, as `percsctl ca` makes it; "":
  // plaintext.
  std::string tls;
  std::string hub;  // sn0-d0-h0; with `daemon`, none is its first
  JobKey job = 1;   // 1..65535: only windows of one job reach each other's memory
  WindowId window = kAnyWindow;
  std::optional<ContextId> context;  // of its memory on this hub; none: the number of the window
  Mode mode = Mode::kShared;
  // FIFOs that Attach registers and gives to the window, in slots of 2,048 bytes; 0: none.
  std::uint32_t send_slots = 64, receive_slots = 64;
  std::string name = "program";   // for `Endpoint.ListWindows`
  std::uint32_t under_way = 128;  // operations that the hub has at a time, with at most 32 MiB to
                                  // write and read; the rest waits here
  Duration deadline{30'000};      // of Attach, and of every call that blocks and is given none
  Duration reattach{
      5'000};  // at most a minute; also for how long the hub keeps the window without us
};

// Where FIFOs of Attach are in the context; a region of the program may not be there.
inline constexpr Address kFifoAddress = Address{1} << 46;

// A window of another hub, or of this one. Its context, unless said otherwise, has the number of
// the window.
struct Peer {
  NodeId node = 0;
  WindowId window = 0;
  std::optional<ContextId> context = {};
  ContextId ContextOf() const { return context.value_or(window); }
};

struct Completion {
  absl::Status status;
  // Why the hub refused it: `wrong_key` and so on, the names of
  // WindowStatus in percs/v1/windows.proto.
  // Empty if it was done, or never reached the hub.
  std::string reason = {};
  Time at = 0;  // virtual; 0 if it never reached the hub
  std::uint64_t bytes = 0;
  NodeId peer = 0;  // ReceiveIp: whose datagram it is
  WindowId peer_window = 0;
  Bytes data;                         // Read
  std::vector<std::uint64_t> values;  // atomics that fetch, in their order: the value before
};

struct Packet {
  Time at = 0;
  Transfer format = Transfer::kFifoSend;  // any but kAtomic
  NodeId peer = 0;
  WindowId peer_window = 0;
  std::uint64_t offset = 0;  // of RDMA into the FIFO: where in its operation
  Bytes data;
};

// An operation of another window with `notify` was completed in memory of this window.
struct Notification {
  Time at = 0;
  Transfer op = Transfer::kRdmaWrite;  // kRdmaWrite, kRdmaRead or kAtomic
  NodeId peer = 0;
  WindowId peer_window = 0;
  std::uint64_t bytes = 0;
};

struct RdmaOptions {
  bool notify = false;   // the remote window is notified when all of it has arrived
  bool to_fifo = false;  // into the receiver's receive FIFO; the address of that side
                         // counts for nothing
  bool cached = false;   // the bytes are in a cache: sooner there than from memory
};

class WindowSession;
struct PendingState;

// An operation under way. May be copied, and outlives its Endpoint; dropping it changes nothing.
class Pending {
 public:
  explicit Pending(std::shared_ptr<PendingState> state) : state_(std::move(state)) {}

  bool done() const;
  // Blocks until it has ended. DEADLINE_EXCEEDED if that takes longer (of wall time; none:
  // EndpointOptions::deadline). FAILED_PRECONDITION in a callback.
  Completion Wait(std::optional<Duration> deadline = std::nullopt) const;
  // Calls back once when it ends; at once, on this thread, if it has ended.
  void Then(std::function<void(const Completion&)> then) const;
  // Ends it at once, with CANCELLED. If it has not left this process, it is never done; otherwise
  // it continues in the fabric, and its result is not reported.
  void Cancel() const;

 private:
  std::shared_ptr<PendingState> state_;
};

class Endpoint {
 public:
  // Blocks until the window is reserved and has its FIFOs, in virtual time: with `percsctl apply
  // --wait-endpoints N` that is when N programs are there. UNAVAILABLE without an answer;
  // INVALID_ARGUMENT for options that cannot be.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Attach(EndpointOptions options);
  // Detaches, if not yet done; waits for that no longer than two seconds. Callbacks of what was
  // under way have been called when it returns. REQUIRES: not called from a callback.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  NodeId node() const;
  WindowId window() const;
  ContextId context() const;
  // Virtual time of the last event received.
  Time now() const;
  // OK while the program has the window, otherwise the reason.
  absl::Status status() const;
  // How often the stream was reopened.
  std::uint64_t reconnects() const;
  // By name; hubs and multicast groups. Blocks. NOT_FOUND suggests similar names.
  absl::StatusOr<NodeId> FindNode(const std::string& name);
  // Blocks until the window is released; operations in flight end as ABORTED.
  absl::Status Detach(std::optional<Duration> deadline = std::nullopt);

  // --- Memory. Addresses are of the window's context; the bytes are in the emulated hub.
  Pending Register(Address address, std::uint64_t bytes, bool writable = true);
  // Bytes of the device in a PCI Express port of the hub, for RDMA and for Write and Read. While it
  // is unplugged, operations on them end as UNAVAILABLE. They stay in the device when the region is
  // deregistered.
  Pending RegisterDevice(Address address, std::uint64_t bytes, int port, std::uint64_t offset = 0);
  Pending Deregister(Address address);  // the region that begins there
  Pending Write(Address address, ByteSpan data);
  Pending Write(Address address, const std::string& data);
  Pending Read(Address address, std::uint64_t bytes);

  // --- Packets: unreliable, as the hardware's. Immediate: up to 127 bytes; FIFO: 2,048; IP: 2,048
  // as `data`, or up to 65,535 that the HFI gathers from memory.
  Pending SendImmediate(const Peer& peer, ByteSpan data);
  Pending SendFifo(const Peer& peer, ByteSpan data);
  Pending SendFifo(const Peer& peer, const std::string& data);
  Pending SendIp(const Peer& peer, ByteSpan data);
  Pending SendIp(const Peer& peer, const std::vector<MemorySegment>& from);
  // Ends when a datagram that was gathered has been scattered to these places.
  Pending ReceiveIp(const std::vector<MemorySegment>& to);
  // Joining twice, or leaving a group that was not joined, is no error.
  Pending JoinMulticast(NodeId group);
  Pending LeaveMulticast(NodeId group);

  // --- Exactly once, or failed with a reason.
  Pending RdmaWrite(const Peer& peer, Address there, Address here, std::uint64_t bytes,
                    const RdmaOptions& options = {});
  Pending RdmaRead(const Peer& peer, Address there, Address here, std::uint64_t bytes,
                   const RdmaOptions& options = {});
  Pending Atomic(const Peer& peer, const AtomicUpdate& update, bool notify = false);
  // Up to four as one group: all once, in this order, or none.
  Pending PackedAtomics(const Peer& peer, absl::Span<const AtomicUpdate> updates,
                        bool notify = false);
  // Ends when earlier operations of these kinds have ended; later operations begin then.
  Pending Fence(bool writes = true, bool reads = true);

  // --- What comes. The next packet in the receive FIFO. Blocks. DEADLINE_EXCEEDED, or as status().
  // Slots of what was received are given back half a FIFO at a time, before whatever the program
  // asks for next: count on half of them.
  absl::StatusOr<Packet> Receive(std::optional<Duration> deadline = std::nullopt);
  absl::StatusOr<Notification> WaitNotification(std::optional<Duration> deadline = std::nullopt);
  // Instead of Receive: called with every packet from now on, and with those that wait.
  void OnPacket(std::function<void(Packet)> callback);
  void OnNotification(std::function<void(Notification)> callback);
  // Blocks until every operation so far has ended, however.
  absl::Status WaitAll(std::optional<Duration> deadline = std::nullopt);

 private:
  explicit Endpoint(std::shared_ptr<WindowSession> session);

  std::shared_ptr<WindowSession> session_;
};

}  // namespace percs::client
