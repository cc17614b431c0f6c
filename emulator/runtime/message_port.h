// Active messages between tasks (paper 003 section 3.3): through shared memory on a node, over the
// reliable message layer of the HFIs between nodes.
//
// Short messages are eager: the sender copies them out, the receiver copies them in. Between nodes
// that is the FIFO transport: segment by segment, the sender's thread copies into the send FIFO of
// its window while the HFI streams the segment before, and the receiver's thread copies out of the
// receive FIFO what is there. Long ones go by rendezvous: a request, the receiver's answer once it
// has a buffer, and then one copy, by the receiver's thread on a node and by the HFI (RDMA, no
// thread) between nodes; both buffers are registered with the kernel first. Which messages are long
// depends on the kind of channel: the caller says. A task's stream is slower than any link, so
// messages enter the network in segments at its rate.
//
// With `local_fragment`, long messages on a node are copied twice, as Open MPI's `sm` component
// does (ompi/mca/btl/sm, ompi/mca/pml/ob1 of 2008): the request carries as much as a short message
// does; after the answer the rest follows in fragments of shared memory, a few at a time. The
// receiver gives each back, also that of a short message, and the sender's thread reads that it
// did.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/base/pool.h"
#include "emulator/base/ring.h"
#include "emulator/hfi/message_layer.h"
#include "emulator/runtime/rank.h"

namespace percs {

using Content = std::shared_ptr<const std::vector<std::uint8_t>>;  // null: lengths only

// What tells messages between the same two tasks apart.
struct Envelope {
  std::uint8_t channel = 0;    // below kChannels
  std::uint16_t sequence = 0;  // of the operation, below kSequences; wraps around
  std::uint16_t phase = 0;     // below kPhases
  bool operator==(const Envelope&) const = default;
};
inline constexpr int kChannels = 64, kSequences = 2048, kPhases = 8192;

struct Incoming {
  std::uint32_t source = 0;  // task
  Envelope envelope;
  std::uint64_t bytes = 0;
  Content content;
  bool request = false;  // the rest comes once MessagePort::Accept is called
};

// Who sends and receives on a channel; its functions run on the task's thread.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual void OnMessage(const Incoming& message) = 0;
  virtual void OnSent(const Envelope& envelope) = 0;  // its buffer can be used again
};

class MessagePort {
 public:
  explicit MessagePort(NodeRuntime& node) : node_(node) {}

  // More than `eager_limit` bytes go by rendezvous.
  void Send(Rank& from, std::uint32_t to, const Envelope& envelope, std::uint64_t bytes,
            std::uint64_t eager_limit, Content content, Endpoint* sender);
  // Lets the data of a request come.
  void Accept(Rank& at, const Incoming& request);

  // --- For its node.
  void OnMessage(const DeliveredMessage& message, Content content);
  void OnStreamTimer(Rank& rank);

  std::size_t unanswered() const { return asked_.size(); }

 private:
  enum class Kind : std::uint8_t { kData, kRequest, kAnswer, kSegment };
  struct Transfer {
    Rank* from = nullptr;
    std::uint32_t to = 0, source = 0;
    Envelope envelope;
    std::uint64_t bytes = 0, streamed = 0;
    std::uint64_t copied = 0;  // into the send FIFO, or into fragments
    Content content = {};
    Endpoint* sender = nullptr;
    bool rendezvous = false;
    bool stalled = false;    // the send FIFO, or shared memory, has all that it takes of it
    std::uint64_t read = 0;  // out of fragments; `streamed` counts those that came back
  };
  // Of one task, into its window.
  struct Outflow {
    Ring<Transfer*> transfers;
    std::uint64_t segment = 0;  // on its way; 0: none
  };
  // A message of which some segments are here, or that was accepted.
  struct Inbound {
    std::uint32_t source = 0, local = 0;
    Envelope envelope;
    std::uint64_t bytes = 0;
    std::shared_ptr<std::vector<std::uint8_t>> content;
    bool rendezvous = false;
  };
  static std::uint32_t Tag(Kind kind, const Envelope& envelope);
  static Envelope EnvelopeOf(std::uint32_t tag);

  void OnSendDone(std::uint64_t transfer);
  void Ask(std::uint64_t transfer);
  void Received(std::uint64_t transfer);
  void Requested(std::uint64_t transfer);
  void Registered(std::uint64_t transfer);
  void Pulled(std::uint64_t transfer);
  void Released(std::uint64_t transfer);
  void Answered(std::uint64_t transfer);
  void SendAnswer(std::uint64_t transfer);

  bool InFragments(const Transfer& transfer) const;
  void Granted(std::uint64_t transfer);
  void NextFragment(Transfer& transfer);
  void FragmentFilled(std::uint64_t transfer);
  void FragmentRead(std::uint64_t transfer);
  void FragmentReturned(std::uint64_t transfer);
  void ReturnTo(Rank& from, const Rank& at);
  std::uint64_t FragmentAfter(const Transfer& transfer, std::uint64_t done) const;

  void CopyOut(Transfer& transfer);
  void CopiedOut(std::uint64_t transfer);
  void Spent(std::uint64_t) {}  // its thread has taken the time
  void Stream(Transfer& transfer);
  void NextSegment(Rank& rank);
  void ToNetwork(Rank& from, std::uint32_t to, Kind kind, const Envelope& envelope,
                 std::uint64_t bytes, Content content);
  Transfer* Take() { return pool_.Take(); }
  void Give(Transfer* transfer) {
    *transfer = Transfer();
    pool_.Give(transfer);
  }
  Endpoint& EndpointOf(Rank& rank, const Envelope& envelope);
  Inbound* FindInbound(std::uint32_t source, std::uint32_t local, const Envelope& envelope);
  Time CopyTime(std::uint64_t bytes) const;
  // How long a thread waits for the registration of a buffer that it asks for now.
  Time Register(bool local);

  NodeRuntime& node_;
  Pool<Transfer> pool_;
  std::vector<Transfer*> asked_;  // rendezvous whose answer has not come
  std::vector<Inbound> inbound_;
  std::vector<Outflow> streams_;  // by local task
  Time registered_ = 0;           // the kernel is free for the next registration
};

}  // namespace percs
