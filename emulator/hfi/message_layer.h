// The reliable message layer above the HFI: messages become packets, packets are acknowledged
// selectively and sent again, messages are delivered once and in order (docs/semantics.md rule 20).
// Hardware gives an unreliable packet transfer only; reliability is software's (paper 000 section
// IV-B).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "emulator/base/ring.h"
#include "emulator/hfi/hfi.h"

namespace percs {

struct MessageRequest {
  NodeId destination = 0;
  WindowId source_window = 0, destination_window = 0;
  std::uint64_t bytes = 0;  // 0 is legal: one packet without payload
  std::uint32_t tag = 0;
  bool verified = false;  // real payload bytes, checked on arrival
  // Bytes out of the sender's memory; null: none, or those of the pattern if `verified`.
  std::shared_ptr<const std::vector<std::uint8_t>> content = nullptr;
};

struct DeliveredMessage {
  NodeId source = 0;
  WindowId source_window = 0, destination_window = 0;
  std::uint64_t bytes = 0;
  std::uint32_t tag = 0;
  std::uint32_t number = 0;  // of the message in its flow
};

class MessageListener {
 public:
  virtual ~MessageListener() = default;
  virtual void OnMessage(const DeliveredMessage& message) = 0;
  // Acknowledged as a whole (delivered exactly once), or given up (delivered at most once).
  virtual void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) = 0;
  // Of a packet given to SendOperation: acknowledged, or given up. `refused`: its last try did not
  // leave the hub.
  virtual void OnOperationDone(WindowId source_window, std::uint64_t word, std::uint32_t tag,
                               bool delivered, bool refused) {}
};

// Bit 0 of `message_created` of a packet of an operation: its receiver acknowledges at once, as at
// a message's end.
inline constexpr Time kAcknowledgeAtOnce = 1;

class MessageLayer {
 public:
  MessageLayer(NodeContext& context, Hfi& hfi, MessageListener& listener)
      : context_(context), hfi_(hfi), listener_(listener) {}

  void Send(const MessageRequest& request);
  // One packet of an operation between windows: exactly once, or failed, and handed over as it
  // comes, not in order. `header` has destination, windows, bytes and payload; tag, message_bytes,
  // offset and message_created (but for kAcknowledgeAtOnce) are the operation's own and travel as
  // they are. The payload must not change any more.
  void SendOperation(const PacketHeader& header);

  void OnEnteredIsr(const PacketHeader& header);
  // A data packet reached its window. Returns why it is dropped, if it is.
  std::optional<DropReason> OnData(const PacketHeader& header);
  void OnAck(const PacketHeader& header);
  void OnTimer(NodeId destination);
  // Another incarnation of this hub is there, which knows of no flow: messages that are not
  // acknowledged yet have failed, and what comes next, either way, begins new flows.
  void PeerAnew(NodeId peer);

  // Calls f(destination, time) for packets that are sent again then if nothing arrives.
  template <typename F>
  void ForEachRetransmission(F&& f) const {
    for (const auto& [destination, flow] : senders_) {
      for (std::size_t i = 0; i < flow->in_flight.size(); ++i) {
        const InFlight& packet = flow->in_flight[i];
        if (!packet.acknowledged) f(destination, packet.deadline);
      }
    }
  }

  const std::vector<FailedMessage>& failed() const { return failed_; }

 private:
  struct Message {
    std::uint32_t number = 0, tag = 0;
    std::uint64_t bytes = 0;
    WindowId source_window = 0, destination_window = 0;
    std::uint32_t packets = 0, sent = 0, acknowledged = 0;
    Time created = 0;
    bool verified = false, failed = false;
    std::shared_ptr<const std::vector<std::uint8_t>> content;
    // Of an operation: one packet. `bytes` and `created` are its message_bytes and message_created.
    bool operation = false, refused = false;
    std::uint16_t packet_bytes = 0;
    std::uint64_t offset = 0;
    PayloadRef payload;

    bool finished() const { return failed || acknowledged == packets; }
  };
  struct InFlight {
    std::uint32_t message = 0;
    std::uint32_t packet = 0;  // in its message
    Time deadline = kNever;    // kNever while it waits in the HFI, or is held
    std::uint8_t tries = 0;
    bool acknowledged = false;
    // The receiver has it, but waits for one before it that was given up, which it hears by the
    // next flow_base.
    bool held = false;
    bool refused = false;      // the last try did not leave the HFI: no route, or ...
    bool window_down = false;  // ... its own window was down then
  };
  // What is left of a flow to a destination of which nothing is unacknowledged.
  struct SenderRest {
    Time timer_at = kNever;
    std::uint32_t next_message = 0;
    std::uint32_t base = 0;  // sequence of in_flight.front()
  };
  struct SenderFlow : SenderRest {
    Ring<Message> messages;      // unfinished ones, oldest first
    Ring<InFlight> in_flight;    // sequence base + i
    std::size_t sending = 0;     // index in messages of the first not entirely sent
    std::uint32_t given_up = 0;  // sequence after the last packet that was given up
    Time since = 0;  // packets created before are of a flow that there was to another incarnation

    // A flow that ever gave something up, or whose destination rejoined, is kept.
    bool at_rest() const {
      return messages.empty() && in_flight.empty() && given_up == 0 && since == 0;
    }
  };
  struct Received {
    DeliveredMessage message;
    Time created = 0;
    bool first = false, last = false, operation = false;
  };
  struct ReceiverFlow {
    std::uint32_t base = 0;            // lowest sequence not received
    std::uint32_t since_ack : 31 = 0;  // packets
    std::uint32_t broken : 1 = 0;      // a packet of the current message was given up
  };
  // What came while one before it was missing.
  struct Ahead {
    std::uint64_t bitmap = 0;  // bit i: base + i was received
    Received window[64];       // by sequence mod 64
  };
  static std::uint64_t BitmapOf(const Ahead* ahead) { return ahead ? ahead->bitmap : 0; }

  void Submit(NodeId destination, Message message);
  SenderFlow& Wake(NodeId destination);   // the flow, out of its rest if need be
  SenderFlow* Awake(NodeId destination);  // null: nothing is unacknowledged
  void RestIfDone(NodeId destination);    // lets a flow rest of which nothing is
  void Pump(NodeId destination, SenderFlow& flow);
  void FillHeader(const Message& message, const InFlight& packet, PacketHeader* header) const;
  void SendPacket(NodeId destination, SenderFlow& flow, std::uint32_t sequence);
  void Arm(NodeId destination, SenderFlow& flow, Time deadline);
  void Acknowledge(SenderFlow& flow, InFlight& packet);
  void Hold(SenderFlow& flow, InFlight& packet);
  void AskForHeld(NodeId destination, SenderFlow& flow);
  void Retire(NodeId destination, SenderFlow& flow);
  void Done(NodeId destination, const Message& message);  // notifies the sender
  void Fail(NodeId destination, SenderFlow& flow, std::uint32_t number, DropReason reason);
  static DropReason WhyGivenUp(const InFlight& packet);
  Message* Find(SenderFlow& flow, std::uint32_t number);
  static Received ReceivedFrom(const PacketHeader& header);
  // The next two move base over one packet; true if that completed a message. AdvanceOver: one that
  // came before, or was given up.
  bool Advance(ReceiverFlow& flow, const Received& received);
  bool AdvanceOver(ReceiverFlow& flow, Ahead* ahead);
  void SendAck(const PacketHeader& data, ReceiverFlow& flow, std::uint64_t bitmap);

  NodeContext& context_;
  Hfi& hfi_;
  MessageListener& listener_;
  // By the other end. State of a pair of hubs exists only while something between them is not
  // acknowledged, or waits for one that is missing; afterwards sequence numbers are left.
  absl::flat_hash_map<NodeId, std::unique_ptr<SenderFlow>> senders_;
  absl::flat_hash_map<NodeId, SenderRest> senders_at_rest_;
  absl::flat_hash_map<NodeId, ReceiverFlow> receivers_;
  absl::flat_hash_map<NodeId, std::unique_ptr<Ahead>> ahead_;
  std::unique_ptr<SenderFlow> spare_;  // the last one that went to rest
  int replies_ = 0;                    // acknowledgements that have not entered the ISR yet
  std::vector<FailedMessage> failed_;
};

}  // namespace percs
