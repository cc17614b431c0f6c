// The windows of the two HFIs of a hub, with NMMU and atomic update unit: what programs ask becomes
// packets, and packets of others become what their windows and memory get (paper 000 sections IV-B
// and IV-E; docs/hfi.md). Made with the first use; a hub whose windows are not used has none.
//
// By block: window_unit.cc issues and completes, window_send.cc injects, immediate_fifo.cc has the
// two packet formats, rdma.cc memory and atomics at both ends, device_memory.cc memory of which a
// device has the bytes, ip.cc datagrams.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "emulator/hfi/atomic_unit.h"
#include "emulator/hfi/message_layer.h"
#include "emulator/hfi/nmmu.h"
#include "emulator/hfi/pcie.h"
#include "emulator/hfi/window.h"
#include "emulator/hfi/window_packet.h"

namespace percs {

// WIDE: one state machine over the windows of a hub: each method is one step of one operation, and
// all of them look at the same windows.
class WindowUnit final : public WindowPort {
 public:
  WindowUnit(NodeContext& context, Hfi& hfi, MessageLayer& messages,
             std::uint32_t first_request = 1);

  void Issue(WindowOperation operation, WindowListener* listener) override;
  void Forget(WindowListener* listener) override;

  // --- Of the hub, at context.now.
  void OnEvent(const Event& event);
  // A packet of kind kWindow reached its window, or the hub if it came to a group. Returns why it
  // is dropped, if it is.
  std::optional<DropReason> OnPacket(const PacketHeader& header);
  // A packet of kind kOperation, each once. REQUIRES: WindowPacket can be read from it.
  void OnOperation(const PacketHeader& header);
  void OnEnteredIsr(const PacketHeader& header);
  void OnOperationDone(std::uint64_t word, std::uint32_t tag, bool delivered, bool refused);
  // Devices in PCI Express ports that are unplugged from now on: bit p for port p.
  void SetUnplugged(unsigned ports) { pcie_.SetUnplugged(ports); }
  // What is under way, for the report of a deadlock.
  std::vector<std::string> Blocked() const;

 private:
  struct Deferred {
    enum class Kind : std::uint8_t { kTell, kPump, kTimeout, kServe, kAssembly };
    Kind kind = Kind::kTell;
    WindowId window = 0;
    ListenerId listener = 0;
    std::uint32_t reservation = 0;
    WindowEvent event;    // kTell
    PacketHeader header;  // kServe
    DevicePart part;      // likewise
  };
  // Of a write that comes in, until all of its packets are there.
  struct Incoming {
    std::uint64_t done = 0;
    std::uint64_t told = 0;                   // bytes that the sender knows of
    bool paced = false;                       // into a device: it must wait for that
    bool answered = false;                    // reported as failed, and does nothing any more
    WindowStatus status = WindowStatus::kOk;  // of the first packet that could not be done
    Time progress = 0;
  };
  struct Assembly {
    NodeId source = 0;
    WindowId source_window = 0, window = 0;
    std::uint32_t datagram = 0;
    OperationState* place = nullptr;
    std::uint64_t parts = 0;  // bit i: bytes from i x 2,048 on have come
    std::uint32_t done = 0;
    Time until = 0;
  };

  // --- window_unit.cc
  ListenerId IdOf(WindowListener* listener);
  Window* Find(WindowId window) { return window < windows_.size() ? &windows_[window] : nullptr; }
  WindowStatus Owned(const WindowOperation& asked, Window** window);
  void Schedule(Time at, Deferred&& what);
  // `counted`: as unfinished work already, which ends when the event is delivered.
  void Tell(Time at, ListenerId listener, bool counted, WindowEvent&& event);
  // Nothing if the operation is under way.
  std::optional<WindowStatus> Begin(WindowOperation& asked, ListenerId listener,
                                    WindowEvent* completion);
  WindowStatus Reserve(const WindowOperation& asked, ListenerId listener, WindowEvent* completion);
  WindowStatus Configure(const WindowOperation& asked, Window& window);
  void Release(WindowId id);
  WindowStatus Memory(WindowOperation& asked, WindowEvent* completion);
  std::optional<WindowStatus> Local(WindowOperation& asked, Window& window, ListenerId listener,
                                    WindowEvent* completion);
  WindowStatus CheckOwn(const WindowOperation& asked, std::uint64_t bytes, bool write,
                        MemoryPlace* place);
  WindowStatus ReturnSpace(Window& window, std::uint32_t count);
  WindowStatus Join(const WindowOperation& asked, Window& window);
  WindowEvent CompletionOf(const OperationState& op, WindowStatus status) const;
  void End(OperationState& op, WindowStatus status) {
    End(op, CompletionOf(op, status), context_.now);
  }
  void End(OperationState& op, WindowEvent&& completion, Time at);
  void EraseIfOver(OperationState& op);
  OperationState* Operation(std::uint32_t request);
  std::vector<OperationState*> OperationsOf(WindowId window);
  void OnTimeout(WindowId id);
  Time AnswerTimeout() const;
  std::uint64_t& Count(WindowId window, HfiCounter counter) {
    return context_.stats.Hfi(window / context_.parameters->windows_per_hfi, counter);
  }

  // --- window_send.cc
  WindowStatus CheckSend(const WindowOperation& asked, Window& window);
  WindowStatus CheckPeer(const WindowOperation& asked) const;
  OperationState& Add(WindowOperation&& asked, ListenerId listener);
  void Queue(OperationState& op, Time ready_at);
  Time IssueTime(OperationState& op);  // and stages what goes by way of the send FIFO
  bool Translated(OperationState& op, ContextId context, Address address, std::uint64_t bytes);
  void PumpAt(WindowId id, Time at);
  void Pump(WindowId id);
  bool FenceHolds(const OperationState& op, const Window& window) const;
  void BeginSending(OperationState& op, Window& window);
  // One packet of the operation at the front. False: it has to wait, for a translation or an
  // acknowledgement. With its last packet the operation leaves the queue; it may be gone then.
  bool SendNext(OperationState& op, Window& window);
  bool SendUnreliable(OperationState& op, WindowPacket packet, const PayloadRef& payload,
                      int bytes);
  void SendReliable(const WindowPacket& packet, NodeId node, WindowId from, WindowId to,
                    const PayloadRef& payload, int bytes);
  void Occupy(Window& window, int bytes);
  WindowPacket PacketOf(const OperationState& op, WindowPacket::Type type) const;

  // --- immediate_fifo.cc
  int& ImmediateUsed(WindowId window);
  WindowStatus TakeImmediateBuffer(WindowId window);
  bool SendImmediate(OperationState& op);
  bool SendFifo(OperationState& op, Window& window);
  std::optional<DropReason> Receive(WindowId id, const PacketHeader& header,
                                    const WindowPacket& packet);
  WindowStatus PutIntoFifo(WindowId id, const PacketHeader& header, WindowOp format,
                           std::uint64_t offset);

  // --- rdma.cc
  bool SendWrite(OperationState& op, Window& window);
  bool SendRead(OperationState& op, Window& window);
  bool SendAtomic(OperationState& op, Window& window);
  Time ReadyAt(const PacketHeader& header, const WindowPacket& packet, DevicePart* part);
  bool Leaves(OperationState& op, Window& window);
  void Serve(const PacketHeader& header, const DevicePart& part);
  WindowStatus CheckTarget(WindowId id, JobKey job) const;
  WindowStatus TakeWrite(const PacketHeader& header, const WindowPacket& packet,
                         const DevicePart& part);
  void ServeWrite(const PacketHeader& header, const WindowPacket& packet, const DevicePart& part);
  void ServeRead(const PacketHeader& header, const WindowPacket& packet, const DevicePart& part);
  void ServeAtomic(const PacketHeader& header, const WindowPacket& packet);
  void OnAnswer(const PacketHeader& header, const WindowPacket& packet, const DevicePart& part);
  void OnReadData(OperationState& op, const PacketHeader& header, const WindowPacket& packet,
                  const DevicePart& part);
  void Answer(const PacketHeader& to, const WindowPacket& packet, WindowStatus status);
  void Notify(const PacketHeader& header, const WindowPacket& packet, std::uint64_t bytes);
  void ForgetDeadWrites();

  // --- device_memory.cc
  std::uint64_t ReadUnit() const {
    return PacketFifo::BytesOf(static_cast<std::uint32_t>(parameters_.read_unit_packets));
  }
  // Of one operation, at most, on their way into a device or waiting for it.
  std::uint64_t PacedBytes() const {
    return static_cast<std::uint64_t>(parameters_.read_units) * ReadUnit();
  }
  bool OnDevice(ContextId context, JobKey job, Address address, std::uint64_t bytes,
                MemoryPlace* place) const;
  bool AskedLongAgo(Time since) const;
  bool Fetched(OperationState& op, const MemoryPlace& place, std::uint64_t bytes);
  void FetchAhead(OperationState& op, const MemoryPlace& place, std::uint64_t bytes);
  Time StoredAt(ContextId context, JobKey job, Address address, std::uint64_t bytes,
                DevicePart* part);
  WindowStatus Store(ContextId context, JobKey job, Address address, const PacketHeader& from,
                     const DevicePart& part);
  void Pace(const PacketHeader& header, const WindowPacket& packet);
  void TellProgress(const PacketHeader& to, const WindowPacket& packet, std::uint64_t done);
  void OnProgress(OperationState& op, const WindowPacket& packet);
  void ServeReadOfDevice(const PacketHeader& header, const WindowPacket& packet,
                         const MemoryPlace& place, const DevicePart& part);

  // --- ip.cc
  WindowStatus CheckSegments(const WindowOperation& asked, bool write, std::uint64_t* bytes) const;
  bool SendFragment(OperationState& op);
  std::optional<DropReason> OnFragment(WindowId id, const PacketHeader& header,
                                       const WindowPacket& packet);
  std::optional<DropReason> Scatter(Assembly& assembly, const PacketHeader& header,
                                    const WindowPacket& packet);
  void Gather(const std::vector<MemorySegment>& segments, std::uint64_t offset, std::uint8_t* to,
              std::uint64_t bytes) const;
  void OnAssemblyTimeout();
  void DropAssemblies(WindowId window);

  NodeContext& context_;
  Hfi& hfi_;
  MessageLayer& messages_;
  const WindowParameters& parameters_;
  Nmmu nmmu_;
  Pcie pcie_;
  AtomicUnit atomics_;
  std::vector<Window> windows_;
  std::vector<int> immediate_used_;  // buffers, by HFI
  std::vector<WindowListener*> listeners_;
  absl::flat_hash_map<WindowListener*, ListenerId> listener_ids_;
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<OperationState>> operations_;
  absl::flat_hash_map<std::pair<NodeId, std::uint32_t>, Incoming> incoming_;
  std::vector<Assembly> assemblies_;
  Pool<Deferred> deferred_;
  std::uint32_t next_request_;
  std::uint64_t next_event_ = 0;
};

}  // namespace percs
