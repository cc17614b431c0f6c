#include "client/mpi/collectives.h"

#include <algorithm>
#include <cstring>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs::mpi {
namespace {

constexpr const char* kNames[] = {"a barrier", "a broadcast", "a reduce", "an allreduce"};

// What CAUs carry of bytes [chunk * 64, ...).
CauPayload Chunk(const Bytes& bytes, std::size_t chunk) {
  CauPayload payload;
  const std::size_t begin = chunk * kCauPayloadMax;
  const std::size_t count = std::min<std::size_t>(bytes.size() - begin, kCauPayloadMax);
  payload.size = static_cast<std::uint8_t>(count);
  if (count > 0) std::memcpy(payload.bytes.data(), bytes.data() + begin, count);
  return payload;
}

void Store(const CauPayload& payload, std::size_t chunk, Bytes* to) {
  if (payload.size > 0)
    std::memcpy(to->data() + chunk * kCauPayloadMax, payload.bytes.data(), payload.size);
}

}  // namespace

Time Collectives::SeenAt(Time at, std::size_t local) const {
  if (local == 0) return at;
  return at + host_.line_other_chip + static_cast<Time>(local - 1) * host_.line_repeat;
}

absl::Status Collectives::Agrees(const Group& group, const Operation& first, std::uint32_t rank,
                                 const CollectiveCall& call) const {
  if (call.kind == first.kind && call.op == first.op && call.type == first.type &&
      call.bytes == first.bytes && call.root == first.root)
    return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "rank {} calls {} of {} bytes to root {} as collective {} of communicator {}, where another "
      "rank calls {} of {} bytes to root {}",
      rank, kNames[static_cast<int>(call.kind)], call.bytes, call.root, first.number,
      group.communicator, kNames[static_cast<int>(first.kind)], first.bytes, first.root));
}

Collectives::Operation& Collectives::OperationFor(Group& group, std::uint64_t number,
                                                  const CollectiveCall& call) {
  if (number < group.first + group.operations.size()) return group.operations[number - group.first];
  PERCS_CHECK(number == group.first + group.operations.size());
  if (group.hubs[0]->here) ++counts_.calls[static_cast<int>(call.kind)];
  Operation& made = group.operations.emplace_back();
  made.number = number;
  made.kind = call.kind;
  made.op = call.op;
  made.type = call.type;
  made.root = call.root;
  made.root_hub = group.members.at(call.root).hub;
  made.bytes = call.bytes;
  made.chunks = std::max<std::size_t>(1, (call.bytes + kCauPayloadMax - 1) / kCauPayloadMax);
  made.reduced = call.kind == CollectiveKind::kBroadcast;
  made.packets[0] = made.reduced ? 0 : static_cast<std::uint32_t>(made.chunks);
  made.packets[1] =
      call.kind == CollectiveKind::kReduce ? 0 : static_cast<std::uint32_t>(made.chunks);
  TakeSequences(group, made);
  for (const auto& part : group.hubs) {
    OfHub& hub = made.hubs.emplace_back();
    hub.operands.resize(part->members.size());
    hub.ids.resize(part->members.size());
    hub.called.resize(part->members.size());
    hub.result.resize(made.bytes);
  }
  made.total.resize(made.bytes);
  TakeEarly(group, made);
  return made;
}

void Collectives::TakeSequences(Group& group, Operation& operation) {
  for (std::size_t kind = 0; kind < std::size(operation.sequence); ++kind) {
    operation.sequence[kind] = group.next[kind];
    group.next[kind] += operation.packets[kind];
  }
}

Collectives::Operation* Collectives::Find(Group& group, std::uint64_t number) {
  if (number < group.first || number >= group.first + group.operations.size()) return nullptr;
  return &group.operations[number - group.first];
}

Collectives::Operation* Collectives::FindBySequence(Group& group, CauOperation operation,
                                                    std::uint32_t sequence) {
  for (Operation& open : group.operations) {
    const auto kind = static_cast<std::size_t>(operation);
    if (sequence - open.sequence[kind] < open.packets[kind]) return &open;
  }
  return nullptr;  // it has ended, and came again after a repair
}

absl::Status Collectives::Call(std::uint32_t rank, Time at, CollectiveCall call) {
  if (call.group == kNoGroup || call.group > groups_.size())
    return absl::InvalidArgumentError(fmt::format("rank {} names group {}", rank, call.group));
  Group& group = *groups_[call.group - 1];
  const auto found = group.members.find(rank);
  if (found == group.members.end() || !group.members.contains(call.root))
    return absl::InvalidArgumentError(
        fmt::format("rank {} or root {} is not in group {}", rank, call.root, call.group));
  Member& member = found->second;
  Operation& operation = OperationFor(group, member.calls++, call);
  if (absl::Status status = Agrees(group, operation, rank, call); !status.ok()) return status;
  OfHub& hub = operation.hubs[member.hub];
  const bool broadcast = operation.kind == CollectiveKind::kBroadcast;
  const bool gives = broadcast ? rank == operation.root : operation.bytes > 0;
  if (call.operand.size() != (gives ? operation.bytes : 0))
    return absl::InvalidArgumentError(
        fmt::format("rank {} gives {} bytes of {}", rank, call.operand.size(), operation.bytes));
  hub.operands[member.local] = std::move(call.operand);
  hub.ids[member.local] = call.id;
  hub.called[member.local] = at;
  ++hub.arrived;
  // Who is neither the root nor operates the CAU has nothing to wait for.
  if (operation.kind == CollectiveKind::kReduce && rank != operation.root && member.local != 0)
    EndMember(group, operation, member.hub, member.local, at);
  if (!broadcast) {
    if (hub.arrived == hub.ids.size()) Contribute(group, operation, member.hub);
  } else if (rank == operation.root) {
    hub.result = operation.total = hub.operands[member.local];
    const Time seen = SeenAt(at, member.local);  // by the leader
    if (group.hubs.size() > 1)
      Send(group, member.hub, CauOperation::kMulticast, operation.number, seen);
    EndMember(group, operation, member.hub, member.local, at);
    HaveResult(group, operation, member.hub, seen);
  } else if (hub.has_result) {
    EndMember(group, operation, member.hub, member.local,
              SeenAt(std::max(at, hub.result_at), member.local));
  }
  Retire(group);
  return absl::OkStatus();
}

// All ranks of a hub have called: their leader combines what they gave, in their order.
void Collectives::Contribute(Group& group, Operation& operation, std::size_t index) {
  OfHub& hub = operation.hubs[index];
  hub.value = hub.operands[0];
  Time ready_at = hub.called[0];
  for (std::size_t local = 1; local < hub.ids.size(); ++local) {
    ready_at = std::max(ready_at, SeenAt(hub.called[local], local));
    if (operation.bytes > 0)
      Combine(operation.op, operation.type, operation.bytes / OperandBytes(operation.type),
              hub.operands[local].data(), hub.value.data());
  }
  hub.ready = true;
  const bool at_root = index == operation.root_hub;
  if (operation.kind == CollectiveKind::kReduce && group.hubs[index]->members[0] != operation.root)
    EndMember(group, operation, index, 0, ready_at);
  if (!at_root) return Send(group, index, CauOperation::kReduce, operation.number, ready_at);
  if (group.hubs.size() == 1 || operation.chunks_reduced == operation.chunks) {
    const std::uint32_t leader = group.hubs[index]->members[0];
    transport_.Act(leader, ready_at, [this, &group, number = operation.number](Time now) {
      HaveTotal(group, number, now);
    });
  }
}

// The leader's software hands the packets of a collective to the CAU, one after the other.
void Collectives::Send(Group& group, std::size_t index, CauOperation kind, std::uint64_t number,
                       Time at) {
  Part& part = *group.hubs[index];
  Operation& operation = *Find(group, number);
  operation.unsent += operation.chunks;
  for (std::size_t chunk = 0; chunk < operation.chunks; ++chunk) {
    part.busy = std::max(part.busy, at) + host_.cau_send;
    const Packet packet{kind, number, chunk, group.generation};
    transport_.Act(part.members[0], part.busy, [this, &group, index, packet](Time now) {
      if (packet.generation != group.generation || group.state != State::kUp) return;
      group.hubs[index]->out.push_back(packet);
      Pump(group, index, now);
    });
  }
}

void Collectives::Pump(Group& group, std::size_t index, Time now) {
  Part& part = *group.hubs[index];
  if (part.holds || part.out.empty() || group.state != State::kUp) return;
  const Packet packet = part.out.front();
  part.out.pop_front();
  Operation* const operation = Find(group, packet.number);
  PERCS_CHECK(operation != nullptr && operation->unsent > 0);
  --operation->unsent;
  const bool reduce = packet.operation == CauOperation::kReduce;
  const std::uint32_t sequence = operation->sequence[static_cast<int>(packet.operation)] +
                                 static_cast<std::uint32_t>(packet.chunk);
  const CauPayload payload =
      Chunk(reduce ? operation->hubs[index].value : operation->total, packet.chunk);
  part.holds = true;
  const NodeId root = group.hubs[operation->root_hub]->node;
  const absl::Status status = fabric_.UseCau(
      part.node, now,
      [this, &group, reduce, sequence, root, op = operation->op, type = operation->type,
       payload](CauPort& cau) {
        const absl::Status given = reduce
                                       ? cau.Reduce(group.tree, sequence, root, op, type, payload)
                                       : cau.Multicast(group.tree, sequence, payload);
        // UNAVAILABLE: the tree is being set up again; the packet goes again then.
        if (!given.ok() && group.state == State::kUp && !absl::IsUnavailable(given) &&
            !absl::IsNotFound(given) && !absl::IsFailedPrecondition(given))
          Fail(std::string(given.message()));
      });
  if (!status.ok()) Fail(std::string(status.message()));
  Retire(group);
}

// What comes for a call that no rank here has made yet; false for what has ended.
bool Collectives::KeepEarly(Group& group, CauOperation kind, std::size_t index,
                            std::uint32_t sequence, const CauPayload& payload) {
  constexpr std::uint32_t kHalf = 0x80000000u;
  if (sequence - group.next[static_cast<std::size_t>(kind)] >= kHalf) return false;
  Part& part = *group.hubs[index];
  part.busy = std::max(part.busy, fabric_.event_time(part.node)) + host_.cau_receive;
  group.early.push_back({kind, index, sequence, payload, part.busy});
  return true;
}

void Collectives::TakeEarly(Group& group, Operation& operation) {
  std::erase_if(group.early, [&operation](const Early& early) {
    const auto kind = static_cast<std::size_t>(early.kind);
    const std::uint32_t chunk = early.sequence - operation.sequence[kind];
    if (chunk >= operation.packets[kind]) return false;
    OfHub& hub = operation.hubs[early.hub];
    if (early.kind == CauOperation::kReduce) {
      Store(early.payload, chunk, &operation.total);
      ++operation.chunks_reduced;
      return true;
    }
    Store(early.payload, chunk, &hub.result);
    hub.result_at = early.at;
    hub.has_result = ++hub.chunks == operation.chunks;
    return true;
  });
}

// At the root: the others' sum of some bytes.
void Collectives::OnReduced(Group& group, std::size_t index, std::uint32_t sequence,
                            const CauPayload& payload) {
  if (KeepEarly(group, CauOperation::kReduce, index, sequence, payload)) return;
  Operation* const operation = FindBySequence(group, CauOperation::kReduce, sequence);
  if (operation == nullptr || operation->reduced) return;
  Store(payload, sequence - operation->sequence[0], &operation->total);
  Part& root = *group.hubs[operation->root_hub];
  root.busy = std::max(root.busy, fabric_.event_time(root.node)) + host_.cau_receive;
  if (++operation->chunks_reduced < operation->chunks) return;
  if (!operation->hubs[operation->root_hub].ready) return;  // Contribute continues
  transport_.Act(root.members[0], root.busy, [this, &group, number = operation->number](Time now) {
    HaveTotal(group, number, now);
  });
}

// The root's hub has its own operands and the sum of all others.
void Collectives::HaveTotal(Group& group, std::uint64_t number, Time now) {
  Operation* const operation = Find(group, number);
  if (operation == nullptr || std::exchange(operation->reduced, true)) return;
  const std::size_t index = operation->root_hub;
  OfHub& hub = operation->hubs[index];
  Part& part = *group.hubs[index];
  const Time at = group.hubs.size() > 1 ? std::max(now, part.busy) : now;
  if (group.hubs.size() == 1) {
    operation->total = hub.value;
  } else if (operation->bytes > 0) {
    Combine(operation->op, operation->type, operation->bytes / OperandBytes(operation->type),
            hub.value.data(), operation->total.data());
  }
  hub.result = operation->total;
  if (operation->kind == CollectiveKind::kReduce) {
    const std::size_t local = group.members.at(operation->root).local;
    EndMember(group, *operation, index, local, SeenAt(at, local));
  } else {
    if (group.hubs.size() > 1) Send(group, index, CauOperation::kMulticast, number, at);
    HaveResult(group, *operation, index, at);
  }
  Retire(group);
}

void Collectives::OnMulticast(Group& group, std::size_t index, std::uint32_t sequence,
                              const CauPayload& payload) {
  if (KeepEarly(group, CauOperation::kMulticast, index, sequence, payload)) return;
  Operation* const operation = FindBySequence(group, CauOperation::kMulticast, sequence);
  if (operation == nullptr || operation->hubs[index].has_result) return;
  OfHub& hub = operation->hubs[index];
  Store(payload, sequence - operation->sequence[1], &hub.result);
  Part& part = *group.hubs[index];
  part.busy = std::max(part.busy, fabric_.event_time(part.node)) + host_.cau_receive;
  if (++hub.chunks < operation->chunks) return;
  HaveResult(group, *operation, index, part.busy);
}

// Those of a hub that have called end.
void Collectives::HaveResult(Group& group, Operation& operation, std::size_t index, Time at) {
  OfHub& hub = operation.hubs[index];
  hub.has_result = true;
  hub.result_at = at;
  for (std::size_t local = 0; local < hub.ids.size(); ++local) {
    if (hub.ids[local] != 0)
      EndMember(group, operation, index, local, SeenAt(std::max(at, hub.called[local]), local));
  }
}

void Collectives::EndMember(Group& group, Operation& operation, std::size_t index,
                            std::size_t local, Time at) {
  OfHub& hub = operation.hubs[index];
  const std::uint32_t rank = group.hubs[index]->members[local];
  Completion completion;
  completion.at = at;
  completion.id = std::exchange(hub.ids[local], 0);
  completion.peer = rank;
  completion.received = true;
  const bool hears = operation.kind == CollectiveKind::kAllreduce ||
                     (operation.kind == CollectiveKind::kReduce && rank == operation.root) ||
                     (operation.kind == CollectiveKind::kBroadcast && rank != operation.root);
  if (hears) completion.bytes = hub.result;
  completion.length = completion.bytes.size();
  ++operation.ended;
  user_.OnCompletion(rank, std::move(completion));
}

// Forgets what has ended for all that are here.
void Collectives::Retire(Group& group) {
  while (!group.operations.empty() && group.operations.front().ended == group.here &&
         group.operations.front().unsent == 0) {
    group.operations.pop_front();
    ++group.first;
  }
}

}  // namespace percs::mpi
