// What a program asks of a window of its Host Fabric Interface, and what it hears back (paper 000
// sections IV-B and IV-E). The one currency for all of them: a step of a scenario's program, a step
// of a measurement, a command of a program outside. It holds no pointer into anybody's memory:
// memory is regions of the hub that are registered with its NMMU, written and read by operations of
// their owner.
//
// An operation is issued to the HFI of one hub at one virtual time. Each ends with exactly one
// completion, which names the reason if it failed; nothing is lost in silence. Operations of a
// window begin in the order in which they were issued, and, but for fences, end in any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"

namespace percs {

using JobKey = std::uint16_t;  // whom a window and its memory belong to; carried by every packet.
                               // Choice: 16 bits
using ContextId = std::uint16_t;  // of an address space registered with the NMMU of a hub
using Address = std::uint64_t;    // effective address in a context

inline constexpr WindowId kAnyWindow = 0xffff;
inline constexpr int kCacheLineBytes = 128;
inline constexpr int kImmediateBytesMax =
    kCacheLineBytes - 1;                     // less than a cache line (paper 000 section IV-B)
inline constexpr int kPackedAtomicsMax = 4;  // per cache line, as one group
inline constexpr std::uint32_t kIpBytesMax = 65535;  // of a datagram

enum class WindowOp : std::uint8_t {
  // The window itself.
  kReserve,    // job, window (or kAnyWindow) -> window
  kConfigure,  // context, send_fifo, receive_fifo: places of the FIFOs in registered memory
  kRelease,    // ends what the window has under way
  // Memory. A context comes into being with its first region, for the job of the window that
  // registers it.
  kRegister,    // context, address, bytes, writable; device, device_offset: of a device's bytes, in
                // pages of their own
  kDeregister,  // context, address: of the whole region
  kWriteMemory,  // context, address, data
  kReadMemory,   // context, address, bytes -> data
  // Packets: unreliable, as the hardware's.
  kImmediateSend,  // node, peer_window, data: less than a cache line
  kFifoSend,       // node, peer_window, data: one packet, by way of the send FIFO
  kReturnSpace,    // count: slots of the receive FIFO, oldest first
  // Internet Protocol: datagrams, unreliable too; node may be a multicast group.
  kIpSend,     // node, peer_window, data by way of the FIFO (one packet), or segments that the HFI
               // gathers
  kIpReceive,  // segments: where the HFI is to scatter a datagram that it assembles; ends when
               // there is one
  kJoin,
  kLeave,  // node: a multicast group whose packets this window takes
  // Exactly once, or failed with a reason.
  kRdmaWrite,  // node, peer_window, bytes from context:address (or data) to
               // peer_context:peer_address or its FIFO
  kRdmaRead,   // node, peer_window, bytes from peer_context:peer_address to context:address or the
               // own FIFO
  kAtomic,  // node, peer_window, peer_context, updates: one, or up to four as one group -> values
  kFence,   // fence_writes, fence_reads
};
inline constexpr int kWindowOps = 18;

// Why an operation ended.
enum class WindowStatus : std::uint8_t {
  kOk,
  kNoWindowFree,       // reserve: all windows of the hub are reserved
  kWindowTaken,        // reserve: this one is
  kNoSuchWindow,       // a number that no window of the hub has
  kWindowClosed,       // the window is not reserved; or it was released before the operation ended
  kNotConfigured,      // the window has no FIFO of the kind that the operation needs
  kWrongKey,           // window, or context, belongs to another job
  kNotRegistered,      // no region has the address; or there is no such context
  kOutOfRange,         // begins in a region and goes beyond its end
  kReadOnly,           // the region may not be written
  kOverlap,            // register: a region of the context has some of these addresses
  kNoMemory,           // register: more than a hub may have registered
  kTooLarge,           // more bytes than the format carries
  kEmpty,              // no bytes, no update, no segment
  kUnaligned,          // atomic: the address is no multiple of the size
  kBadSize,            // atomic: other than 1, 2, 4 or 8 bytes, or more than four updates
  kNoSuchNode,         // no such hub, or no such group
  kSendFifoFull,       // nothing was sent
  kReceiveFifoFull,    // RDMA into a FIFO: there was no slot for some of the packets; return_space:
                       // more than are in use
  kNoImmediateBuffer,  // all buffers of the HFI are in use; nothing was sent
  kTooManyOperations,  // the window has as many under way as it may
  kNoRoute,            // nothing left the hub: no way there, or the window is down
  kUnreachable,  // given up after the last retransmission; may have been done, in part or as a
                 // whole
  kNoAnswer,     // acknowledged, but no answer came in time; may have been done
  kRemoteWindowClosed,  // the window over there is not reserved
  kInvalid,             // fields that contradict each other
  kNoDevice,  // nothing is plugged into that PCI Express port, or it was unplugged meanwhile; done
              // in part, maybe
  kOnDevice,  // atomic, FIFO or segment in memory that is a device's: these are in main memory only
};
inline constexpr int kWindowStatuses = 28;
const char* WindowStatusName(WindowStatus status);  // "wrong_key"
const char* WindowOpName(WindowOp op);              // "rdma_write"

enum class AtomicOp : std::uint8_t { kAdd, kAnd, kOr, kXor, kCompareSwap };
inline constexpr int kAtomicOps = 5;
const char* AtomicOpName(AtomicOp op);

struct AtomicUpdate {
  AtomicOp op = AtomicOp::kAdd;
  std::uint8_t size = 8;                   // bytes: 1, 2, 4, 8
  bool fetch = false;                      // the value before comes back
  Address address = 0;                     // a multiple of size
  std::uint64_t operand = 0, compare = 0;  // compare: kCompareSwap only
  bool operator==(const AtomicUpdate&) const = default;
};

struct MemorySegment {
  ContextId context = 0;
  Address address = 0;
  std::uint32_t bytes = 0;
  bool operator==(const MemorySegment&) const = default;
};

// A circular FIFO in registered memory: slots of a packet each (2,048 bytes); 0: there is none.
struct FifoPlace {
  Address address = 0;
  std::uint32_t slots = 0;
  bool operator==(const FifoPlace&) const = default;
};

struct WindowOperation {
  WindowOp op = WindowOp::kReserve;
  std::uint64_t id = 0;  // the caller's; comes back in the completion
  WindowId window = kAnyWindow;
  JobKey job = 0;  // of who asks; must be that of the window
  // Own side.
  ContextId context = 0;
  Address address = 0;
  std::uint64_t bytes = 0;
  bool writable =
      true;         // register: by remote operations and received packets; the owner always may
  int device = -1;  // register: PCI Express port of the device; -1: main memory
  std::uint64_t device_offset = 0;
  FifoPlace send_fifo, receive_fifo;
  bool cached = false;  // the bytes to send are in a cache: sooner there than from memory
  std::vector<std::uint8_t> data;
  std::vector<MemorySegment> segments;
  std::uint32_t count = 0;
  // Other side.
  NodeId node = kNoNode;
  WindowId peer_window = 0;
  ContextId peer_context = 0;
  Address peer_address = 0;
  bool to_fifo = false;  // RDMA: into the receive FIFO of who gets the bytes
  bool notify = false;   // RDMA write, atomic: the window over there hears that it was done
  std::vector<AtomicUpdate> updates;
  // A fence ends when the operations of its kinds that this window began before it have ended, and
  // what was issued after it begins then. writes: RDMA writes and atomics; reads: RDMA reads and
  // atomics that fetch.
  bool fence_writes = false, fence_reads = false;

  bool operator==(const WindowOperation&) const = default;
};

struct WindowEvent {
  enum class Kind : std::uint8_t {
    kCompletion,  // of operation `id`, with `status`
    kReceived,    // a packet is in the receive FIFO, in the slot at `address`, which stays in use:
                  // `data`
    kNotification,  // an operation from peer:peer_window with `notify` was done here
  };
  Kind kind = Kind::kCompletion;
  Time at = 0;
  NodeId node = 0;  // of the window that hears it
  WindowId window = 0;
  std::uint64_t id = 0;
  WindowOp op = WindowOp::kReserve;  // completion: which; received: the format it came in
  WindowStatus status = WindowStatus::kOk;
  NodeId peer = kNoNode;  // who sent a packet or datagram, or notifies
  WindowId peer_window = 0;
  Address address = 0;
  std::uint64_t bytes = 0;  // of a packet, datagram or notifying operation
  std::uint64_t offset =
      0;  // received by RDMA: of this packet in its operation; they come in any order
  std::vector<std::uint8_t> data;     // kReadMemory, kReceived
  std::vector<std::uint64_t> values;  // atomic: before each update that fetches, in their order
};

class WindowListener {
 public:
  virtual ~WindowListener() = default;
  // From events of the hub only, never from inside Issue.
  virtual void OnWindowEvent(const WindowEvent& event) = 0;
};

// The windows of one hub. All of it happens now, in virtual time.
class WindowPort {
 public:
  virtual ~WindowPort() = default;
  // The completion, and whatever the operation leads to at its window, goes to `listener`: that of
  // the window from its reservation on. REQUIRES: listener outlives the hub, or forgets itself.
  virtual void Issue(WindowOperation operation, WindowListener* listener) = 0;
  // Who listens hears nothing any more; its windows are released.
  virtual void Forget(WindowListener* listener) = 0;
};

}  // namespace percs
