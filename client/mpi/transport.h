// Tagged messages between the ranks of an MPI program, over windows of HFIs: what PAMI is on the
// machine. All of it happens in virtual time; who drives it owns the fabric.
//
// Short messages are eager: packets of immediate send, or of the FIFO. Between each pair of ranks
// packets are numbered, acknowledged and sent again, because these formats may lose them and let
// them overtake each other. Long messages go by rendezvous: a request, an RDMA read by the receiver
// once it has a buffer, and word to the sender that it is done. Between ranks of one hub messages
// go through the node's memory, at the costs of emulator/scenario/host_parameters.h.
//
// The message layer works beside the rank, like PAMI's communication thread: a message comes in
// while its rank computes. All that happens at one rank is ordered by (time, number), and ranks
// touch each other only by packets, so the result does not depend on who asked first. What an event
// of a window makes the software do begins `reaction` after the event. No window of virtual time is
// longer than that, so where windows begin and end has no influence either, and the ranks of a
// program may be in one process or in many.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "client/mpi/parameters.h"
#include "client/ofi/channel.h"
#include "emulator/scenario/window_operation.h"
#include "emulator/sim/fabric.h"

namespace percs::mpi {

using Bytes = std::vector<std::uint8_t>;

struct RankPlace {
  NodeId hub = 0;
  WindowId window = 0;
};

struct SendCall {
  std::uint32_t to = 0;
  std::uint64_t id = 0;  // 0: its end is not reported
  std::uint64_t tag = 0, data = 0;
  Bytes bytes;
};

struct ReceiveCall {
  std::uint64_t id = 0;
  std::uint32_t from = kRankUnknown;  // kRankUnknown: any
  std::uint64_t tag = 0, ignore = 0;
  std::uint64_t room = 0;
  std::uint32_t flags = 0;  // kPeek, kClaim, kDiscard
};

struct Completion {
  Time at = 0;
  std::uint64_t id = 0;
  EndCode code = EndCode::kOk;
  bool received = false;
  std::uint32_t peer = 0;
  std::uint64_t tag = 0, data = 0, length = 0;  // of the message
  Bytes bytes;                                  // at most the room of the receive
};

class TransportUser {
 public:
  virtual ~TransportUser() = default;
  virtual void OnCompletion(std::uint32_t rank, Completion&& completion) = 0;
  // The run cannot continue, and why.
  virtual void OnFailure(const std::string& reason) = 0;
};

struct TrafficCounts {
  std::uint64_t messages = 0, bytes = 0;
  std::uint64_t eager = 0, rendezvous = 0, local = 0;  // of the messages
  std::uint64_t packets = 0, resent = 0, acknowledgements = 0, unexpected = 0;
  std::uint64_t by_size[40] = {};  // [0]: empty; [i]: up to 2^(i-1) bytes
};

// WIDE: one protocol: each method is one step of a message, or one kind of packet.
class Transport final : public WindowListener {
 public:
  // REQUIRES: places are different; fabric and user outlive this; fabric is given windows of at
  // most `reaction`, which is more than 0.
  Transport(Fabric& fabric, std::vector<RankPlace> places, JobKey job,
            const TransportParameters& parameters, Time reaction, TransportUser& user);
  ~Transport() override;

  // Reserves the window of a rank, at `at`.
  void Open(std::uint32_t rank, Time at);
  // Gives it back. REQUIRES: idle().
  void Close(std::uint32_t rank, Time at);

  // --- Calls of a rank, in the order of their times, which are not before the fabric's.
  void Send(std::uint32_t rank, Time at, SendCall call);
  void Receive(std::uint32_t rank, Time at, const ReceiveCall& call);
  // Of a receive that has not matched; others are not cancelled.
  void Cancel(std::uint32_t rank, Time at, std::uint64_t id);
  // The rank ended: its packets are still delivered, its completions are not.
  void Leave(std::uint32_t rank);

  // For other events at a rank: calls `act` at `at`, in the order of times and ranks.
  void Act(std::uint32_t rank, Time at, std::function<void(Time now)> act);
  // What it has to do next; kNever if nothing.
  Time next_time() const { return agenda_.empty() ? kNever : agenda_.top().at; }
  // Runs all actions due at `now` or before.
  void Run(Time now);
  // No packet waits to be sent or acknowledged.
  bool idle() const { return unacknowledged_ == 0 && agenda_.empty(); }

  const TrafficCounts& counts(std::uint32_t rank) const;
  // Receives that wait for a message, and messages that no receive has matched.
  std::size_t posted(std::uint32_t rank) const;
  std::size_t unexpected(std::uint32_t rank) const;

  void OnWindowEvent(const WindowEvent& event) override;

 private:
  enum class PacketType : std::uint8_t { kEager, kMore, kRequest, kFinish, kAck };
  struct Header;
  struct Action {
    Time at = 0;
    std::uint32_t rank = 0;
    std::uint64_t number = 0;  // of the rank
    std::function<void(Time now)> act;
    bool operator>(const Action& other) const {
      if (at != other.at) return at > other.at;
      return rank != other.rank ? rank > other.rank : number > other.number;
    }
  };
  struct OutPacket {
    std::uint32_t sequence = 0;
    Time ready_at = 0;  // its bytes are in the send FIFO
    Bytes bytes;        // with header
  };
  // What comes in, until it is whole and matched.
  struct Message {
    std::uint32_t from = 0;
    std::uint64_t tag = 0, data = 0, length = 0;
    Bytes bytes;
    bool whole = false;
    bool request = false;        // of a rendezvous: bytes are to be read from
    bool local = false;          // from the same hub: a long one waits for its receive
    Address address = 0;         // ... of the sender
    std::uint32_t transfer = 0;  // the sender's number of it
    Time visible_at = 0;         // the rank's software knows of it
    Time done_at = 0;            // ... and has all of it
    bool matched = false;
    ReceiveCall receive;  // that it matched
    Time matched_at = 0;
  };
  using MessageRef = std::shared_ptr<Message>;
  // Set repeatedly, mostly before it is due: one action of the agenda serves it.
  struct Timer {
    Time at = kNever;     // when it is due
    Time armed = kNever;  // when the agenda looks next
  };
  struct Flow {                                // with one other rank, both ways
    std::uint32_t next = 0, acknowledged = 0;  // sequence numbers; what is below has been received
    std::deque<OutPacket> waiting, sent;
    Timer resend;
    int tries = 0;
    bool listed = false;                   // in Rank::ready
    std::uint32_t expected = 0, told = 0;  // of the other's packets; what it knows that we have
    std::map<std::uint32_t, Bytes> early;
    Timer acknowledge;
    MessageRef partial;
  };
  struct Region {
    Address address = 0;
    std::uint64_t bytes = 0;
    bool busy = false, registered = false;
  };
  struct Transfer {  // a long message that the other side reads
    std::uint64_t id = 0;
    std::size_t region = 0;
  };
  struct Read {
    MessageRef message;
    std::size_t region = 0;
    int tries = 0;
  };
  struct Rank {
    RankPlace place;
    bool gone = false;
    std::uint64_t actions = 0;
    std::vector<std::unique_ptr<Flow>> flows;  // by the other rank
    std::deque<std::uint32_t> ready;           // ranks for which packets wait
    std::size_t sending = 0;                   // packets that the window has,
    std::size_t sending_max = 0;               // ... at most
    Time pump_at = kNever;
    std::uint32_t used_slots = 0;  // of the receive FIFO, not given back
    Time receive_busy = 0;         // its software can take in the next packet
    std::list<ReceiveCall> posted;
    std::list<MessageRef> unexpected;
    absl::flat_hash_map<std::uint64_t, MessageRef> claimed;
    std::vector<Region> regions;
    Address next_address = 0;
    std::uint32_t next_transfer = 0;
    absl::flat_hash_map<std::uint32_t, Transfer> transfers;
    std::uint64_t next_read = 0;
    std::map<std::uint64_t, Read> reads;
    std::deque<std::uint64_t> waiting_reads;
    std::size_t reading = 0;
    TrafficCounts counts;
  };

  // --- transport.cc
  void Issue(std::uint32_t rank, Time now, WindowOperation operation);
  WindowOperation Operation(const Rank& rank, WindowOp op) const;
  Flow& FlowOf(std::uint32_t rank, std::uint32_t other);
  bool SameHub(std::uint32_t a, std::uint32_t b) const {
    return ranks_[a].place.hub == ranks_[b].place.hub;
  }
  Time CopyTime(std::uint64_t bytes) const { return parameters_.host.WriteTime(bytes); }
  void Fail(const std::string& reason);
  std::string Name(std::uint32_t rank) const;
  void CheckCompletion(std::uint32_t rank, const WindowEvent& event);

  // --- flows.cc
  void Enqueue(std::uint32_t rank, std::uint32_t to, Time ready_at, const Header& header,
               const std::uint8_t* bytes, std::uint64_t count);
  void PumpAt(std::uint32_t rank, Time at);
  void Pump(std::uint32_t rank, Time now);
  // False: nothing of this flow can leave now.
  bool SendNext(std::uint32_t rank, std::uint32_t to, Time now, Time* ready_at);
  void SendPacket(std::uint32_t rank, std::uint32_t to, Time now, OutPacket& packet);
  void SetAt(std::uint32_t rank, std::uint32_t other, Timer Flow::*timer, Time at);
  void OnDue(std::uint32_t rank, std::uint32_t other, Timer Flow::*timer, Time armed, Time now);
  void ResendLater(std::uint32_t rank, std::uint32_t to, Time now);
  void Resend(std::uint32_t rank, std::uint32_t to, Time now);
  void AcknowledgeLater(std::uint32_t rank, std::uint32_t from, Time now);
  void SendAcknowledgement(std::uint32_t rank, std::uint32_t to, Time now);
  void OnAcknowledged(std::uint32_t rank, std::uint32_t from, std::uint32_t ack, Time now);
  void OnPacket(std::uint32_t rank, const WindowEvent& event);
  void TakeInOrder(std::uint32_t rank, std::uint32_t from, const Bytes& packet, Time now);
  void GiveSlotBack(std::uint32_t rank, Time now);

  // --- matching.cc
  void SendEager(std::uint32_t rank, Time at, const SendCall& call);
  void SendLong(std::uint32_t rank, Time at, SendCall call);
  void SendLocal(std::uint32_t rank, Time at, SendCall call);
  void EndSend(std::uint32_t rank, Time at, std::uint64_t id);
  void Arrive(std::uint32_t rank, const MessageRef& message, Time now);
  void Match(std::uint32_t rank, const MessageRef& message, const ReceiveCall& call, Time now);
  void Peek(std::uint32_t rank, const ReceiveCall& call, Time now);
  void Claim(std::uint32_t rank, const ReceiveCall& call, Time now);
  void CompleteIfWhole(std::uint32_t rank, const MessageRef& message);
  void Complete(std::uint32_t rank, const MessageRef& message, Time at);
  void Drop(std::uint32_t rank, const MessageRef& message, Time now);
  void BeginRead(std::uint32_t rank, const MessageRef& message, Time now);
  void NextRead(std::uint32_t rank, Time now);
  void OnReadDone(std::uint32_t rank, const WindowEvent& event);
  void OnReadBytes(std::uint32_t rank, const WindowEvent& event);
  void Finish(std::uint32_t rank, const Message& message, Time now);
  void OnFinished(std::uint32_t rank, std::uint32_t transfer, Time now);
  // A region of at least this size, and when the HFI knows it.
  std::size_t TakeRegion(std::uint32_t rank, std::uint64_t bytes, Time now, Time* known_at);
  void GiveRegion(std::uint32_t rank, std::size_t region, Time now);

  Fabric& fabric_;
  const TransportParameters parameters_;
  const JobKey job_;
  const Time reaction_;
  TransportUser& user_;
  std::vector<Rank> ranks_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> rank_at_;  // by PeerOf its place
  std::priority_queue<Action, std::vector<Action>, std::greater<>> agenda_;
  std::uint64_t unacknowledged_ = 0;  // packets that wait or were sent, of all ranks
  bool failed_ = false;
};

}  // namespace percs::mpi
