// Small parts of the daemons: addresses, versions, placement, pacing, results on the wire. Method:
// values by hand, and round trips in which every counter has a value of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "daemon/config/address.h"
#include "daemon/controller/run/pace_keeper.h"
#include "daemon/sync/placement.h"
#include "proto/convert/node_result.h"
#include "proto/process/grpc_status.h"
#include "proto/process/version.h"
#include "proto/scenario/trace_codec.h"

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AddressTest, EveryFormIsRead) {
  EXPECT_EQ(ParseAddress("unix:/run/x", 1)->ToString(), "unix:/run/x");
  EXPECT_EQ(ParseAddress("localhost:80", 1)->ToString(), "localhost:80");
  EXPECT_EQ(ParseAddress("[::1]:80", 1)->ToString(), "[::1]:80");
  EXPECT_EQ(ParseAddress("tcp", kControllerPort)->ToString(), "0.0.0.0:18515");
  EXPECT_THAT(std::string(ParseAddress("unix:" + std::string(200, 'x'), 1).status().message()),
              HasSubstr("has 1 to 107 bytes, this one 200"));
}

TEST(AddressTest, PrivateOnesAreOfThisMachineAndOfNetworksThatNoRouterLeadsTo) {
  for (const char* inside :
       {"127.0.0.1", "10.255.0.1", "172.16.0.1", "172.31.255.255", "192.168.4.4", "169.254.1.1",
        "100.127.0.1", "::1", "fd12::1", "fe80::1%eth0"}) {
    EXPECT_TRUE(IsPrivateAddress(inside)) << inside;
  }
  for (const char* outside :
       {"0.0.0.0", "::", "11.0.0.1", "172.32.0.1", "172.15.0.1", "192.169.0.1", "100.128.0.1",
        "8.8.8.8", "2001:db8::1", "::2", "a name", ""}) {
    EXPECT_FALSE(IsPrivateAddress(outside)) << outside;
  }
}

TEST(VersionTest, AnOlderFormatIsReadAndANewerOneRefused) {
  v1::Versions versions = OurVersions();
  EXPECT_TRUE(CheckVersions(versions, "x").ok());
  versions.set_format(kFormatVersion - 1);
  EXPECT_TRUE(CheckVersions(versions, "x").ok());
  versions.set_format(kFormatVersion + 1);
  EXPECT_THAT(std::string(CheckVersions(versions, "the file").message()),
              HasSubstr("the file has format version 2"));
}

TEST(StatusTranslationTest, CodesAndMessagesGoThereAndBack) {
  const absl::Status status = absl::NotFoundError("no such link");
  const grpc::Status wire = ToGrpc(status);
  EXPECT_EQ(wire.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(FromGrpc(wire), status);
  EXPECT_EQ(FromGrpc(wire, "sn0-d0-h0"), absl::NotFoundError("sn0-d0-h0: no such link"));
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

TEST(StatusTranslationTest, OnlyWhatNobodyAnsweredIsUnreachable) {
  for (const absl::StatusCode code : {absl::StatusCode::kUnavailable, absl::StatusCode::kCancelled,
                                      absl::StatusCode::kDeadlineExceeded}) {
    const grpc::Status answer = ToGrpc(absl::Status(code, "lost d2"));
    EXPECT_TRUE(Answered(answer));
    EXPECT_FALSE(IsUnreachable(FromGrpc(answer))) << FromGrpc(answer);
    const grpc::Status silence(static_cast<grpc::StatusCode>(code), "Socket closed");
    EXPECT_FALSE(Answered(silence));
    EXPECT_TRUE(IsUnreachable(FromGrpc(silence))) << FromGrpc(silence);
    EXPECT_TRUE(IsUnreachable(FromGrpc(silence, "there")));
  }
  // Only the caller cancels.
  EXPECT_EQ(FromGrpc(ToGrpc(absl::CancelledError("reset"))), absl::AbortedError("reset"));
  const grpc::Status refused(grpc::StatusCode::UNIMPLEMENTED, "");
  EXPECT_FALSE(Answered(refused));
  EXPECT_FALSE(IsUnreachable(FromGrpc(refused)));
}

TEST(StatusTranslationTest, ALongMessageFitsInAHeader) {
  const std::string text = "a link is down\n" + std::string(100'000, '\n');
  const std::string message = ToGrpc(absl::InternalError(text)).error_message();
  EXPECT_THAT(message, testing::StartsWith("a link is down\n"));
  EXPECT_THAT(message, testing::EndsWith(" ..."));
  EXPECT_LE(3 * message.size(), kErrorMessageMax + 64);
}

TEST(PlacementTest, BlocksAreEvenAndCoverEveryHub) {
  EXPECT_THAT(EvenBlocks(32, 5), ElementsAre(6, 6, 7, 6, 7));
  EXPECT_THAT(EvenBlocks(2, 4), ElementsAre(0, 1, 0, 1));
  const auto placement = MakePlacement(5, std::vector<std::uint64_t>{2, 0, 3}, 3);
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(placement->process_of_node, ElementsAre(0, 0, 2, 2, 2));
  EXPECT_EQ(placement->manager_process, 3);
  EXPECT_EQ(placement->processes, 4);
}

TEST(PlacementTest, SharedChannelsAreThoseOfTheLinksBetweenTwoProcesses) {
  const auto topology = Topology::Create({1, 2, 2, 0});
  ASSERT_TRUE(topology.ok()) << topology.status();
  const auto placement = MakePlacement(4, std::vector<std::uint64_t>{1, 3, 0}, 0);
  const auto channels = SharedChannels(*topology, *placement, 0);
  ASSERT_EQ(channels.size(), 1u);
  EXPECT_EQ(channels.at(1), 9u);  // three links of three VCs
}

TEST(PaceKeeperTest, AllowsWhatThePaceAllows) {
  PaceKeeper pace(Pacing{true, 2 * kMicrosecond});
  const auto start = PaceKeeper::Clock::now();
  pace.Start(start);
  const auto later = start + std::chrono::milliseconds(1500);
  EXPECT_EQ(pace.Allowed(later), 3 * kMicrosecond);
  EXPECT_EQ(pace.WaitFor(3 * kMicrosecond, later).count(), 0);
  EXPECT_NEAR(static_cast<double>(pace.WaitFor(4 * kMicrosecond, later).count()), 5e8, 1e3);
  EXPECT_NEAR(pace.BehindSeconds(later, kMicrosecond), 1.0, 1e-6);
  pace.Measure(later, 3 * kMicrosecond, 60);
  EXPECT_NEAR(pace.windows_per_second(), 40, 1e-6);
  EXPECT_NEAR(pace.pace_reached(), 2e6, 1e-3);
}

TEST(PaceKeeperTest, ARunThatIsContinuedShowsItsPaceSinceThen) {
  PaceKeeper pace(Pacing{true, 2 * kMicrosecond});
  const auto start = PaceKeeper::Clock::now();
  pace.Start(start, 900 * kMicrosecond, 10'000);
  pace.Measure(start + std::chrono::milliseconds(500), 901 * kMicrosecond, 10'020);
  EXPECT_NEAR(pace.windows_per_second(), 40, 1e-6);
  EXPECT_NEAR(pace.pace_reached(), 2e6, 1e-3);
  EXPECT_EQ(pace.first_virtual(), 900 * kMicrosecond);
  EXPECT_EQ(pace.first_window(), 10'000u);
}

TEST(PaceKeeperTest, DoesNotHoldABatchRun) {
  PaceKeeper pace(Pacing{false, kMicrosecond});
  pace.Start(PaceKeeper::Clock::now());
  EXPECT_EQ(pace.WaitFor(kSecond, PaceKeeper::Clock::now()).count(), 0);
}

TEST(NodeResultCodecTest, EveryCounterComesBack) {
  NodeResult sent;
  sent.node = 9;
  sent.digest = {0xfedcba9876543210ull, 0x0123456789abcdefull};
  std::uint64_t value = 1;
  sent.stats.Visit([&value](std::uint64_t& v) { v = value++; });
  sent.last_event = 77;
  sent.failed.push_back({1, 2, 3, 4, DropReason::kNoRoute, 5});
  sent.ranks.push_back({1, 2, 3, 4, 5});
  sent.first_rerouted.emplace_back(2, 123);
  sent.phase.resize(6);
  std::uint64_t number = 0;
  for (PhasePart& part : sent.phase)
    part.Visit(true, [&number](std::uint64_t& value) { value = ++number; });
  sent.credits_missing = 6;
  sent.flits_out_of_order = 7;
  sent.vcs_out_of_place = 8;
  sent.flits_without_credit = 9;
  v1::NodeResult message;
  NodeResultToProto(sent, &message);
  auto got = NodeResultFromProto(message);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->digest, sent.digest);
  std::uint64_t expected = 1;
  got->stats.Visit([&expected](std::uint64_t& v) { EXPECT_EQ(v, expected++); });
  EXPECT_EQ(got->failed[0].reason, DropReason::kNoRoute);
  EXPECT_EQ(got->first_rerouted, sent.first_rerouted);
  EXPECT_EQ(got->ranks[0].waiting, 5);
  ASSERT_EQ(got->phase.size(), 6u);
  number = 0;
  for (PhasePart& part : got->phase)
    part.Visit(true, [&number](std::uint64_t value) { EXPECT_EQ(value, ++number); });
  EXPECT_EQ(got->credits_missing, 6u);
  EXPECT_EQ(got->flits_out_of_order, 7u);
  EXPECT_EQ(got->vcs_out_of_place, 8u);
  EXPECT_EQ(got->flits_without_credit, 9u);
  message.mutable_phase()->RemoveLast();
  EXPECT_THAT(std::string(NodeResultFromProto(message).status().message()),
              HasSubstr("4103 numbers of a measurement phase; expected 0, 329 or 4104"));
  message.mutable_stats()->RemoveLast();
  EXPECT_THAT(std::string(NodeResultFromProto(message).status().message()), HasSubstr("counters"));
}

TEST(NodeResultCodecTest, ATreeBeyondThoseOfAMachineIsRefused) {
  v1::NodeResult message;
  NodeResultToProto({}, &message);
  message.add_cau_tasks()->set_tree(0xffff);
  EXPECT_EQ(NodeResultFromProto(message)->cau_tasks[0].tree, 0xffff);
  message.mutable_cau_tasks(0)->set_tree(0x10000);
  EXPECT_THAT(std::string(NodeResultFromProto(message).status().message()),
              HasSubstr("a result of tree 65536; trees are 0 to 65535"));
}

TEST(TraceCodecTest, ARecordComesBackOrItsNumbersAreRefused) {
  const Topology topology = *Topology::Create({.drawers = 1, .hubs = 2});
  TraceEvent event;
  event.node = 1;
  event.in = kPorts - 1;
  event.out = kReplication;
  event.in_vc = event.out_vc = kServiceVc;
  event.first = event.flits = 0xff;
  event.bytes = 0xffff;
  TraceEventList list;
  EventsToProto({event}, &list);
  ASSERT_TRUE(EventsFromProto(list, topology).ok());
  EXPECT_THAT(*EventsFromProto(list, topology), ElementsAre(event));
  const auto refused = [&](const std::function<void(v1::TraceEvent*)>& change) {
    TraceEventList changed = list;
    change(changed.Mutable(0));
    return absl::IsInvalidArgument(EventsFromProto(changed, topology).status());
  };
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_node(2); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_content(std::string(2129, 'x')); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_source(2); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_input(kPorts); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_output(kReplication + 1); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_output(256); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_input_vc(256); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_output_vc(256); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_first(256); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_flits(256); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_bytes(65536); }));
  EXPECT_TRUE(refused([](v1::TraceEvent* e) { e->set_step(kTraceSteps); }));
  EXPECT_FALSE(refused([](v1::TraceEvent* e) { e->set_output(kNoPort); }));
}

}  // namespace
}  // namespace percs
