// Communicators and their trees: set up, repaired, given back.
#include <algorithm>
#include <utility>

#include "client/mpi/collectives.h"
#include "emulator/management/tree_status.h"
#include "fmt/format.h"

namespace percs::mpi {
namespace {

// How often the software of a communicator asks whether its tree is there.
constexpr Time kAskEvery = kMicrosecond;

std::vector<NodeId> HubsOf(const std::vector<RankPlace>& places,
                           const std::vector<std::uint32_t>& ranks) {
  std::vector<NodeId> hubs;
  for (const std::uint32_t rank : ranks) hubs.push_back(places[rank].hub);
  std::sort(hubs.begin(), hubs.end());
  hubs.erase(std::unique(hubs.begin(), hubs.end()), hubs.end());
  return hubs;
}

std::vector<std::uint32_t> AllRanks(std::size_t count) {
  std::vector<std::uint32_t> ranks(count);
  for (std::uint32_t r = 0; r < ranks.size(); ++r) ranks[r] = r;
  return ranks;
}

}  // namespace

TreeSpec WorldTree(const std::vector<RankPlace>& places) {
  TreeSpec tree;
  tree.name = "MPI_COMM_WORLD";
  tree.members = HubsOf(places, AllRanks(places.size()));
  if (tree.members.size() < 2) tree.members.clear();
  return tree;
}

Collectives::Collectives(Fabric& fabric, const std::vector<RankPlace>& places,
                         const CollectiveTrees& trees, Transport& transport, TransportUser& user,
                         const HostParameters& host)
    : fabric_(fabric),
      places_(places),
      trees_(trees),
      transport_(transport),
      user_(user),
      host_(host) {}

Collectives::~Collectives() = default;

void Collectives::Begin(Time at) {
  if (!trees_.world) return;
  world_ = &MakeGroup(/*communicator=*/0, AllRanks(places_.size()));
  world_->tree = *trees_.world;
  Attach(*world_, at);
}

void Collectives::Close(Time at) {
  if (world_ != nullptr) Detach(*world_, at);
}

void Collectives::Fail(const std::string& reason) { user_.OnFailure("collectives: " + reason); }

Collectives::Group& Collectives::GroupFor(const JoinCall& call, std::uint32_t rank) {
  for (const auto& group : groups_) {
    if (group->state == State::kJoining && group->communicator == call.communicator &&
        group->ranks == call.ranks && !group->members.at(rank).joined)
      return *group;
  }
  return MakeGroup(call.communicator, call.ranks);
}

Collectives::Group& Collectives::MakeGroup(std::uint64_t communicator,
                                           const std::vector<std::uint32_t>& ranks) {
  groups_.push_back(std::make_unique<Group>());
  Group& group = *groups_.back();
  group.number = groups_.size();
  group.communicator = communicator;
  group.ranks = ranks;
  const std::vector<NodeId> hubs = HubsOf(places_, ranks), nodes = fabric_.local_nodes();
  for (const NodeId node : hubs) {
    group.hubs.push_back(std::make_unique<Part>(*this, group, group.hubs.size()));
    group.hubs.back()->node = node;
    group.hubs.back()->here = std::binary_search(nodes.begin(), nodes.end(), node);
  }
  for (const std::uint32_t member : ranks) {
    const auto hub = static_cast<std::size_t>(
        std::lower_bound(hubs.begin(), hubs.end(), places_[member].hub) - hubs.begin());
    group.members[member] = {hub, group.hubs[hub]->members.size()};
    group.hubs[hub]->members.push_back(member);
    group.here += group.hubs[hub]->here;
  }
  return group;
}

// The first communicator of all ranks in their order has the tree that is there, and nobody waits
// for it.
bool Collectives::JoinWorld(const JoinCall& call, std::uint32_t rank, Time at) {
  if (world_ == nullptr || call.ranks != world_->ranks || world_->members.at(rank).joined ||
      (world_taken_ && world_->communicator != call.communicator))
    return false;
  world_taken_ = world_->members.at(rank).joined = true;
  world_->communicator = call.communicator;
  counts_.groups += rank == world_->ranks[0];
  AnswerOne(rank, call.id, world_->number, at);
  return true;
}

absl::Status Collectives::Join(std::uint32_t rank, Time at, const JoinCall& call) {
  const bool known = std::all_of(call.ranks.begin(), call.ranks.end(),
                                 [this](std::uint32_t r) { return r < places_.size(); });
  std::vector<std::uint32_t> once = call.ranks;
  std::sort(once.begin(), once.end());
  if (!known || !std::binary_search(once.begin(), once.end(), rank) ||
      std::adjacent_find(once.begin(), once.end()) != once.end())
    return absl::InvalidArgumentError(
        fmt::format("rank {} joins a communicator of ranks that are not its own", rank));
  if (JoinWorld(call, rank, at)) return absl::OkStatus();
  if (!trees_.makes && HubsOf(places_, call.ranks).size() > 1) {
    counts_.refused += rank == call.ranks[0];
    AnswerOne(rank, call.id, kNoGroup, at);
    return absl::OkStatus();
  }
  Group& group = GroupFor(call, rank);
  group.members.at(rank).joined = true;
  group.joins.emplace_back(rank, call.id);
  if (group.joins.size() == group.ranks.size()) SetUp(group, at);
  return absl::OkStatus();
}

// The last rank has asked.
void Collectives::SetUp(Group& group, Time now) {
  if (group.hubs.size() == 1) {
    group.state = State::kUp;
    return Answer(group, now);
  }
  TreeSpec tree;
  tree.name = fmt::format("communicator-{}", group.number);
  for (const auto& part : group.hubs) tree.members.push_back(part->node);
  const auto made = fabric_.CreateTree(tree, now);
  if (!made.ok()) {
    group.state = State::kOver;
    return Answer(group, now);
  }
  group.tree = *made;
  group.state = State::kSettingUp;
  AwaitTree(group, now + kAskEvery);
}

void Collectives::AwaitTree(Group& group, Time at) {
  transport_.Act(group.ranks[0], at, [this, &group](Time now) {
    const TreeState state = fabric_.trees()[group.tree].state;
    if (state == TreeState::kSettingUp) return AwaitTree(group, now + kAskEvery);
    if (state == TreeState::kReady) {
      Attach(group, now);
    } else {
      group.state = State::kOver;
    }
    Answer(group, now);
  });
}

void Collectives::Attach(Group& group, Time now) {
  group.state = State::kUp;
  for (const auto& made : group.hubs) {
    Part* const part = made.get();
    if (!part->here) continue;
    const absl::Status status = fabric_.UseCau(part->node, now, [this, part, &group](CauPort& cau) {
      if (absl::Status attached = cau.Attach(group.tree, part); !attached.ok())
        Fail(std::string(attached.message()));
    });
    if (!status.ok()) return Fail(std::string(status.message()));
  }
}

void Collectives::Detach(Group& group, Time at) {
  for (const auto& part : group.hubs) {
    if (!part->here) continue;
    const absl::Status status =
        fabric_.UseCau(part->node, at, [tree = group.tree](CauPort& cau) { cau.Detach(tree); });
    if (!status.ok()) return Fail(std::string(status.message()));
  }
}

void Collectives::Answer(Group& group, Time now) {
  const bool up = group.state == State::kUp;
  ++(up ? counts_.groups : counts_.refused);
  for (const auto& [rank, id] : std::exchange(group.joins, {}))
    AnswerOne(rank, id, up ? group.number : kNoGroup, now);
}

void Collectives::AnswerOne(std::uint32_t rank, std::uint64_t id, std::uint64_t group, Time now) {
  Completion completion;
  completion.at = now;
  completion.id = id;
  completion.peer = rank;
  completion.data = group;
  user_.OnCompletion(rank, std::move(completion));
}

absl::Status Collectives::Leave(std::uint32_t rank, Time at, std::uint64_t number) {
  if (number == kNoGroup || number > groups_.size())
    return absl::InvalidArgumentError(fmt::format("rank {} leaves group {}", rank, number));
  Group& group = *groups_[number - 1];
  const auto found = group.members.find(rank);
  if (found == group.members.end() || std::exchange(found->second.left, true))
    return absl::InvalidArgumentError(
        fmt::format("rank {} is not in group {} that it leaves", rank, number));
  // The world's tree stays for the run.
  if (++group.left < group.here || &group == world_) return absl::OkStatus();
  group.state = State::kOver;
  if (group.hubs.size() == 1) return absl::OkStatus();
  Detach(group, at);
  return fabric_.DeleteTree(group.tree, at + kAskEvery);
}

// --- Trees that break
// -----------------------------------------------------------------------------------

void Collectives::Part::OnCauTaken(CauTreeId) {
  holds = false;
  if (out.empty()) return;
  // The leader went back to its work, and comes again.
  const Time at = owner.fabric_.event_time(node) + owner.host_.shared_step;
  owner.transport_.Act(members[0], at, [this](Time now) { owner.Pump(group, index, now); });
}

void Collectives::Part::OnCauTreeDown(CauTreeId, const absl::Status& why) {
  owner.OnDown(group);
  if (absl::IsUnavailable(why)) return;
  owner.Fail(fmt::format("the tree of communicator {} has no place for {} any more: {}",
                         group.communicator, owner.fabric_.topology().NodeName(node),
                         std::string(why.message())));
}

void Collectives::OnDown(Group& group) {
  if (group.state != State::kUp) return;
  group.state = State::kDown;
  for (const auto& part : group.hubs) {
    part->out.clear();
    part->holds = false;
  }
}

// Each hub hears it, at one instant.
void Collectives::OnUp(Group& group, const std::vector<NodeId>& participants) {
  if (group.state == State::kOver) return;
  if (!trees_.makes) {
    if (!world_taken_) return;  // nothing has been given
    return Fail(
        "the tree of MPI_COMM_WORLD was set up again after a fault, which ranks on daemons do not "
        "survive; use --collectives p2p, or the machine in one process");
  }
  if (std::exchange(group.repairing, true)) return;
  for (const auto& part : group.hubs) {
    if (std::binary_search(participants.begin(), participants.end(), part->node)) continue;
    return Fail(fmt::format("the tree of communicator {} continues without {}", group.communicator,
                            fabric_.topology().NodeName(part->node)));
  }
  ++counts_.repairs;
  transport_.Act(group.ranks[0], fabric_.event_time(group.hubs[0]->node) + kAskEvery,
                 [this, &group](Time now) { GiveAgain(group, now); });
}

// Sequences of the tree begin at 0 again. What its leaders still wait for is given another time.
// Choice: that they agree on what that is takes no messages here (emulator/runtime/cau_window.h).
void Collectives::GiveAgain(Group& group, Time now) {
  group.repairing = false;
  group.state = State::kUp;
  ++group.generation;
  for (const auto& part : group.hubs) part->out.clear(), part->holds = false;
  group.early.clear();
  std::fill(std::begin(group.next), std::end(group.next), 0u);
  for (Operation& operation : group.operations) {
    // What has been heard everywhere is not given, and takes no sequence.
    if (operation.reduced) operation.packets[0] = 0;
    if (std::all_of(operation.hubs.begin(), operation.hubs.end(),
                    [](const OfHub& hub) { return hub.has_result; }))
      operation.packets[1] = 0;
    TakeSequences(group, operation);
    operation.unsent = 0;
    if (!operation.reduced) operation.chunks_reduced = 0;
    for (OfHub& hub : operation.hubs) hub.chunks = 0;
    for (std::size_t i = 0; i < group.hubs.size(); ++i) {
      const OfHub& hub = operation.hubs[i];
      if (i == operation.root_hub) {
        const bool has_total =
            operation.kind == CollectiveKind::kBroadcast ? hub.has_result : operation.reduced;
        if (has_total && operation.packets[1] > 0)
          Send(group, i, CauOperation::kMulticast, operation.number, now);
      } else if (hub.ready && !operation.reduced) {
        Send(group, i, CauOperation::kReduce, operation.number, now);
      }
    }
  }
}

}  // namespace percs::mpi
