#include "emulator/routing/route_tables.h"

#include <gtest/gtest.h>

#include "emulator/base/random.h"
#include "emulator/routing/planner.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

absl::Span<const std::uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string Refusal(const std::string& bytes) {
  const auto parsed = HubTables::Parse(Bytes(bytes));
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

std::shared_ptr<const HubTables> Example() {
  const auto topology = Topology::Create({4, 2, 4, 2});
  Failures failures;
  failures.links = {{0, 0}, {3, kDFirst}};
  return Planner(*topology).Plan(failures)[0];
}

TEST(RouteTables, ReadBackEqualAndSharedAsBefore) {
  const auto hub = Example();
  const std::string bytes = hub->Serialize();
  const auto parsed = HubTables::Parse(Bytes(bytes));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed->source_direct, *hub->source_direct);
  EXPECT_EQ(*parsed->source_indirect, *hub->source_indirect);
  for (std::size_t port = 0; port < kLinkPorts; ++port) {
    EXPECT_EQ(*parsed->port_direct[port], *hub->port_direct[port]);
    EXPECT_EQ(*parsed->port_indirect[port], *hub->port_indirect[port]);
  }
  EXPECT_EQ(parsed->port_direct[kDFirst + 3], parsed->port_direct[kDFirst + 4]);
  EXPECT_EQ(parsed->Serialize(), bytes);
  EXPECT_EQ(parsed->Hash(), hub->Hash());
  EXPECT_LT(bytes.size(), 1000u);
}

TEST(RouteTables, HashSeesEveryEntry) {
  const auto hub = Example();
  HubTables changed = *hub;
  RouteTable table = *changed.port_direct[46];
  table.inter[2] ^= PortBit(5);
  changed.port_direct[46] = std::make_shared<const RouteTable>(table);
  EXPECT_NE(changed.Hash(), hub->Hash());
}

TEST(RouteTables, MalformedBytesAreRefusedWithTheirPlace) {
  const std::string good = Example()->Serialize();
  EXPECT_EQ(Refusal(""), "route tables, byte 0 of 0: does not start with PRT3");
  EXPECT_EQ(Refusal("PRT3"), "route tables, byte 4 of 4: hubs per supernode must be 1..4096");
  EXPECT_EQ(Refusal("PRT3\x81\x20"),
            "route tables, byte 6 of 6: hubs per supernode must be 1..4096");
  EXPECT_EQ(Refusal("PRT3\x02\xff\x7f"), "route tables, byte 7 of 7: supernodes must be 1..513");
  EXPECT_EQ(Refusal("PRT3\x02\x02\x62"),
            "route tables, byte 7 of 7: number of tables must be 1..97");
  EXPECT_EQ(Refusal("PRT3\x02\x02\x01\x03"),
            "route tables, byte 8 of 8: a run of port masks is truncated, too long or names a port "
            "that is not a link");
  // The last bytes: a table index, no closed middles, no multicast groups, no clock.
  const char* const missing[] = {
      "the ports of the clock's tree are truncated or include one that is not a link",
      "the multicast table is truncated, has more than 4096 groups or names a port that is not a "
      "link",
      "closed middles are truncated, out of order or beyond the last supernode",
      "a table index is truncated or beyond the last table"};
  for (std::size_t cut = 1; cut <= std::size(missing); ++cut) {
    const std::string left = std::to_string(good.size() - cut);
    EXPECT_EQ(Refusal(good.substr(0, good.size() - cut)),
              "route tables, byte " + left + " of " + left + ": " + missing[cut - 1]);
  }
  EXPECT_EQ(Refusal(good + "x"), "route tables, byte " + std::to_string(good.size()) + " of " +
                                     std::to_string(good.size() + 1) + ": bytes after the end");
}

TEST(RouteTables, AnyDamageIsRefusedOrReadsAsOtherTables) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "route_tables");
  const std::string good = Example()->Serialize();
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (std::uint32_t changes = 1 + random.Below(3); changes > 0; --changes) {
      bad[random.Below(static_cast<std::uint32_t>(bad.size()))] =
          static_cast<char>(random.Below(256));
    }
    if (random.Below(4) == 0) bad.resize(random.Below(static_cast<std::uint32_t>(bad.size())));
    const auto parsed = HubTables::Parse(Bytes(bad));
    if (!parsed.ok()) continue;
    for (std::size_t port = 0; port < kLinkPorts; ++port)
      ASSERT_NE(parsed->port_direct[port], nullptr);
    ASSERT_EQ(parsed->source_direct->intra.size(), parsed->port_indirect[46]->intra.size());
    parsed->Hash();
  }
}

}  // namespace
}  // namespace percs
