// The part of a workload that runs on one hub, and what a hub offers to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cau/cau_port.h"
#include "emulator/hfi/message_layer.h"
#include "emulator/metrics/rank_log.h"
#include "emulator/scenario/loop_workload.h"
#include "emulator/scenario/scenario.h"
#include "emulator/scenario/window_operation.h"

namespace percs {

// What a workload can do on its hub; all of it happens now, in virtual time.
class HubServices {
 public:
  virtual ~HubServices() = default;
  virtual NodeContext& context() = 0;
  // Raw packets, as many as `bytes` needs; `route` null: as the workload's traffic is routed.
  virtual void SendRaw(NodeId destination, WindowId source_window, WindowId destination_window,
                       std::uint64_t bytes, bool verified, const RouteSetting* route) = 0;
  // Says what SendRaw will be asked after `others` more: a hint, which changes nothing but how long
  // that takes. Best said of each packet when two others come before it, one, and none.
  virtual void Expect(NodeId destination, WindowId source_window, int others) = 0;
  virtual void SendMessage(const MessageRequest& request) = 0;
  // OnTimer(token) at `at` (not before now). Tokens of one instant run in their own order.
  virtual void SetTimer(Time at, std::uint64_t token) = 0;
  // Packets in the HFI's send queues, and those that raw messages still have to be cut into.
  virtual std::size_t backlog() const = 0;
  virtual CauPort* cau() { return nullptr; }         // null: a node without a CAU
  virtual WindowPort* windows() { return nullptr; }  // null: a node that is no hub
};

// When a workload sends next: not before `next` if nothing arrives, and after something has arrived
// not before `reaction` has passed.
struct SendBound {
  Time next = kNever;
  Time reaction = kNever;
};

class HubWorkload {
 public:
  virtual ~HubWorkload() = default;
  virtual void Start() {}
  virtual void OnTimer(std::uint64_t token) {}
  virtual void OnRawDelivered(const PacketHeader& header) {}
  virtual void OnMessage(const DeliveredMessage& message) {}
  // Bytes of a message that arrived, packet by packet and each once, for workloads that take them.
  virtual bool takes_payload() const { return false; }
  virtual void OnPayload(const PacketHeader& header) {}
  // Of workloads that take bytes: those of all messages that OnMessage told of are there.
  virtual void OnArrived() {}
  // True: the bytes are no pattern that the hub could check, and the workload looks at them itself.
  virtual bool checks_payload() const { return false; }
  virtual void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) {}
  virtual void OnBacklogShrunk() {}
  // Null: with any of its timers, and as soon as anything happens.
  virtual std::optional<SendBound> NextSend() const { return std::nullopt; }
  virtual void Stop() {}
  virtual std::vector<RankResult> ranks() const { return {}; }
  virtual RankLog* rank_log() { return nullptr; }  // null: it has no ranks
  virtual CollectiveResult collective() const { return {}; }
  virtual std::vector<CauTaskResult> cau_tasks() const { return {}; }
  virtual std::vector<WindowProgramResult> window_programs() const { return {}; }
  // What it waits for, for the report of a deadlock.
  virtual std::vector<std::string> Blocked() const { return {}; }
};

}  // namespace percs
