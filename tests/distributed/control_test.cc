// The Control service on a live fabric. Method: two daemons in this process; every request with
// what it must answer, and after every refusal a good request that succeeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "proto/scenario/route_tables_codec.h"
#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ControlTest : public ::testing::Test {
 protected:
  grpc::Status Fault(const std::string& link, bool up, std::optional<Time> at,
                     v1::InjectLinkFaultReply* reply) {
    v1::InjectLinkFaultRequest request;
    request.set_link(link);
    request.set_up(up);
    if (at) request.set_at(*at);
    return cluster_.Call(&v1::Control::Stub::InjectLinkFault, request, reply);
  }
  v1::StopReply Stop() {
    v1::StopReply reply;
    const grpc::Status status = cluster_.Call(&v1::Control::Stub::Stop, v1::StopRequest(), &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }
  Cluster cluster_{ClusterOptions{}};
};

TEST_F(ControlTest, TrafficRunsUntilItIsStopped) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  cluster_.PassTime(5 * kMicrosecond);
  EXPECT_EQ(cluster_.Status().state(), v1::FABRIC_STATE_RUNNING);
  const Time at = Stop().at();
  EXPECT_GT(at, 0);
  const auto result = cluster_.WaitForResult();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->result().total().packets_delivered(), 0u);
  EXPECT_EQ(result->result().violations_size(), 0);
  EXPECT_EQ(cluster_.Status().state(), v1::FABRIC_STATE_FINISHED);
}

TEST_F(ControlTest, RouteTablesAreDumpedProvenAndLoaded) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::DumpRoutesReply dumped;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::DumpRoutes, v1::DumpRoutesRequest(), &dumped).ok());
  EXPECT_EQ(dumped.epoch(), 1u);
  auto tables = TablesFromProto(dumped.tables(), 4);
  ASSERT_TRUE(tables.ok()) << tables.status();
  // Hub 0 reaches hub 1 over hub 2.
  const auto with_first_hop = [&](PortMask ports) {
    auto source = std::make_shared<RouteTable>(*(*tables)[0]->source_direct);
    source->intra[1] = ports;
    auto hub = std::make_shared<HubTables>(*(*tables)[0]);
    hub->source_direct = hub->source_striped = source;
    v1::LoadRoutesRequest request;
    TablesToProto(
        {0, 1, 2, 3}, [&](NodeId node) { return node == 0 ? hub : (*tables)[node]; },
        request.mutable_tables());
    return request;
  };
  v1::LoadRoutesReply loaded;
  const grpc::Status hole =
      cluster_.Call(&v1::Control::Stub::LoadRoutes, with_first_hop(0), &loaded);
  EXPECT_EQ(hole.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(hole.error_message(), HasSubstr("sn0-d0-h0 to sn0-d0-h1: sn0-d0-h0 has no route"));
  v1::LoadRoutesRequest short_of_one = with_first_hop(PortBit(1));
  short_of_one.mutable_tables()->RemoveLast();
  const grpc::Status missing = cluster_.Call(&v1::Control::Stub::LoadRoutes, short_of_one, &loaded);
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(missing.error_message(), HasSubstr("of 3 nodes, but the machine has 4"));
  const grpc::Status good =
      cluster_.Call(&v1::Control::Stub::LoadRoutes, with_first_hop(PortBit(1)), &loaded);
  ASSERT_TRUE(good.ok()) << good.error_message();
  EXPECT_EQ(loaded.epoch(), 2u);
  EXPECT_EQ(loaded.hubs_changed(), 1u);
  while (cluster_.Status().virtual_time() <= loaded.at()) WaitABit();
  v1::GetRoutesRequest asked;
  asked.set_source("sn0-d0-h0");
  asked.set_destination("sn0-d0-h1");
  v1::GetRoutesReply routes;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::GetRoutes, asked, &routes).ok());
  EXPECT_EQ(routes.epoch(), 2u);
  ASSERT_EQ(routes.routes_size(), 1);
  EXPECT_EQ(routes.routes(0).hops_size(), 3) << routes.ShortDebugString();
  Stop();
  const auto result = cluster_.WaitForResult();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().violations_size(), 0);
}

TEST_F(ControlTest, TreesAreCreatedListedAndDeleted) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  const auto create = [&](const std::string& name, const std::string& members) {
    v1::CreateTreeRequest request;
    request.mutable_tree()->set_name(name);
    request.mutable_tree()->set_members(members);
    v1::CreateTreeReply reply;
    return cluster_.Call(&v1::Control::Stub::CreateTree, request, &reply);
  };
  const auto list = [&](const std::string& name) {
    v1::ListTreesRequest request;
    request.set_name(name);
    v1::ListTreesReply reply;
    EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::ListTrees, request, &reply).ok());
    return reply;
  };
  EXPECT_EQ(list("").trees_size(), 0);
  EXPECT_EQ(create("lone", "sn0-d0-h1").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(create("far", "all, sn7-d0-h1").error_message(), HasSubstr("sn7-d0-h1"));
  for (int i = 0; i < 64; ++i) {
    const grpc::Status status = create("tree" + std::to_string(i), "all");
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(create("tree5", "all").error_code(), grpc::StatusCode::ALREADY_EXISTS);
  const grpc::Status full = create("one more", "sn0-d0-h2, sn0-d0-h3");
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(full.error_message(), HasSubstr("all 64 indexes of the CAU of sn0-d0-h2 are in use"));
  while (list("tree63").trees(0).state() != "ready") WaitABit();
  EXPECT_EQ(list("tree63").trees(0).vertices_size(), 4);
  EXPECT_EQ(list("").trees_size(), 64);
  v1::DeleteTreeRequest gone;
  gone.set_name("tree9");
  v1::DeleteTreeReply reply;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::DeleteTree, gone, &reply).ok());
  EXPECT_EQ(reply.id(), 9u);
  gone.set_name("tree99");
  EXPECT_EQ(cluster_.Call(&v1::Control::Stub::DeleteTree, gone, &reply).error_code(),
            grpc::StatusCode::NOT_FOUND);
  while (list("tree9").trees(0).state() != "deleted") WaitABit();
  EXPECT_TRUE(create("one more", "sn0-d0-h2, sn0-d0-h3").ok());
  Stop();
  const auto result = cluster_.WaitForResult();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().violations_size(), 0);
  EXPECT_EQ(result->result().trees_size(), 65);
}

TEST_F(ControlTest, AFaultTakesEffectNowOrLaterButNotInThePast) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::InjectLinkFaultReply down, up;
  grpc::Status status = Fault("sn0-d0-h0/sn0-d0-h3", false, std::nullopt, &down);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(down.ends(), "sn0-d0-h0/sn0-d0-h3");
  EXPECT_EQ(down.link(), "sn0-d0-h0:LL2");
  status = Fault("sn0-d0-h0:LL2", true, down.at() + 100 * kMicrosecond, &up);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(up.at(), down.at() + 100 * kMicrosecond);

  status = Fault("sn0-d0-h0:LL2", true, down.at() / 2, &up);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("in the past: virtual time is"));
  status = Fault("sn0-d0-h0:LX2", true, std::nullopt, &up);
  EXPECT_NE(status.error_code(), grpc::OK);
  EXPECT_THAT(status.error_message(), HasSubstr("sn0-d0-h0:L"));

  while (cluster_.Status().virtual_time() < down.at() + 200 * kMicrosecond) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Stop();
  const auto result = cluster_.WaitForResult();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().reroutes_size(), 2);
  EXPECT_EQ(result->result().violations_size(), 0);
}

TEST_F(ControlTest, ACommandedFaultGivesTheDigestOfAScenarioWithThatFault) {
  v1::ApplyRequest request = RequestFromFile("deploy/scenarios/one-drawer.yaml");
  request.mutable_scenario()->mutable_run()->set_clock(v1::CLOCK_LIVE);
  request.mutable_scenario()->mutable_run()->set_pace(20 *
                                                      kMicrosecond);  // so that we come in time
  ASSERT_TRUE(cluster_.Apply(request).ok());
  v1::InjectLinkFaultReply reply;
  const grpc::Status status = Fault("sn0-d0-h1/sn0-d0-h6", false, std::nullopt, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto live = cluster_.WaitForResult();
  ASSERT_TRUE(live.ok()) << live.status();
  v1::Fault* fault = request.mutable_scenario()->add_faults();
  fault->set_at(reply.at());
  fault->set_link_down("sn0-d0-h1/sn0-d0-h6");
  EXPECT_EQ(live->result().digest(), RunHere(request.scenario()).digest.ToString());
}

TEST_F(ControlTest, CommandedErrorsAndLostLanesGiveTheDigestOfAScenarioWithThem) {
  v1::ApplyRequest request = RequestFromFile("deploy/scenarios/one-drawer.yaml");
  request.mutable_scenario()->mutable_run()->set_clock(v1::CLOCK_LIVE);
  request.mutable_scenario()->mutable_run()->set_pace(20 * kMicrosecond);
  ASSERT_TRUE(cluster_.Apply(request).ok());
  v1::Fault faults[3];
  faults[0].mutable_link_errors()->set_link("sn0-d0-h1/sn0-d0-h6");
  faults[0].mutable_link_errors()->set_flit_error_rate(0.05);
  faults[1].mutable_lanes_lost()->set_link("sn0-d0-h2/sn0-d0-h5");
  faults[1].mutable_lanes_lost()->set_from("sn0-d0-h5");
  faults[1].mutable_lanes_lost()->set_count(20);
  faults[2].mutable_lanes_lost()->set_link("sn0-d0-h0/sn0-d0-h7");
  faults[2].mutable_lanes_lost()->set_count(60);  // too many: the link is down
  for (v1::Fault& fault : faults) {
    v1::InjectFaultRequest inject;
    *inject.mutable_fault() = fault;
    inject.set_now(true);
    v1::InjectFaultReply reply;
    const grpc::Status status = cluster_.Call(&v1::Control::Stub::InjectFault, inject, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    fault.set_at(reply.at());
    *request.mutable_scenario()->add_faults() = fault;
  }
  const auto live = cluster_.WaitForResult();
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_EQ(live->result().violations_size(), 0);
  EXPECT_EQ(live->result().reroutes_size(), 1);
  EXPECT_EQ(live->result().digest(), RunHere(request.scenario()).digest.ToString());
}

TEST_F(ControlTest, LanesAndErrorsThatCannotBeAreRefused) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::InjectFaultRequest request;
  request.set_now(true);
  v1::LanesLost* lanes = request.mutable_fault()->mutable_lanes_lost();
  lanes->set_link("sn0-d0-h0:LL0");
  lanes->set_count(65);
  v1::InjectFaultReply reply;
  grpc::Status status = cluster_.Call(&v1::Control::Stub::InjectFault, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "fault lane_loss: 65 lanes, but sn0-d0-h0:LL0, which it selects, has 64 "
            "+ 0 spare; write 0 to 64, or select links of another class");
  request.mutable_fault()->mutable_link_errors()->set_link("sn0-d0-h0:LL0");
  status = cluster_.Call(&v1::Control::Stub::InjectFault, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  Stop();
  EXPECT_TRUE(cluster_.WaitForResult().ok());
}

TEST_F(ControlTest, VirtualTimeNeverRunsAheadOfItsPace) {
  v1::ApplyRequest request = Traffic(1, 4);
  request.mutable_scenario()->mutable_run()->set_clock(v1::CLOCK_LIVE);
  request.mutable_scenario()->mutable_run()->set_pace(5 * kMicrosecond);
  ASSERT_TRUE(cluster_.Apply(request).ok());
  for (Time reached = 0; reached < 2 * kMicrosecond;) {  // 0.4 s at that pace, or more
    const v1::StatusReply status = cluster_.Status();
    reached = status.virtual_time();
    EXPECT_LE(static_cast<double>(reached), status.wall_seconds() * 5e6 + 1);
    EXPECT_EQ(status.clock(), v1::CLOCK_LIVE);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Stop();
  EXPECT_TRUE(cluster_.WaitForResult().ok());
}

TEST_F(ControlTest, AHeldFabricIdlesAndAnswersQuestions) {
  v1::ApplyRequest request = Traffic(1, 4);
  request.mutable_scenario()->clear_workload();
  ASSERT_TRUE(cluster_.Apply(request).ok());
  EXPECT_EQ(cluster_.Status().state(), v1::FABRIC_STATE_IDLE);

  v1::ListLinksReply links;
  EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::ListLinks, v1::ListLinksRequest(), &links).ok());
  ASSERT_EQ(links.links_size(), 6);
  EXPECT_TRUE(links.links(0).up());
  v1::GetRoutesRequest pair;
  pair.set_source("sn0-d0-h0");
  pair.set_destination("sn0-d0-h3");
  v1::GetRoutesReply routes;
  EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::GetRoutes, pair, &routes).ok());
  ASSERT_EQ(routes.routes_size(), 1);
  EXPECT_EQ(routes.routes(0).hops_size(), 2);

  v1::InjectLinkFaultReply down;
  ASSERT_TRUE(Fault("sn0-d0-h0/sn0-d0-h3", false, std::nullopt, &down).ok());
  while (cluster_.Status().epoch() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::GetRoutes, pair, &routes).ok());
  EXPECT_EQ(routes.epoch(), 2u);
  EXPECT_EQ(routes.routes(0).hops_size(), 3);
  v1::ListLinksRequest of_node;
  of_node.set_node("sn0-d0-h3");
  EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::ListLinks, of_node, &links).ok());
  EXPECT_EQ(links.links_size(), 3);
  EXPECT_FALSE(links.links(0).up());

  Stop();
  EXPECT_TRUE(cluster_.WaitForResult().ok());
}

TEST_F(ControlTest, CountersAreTheSumOfTheHubsAtOneVirtualTime) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  cluster_.PassTime(5 * kMicrosecond);
  v1::GetCountersRequest each;
  each.set_per_node(true);
  v1::GetCountersReply reply;
  EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::GetCounters, each, &reply).ok());
  ASSERT_EQ(reply.nodes_size(), 4);
  EXPECT_EQ(reply.nodes(2).node(), "sn0-d0-h2");
  std::int64_t in_flight = 0;
  for (const v1::NodeCounters& n : reply.nodes()) {
    in_flight += static_cast<std::int64_t>(n.counters().packets_created());
    in_flight -= static_cast<std::int64_t>(n.counters().packets_delivered());
  }
  EXPECT_GE(in_flight, 0);
  EXPECT_GT(reply.nodes(0).counters().packets_created(), 0u);
  each.set_node("sn0-d0-h9");
  const grpc::Status status = cluster_.Call(&v1::Control::Stub::GetCounters, each, &reply);
  EXPECT_THAT(status.error_message(), HasSubstr("sn0-d0-h"));
  Stop();
  EXPECT_TRUE(cluster_.WaitForResult().ok());
}

TEST_F(ControlTest, ABadScenarioIsRefusedAndAGoodOneRunsAfterIt) {
  v1::ApplyRequest request = Traffic(1, 4);
  request.set_hold(false);
  request.mutable_scenario()->mutable_topology()->set_supernodes(4);
  request.mutable_scenario()->mutable_topology()->set_d_links_per_pair(500);
  auto refused = cluster_.Apply(request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("topology"));

  request = RequestFromFile("deploy/scenarios/two-hubs.yaml");
  request.add_nodes_per_process(5);
  request.add_nodes_per_process(6);
  refused = cluster_.Apply(request);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("nodes_per_process assigns 11 hubs, but the topology has 2"));

  request.clear_nodes_per_process();
  request.mutable_scenario()->mutable_workload()->mutable_trace()->set_file("/etc/passwd");
  refused = cluster_.Apply(request);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("the controller does not read files"));

  EXPECT_TRUE(cluster_.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml")).ok());
}

TEST_F(ControlTest, OnlyOneRunGoesOnAtATime) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  const auto second = cluster_.Apply(Traffic(1, 4));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("run 1 (traffic) is in progress"));
  v1::ResetReply reset;
  EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::Reset, v1::ResetRequest(), &reset).ok());
  EXPECT_EQ(cluster_.Status().state(), v1::FABRIC_STATE_EMPTY);
  EXPECT_TRUE(cluster_.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml")).ok());
  v1::GetResultRequest first;
  first.set_run(1);
  v1::GetResultReply result;
  const grpc::Status status = cluster_.Call(&v1::Control::Stub::GetResult, first, &result);
  EXPECT_EQ(status.error_code(), grpc::CANCELLED);
  EXPECT_THAT(status.error_message(), HasSubstr("reset"));
}

TEST_F(ControlTest, WhatNeedsAScenarioSaysSoWithoutOne) {
  ASSERT_TRUE(cluster_.WaitUntilJoined());
  v1::StopReply reply;
  const grpc::Status status = cluster_.Call(&v1::Control::Stub::Stop, v1::StopRequest(), &reply);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "no scenario is applied");
  v1::GetResultReply result;
  EXPECT_EQ(
      cluster_.Call(&v1::Control::Stub::GetResult, v1::GetResultRequest(), &result).error_code(),
      grpc::NOT_FOUND);
}

TEST_F(ControlTest, ALimitOfWindowsEndsARunWithAnError) {
  v1::ApplyRequest request = Traffic(1, 4);
  request.set_hold(false);
  request.set_windows_limit(10);
  const auto result = cluster_.Run(request);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("limit of 10 windows"));
}

}  // namespace
}  // namespace percs::test
