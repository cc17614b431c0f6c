// Method: random RDMA between main memory and devices of all widths at several hubs, on a machine
// that corrupts flits, cuts links and unplugs devices. The model of a device is a byte array; what
// ended well, and nothing else, is in it.
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/scenario/link_settings.h"
#include "tests/support/executors.h"
#include "tests/support/play.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"
#include "tests/unit/emulator/hfi/window_script.h"

namespace percs {
namespace {

using test::Bytes;
using test::kMemory;
using test::Machine;
using test::Pattern;
using test::Script;

constexpr int kDeviceHubs = 8;
constexpr std::uint64_t kArea = 24'000;  // of each hub at each other
constexpr Address kDeviceMemory = 0x8000000;
constexpr Time kDevicesLater = 20 * kMicrosecond, kDevicesCalm = 40 * kMillisecond;

std::vector<PcieDevice> Devices(RandomStream& random, std::uint64_t all) {
  std::vector<PcieDevice> devices;
  const int lanes[] = {1, 4, 8, 16};
  for (NodeId hub = 0; hub < kDeviceHubs; ++hub) {
    devices.push_back({.hub = hub,
                       .port = static_cast<int>(random.Below(kPciePorts)),
                       .lanes = lanes[random.Below(4)],
                       .bytes = 2 * all + 500 + random.Below(1000),
                       .latency = random.Below(3'000) * kNanosecond});
  }
  return devices;
}

// Flits are corrupted, links go down and come back, a packet takes another way than the one before.
Scenario Spoiled(Scenario scenario, std::uint64_t seed, bool unplug) {
  scenario.seed = seed;
  scenario.routing.rdma.mode = RouteMode::kHwDirectStriped;
  scenario.reroute = false;
  scenario.parameters.link_replay = false;  // a corrupted flit costs its packet
  scenario.parameters.retransmit_tries = 12;
  const Topology topology = *Topology::Create(scenario.topology);
  RandomStream random(seed, "spoil");
  for (const LinkEnd& end : topology.Links()) {
    scenario.faults.push_back(SetErrorRate(0, end, 0.005));
    if (random.Below(4) != 0) continue;
    const Time at = kDevicesLater + random.Below(200'000) * kNanosecond;
    scenario.faults.push_back(SetLinkDown(at, end));
    scenario.faults.push_back(SetLinkUp(at + random.Below(20'000) * kNanosecond + 1, end));
  }
  for (const PcieDevice& device : scenario.topology.pcie) {
    for (int i = 0; unplug && i < 6; ++i) {
      FaultSpec fault;
      fault.id = "unplug " + std::to_string(device.hub) + " " + std::to_string(i);
      fault.kind = FaultKind::kPcieUnplugged;
      fault.select.in = {device.hub};
      fault.pcie_port = device.port;
      fault.at = kDevicesLater + random.Below(1'500'000) * kNanosecond;
      fault.duration = 1 + random.Below(60'000) * kNanosecond;
      scenario.faults.push_back(fault);
    }
  }
  return scenario;
}

// Every hub writes to its areas of all devices, some of it out of its own device; then, when all is
// calm, once more with other bytes, reads everything of another's device, and looks at its own.
Scenario DeviceCampaign(std::uint64_t seed, bool unplug, std::uint64_t area = kArea) {
  const std::uint64_t all = kDeviceHubs * area;
  RandomStream random(seed, "devices");
  TopologySpec machine{2, 2, 2, 2};
  machine.pcie = Devices(random, all);
  std::vector<Bytes> model(kDeviceHubs, Bytes(all));
  std::vector<Script> scripts;
  for (NodeId node = 0; node < kDeviceHubs; ++node) {
    Script script(node, 1);
    script.Open(0, 2 * all);
    // Two regions: what others write to, and what this hub writes from.
    script.RegisterDevice(kDeviceMemory, 2 * all, machine.pcie[node].port, random.Below(500));
    const Address from = random.Below(2) ? kDeviceMemory + all : kMemory;
    for (const bool calm : {false, true}) {
      if (calm && !unplug) break;
      if (calm) script.At(kDevicesCalm);
      const Bytes data = Pattern(all, 1000 * seed + 10 * node + calm);
      script.Write(from, data);
      if (!calm) script.At(kDevicesLater);
      for (NodeId target = 0; target < kDeviceHubs; ++target) {
        std::uint64_t at = 0;
        while (at < area) {
          const std::uint64_t size = std::min<std::uint64_t>(1 + random.Below(12'000), area - at);
          const std::uint64_t source = random.Below(static_cast<std::uint32_t>(all - size));
          WindowStep& put =
              script.Put(target, 0, from + source, kDeviceMemory + node * area + at, size);
          put.wait = random.Below(4) == 0;
          put.or_ok = unplug && !calm;
          if (put.or_ok) put.expect = WindowStatus::kNoDevice;
          std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(source), size,
                      model[target].begin() + static_cast<std::ptrdiff_t>(node * area + at));
          at += size;
        }
      }
      script.AwaitAll();
    }
    scripts.push_back(script);
  }
  for (NodeId node = 0; node < kDeviceHubs; ++node) {
    Script& script = scripts[node];
    script.At(2 * kDevicesCalm);
    script.Expect(kDeviceMemory, model[node]);
    const NodeId other = (node + 1 + random.Below(kDeviceHubs - 1)) % kDeviceHubs;
    const Address to = random.Below(2) ? kMemory : kDeviceMemory + all;
    script.Get(other, 0, kDeviceMemory, to, all);
    script.Expect(to, model[other]);
  }
  return Spoiled(Machine(machine, scripts), seed, unplug);
}

RunResult PlayCampaign(const Scenario& scenario) {
  const RunResult result = test::PlayPrograms(scenario);
  for (const auto& program : result.window_programs)
    EXPECT_EQ(program.wrong, 0u) << program.name << ": " << program.problem;
  EXPECT_GT(result.total.packets_resent, 0u) << "nothing was lost: the test shows nothing";
  return result;
}

TEST(PciePropertyTest, EveryByteIsInItsPlaceHoweverSlowTheDevice) {
  PERCS_TRACE_SEED();
  for (std::uint64_t round = 0; round < 2; ++round) {
    RunResult result = PlayCampaign(DeviceCampaign(test::Seed() + round, false));
    std::uint64_t in = 0, out = 0, refused = 0;
    for (int port = 0; port < kPciePorts; ++port) {
      in += result.total.Pcie(port, PcieCounter::kBytesIn);
      out += result.total.Pcie(port, PcieCounter::kBytesOut);
      refused += result.total.Pcie(port, PcieCounter::kRefused);
    }
    EXPECT_GE(out, kDeviceHubs * kDeviceHubs * kArea);
    EXPECT_GE(in, kDeviceHubs * kDeviceHubs * kArea);
    EXPECT_EQ(refused, 0u);
  }
}

// What was refused, or lost on its way into a device, is never done later over what was written
// since.
TEST(PciePropertyTest, UnpluggedDevicesKeepTheirBytesAndTakeNothingLate) {
  PERCS_TRACE_SEED();
  for (std::uint64_t round = 0; round < 3; ++round) {
    RunResult result = PlayCampaign(DeviceCampaign(test::Seed() + 10 + round, true));
    std::uint64_t refused = 0;
    for (int port = 0; port < kPciePorts; ++port)
      refused += result.total.Pcie(port, PcieCounter::kRefused);
    EXPECT_GT(refused, 0u) << "nothing was unplugged in time: the test shows nothing";
  }
}

TEST(PciePropertyTest, PlacementChangesNothing) {
  PERCS_TRACE_SEED();
  const Scenario scenario = DeviceCampaign(test::Seed() + 20, true, 4'000);
  const RunResult one = PlayCampaign(scenario);
  test::SplitOptions split;
  split.processes = 3;
  const auto several = test::SplitRun(scenario, split);
  ASSERT_TRUE(several.ok()) << several.status();
  EXPECT_EQ(one.digest, several->digest);
  RunOptions threaded;
  threaded.threads = 3;
  threaded.executor = &test::kThreads;
  EXPECT_EQ(one.digest, test::PlayPrograms(scenario, threaded).digest);
}

}  // namespace
}  // namespace percs
