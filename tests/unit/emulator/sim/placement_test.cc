// Method: the same scenario in one thread, in several, and split over processes whose batches
// arrive in random order; digests must be equal. Then one thing is spoiled, and the digest must
// notice.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "emulator/base/random.h"
#include "emulator/base/version.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/link_settings.h"
#include "tests/support/executors.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using test::SplitOptions;
using test::SplitRun;

PatternWorkload Uniform(double load, std::uint64_t bytes) {
  PatternWorkload w;
  w.load = load;
  w.message_bytes = bytes;
  w.measure = 3 * kMicrosecond;
  return w;
}

FaultSpec Fault(Time at, const char* name, bool up, const TopologySpec& spec) {
  const LinkEnd link = *Topology::Create(spec)->ParseLink(name);
  return up ? SetLinkUp(at, link) : SetLinkDown(at, link);
}

// Two blades in different supernodes, one more behind nothing but another blade; everybody sends to
// everybody's neighbour in turn.
Scenario BladeScenario() {
  Scenario s;
  s.topology = {2, 1, 3, 1};
  s.topology.blades = {{"blade0", "sn0-d0-h1"}, {"blade1", "sn1-d0-h2"}, {"a", ""}, {"b", "a"}};
  ScriptedWorkload script;
  for (int i = 0; i < 200; ++i) {
    const NodeId from = static_cast<NodeId>(i % 10);
    // a and b reach only each other.
    const NodeId to = from >= 8 ? 17 - from : static_cast<NodeId>((from + 1 + i / 10 % 7) % 8);
    script.packets.push_back({i * 50 * kNanosecond, from, to, 0, 1, 128 + 9 * i});
  }
  s.workload = script;
  s.faults = {Fault(2 * kMicrosecond, "blade0:N0", false, s.topology),
              Fault(6 * kMicrosecond, "blade0:N0", true, s.topology)};
  return s;
}

// Reliable traffic over links that all corrupt flits; one of them so many that it is given up.
Scenario ErrorScenario(const TopologySpec& spec) {
  Scenario s;
  s.topology = spec;
  s.workload = AllToAllWorkload{16384, Schedule::kSpread, true, PayloadMode::kVerified};
  const Topology topology = Topology::Create(s.topology).value();
  for (const LinkEnd& end : topology.Links()) {
    for (const LinkEnd& sender : {end, topology.Peer(end.node, end.port)}) {
      s.faults.push_back(SetErrorRate(0, sender, 0.02));
    }
  }
  s.faults.push_back(SetCorruptNext(3 * kMicrosecond, {5, 0}, 100));
  if (spec.supernodes == 1) {
    // Both ends hear of the loss before a window of several steps ends.
    s.parameters.replay_limit = 3;
    s.workload = AllToAllWorkload{131072, Schedule::kSpread, true, PayloadMode::kVerified};
    return s;
  }
  // Lanes: fewer, too few, repaired.
  s.faults.push_back(SetLanesLost(2 * kMicrosecond, {0, 0}, 20));
  s.faults.push_back(SetLanesLost(4 * kMicrosecond, {0, kDFirst}, 9));
  s.faults.push_back(SetLanesLost(90 * kMicrosecond, {0, kDFirst}, 3));
  return s;
}

// Faults of links and tables that come and go, several on the same links, under reliable traffic.
Scenario FaultScenario() {
  Scenario s;
  s.topology = {2, 2, 2, 2};
  s.workload = AllToAllWorkload{65536, Schedule::kSpread, true, PayloadMode::kVerified};
  for (int k = 0; k <= static_cast<int>(FaultKind::kAlertSuppressed); ++k) {
    FaultSpec fault;
    fault.kind = static_cast<FaultKind>(k);
    fault.id = FaultKindName(fault.kind);
    fault.mode = FaultMode::kFixed;
    fault.count = 2;
    fault.at = (1 + k) * kMicrosecond / 2;
    fault.duration = 30 * kMicrosecond;
    if (k % 2 == 0) fault.period = 7 * kMicrosecond;
    if (fault.kind == FaultKind::kPortDown) fault.direction = FaultDirection::kForward;
    if (fault.kind == FaultKind::kLaneLoss) fault.lanes = 3;
    if (fault.kind == FaultKind::kBitErrors) fault.flit_error_rate = 0.05;
    if (fault.kind == FaultKind::kCorruptNext) fault.corrupt = 40;
    if (fault.kind == FaultKind::kTableDamage) fault.destination = 3;
    if (fault.kind == FaultKind::kPartition) fault.select.in = {4, 5, 6, 7};
    s.faults.push_back(fault);
  }
  return s;
}

std::map<std::string, Scenario> Scenarios() {
  std::map<std::string, Scenario> all;
  const TopologySpec drawer{1, 1, 8, 1}, two{2, 2, 4, 2};
  Scenario s;
  s.topology = drawer;
  s.workload = AllToAllWorkload{8192, Schedule::kSpread, true, PayloadMode::kVerified};
  all["all-to-all, verified"] = s;
  s.workload = Uniform(1.0, 2048);
  all["saturation"] = s;
  s.topology = two;
  s.workload = Uniform(0.9, 2048);
  s.parameters.d.buffer_flits = 5;
  s.parameters.lr.buffer_flits = 3;
  all["saturation, shallow buffers, two supernodes"] = s;
  s = Scenario();
  s.topology = two;
  s.workload = AllToAllWorkload{16384, Schedule::kLinear, true, PayloadMode::kVerified};
  s.faults = {Fault(2 * kMicrosecond, "sn0-d0-h0/sn0-d1-h0", false, two),
              Fault(3 * kMicrosecond, "sn0-d0-h1:D0", false, two),
              Fault(200 * kMicrosecond, "sn0-d0-h0/sn0-d1-h0", true, two)};
  all["two links cut, one mended, reroutes"] = s;
  s = Scenario();
  s.topology = drawer;
  PatternWorkload hotspot = Uniform(0.7, 4096);
  hotspot.pattern = Pattern::kHotspot;
  hotspot.reliable = true;
  s.workload = hotspot;
  all["hotspot, reliable"] = s;
  s.topology = {3, 1, 2, 1};
  s.workload = Uniform(0.6, 128);
  s.faults = {Fault(kMicrosecond, "sn0-d0-h0:D0", false, s.topology)};
  s.reroute = false;
  all["one-flit packets, a cable lost, nobody reroutes"] = s;
  all["blades among hubs, one cut off and back"] = BladeScenario();
  all["errors on every link, one given up, lanes lost, reroutes"] = ErrorScenario({2, 2, 2, 2});
  all["errors on every link of one supernode, one given up"] = ErrorScenario({1, 2, 4, 1});
  all["faults of links and tables that come and go"] = FaultScenario();
  return all;
}

TEST(Placement, DigestIsTheSameInThreadsAndProcesses) {
  PERCS_TRACE_SEED();
  const std::uint64_t seed = test::Seed();
  for (const auto& [name, scenario] : Scenarios()) {
    SCOPED_TRACE(name);
    const auto one = RunScenario(scenario, RunOptions());
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_TRUE(one->violations.empty()) << one->violations.front();
    EXPECT_GT(one->total.packets_delivered, 100u);
    RunOptions threads;
    threads.threads = 2;
    threads.executor = &test::kThreads;
    threads.watch = [](const Fabric& fabric, std::uint64_t windows, bool) {
      if (windows == 0) return false;
      const Prospect seen = fabric.ProspectAfterWindow(), is = fabric.prospect();
      EXPECT_EQ(seen.next, is.next) << windows;
      EXPECT_EQ(seen.left.unfinished, is.left.unfinished) << windows;
      EXPECT_EQ(seen.left.resident_packets, is.left.resident_packets) << windows;
      return false;
    };
    const auto two = RunScenario(scenario, threads);
    ASSERT_TRUE(two.ok()) << two.status();
    EXPECT_EQ(one->digest, two->digest);
    for (int processes : {2, 3, 5}) {
      SplitOptions options;
      options.processes = processes;
      options.seed = seed + static_cast<std::uint64_t>(processes);
      const auto split = SplitRun(scenario, options);
      ASSERT_TRUE(split.ok()) << split.status();
      EXPECT_EQ(one->digest, split->digest) << processes << " processes";
      EXPECT_EQ(one->virtual_time, split->virtual_time);
      EXPECT_EQ(one->reroutes.size(), split->reroutes.size());
    }
    SplitOptions scattered;
    scattered.processes = 3;
    scattered.process_of = [](NodeId node) { return static_cast<int>(node * 7 % 3); };
    scattered.seed = seed;
    const auto split = SplitRun(scenario, scattered);
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(one->digest, split->digest) << "scattered";
  }
}

// In one process windows have several steps, whole supernodes or not; split, every window is one.
TEST(Placement, WindowsOfOneProcessReachFurther) {
  for (const TopologySpec& topology : {TopologySpec{4, 1, 2, 1}, TopologySpec{1, 2, 4, 1}}) {
    Scenario scenario;
    scenario.topology = topology;
    scenario.workload = Uniform(0.5, 256);
    SplitOptions alike = test::Processes(2);
    alike.reaches_far = false;
    const auto split = SplitRun(scenario, alike);
    ASSERT_TRUE(split.ok()) << split.status();
    std::set<std::uint64_t> windows;
    for (const int threads : {1, 2, 3, 4, 5, 8}) {
      SCOPED_TRACE(threads);
      RunOptions options;
      options.threads = threads;
      options.executor = &test::kThreads;
      const auto run = RunScenario(scenario, options);
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(run->digest, split->digest);
      EXPECT_LT(run->windows, split->windows / 10);
      windows.insert(run->windows);
    }
    EXPECT_EQ(windows.size(), 1u);
  }
}

// The same machine twice: one has windows of several steps that end anywhere, the other has those
// of at most a lookahead. At each end, all before it has happened in both, and nothing after it.
TEST(Placement, AWindowOfSeveralStepsEndsWhereItIsToldTo) {
  PERCS_TRACE_SEED();
  for (const TopologySpec& topology : {TopologySpec{4, 1, 2, 1}, TopologySpec{1, 2, 4, 1}}) {
    Scenario scenario;
    scenario.topology = topology;
    scenario.workload = Uniform(0.5, 256);
    for (const int threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(threads);
      std::array<std::unique_ptr<Fabric>, 2> fabrics;
      for (auto& fabric : fabrics) {
        fabric = Fabric::Create(scenario, Placement::Single(8), threads).value();
        const TableSet tables = Planner(fabric->topology()).Plan(Failures());
        for (NodeId node = 0; node < 8; ++node) fabric->InstallTables(node, tables[node]);
        fabric->Start();
      }
      auto& [far, near] = fabrics;
      RandomStream random(test::Seed(), "window lengths");
      int windows = 0;
      for (Time next = 0; (next = far->NextEventTime()) < kNever; ++windows) {
        const Time longest = far->WindowEnd(next) - next;
        ASSERT_GT(longest, far->lookahead());
        const Time end = next + 1 + random.Below(static_cast<std::uint32_t>(longest));
        far->RunWindow(end, &test::kThreads);
        for (Time at = near->NextEventTime(); at < end; at = near->NextEventTime())
          near->RunWindow(std::min(at + near->lookahead(), end), &test::kBackwards);
        ASSERT_GE(far->NextEventTime(), end);
        // A window that ends where it begins runs nothing, and tells what there is all the same.
        far->RunWindow(end, &test::kThreads);
        ASSERT_EQ(far->ProspectAfterWindow().next, far->NextEventTime());
        ASSERT_EQ(far->flits_moved(), near->flits_moved()) << FormatTime(end);
        ASSERT_EQ(far->packets_delivered(), near->packets_delivered()) << FormatTime(end);
      }
      EXPECT_GT(windows, 5);
    }
  }
}

// Bytes that the process has allocated, at most, while the scenario ran in this many parts.
std::size_t LargestHeap(const Scenario& scenario, int parts) {
  std::size_t largest = 0;
  RunOptions options;
  options.threads = parts;
  options.executor = &test::kBackwards;
  options.watch = [&](const Fabric&, std::uint64_t, bool) {
    largest = std::max(largest, mallinfo2().uordblks);
    return false;
  };
  const auto run = RunScenario(scenario, options);
  EXPECT_TRUE(run.ok()) << run.status();
  EXPECT_GT(run->total.packets_delivered, 40'000u);
  return largest;
}

// A packet is the object that its sender took from a pool of its thread.
TEST(Placement, PacketsDoNotGatherWhereTrafficOfOneDirectionEnds) {
  Scenario scenario;
  scenario.topology = {1, 1, 8, 1};
  PatternWorkload w = Uniform(0.01, 128);
  w.pattern = Pattern::kHotspot;
  w.hotspot = 7;
  w.hotspot_fraction = 1;
  w.measure = 1'000 * kMicrosecond;
  scenario.workload = w;
  const std::size_t one = LargestHeap(scenario, 1), three = LargestHeap(scenario, 3);
  EXPECT_LT(three, one + (std::size_t{1} << 20));
}

// Of the model version below. A change that is meant to alter results raises kModelVersion and
// these together.
const std::map<std::string, std::string> kGolden = {
    {"all-to-all, verified", "bed7bdb03759d07d31241c12b663b854"},
    {"faults of links and tables that come and go", "2046f37fa7a568d1ababe8fd7bae241f"},
    {"hotspot, reliable", "f3a2c8de4488c93e431274fe88b1388d"},
    {"blades among hubs, one cut off and back", "a3101e9a8759e6f1ddbbdb60410d8e1a"},
    {"errors on every link, one given up, lanes lost, reroutes",
     "b9553e48aec11a63b1c9c7321b7883d5"},
    {"errors on every link of one supernode, one given up", "ad7f2b492735ace9b65039be0c27a98e"},
    {"one-flit packets, a cable lost, nobody reroutes", "3790236830c27651a5ec6f4413d4a808"},
    {"saturation", "4da4cb45797373003791e274899eb409"},
    {"saturation, shallow buffers, two supernodes", "fd13741e410099c4efe0a979125adb71"},
    {"two links cut, one mended, reroutes", "6932066557518230ae31dd667b8d8e44"},
};

TEST(Placement, DigestsAreThoseOfTheModelVersion) {
  EXPECT_EQ(kModelVersion, 18u) << "new golden digests belong to a new model version";
  const std::map<std::string, Scenario> scenarios = Scenarios();
  ASSERT_EQ(scenarios.size(), kGolden.size());
  for (const auto& [name, scenario] : scenarios) {
    const auto result = RunScenario(scenario, RunOptions());
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->digest.ToString(), kGolden.at(name)) << name;
  }
}

class Tamper : public ::testing::Test {
 protected:
  // Spoils the first outbox for which `spoil` says it did; returns whether anything noticed.
  bool Noticed(const std::function<bool(Outbox&)>& spoil,
               const char* name = "all-to-all, verified") {
    const Scenario scenario = Scenarios().at(name);
    const auto clean = RunScenario(scenario, RunOptions());
    bool done = false;
    SplitOptions options;
    options.processes = 2;
    options.process_of = [](NodeId node) { return static_cast<int>(node % 2); };
    int skipped = 0;
    options.tamper = [&](int, int, Outbox& box) {
      if (!done && ++skipped > 3) done = spoil(box);
    };
    const auto spoiled = SplitRun(scenario, options);
    EXPECT_TRUE(done);
    return !spoiled.ok() || !spoiled->violations.empty() || spoiled->digest != clean->digest;
  }
};

TEST_F(Tamper, OnePayloadByteIsNoticed) {
  EXPECT_TRUE(Noticed([](Outbox& box) {
    for (FlitRun& run : box.flits) {
      if (!run.header.payload) continue;
      run.header.payload.bytes()[100] ^= 1;
      return true;
    }
    return false;
  }));
}

TEST_F(Tamper, OneWithheldCreditIsNoticed) {
  EXPECT_TRUE(Noticed([](Outbox& box) {
    for (CreditRun& run : box.credits) {
      if (run.count < 2) continue;
      --run.count;
      return true;
    }
    return false;
  }));
}

TEST_F(Tamper, OneLateFlitIsNoticed) {
  EXPECT_TRUE(Noticed([](Outbox& box) {
    for (FlitRun& run : box.flits) {
      if (run.first != 0 || !run.tail) continue;
      run.arrival += 400 * kNanosecond;  // more than a queue on its way can hide
      return true;
    }
    return false;
  }));
}

TEST_F(Tamper, OneFlippedArbitrationIsNoticed) {
  // Two packets leave on one link in the other order, as if its arbiter had chosen otherwise.
  const auto swap_two = [](Outbox& box) {
    for (std::size_t i = 0; i < box.flits.size(); ++i) {
      for (std::size_t j = i + 1; j < box.flits.size(); ++j) {
        FlitRun& a = box.flits[i];
        FlitRun& b = box.flits[j];
        if (a.node != b.node || a.port != b.port || a.vc != b.vc) continue;
        std::swap(a.header, b.header);
        return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(Noticed(swap_two, "one-flit packets, a cable lost, nobody reroutes"));
}

TEST(Blades, ReachHubsAndEachOtherAcrossSupernodesAsTheirHubWould) {
  Scenario s = BladeScenario();
  s.faults.clear();
  const auto topology = Topology::Create(s.topology);
  RunOptions options;
  std::map<std::pair<NodeId, NodeId>, int> delivered;
  options.on_delivery = [&](NodeId node, const Delivery& d) { ++delivered[{d.source, node}]; };
  const auto result = RunScenario(s, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->violations, std::vector<std::string>());
  EXPECT_EQ(result->total.packets_delivered, 200u);
  EXPECT_GT((delivered[{6, 7}]), 0);  // blade to blade over L, D and L links
  EXPECT_GT((delivered[{8, 9}]), 0);  // ... over one link of their own

  std::get<ScriptedWorkload>(s.workload).packets = {{0, 8, 0, 0, 0, 128}, {0, 0, 9, 0, 0, 128}};
  const auto lost = RunScenario(s, RunOptions());
  ASSERT_TRUE(lost.ok()) << lost.status();
  EXPECT_EQ(lost->total.packets_dropped[static_cast<int>(DropReason::kNoRoute)], 2u);
}

}  // namespace
}  // namespace percs
