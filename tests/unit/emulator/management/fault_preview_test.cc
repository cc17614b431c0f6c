// What a preview says against what the fault then touches. Method: random faults of every kind, one
// in each run, over uniform traffic whose every packet is followed and trees of CAUs at work; the
// preview is taken when the fault is created. Each packet that dies of the fault has to be of a
// pair that the preview names, each tree that is repaired of its trees, each window that drops of
// its hubs.
#include "emulator/management/fault_preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "emulator/base/random.h"
#include "emulator/sim/run.h"
#include "tests/support/fault_runs.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kPreviewedOfEachKind = 5;

bool Drawn(RandomStream& random) { return random.Below(2) == 0; }

Scenario Traffic(std::uint64_t seed, RandomStream& random) {
  Scenario s;
  s.seed = seed;
  s.topology = {.supernodes = 3,
                .drawers = 2,
                .hubs = 2,
                .d_links_per_pair = 2,
                .clock = ClockSettings(),
                .pcie = {{.hub = 5}, {.hub = 7}}};
  s.parameters.plan = s.parameters.install = 4 * kUs;
  s.parameters.retransmit_timeout = 10 * kUs;
  s.background = PatternWorkload{.count = 120, .load = 0.12};
  s.workload = CauWorkload{.trees = {},
                           .steps = {CauStep::kAllreduce, CauStep::kMulticast},
                           .iterations = 60,
                           .compute_max = kUs};
  for (const char* name : {"a", "b", "c"}) {
    TreeSpec tree{name};
    for (NodeId hub = 0; hub < 12; ++hub) {
      if (random.Below(4) == 0) tree.members.push_back(hub);
    }
    if (tree.members.size() < 2) tree.members = {1, 6};
    s.trees.push_back(tree);
  }
  return s;
}

FaultSpec RandomFault(FaultKind kind, RandomStream& random) {
  FaultSpec spec;
  spec.id = "fault";
  spec.kind = kind;
  spec.mode = FaultMode::kFixed;
  spec.count = kind == FaultKind::kMiswired ? 2 : 1 + static_cast<int>(random.Below(3));
  spec.duration = (10 + random.Below(20)) * kUs;
  if (kind == FaultKind::kFlap) spec.period = 8 * kUs;
  const bool one_way = kind == FaultKind::kPortDown;
  if (one_way)
    spec.direction = Drawn(random) ? FaultDirection::kForward : FaultDirection::kBackward;
  if (kind == FaultKind::kLaneLoss)
    spec.lanes = 1 + random.Below(6);  // from 3 on an LR link is down, from 5 on a D link
  if (kind == FaultKind::kBitErrors) spec.flit_error_rate = 0.05 * random.Unit();
  if (kind == FaultKind::kCorruptNext)
    spec.corrupt = 1 + random.Below(40);  // 16 in a row take the link down
  if (kind == FaultKind::kTableDamage) spec.destination = random.Below(12);
  if (kind == FaultKind::kLatency) spec.latency = (1 + random.Below(2'000)) * kNanosecond;
  if (kind == FaultKind::kHfiDown) spec.hfi = static_cast<int>(random.Below(2));
  if (kind == FaultKind::kWindowDown) spec.window = 0;  // which the traffic uses
  if (kind == FaultKind::kPcieUnplugged) spec.pcie_port = 0, spec.count = 1;
  if (kind == FaultKind::kClockDrift) {
    spec.drift_ppb = 1'000'000;
    spec.select.in = {6, 7,  8,
                      9, 10, 11};  // not the source, whose jump the others show one symbol later
  }
  if (kind == FaultKind::kPartition) {
    spec.mode = FaultMode::kAll;
    spec.select.in = {random.Below(6), 6 + random.Below(6)};
  }
  return spec;
}

// What a run shows of its fault, and what had been said of it.
struct Told {
  FaultPreview preview;
  RunResult result;
  std::set<std::pair<NodeId, NodeId>> pairs;  // of packets that died on links and at table entries
  std::set<NodeId> silent;  // hubs that dropped a packet because a window was down
};

Told RunWith(const Scenario& s, const FaultSpec& spec) {
  Told told;
  std::vector<TraceEvent> events;
  RunOptions options;
  options.trace.emplace().count = kTracedPacketsMax;
  options.traced = &events;
  options.commands = {
      {5 * kUs, [&](Fabric& fabric, Time at) {
         auto preview = PreviewFault(
             spec, {fabric.topology(), s.parameters, s.seed, fabric.known_failures(),
                    [&fabric](NodeId node) { return fabric.tables(node); }, fabric.trees()});
         if (!preview.ok()) return preview.status();
         told.preview = *std::move(preview);
         return fabric.faults()->Create(spec, at).status();
       }}};
  auto result = RunScenario(s, options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return told;
  told.result = *std::move(result);
  std::map<std::pair<NodeId, std::uint64_t>, NodeId> destinations;
  for (const TraceEvent& e : events) {
    if (e.step == TraceStep::kCreated) destinations[{e.source, e.sequence}] = e.destination;
  }
  for (const TraceEvent& e : events) {
    if (e.step != TraceStep::kDropped) continue;
    if (e.reason == DropReason::kWindowDown) told.silent.insert(e.node);
    if (e.reason != DropReason::kLinkDown && e.reason != DropReason::kTruncated &&
        e.reason != DropReason::kTableParity)
      continue;
    told.pairs.insert({e.source, destinations.at({e.source, e.sequence})});
  }
  return told;
}

void CheckTold(const Told& told, const Topology& topology) {
  const FaultPreview& preview = told.preview;
  ASSERT_EQ(told.result.faults.size(), 1u);
  const FaultStatus& fault = told.result.faults[0];
  EXPECT_THAT(told.result.violations, IsEmpty());
  EXPECT_EQ(fault.targets, preview.targets);
  EXPECT_EQ(fault.seed, preview.seed);
  EXPECT_GE(preview.routes, preview.pairs.size());
  for (const auto& [source, destination] : told.pairs) {
    EXPECT_THAT(preview.pairs, Contains(std::pair(source, destination)))
        << topology.NodeName(source) << " to " << topology.NodeName(destination);
  }
  for (const TreeStatus& tree : told.result.trees) {
    if (tree.repairs.empty()) continue;
    EXPECT_THAT(preview.trees, Contains(tree.name));
  }
  for (const NodeId hub : told.silent) {
    EXPECT_THAT(preview.targets.hubs, Contains(hub));
    EXPECT_GT(preview.windows, 0u);
  }
  for (const FaultTally& tally : told.result.tallies) {
    EXPECT_TRUE(tally.fault != fault.number || tally.losses.lost == 0 || preview.loses_packets)
        << tally.losses.lost;
  }
  for (const Reroute& reroute : told.result.reroutes) {
    EXPECT_LE(reroute.unreachable_pairs, preview.unreachable_pairs);
  }
}

TEST(FaultPreview, NothingIsTouchedThatItHasNotSaid) {
  PERCS_TRACE_SEED();
  std::map<FaultKind, std::size_t> lost;
  std::size_t repaired = 0, silent = 0;
  for (int i = 0; i < kFaultKinds * kPreviewedOfEachKind; ++i) {
    const auto kind = static_cast<FaultKind>(i % kFaultKinds);
    RandomStream random(test::Seed(), "preview " + std::to_string(i));
    const Scenario s = Traffic(test::Seed() + static_cast<std::uint64_t>(i), random);
    const FaultSpec spec = RandomFault(kind, random);
    SCOPED_TRACE(std::to_string(i) + ": " + FaultKindName(kind));
    const Told told = RunWith(s, spec);
    ASSERT_NO_FATAL_FAILURE(CheckTold(told, *Topology::Create(s.topology)));
    lost[kind] += told.pairs.size();
    silent += told.silent.size();
    for (const TreeStatus& tree : told.result.trees) repaired += tree.repairs.size();
  }
  // Or nothing was compared.
  for (const FaultKind kind :
       {FaultKind::kLinkDown, FaultKind::kPortDown, FaultKind::kFlap, FaultKind::kLaneLoss,
        FaultKind::kCorruptNext, FaultKind::kHubDown, FaultKind::kPartition,
        FaultKind::kTableDamage, FaultKind::kMiswired}) {
    EXPECT_GT(lost[kind], 0u) << FaultKindName(kind);
  }
  EXPECT_GT(repaired, 0u);
  EXPECT_GT(silent, 0u);
}

TEST(FaultPreview, ItNamesThePairsTreesAndWindowsOfASmallMachine) {
  Scenario s;
  s.topology = {1, 1, 3, 1};  // three hubs, a link between each two
  const Topology topology = *Topology::Create(s.topology);
  const TableSet tables = Planner(topology).Plan({});
  std::vector<TreeStatus> trees;
  for (const auto& [name, members] :
       std::map<std::string, std::vector<NodeId>>{{"left", {0, 1}}, {"right", {0, 2}}}) {
    TreeStatus tree;
    tree.name = name;
    tree.state = TreeState::kReady;
    tree.plan = std::make_shared<const TreePlan>(
        *PlanTree(topology, {name, members}, [](NodeId, NodeId) { return true; }));
    trees.push_back(tree);
  }
  const FabricView view{
      topology, s.parameters, s.seed, {}, [&](NodeId node) { return tables[node]; }, trees};
  FaultSpec cut;
  cut.id = "cut";
  cut.select.link = LinkEnd{0, 0};  // hub 0 to hub 1
  const auto link = PreviewFault(cut, view);
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_THAT(link->pairs, ElementsAre(std::pair(0u, 1u), std::pair(1u, 0u)));
  EXPECT_EQ(link->routes, 2u);
  EXPECT_THAT(link->trees, ElementsAre("left"));
  EXPECT_THAT(link->cut_off, IsEmpty());
  EXPECT_EQ(link->unreachable_pairs, 0u);
  EXPECT_TRUE(link->loses_packets);

  FaultSpec gone;
  gone.id = "gone";
  gone.kind = FaultKind::kHubDown;
  gone.select.in = {2};
  const auto hub = PreviewFault(gone, view);
  ASSERT_TRUE(hub.ok()) << hub.status();
  EXPECT_THAT(hub->pairs, ElementsAre(std::pair(0u, 2u), std::pair(1u, 2u), std::pair(2u, 0u),
                                      std::pair(2u, 1u)));
  EXPECT_THAT(hub->trees, ElementsAre("right"));
  EXPECT_THAT(hub->cut_off, ElementsAre(2u));
  EXPECT_EQ(hub->windows, static_cast<std::uint64_t>(kHfisPerHub * s.parameters.windows_per_hfi));
  EXPECT_EQ(hub->unreachable_pairs, 4u);
}

TEST(FaultPreview, LanesAndErrorsThatTakeALinkDownLosePackets) {
  const P7ihParameters parameters;
  const Topology topology = *Topology::Create({2, 2, 2, 1});
  const TableSet tables = Planner(topology).Plan({});
  const FabricView view{topology, parameters, 1, {}, [&](NodeId node) { return tables[node]; }};
  const auto loses = [&](FaultKind kind, std::uint32_t count, LinkClass c) {
    FaultSpec spec;
    spec.id = "fault";
    spec.kind = kind;
    spec.select.link_class = c;
    spec.mode = FaultMode::kOne;
    (kind == FaultKind::kLaneLoss ? spec.lanes : spec.corrupt) = count;
    const auto preview = PreviewFault(spec, view);
    EXPECT_TRUE(preview.ok()) << preview.status();
    return preview.ok() && preview->loses_packets;
  };
  EXPECT_FALSE(loses(FaultKind::kLaneLoss, 2, LinkClass::kLr));
  EXPECT_TRUE(loses(FaultKind::kLaneLoss, 3, LinkClass::kLr));
  EXPECT_FALSE(loses(FaultKind::kLaneLoss, 4, LinkClass::kD));
  EXPECT_TRUE(loses(FaultKind::kLaneLoss, 5, LinkClass::kD));
  EXPECT_FALSE(loses(FaultKind::kCorruptNext, 15, LinkClass::kLl));
  EXPECT_TRUE(loses(FaultKind::kCorruptNext, 16, LinkClass::kLl));
}

}  // namespace
}  // namespace percs
