// Watching chosen packets: their source marks them, every hub they pass records what happens to
// them and what they wait for. Records change nothing in the machine and are not in the digest.
// Packets without the mark cost a test of one bit where a hub has their header at hand anyway.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"
#include "emulator/packet/packet.h"

namespace percs {

struct Packet;

constexpr std::uint32_t KindBit(PacketKind kind) { return 1u << static_cast<int>(kind); }
inline constexpr std::uint32_t kEveryKind = 2 * KindBit(kLastPacketKind) - 1;
inline constexpr std::uint32_t kHfiKinds = kEveryKind & ~KindBit(PacketKind::kService);

// Which packets to follow, of those that a source gives to its HFIs or its service port from now
// on: among the ones that match, number `first`, then every `every`-th after it, `count` in all.
// Every source counts on its own.
struct TraceSelection {
  NodeId source = kNoNode, destination = kNoNode;  // kNoNode: any
  std::optional<std::uint32_t> message;            // only packets of this message of its flow
  std::uint64_t first = 1, every = 1, count = 1;
  std::uint32_t kinds = kHfiKinds;  // bit k: packets of PacketKind k
  Time since = 0, until = kNever;   // only packets created in [since, until)
  bool content = false;             // their headers and payloads are kept, too
};
inline constexpr std::uint64_t kTracedPacketsMax = 10'000;  // per source

// What a packet waits for in a hub.
enum class Wait : std::uint8_t {
  kQueue,          // an older packet of its input buffer goes first to the same output
  kSerialisation,  // its own flits: they come in slower than the output would send them
  kArbitration,    // the output sends another packet
  kVc,             // another packet holds the VC and has no flit to send
  kCredit,         // no slot is free at the far end
  kReplay,         // it was corrupted on its link and is sent again
};
inline constexpr int kWaits = 6;
const char* WaitName(Wait wait);

enum class TraceStep : std::uint8_t {
  kCreated,   // given to an HFI of its source
  kEntered,   // its last flit is in the ISR of its source
  kArrived,   // its head reached a hub
  kBranched,  // a multicast packet, whole, begins to wait for one of its outputs
  kGranted,   // an output began to send `flits` of it from flit `first` on, after it waited
  kDelivered,
  kDropped,  // `flits` of it, under `reason`
};
inline constexpr int kTraceSteps = 7;

struct TraceEvent {
  Time time = 0;
  NodeId source = 0;  // with `sequence`: the packet
  std::uint64_t sequence = 0;
  NodeId node = 0;  // where it happened
  TraceStep step = TraceStep::kCreated;
  PortId in = 0, out = kNoPort;
  VcId in_vc = 0, out_vc = 0;
  std::uint8_t first = 0, flits = 0;
  Time until = 0;  // kGranted: its last flit has left
  DropReason reason = DropReason::kLinkDown;
  std::array<Time, kWaits> waited{};  // kGranted: since it came, or since its last flits had left
  // kCreated:
  NodeId destination = 0;
  std::uint16_t bytes = 0;
  RouteMode mode = RouteMode::kHwDirect;
  std::string content;  // PacketAsBytes, if it is kept
  bool operator==(const TraceEvent&) const = default;
};

// The records of one hub.
class PathTracer {
 public:
  explicit PathTracer(NodeId node) : node_(node) {}

  void Add(const TraceSelection& selection) { selections_.push_back({selection}); }
  // A packet that this hub is about to send: counts it, and marks and records it if it is to be
  // followed. REQUIRES: its header is complete, its way to its first output is known.
  void Begin(Packet* p, Time now);
  void Entered(const Packet& p, Time now);
  void Branched(const Packet& branch, Time now);
  void Forget(const Packet& p);  // it is no more
  // From now on it waits for `wait`.
  void Arrived(const Packet& p, Time now, Wait wait);
  void Waits(const Packet& p, Time now, Wait wait);
  // Ends the wait. If it has more to send, it waits for its own flits from `until` on.
  void Granted(const Packet& p, Time now, PortId out, int first, int flits, Time until, bool tail);
  void Delivered(const Packet& p, Time now);
  void Dropped(const Packet& p, Time now, DropReason reason, int flits);

  // Those that request `out`.
  std::vector<const Packet*> Requesting(PortId out) const;

  // In the order in which they happened. Beyond kEventsMax nothing is recorded, and contents only
  // up to kContentMax.
  const std::vector<TraceEvent>& events() const { return events_; }

 private:
  static constexpr std::size_t kEventsMax = 1u << 18;
  static constexpr std::size_t kContentMax = 64u << 20;  // bytes
  struct Choice {
    bool taken = false, content = false;
  };
  Choice Select(const PacketHeader& header);
  struct Selected {
    TraceSelection selection;
    std::uint64_t seen = 0, taken = 0;
  };
  struct Waiting {
    const Packet* packet = nullptr;
    Wait wait = Wait::kQueue;
    Time since = 0;
    std::array<Time, kWaits> waited{};
  };
  TraceEvent& Record(const Packet& p, Time now, TraceStep step);
  Waiting* Find(const Packet& p);

  const NodeId node_;
  std::vector<Selected> selections_;
  std::vector<Waiting> waiting_;
  std::vector<TraceEvent> events_;
  std::size_t content_bytes_ = 0;
  TraceEvent beyond_;  // what no longer fits
};

}  // namespace percs
