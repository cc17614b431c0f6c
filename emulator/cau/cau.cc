#include "emulator/cau/cau.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "emulator/cau/cau_reduction.h"
#include "fmt/format.h"

namespace percs {
namespace {

constexpr const char* kWithoutUs = "; it continues without this hub";

}  // namespace

// --- Network management --------------------------------------------------------------------------

absl::Status Cau::SetUp(std::shared_ptr<const TreePlan> plan, const TreeProblem& why) {
  const CauTreeId id = plan->id;
  std::vector<TreeVertexId> here;
  bool takes_part = false;
  for (std::size_t v = 0; v < plan->vertices.size(); ++v) {
    if (plan->vertices[v].node != context_.node) continue;
    here.push_back(static_cast<TreeVertexId>(v));
    takes_part |= plan->vertices[v].participant;
  }
  if (const auto old = trees_.find(id); old != trees_.end()) {
    const absl::Status reason = ToStatus(why, id, *context_.topology);
    TellFailures(id, old->second, why);
    CauListener* listener = old->second.listener;
    Drop(id, old->second);
    trees_.erase(old);
    LeaveOut(
        id, listener,
        takes_part
            ? absl::UnavailableError(absl::StrCat(reason.message(), "; it will be set up again"))
            : absl::FailedPreconditionError(absl::StrCat(reason.message(), kWithoutUs)));
  }
  const auto left_out = left_out_.find(id);
  if (static_cast<int>(here.size()) > free_indexes()) {
    const absl::Status full =
        ToStatus({TreeProblem::Code::kFull, CauOperation::kReduce, 0, context_.node}, id,
                 *context_.topology);
    if (left_out != left_out_.end())
      LeaveOut(id, left_out->second, absl::FailedPreconditionError(full.message()));
    return full;
  }
  CauListener* listener = nullptr;
  if (takes_part && left_out != left_out_.end()) {
    listener = left_out->second;
    left_out_.erase(left_out);
  }
  Tree& tree = trees_[id];
  tree.plan = std::move(plan);
  tree.listener = listener;
  tree.participants = tree.plan->Participants();
  for (const TreeVertexId v : here) {
    const auto free = std::find(entries_.begin(), entries_.end(), nullptr);
    *free = std::make_unique<TreeEntry>(*tree.plan, v, context_.parameters->cau_queue_packets);
    const int index = static_cast<int>(free - entries_.begin());
    ++serials_[static_cast<std::size_t>(index)];
    indexes_[Key(id, v)] = index;
    if ((*free)->has_participant()) tree.participant = index;
    ++used_;
  }
  return absl::OkStatus();
}

void Cau::Start(CauTreeId id, std::uint32_t generation) {
  const auto it = trees_.find(id);
  if (it == trees_.end() || it->second.plan->generation != generation) return;
  for (auto& entry : entries_) {
    if (entry && entry->tree == id) entry->active = true;
  }
  const Tree& tree = it->second;
  if (tree.listener && tree.participant >= 0)
    tree.listener->OnCauTreeUp(id, std::vector<NodeId>(tree.participants));
}

void Cau::TakeDown(CauTreeId id, std::uint32_t generation, const TreeProblem& why) {
  const auto it = trees_.find(id);
  if (it == trees_.end() || it->second.plan->generation != generation)
    return;  // the next one is here already
  TellFailures(id, it->second, why);
  CauListener* listener = it->second.listener;
  Drop(id, it->second);
  trees_.erase(it);
  const bool over =
      why.code == TreeProblem::Code::kDeleted || why.code == TreeProblem::Code::kNoTree;
  LeaveOut(id, listener,
           absl::FailedPreconditionError(absl::StrCat(
               ToStatus(why, id, *context_.topology).message(), over ? "" : kWithoutUs)));
}

void Cau::LeaveOut(CauTreeId id, CauListener* listener, const absl::Status& why) {
  if (!listener) return;
  left_out_[id] = listener;
  listener->OnCauTreeDown(id, why);
}

// Frees the indexes of a tree and drops its packets in flight.
void Cau::Drop(CauTreeId id, Tree& tree) {
  for (auto& entry : entries_) {
    if (!entry || entry->tree != id) continue;
    for (TreeLink& link : entry->links) {
      for (TreeChannel& channel : link.channels)
        context_.work->unfinished -= channel.sender.Unacknowledged();
    }
    indexes_.erase(Key(id, entry->vertex));
    ++serials_[static_cast<std::size_t>(&entry - entries_.data())];
    entry = nullptr;
    --used_;
  }
  tree.participant = -1;
}

// Stops a tree at this hub; the rest is for network management.
void Cau::Fail(CauTreeId id, const TreeProblem& problem) {
  Tree& tree = trees_.find(id)->second;
  if (tree.failed) return;
  ++context_.stats.Cau(CauCounter::kTreesFailed);
  context_.last_event = context_.now;
  TellFailures(id, tree, problem);
  alert_(id, tree.plan->generation, problem);
}

void Cau::TellFailures(CauTreeId id, Tree& tree, const TreeProblem& problem) {
  if (std::exchange(tree.failed, true)) return;
  for (auto& entry : entries_) {
    if (entry && entry->tree == id) entry->active = false;
  }
  if (!tree.listener || tree.participant < 0) return;
  const TreeEntry& entry = *entries_[static_cast<std::size_t>(tree.participant)];
  std::vector<std::uint32_t> open[2] = {{entry.next[0]}, {entry.next[1]}};
  const auto add = [&open](int kind, std::uint32_t sequence) { open[kind].push_back(sequence); };
  for (int kind = 0; kind < 2; ++kind) {
    const Ring<CauItem>& given = entry.links.front().given[kind];
    for (std::size_t i = 0; i < given.size(); ++i) add(kind, given[i].sequence);
  }
  for (std::size_t i = 0; i < entry.expected.size(); ++i) add(0, entry.expected[i].sequence);
  for (Ring<Input>* queue : {&inputs_, &declared_}) {
    for (std::size_t i = 0; i < queue->size(); ++i) {
      const Input& input = (*queue)[i];
      if (input.local && input.place.index == tree.participant) {
        add(static_cast<int>(input.place.operation), input.item.sequence);
      }
    }
  }
  const absl::Status why = ToStatus(problem, id, *context_.topology);
  for (int kind = 0; kind < 2; ++kind) {
    std::sort(open[kind].begin(), open[kind].end());
    open[kind].erase(std::unique(open[kind].begin(), open[kind].end()), open[kind].end());
    for (const std::uint32_t sequence : open[kind]) {
      ++context_.stats.Cau(CauCounter::kOperationsFailed);
      tree.listener->OnCauFailed(id, static_cast<CauOperation>(kind), sequence, why);
    }
  }
}

// --- CauPort -------------------------------------------------------------------------------------

absl::Status Cau::Attach(CauTreeId id, CauListener* listener) {
  const auto it = trees_.find(id);
  if (it == trees_.end() || it->second.participant < 0) {
    return absl::NotFoundError(fmt::format("{1} has no participant in tree {0}", id,
                                           context_.topology->NodeName(context_.node)));
  }
  if (it->second.listener) {
    return absl::AlreadyExistsError(fmt::format("tree {} already has its participant on {}", id,
                                                context_.topology->NodeName(context_.node)));
  }
  it->second.listener = listener;
  return absl::OkStatus();
}

void Cau::Detach(CauTreeId id) {
  left_out_.erase(id);
  if (const auto it = trees_.find(id); it != trees_.end()) it->second.listener = nullptr;
}

std::vector<NodeId> Cau::Participants(CauTreeId id) const {
  const auto it = trees_.find(id);
  return it == trees_.end() ? std::vector<NodeId>() : it->second.participants;
}

absl::StatusOr<Cau::Tree*> Cau::Usable(CauTreeId id) {
  const auto it = trees_.find(id);
  if (it == trees_.end() || !it->second.listener || it->second.participant < 0) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is not attached to tree {}", context_.topology->NodeName(context_.node), id));
  }
  if (!entries_[static_cast<std::size_t>(it->second.participant)]->active) {
    return absl::FailedPreconditionError(
        fmt::format("tree {} {}; wait until it is set up", id,
                    it->second.failed ? "has failed" : "is not ready"));
  }
  return &it->second;
}

absl::Status Cau::CheckSequence(Tree& tree, CauOperation operation, std::uint32_t sequence) {
  const int kind = static_cast<int>(operation);
  const TreeEntry& entry = *entries_[static_cast<std::size_t>(tree.participant)];
  const std::uint32_t lowest = std::max(tree.given[kind], entry.next[kind]);
  if (sequence >= lowest) {
    tree.given[kind] = sequence + 1;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("{} {} of tree {} is out of order on {}: the next can be {}",
                  operation == CauOperation::kReduce ? "reduce" : "multicast", sequence, entry.tree,
                  context_.topology->NodeName(context_.node), lowest));
}

absl::Status Cau::Reduce(CauTreeId id, std::uint32_t sequence, NodeId root, ReduceOp op,
                         OperandType type, const CauPayload& payload) {
  if (absl::Status status = CheckCauReduction(op, type, payload.size); !status.ok()) return status;
  const auto tree = Usable(id);
  if (!tree.ok()) return tree.status();
  const auto& nodes = (*tree)->participants;
  if (root == context_.node || !std::binary_search(nodes.begin(), nodes.end(), root)) {
    return absl::InvalidArgumentError(fmt::format(
        "node {} cannot be the root of a reduce that {} contributes to: {}", root,
        context_.topology->NodeName(context_.node),
        root == context_.node
            ? "a root contributes no operands; it receives those of the others"
            : fmt::format("it is not in tree {}, which has {} participants", id, nodes.size())));
  }
  if (absl::Status status = CheckSequence(**tree, CauOperation::kReduce, sequence); !status.ok())
    return status;
  Give(**tree, CauOperation::kReduce, {sequence, root, op, type, payload});
  return absl::OkStatus();
}

absl::Status Cau::ExpectReduce(CauTreeId id, std::uint32_t sequence, ReduceOp op, OperandType type,
                               std::uint8_t size) {
  if (absl::Status status = CheckCauReduction(op, type, size); !status.ok()) return status;
  const auto tree = Usable(id);
  if (!tree.ok()) return tree.status();
  // May come after the result: then there is nothing left to compare.
  const TreeEntry& entry = *entries_[static_cast<std::size_t>((*tree)->participant)];
  if (sequence < entry.next[0] && sequence >= (*tree)->given[0]) {
    (*tree)->given[0] = sequence + 1;
    return absl::OkStatus();
  }
  if (absl::Status status = CheckSequence(**tree, CauOperation::kReduce, sequence); !status.ok())
    return status;
  Input input{PlaceOf((*tree)->participant, 0, CauOperation::kReduce),
              true,
              true,
              0,
              {sequence, context_.node, op, type, {}}};
  input.item.payload.size = size;
  declared_.push_back(input);
  Push(kDeclared, context_.now);
  return absl::OkStatus();
}

absl::Status Cau::Multicast(CauTreeId id, std::uint32_t sequence, const CauPayload& payload) {
  if (payload.size > kCauPayloadMax) {
    return absl::InvalidArgumentError(fmt::format(
        "{} bytes cannot be multicast: a CAU packet has at most {}", payload.size, kCauPayloadMax));
  }
  const auto tree = Usable(id);
  if (!tree.ok()) return tree.status();
  if (absl::Status status = CheckSequence(**tree, CauOperation::kMulticast, sequence); !status.ok())
    return status;
  CauItem item;
  item.sequence = sequence;
  item.payload = payload;
  Give(**tree, CauOperation::kMulticast, item);
  return absl::OkStatus();
}

std::vector<TreeInFlight> Cau::InFlight() const {
  std::vector<TreeInFlight> all;
  for (const auto& entry : entries_) {
    if (!entry || !entry->active) continue;
    TreeInFlight of{entry->tree, entry->vertex};
    for (const TreeLink& link : entry->links) {
      std::uint32_t packets = 0;
      for (int kind = 0; kind < 2; ++kind) {
        const TreeChannel& channel = link.channels[kind];
        of.held += channel.receiver.held() + static_cast<std::uint32_t>(link.given[kind].size());
        packets += static_cast<std::uint32_t>(channel.sender.Unacknowledged());
      }
      if (packets > 0) of.sent.push_back({link.vertex, packets});
    }
    if (of.held > 0 || !of.sent.empty()) all.push_back(std::move(of));
  }
  std::sort(all.begin(), all.end(), [](const TreeInFlight& a, const TreeInFlight& b) {
    return std::pair(a.tree, a.vertex) < std::pair(b.tree, b.vertex);
  });
  return all;
}

void Cau::Give(const Tree& tree, CauOperation operation, const CauItem& item) {
  QueueInput({PlaceOf(tree.participant, 0, operation), true, false, 0, item});
}

// --- The ALU -------------------------------------------------------------------------------------

void Cau::QueueInput(const Input& input) {
  in_free_ = std::max(in_free_, context_.now) + context_.parameters->cau_port_time;
  inputs_.push_back(input);
  Push(kInput, in_free_);
}

void Cau::OnEvent(const Event& event) {
  const std::uint64_t detail = event.key.detail();
  switch (static_cast<EventKind>(event.key.vc())) {
    case kInput:
      return OnInput();
    case kOutput:
      return OnOutput();
    case kDeclared:
      return OnDeclared();
    case kTimer:
      return OnTimer({static_cast<int>(detail >> 8), static_cast<std::uint32_t>(event.data),
                      static_cast<int>(detail >> 1 & 0x7f), static_cast<CauOperation>(detail & 1)});
    case kWatch:
      return OnWatch(static_cast<int>(detail), static_cast<std::uint32_t>(event.data));
  }
  PERCS_CHECK(false);
}

void Cau::OnInput() {
  const Input input = inputs_.front();
  inputs_.pop_front();
  TreeEntry* entry = At(input.place);
  if (!entry) return;
  const int kind = static_cast<int>(input.place.operation);
  TreeLink& link = entry->links[static_cast<std::size_t>(input.place.link)];
  CauItem* item = nullptr;
  if (input.local) {
    link.given[kind].push_back(input.item);
    item = &link.given[kind][link.given[kind].size() - 1];
  } else {
    item = &link.channels[kind].receiver.Ready(input.link_sequence);
  }
  item->order = ++arrivals_;
  TreeProblem problem;
  if (entry->Misplaced(input.place.link, input.place.operation, *item, &problem))
    return Fail(entry->tree, problem);
  Try(input.place.index);
  if (input.local && kind == 0 && At(input.place)) Watch(input.place.index, *entry);
}

void Cau::OnDeclared() {
  const Input input = declared_.front();
  declared_.pop_front();
  TreeEntry* entry = At(input.place);
  if (!entry || input.item.sequence < entry->next[0]) return;
  entry->expected.push_back(input.item);
  Try(input.place.index);
  if (At(input.place)) Watch(input.place.index, *entry);
}

// Fires whatever can fire.
void Cau::Try(int index) {
  TreeEntry& entry = *entries_[static_cast<std::size_t>(index)];
  TreeProblem problem;
  for (const CauOperation operation : {CauOperation::kReduce, CauOperation::kMulticast}) {
    while (entry.Fire(operation, &firing_, &problem)) Emit(index, entry, operation);
  }
  if (problem.code != TreeProblem::Code::kNone) return Fail(entry.tree, problem);
  if (entry.Declared() && entry.watched != entry.next[0]) Watch(index, entry);
}

void Cau::Emit(int index, TreeEntry& entry, CauOperation operation) {
  NodeStats& stats = context_.stats;
  if (operation == CauOperation::kReduce) {
    ++stats.CauReduction(firing_.item.op, firing_.item.operand);
  } else {
    ++stats.Cau(CauCounter::kMulticasts);
  }
  const P7ihParameters& parameters = *context_.parameters;
  const Time ready = context_.now + parameters.cau_pass_through;
  for (const int link : firing_.outputs) {
    const Place place = PlaceOf(index, link, operation);
    Output output;
    output.place = place;
    output.tree = entry.tree;
    output.generation = entry.generation;
    output.local = entry.links[static_cast<std::size_t>(link)].local();
    if (output.local) {
      output.item = firing_.item;
    } else {
      output.link_sequence = Channel(entry, place).sender.Push(firing_.item, firing_.own);
      entry.own_unacknowledged += firing_.own;
      ++context_.work->unfinished;
    }
    out_free_ = std::max(out_free_, ready) + parameters.cau_port_time;
    outputs_.push_back(output);
    Push(kOutput, out_free_);
  }
  for (const int link : firing_.consumed) GrantAgain(entry, PlaceOf(index, link, operation));
}

void Cau::OnOutput() {
  const Output output = outputs_.front();
  outputs_.pop_front();
  if (!output.local) {
    if (TreeEntry* entry = At(output.place)) SendData(*entry, output.place, output.link_sequence);
    return;
  }
  // A result that was complete before its tree failed is right, and is reported.
  const auto it = trees_.find(output.tree);
  if (it == trees_.end() || it->second.plan->generation != output.generation ||
      !it->second.listener)
    return;
  context_.last_event = context_.now;
  if (output.place.operation == CauOperation::kReduce) {
    it->second.listener->OnCauReduced(output.tree, output.item.sequence, output.item.payload);
  } else {
    it->second.listener->OnCauMulticast(output.tree, output.item.sequence, output.item.payload);
  }
}

}  // namespace percs
