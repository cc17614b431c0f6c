// The Collective Acceleration Unit of a hub (paper 000 section IV-D; paper 003 section 3.6): a
// content-addressable memory of 64 tree indexes, an ALU, and reliable tree links to other CAUs.
//
// It sits behind the HFI: packets of a tree leave and come in through the HFI port of the tree's
// window, as packets like any other, and share W with them (docs/cau.md). Inputs are served one
// after the other, outputs too, each for `cau_port_time`; between the last input of an operation
// and its first output lies `cau_pass_through`.
//
// Not modelled: processor-side cost of a call, which is software's (paper 003 measures it with
// PAMI).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "emulator/cau/cau_packet.h"
#include "emulator/cau/tree_entry.h"
#include "emulator/hfi/hfi.h"
#include "emulator/metrics/in_flight.h"

namespace percs {

// WIDE: one state machine: each method is one step of a packet through a tree, in the order of
// docs/semantics.md.
class Cau final : public CauPort {
 public:
  Cau(NodeContext& context, Hfi& hfi) : context_(context), hfi_(hfi) {}
  // Where alerts go; the CAU fills in what concerns the tree.
  void SetAlert(
      std::function<void(CauTreeId, std::uint32_t generation, const TreeProblem&)> alert) {
    alert_ = std::move(alert);
  }

  // --- Network management.
  // Takes an index for every vertex of this hub, and gives back those of an earlier generation,
  // whose operations fail of `why`. RESOURCE_EXHAUSTED, and nothing taken, if there are not enough.
  absl::Status SetUp(std::shared_ptr<const TreePlan> plan, const TreeProblem& why);
  void Start(CauTreeId tree, std::uint32_t generation);
  void TakeDown(CauTreeId tree, std::uint32_t generation, const TreeProblem& why);
  int free_indexes() const { return kCauTrees - used_; }
  // Of the vertices that have something under way, in the order of trees and vertices.
  std::vector<TreeInFlight> InFlight() const;
  // A CAU that does not work takes no packets and sends none; its neighbours in a tree get no
  // answer.
  void SetDown(bool down) { down_ = down; }

  // --- CauPort
  absl::Status Attach(CauTreeId tree, CauListener* listener) override;
  void Detach(CauTreeId tree) override;
  std::vector<NodeId> Participants(CauTreeId tree) const override;
  absl::Status Reduce(CauTreeId tree, std::uint32_t sequence, NodeId root, ReduceOp op,
                      OperandType type, const CauPayload& payload) override;
  absl::Status ExpectReduce(CauTreeId tree, std::uint32_t sequence, ReduceOp op, OperandType type,
                            std::uint8_t size) override;
  absl::Status Multicast(CauTreeId tree, std::uint32_t sequence,
                         const CauPayload& payload) override;

  // --- Events, at context.now.
  // A packet reached the CAU. Returns why it is dropped, if it is.
  std::optional<DropReason> OnPacket(const PacketHeader& header);
  void OnEnteredIsr(const PacketHeader& header);
  void OnEvent(const Event& event);

 private:
  enum EventKind : int { kInput, kOutput, kTimer, kWatch, kDeclared };
  // A tree this hub has a part in.
  struct Tree {
    std::shared_ptr<const TreePlan> plan;
    std::vector<NodeId> participants;  // ascending
    CauListener* listener = nullptr;
    int participant = -1;         // index of the entry with the participant
    std::uint32_t given[2] = {};  // one above the sequence last given, by CauOperation
    bool failed = false;          // and network management has not said anything yet
  };
  struct Place {
    int index = 0;
    std::uint32_t serial = 0;  // of what the index held
    int link = 0;
    CauOperation operation = CauOperation::kReduce;
  };
  struct Input {
    Place place;
    bool local = false, declaration = false;
    std::uint32_t link_sequence = 0;  // of a packet
    CauItem item;                     // of the participant
  };
  struct Output {
    Place place;
    CauTreeId tree = 0;
    std::uint32_t generation = 0;
    bool local = false;
    std::uint32_t link_sequence = 0;
    CauItem item;  // for the participant
  };

  static constexpr std::uint32_t Key(CauTreeId tree, TreeVertexId vertex) {
    return static_cast<std::uint32_t>(tree) << 16 | vertex;
  }
  TreeEntry* At(const Place& place) {
    const auto i = static_cast<std::size_t>(place.index);
    return serials_[i] == place.serial && entries_[i] && entries_[i]->active ? entries_[i].get()
                                                                             : nullptr;
  }
  Place PlaceOf(int index, int link, CauOperation operation) const {
    return {index, serials_[static_cast<std::size_t>(index)], link, operation};
  }
  TreeChannel& Channel(TreeEntry& entry, const Place& place) {
    return entry.links[static_cast<std::size_t>(place.link)]
        .channels[static_cast<int>(place.operation)];
  }
  void Push(EventKind kind, Time at, std::uint64_t detail = 0, std::uint64_t data = 0) {
    context_.queue.Push(at, EventKey(EventClass::kHfi, kCau, kind, detail), data);
  }

  // The participant's side (cau.cc).
  absl::StatusOr<Tree*> Usable(CauTreeId tree);
  absl::Status CheckSequence(Tree& tree, CauOperation operation, std::uint32_t sequence);
  void Give(const Tree& tree, CauOperation operation, const CauItem& item);
  void Drop(CauTreeId id, Tree& tree);
  void LeaveOut(CauTreeId id, CauListener* listener, const absl::Status& why);
  void TellFailures(CauTreeId id, Tree& tree, const TreeProblem& problem);
  void Fail(CauTreeId tree, const TreeProblem& problem);

  // The ALU (cau.cc).
  void QueueInput(const Input& input);
  void OnInput();
  void OnOutput();
  void OnDeclared();
  void Try(int index);
  void Emit(int index, TreeEntry& entry, CauOperation operation);

  // Tree links (tree_transport.cc).
  struct Arrived {
    TreeEntry* entry = nullptr;
    Place place;
  };
  Arrived Find(CauTreeId tree, std::uint32_t generation, TreeVertexId here, TreeVertexId there);
  std::optional<DropReason> OnData(const CauHeader& header, const PacketHeader& packet,
                                   const Arrived& to);
  void OnReport(const CauHeader& header, const Arrived& to);
  void OnProbe(const CauHeader& header, const Arrived& to);
  void SendData(TreeEntry& entry, const Place& place, std::uint32_t link_sequence);
  void SendReport(TreeEntry& entry, const Place& place, CauHeader::Type type);
  void SendProbe(TreeEntry& entry, int link, const CauItem& said);
  bool SendPacket(const TreeEntry& entry, int link, const CauHeader& header,
                  const CauPayload* payload);
  void GrantAgain(TreeEntry& entry, const Place& place);
  void Arm(const Place& place, TreeChannel& channel, Time deadline);
  void OnTimer(const Place& place);
  bool Resend(TreeEntry& entry, const Place& place, TreeChannel& channel);
  void Watch(int index, TreeEntry& entry);
  void OnWatch(int index, std::uint32_t serial);
  Time Timeout(int tries) const { return context_.parameters->retransmit_timeout << tries; }

  NodeContext& context_;
  Hfi& hfi_;
  std::function<void(CauTreeId, std::uint32_t, const TreeProblem&)> alert_;
  std::array<std::unique_ptr<TreeEntry>, kCauTrees> entries_;
  std::array<std::uint32_t, kCauTrees> serials_{};
  int used_ = 0;
  bool down_ = false;
  absl::flat_hash_map<std::uint32_t, int> indexes_;  // the CAM: (tree, vertex) to index
  absl::flat_hash_map<CauTreeId, Tree> trees_;
  // Participants in trees that this hub has none in now, but may have again.
  absl::flat_hash_map<CauTreeId, CauListener*> left_out_;
  Ring<Input> inputs_, declared_;  // being served, in the order in which they will have been
  Ring<Output> outputs_;
  Time in_free_ = 0, out_free_ = 0;
  std::uint64_t arrivals_ = 0;
  Firing firing_;
};

}  // namespace percs
