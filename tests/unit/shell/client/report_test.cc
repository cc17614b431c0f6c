// Method: formats a RunResult made by hand and compares the lines that matter; the JSON is compared
// value by value. A result that went over the wire has to print the same.
#include "client/percsctl/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "emulator/metrics/named_counters.h"
#include "proto/convert/counters.h"
#include "proto/convert/run_result.h"

namespace percs {
namespace {

using testing::HasSubstr;
using testing::Not;

Topology TwoDrawers() { return *Topology::Create({.supernodes = 1, .drawers = 2, .hubs = 4}); }

RunReport HandMade() {
  RunReport report;
  RunResult& r = report.result;
  r.scenario = "by-hand";
  r.digest = {0x0123456789abcdef, 0xfedcba9876543210};
  r.virtual_time = 12'345'678;
  r.nodes = 8;
  r.flit_hops = 1'234'567;
  r.packet_hops = 77'160;
  r.windows = 4'321;
  r.links[static_cast<int>(LinkClass::kLl)] = 24;
  r.utilisation_mean[static_cast<int>(LinkClass::kLl)] = 0.25;
  r.utilisation_max[static_cast<int>(LinkClass::kLl)] = 0.5;
  r.total.packets_created = 1'010;
  r.total.packets_delivered = 1'000;
  r.total.hops_delivered = 1'500;
  r.total.bytes_delivered = 2'048'000;
  r.total.ports[0].vc[0].flits = 16'000;
  r.total.packets_dropped[static_cast<int>(DropReason::kLinkDown)] = 7;
  r.total.packets_dropped[static_cast<int>(DropReason::kTruncated)] = 3;
  for (int i = 0; i < 100; ++i) r.total.packet_latency.Add(500'000 + 1'000 * i);
  report.wall_seconds = 0.25;
  report.placement = "1 thread";
  return report;
}

void AddMessagesAndReroute(RunResult& r) {
  r.total.messages_sent = 56;
  r.total.messages_delivered = 55;
  r.total.messages_acknowledged = 55;
  r.total.messages_failed = 1;
  r.total.packets_resent = 10;
  r.total.payload_bytes_verified = 1 << 20;
  r.failed.push_back({0, 5, 2, 65'536, DropReason::kNoRoute, 9'000'000});
  Reroute x;
  x.epoch = 2;
  x.down = {{0, static_cast<PortId>(kLrFirst)}};
  x.raised = 5'000'000, x.alerted = 6'000'000, x.planning_started = 6'000'000,
  x.planned = 26'000'000;
  x.committed = 31'000'000, x.first_packet = 31'250'000, x.hubs_changed = 2;
  r.reroutes.push_back(x);
}

TEST(ReportTest, PeopleReadDigestTimesLatencyDropsAndUtilisation) {
  const std::string text = ReportText(HandMade(), TwoDrawers());
  EXPECT_THAT(text, HasSubstr("digest           0123456789abcdeffedcba9876543210\n"));
  EXPECT_THAT(text, HasSubstr("virtual time     12.346us\n"));
  EXPECT_THAT(text, HasSubstr("wall time        250 ms (1 thread, 4,321 windows)\n"));
  EXPECT_THAT(text, HasSubstr("1,000 delivered of 1,010 created"));
  EXPECT_THAT(text, HasSubstr("hops             1.500 mean\n"));
  EXPECT_THAT(text, testing::ContainsRegex("latency \\(virtual\\) +mean ns .* max ns +count\n"
                                           "packet +549.5 .* 599 +100\n"));
  EXPECT_THAT(text, testing::ContainsRegex("mean load % +max load % "));
  EXPECT_THAT(text, testing::ContainsRegex("LL +24 +25.0 +50.0 +16,000"));
  EXPECT_THAT(text, testing::ContainsRegex("link_down +7 "));
  EXPECT_THAT(text, testing::ContainsRegex("truncated +3 "));
  EXPECT_THAT(text, HasSubstr("checkers: all held\n"));
  EXPECT_THAT(text, Not(HasSubstr("reroute")));
  EXPECT_THAT(text, Not(HasSubstr("messages")));
}

TEST(ReportTest, AFailureShowsItsTimelineAndTheMessagesItCost) {
  RunReport report = HandMade();
  AddMessagesAndReroute(report.result);
  const std::string text = ReportText(report, TwoDrawers());
  EXPECT_THAT(text, HasSubstr("56 sent, 55 delivered, 55 acknowledged, 1 failed"));
  EXPECT_THAT(text, HasSubstr("10 packets resent"));
  EXPECT_THAT(text, HasSubstr("1 MiB verified, 0 wrong"));
  EXPECT_THAT(text, HasSubstr("1 message: no_route"));
  EXPECT_THAT(text,
              HasSubstr("  epoch 2: sn0-d0-h0:LR0 down; tables of 2 hubs changed, 0 pairs "
                        "unreachable\n    raised 5us -> alerted 6us -> planning 6us -> "
                        "planned 26us -> committed 31us -> first packet on a new path: 31.25us\n"));
}

TEST(ReportTest, ATraceShowsTheSlowestRankFirst) {
  RunReport report = HandMade();
  report.result.ranks = {{0, 1'000'000, 400'000, 100'000, 500'000},
                         {1, 2'000'000, 1'000'000, 0, 1'000'000}};
  const std::string text = ReportText(report, TwoDrawers());
  EXPECT_THAT(text, HasSubstr("2 ranks, slowest is rank 1 at 2us virtual"));
  EXPECT_THAT(text, testing::ContainsRegex("1 \\(slowest\\) +2 +1us \\(50.0 %\\)"));
}

TEST(ReportTest, ViolationsAreShownAndSetTheExitCode) {
  RunReport report = HandMade();
  report.result.violations = {"flits: created 5, delivered 4"};
  EXPECT_THAT(ReportText(report, TwoDrawers()),
              HasSubstr("checkers: 1 violation\n  flits: created 5"));
  testing::internal::CaptureStdout();
  const Outcome outcome = PrintReport(report, TwoDrawers(), false);
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(outcome.code, ExitCode::kViolation);
  EXPECT_EQ(outcome.message, "1 checker violation, the first: flits: created 5, delivered 4");
}

TEST(ReportTest, ProgramsGetTheFieldsTheyAreDocumented) {
  RunReport report = HandMade();
  AddMessagesAndReroute(report.result);
  const nlohmann::json json = ReportJson(report, TwoDrawers());
  EXPECT_EQ(json["digest"], "0123456789abcdeffedcba9876543210");
  EXPECT_DOUBLE_EQ(json["virtual_seconds"], 12.345678e-6);
  EXPECT_DOUBLE_EQ(json["wall_seconds"], 0.25);
  EXPECT_EQ(json["packets_delivered"], 1000);
  EXPECT_EQ(json["flit_hops"], 1'234'567);
  EXPECT_EQ(json["drops"]["link_down"], 7);
  EXPECT_EQ(json["drops"]["no_reply_slot"], 0);
  EXPECT_DOUBLE_EQ(json["latency_ns"]["packet"]["mean"], 549.5);
  EXPECT_DOUBLE_EQ(json["latency_ns"]["packet"]["max"], 599);
  EXPECT_DOUBLE_EQ(json["link_utilisation"]["LL"]["max"], 0.5);
  EXPECT_EQ(json["link_utilisation"].size(), 4u);
  EXPECT_EQ(json["reroutes"][0]["down"][0], "sn0-d0-h0:LR0");
  EXPECT_EQ(json["reroutes"][0]["first_packet_ns"], 31'250);
  EXPECT_EQ(json["failed_messages"][0]["reason"], "no_route");
  EXPECT_EQ(json["failed_messages"][0]["destination"], TwoDrawers().NodeName(5));
}

TEST(ReportTest, ALatencyOfNoArrivalsIsNotZero) {
  RunReport report = HandMade();
  report.result.total.packet_latency = {};
  const nlohmann::json latency = ReportJson(report, TwoDrawers())["latency_ns"];
  for (const char* what : {"packet", "message"}) {
    EXPECT_EQ(latency[what]["count"], 0);
    for (const char* key : {"mean", "p50", "p99", "max"})
      EXPECT_TRUE(latency[what][key].is_null()) << what << key;
  }
  EXPECT_THAT(ReportText(report, TwoDrawers()), testing::ContainsRegex("packet +- +- +- +- +0"));
  EXPECT_THAT(CountersText(report.result.total), testing::ContainsRegex("packet +- +- +- +- +0"));
}

TEST(ReportTest, ASaturatedRunSaysSoWithItsLoadAndReportsNoLatency) {
  RunReport report = HandMade();
  report.result.total.measured_bytes_offered = 8'000;
  report.result.total.measured_bytes_accepted = 2'000;
  Measurement& measurement = report.result.measurement;
  measurement.duration = kMicrosecond;
  measurement.senders = 2;
  measurement.saturated = true;
  v1::RunResult message;
  RunResultToProto(report.result, TwoDrawers(), &message);
  const auto received = RunResultFromProto(message, TwoDrawers());
  ASSERT_TRUE(received.ok()) << received.status();
  report.result = *received;
  const nlohmann::json json = ReportJson(report, TwoDrawers());
  EXPECT_EQ(json["measured"]["saturated"], true);
  EXPECT_EQ(json["measured"]["sending_hubs"], 2);
  EXPECT_EQ(json["measured"]["duration_ps"], kMicrosecond);
  EXPECT_EQ(json["measured"]["bytes_offered"], 8'000);
  EXPECT_DOUBLE_EQ(json["measured"]["offered_bytes_per_second_per_hub"], 4e9);
  EXPECT_DOUBLE_EQ(json["measured"]["accepted_bytes_per_second_per_hub"], 1e9);
  EXPECT_TRUE(json["latency_ns"]["packet"]["mean"].is_null());
  EXPECT_EQ(json["latency_ns"]["packet"]["count"], 100);
  const std::string text = ReportText(report, TwoDrawers());
  EXPECT_THAT(text,
              HasSubstr("1 GB/s accepted of 4 GB/s offered per sending hub (2 hubs): saturated\n"));
  EXPECT_THAT(text, testing::ContainsRegex("packet +saturated +- +- +- +100"));
}

TEST(ReportTest, ADrainSaysWhetherAllArrived) {
  RunReport report = HandMade();
  report.result.total.measured_bytes_offered = 8'000;
  report.result.measurement.duration = kMicrosecond;
  report.result.measurement.senders = 2;
  EXPECT_TRUE(ReportJson(report, TwoDrawers())["measured"]["packets_undelivered"].is_null());
  report.result.measurement.created = 40;
  report.result.measurement.undelivered = 3;
  v1::RunResult message;
  RunResultToProto(report.result, TwoDrawers(), &message);
  const auto received = RunResultFromProto(message, TwoDrawers());
  ASSERT_TRUE(received.ok()) << received.status();
  report.result = *received;
  const nlohmann::json measured = ReportJson(report, TwoDrawers())["measured"];
  EXPECT_EQ(measured["packets_created"], 40);
  EXPECT_EQ(measured["packets_undelivered"], 3);
  EXPECT_THAT(ReportText(report, TwoDrawers()),
              HasSubstr("3 of 40 packets of the measurement did not arrive"));
  report.result.measurement.undelivered = 0;
  EXPECT_THAT(ReportText(report, TwoDrawers()),
              HasSubstr("all 40 packets of the measurement arrived"));
}

TEST(ReportTest, AResultFromTheWirePrintsTheSame) {
  v1::RunResult message;
  message.set_scenario("by-hand");
  message.set_digest("0123456789abcdeffedcba9876543210");
  message.set_workload_digest("0123456789abcdeffedcba9876543210");
  message.set_virtual_time(12'345'678);
  message.mutable_total()->set_packets_delivered(1'000);
  (*message.mutable_total()->mutable_packets_dropped())["truncated"] = 3;
  auto* reroute = message.add_reroutes();
  reroute->add_down("sn0-d0-h0:LR0");
  const auto result = RunResultFromProto(message, TwoDrawers());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->digest, HandMade().result.digest);
  EXPECT_EQ(result->total.packets_dropped[static_cast<int>(DropReason::kTruncated)], 3u);
  ASSERT_EQ(result->reroutes.size(), 1u);
  EXPECT_EQ(result->reroutes[0].down[0], (LinkEnd{0, static_cast<PortId>(kLrFirst)}));
  EXPECT_EQ(result->reroutes[0].first_packet, kNever);
  (*message.mutable_total()->mutable_packets_dropped())["eaten"] = 1;
  EXPECT_THAT(RunResultFromProto(message, TwoDrawers()).status().message(),
              HasSubstr("\"packets_dropped.eaten\""));
}

TEST(ReportTest, EveryCounterCrossesTheWire) {
  NodeStats sent;
  std::uint64_t value = 0;
  sent.Visit([&value](std::uint64_t& counter) { counter = ++value; });
  sent.packets_by_mode[static_cast<std::size_t>(RouteMode::kHwDirect)] = 0;  // counted by no one
  v1::Counters message;
  CountersToProto(sent, &message);
  auto got = CountersFromProto(message);
  ASSERT_TRUE(got.ok()) << got.status();
  std::vector<std::uint64_t> before, after;
  sent.Visit([&before](std::uint64_t counter) { before.push_back(counter); });
  got->Visit([&after](std::uint64_t counter) { after.push_back(counter); });
  EXPECT_EQ(after, before);
  (*message.mutable_hfis(1)->mutable_counts())["flown"] = 1;
  EXPECT_THAT(CountersFromProto(message).status().message(), HasSubstr("\"hfis.1.flown\""));
  message.mutable_hfis()->Clear();
  while (message.pcie_size() < 6) message.add_pcie();
  (*message.mutable_pcie(5)->mutable_counts())["refused"] = 1;
  EXPECT_THAT(CountersFromProto(message).status().message(), HasSubstr("\"pcie.5.refused\""));
}

// A counter that came later has no field, and another version may have one that is not known here.
TEST(ReportTest, CountersWithoutAFieldAreReadByName) {
  v1::Counters message;
  (*message.mutable_counts())["nmmu_hits"] = 7;
  const auto got = CountersFromProto(message);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->nmmu_hits, 7u);
  (*message.mutable_counts())["flown"] = 1;
  EXPECT_THAT(CountersFromProto(message).status().message(), HasSubstr("counter \"flown\""));
  message.Clear();
  (*message.add_ports()->mutable_counts())["flown"] = 1;
  EXPECT_THAT(CountersFromProto(message).status().message(),
              HasSubstr("counter of a port \"flown\""));
}

TEST(ReportTest, EveryCounterIsInTheReportAtItsPlace) {
  NodeStats stats;
  for (const NamedCounter& counter : NamedCounters()) counter.Of(stats) = 5;
  const nlohmann::json json = CountersJson(stats);
  for (const NamedCounter& counter : NamedCounters()) {
    if (counter.name == "packets_by_mode.hw_direct") continue;  // is what remains
    std::string pointer = "/" + counter.json;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    EXPECT_EQ(json.value(nlohmann::json::json_pointer(pointer), 0), 5) << pointer;
  }
}

TEST(FormatTest, TimesKeepThreeDecimalsAtMost) {
  EXPECT_EQ(FormatShort(0), "0ps");
  EXPECT_EQ(FormatShort(999), "999ps");
  EXPECT_EQ(FormatShort(5'334), "5.334ns");
  EXPECT_EQ(FormatShort(5'200'000), "5.2us");
  EXPECT_EQ(FormatShort(21'034'567'890), "21.035ms");
  EXPECT_EQ(FormatVirtual(3 * kSecond), "3s virtual");
  EXPECT_EQ(FormatCount(1'234'567), "1,234,567");
  EXPECT_EQ(FormatBytes(65'536), "64 KiB");
  EXPECT_EQ(FormatRate(24e9), "24 GB/s");
}

TEST(ProgressTest, TheLineHasVirtualTimeWallTimeAndAnEstimate) {
  EXPECT_EQ(ProgressLine::Text("5us virtual, 250 packets", {}, {2.0, 0.25}),
            "5us virtual, 250 packets, wall 2.00 s, 25 %, ETA 6.00 s");
  EXPECT_EQ(ProgressLine::Text("figures", {}, {2.0, 0.009}), "figures, wall 2.00 s, ETA unknown");
}

TEST(ProgressTest, TheEstimateLeavesOutWhatWasBeforeTheRun) {
  // 30 s of building, then a tenth in 2 s.
  EXPECT_EQ(ProgressLine::Text("run", {30.0, 0}, {32.0, 0.1}),
            "run, wall 32.00 s, 10 %, ETA 18.00 s");
  EXPECT_EQ(ProgressLine::Text("run", {30.0, 0.2}, {32.0, 0.4}),
            "run, wall 32.00 s, 40 %, ETA 6.00 s");
  EXPECT_EQ(ProgressLine::Text("run", {30.0, 0.2}, {32.0, 0.205}),
            "run, wall 32.00 s, ETA unknown");
  EXPECT_EQ(ProgressLine::Text("run", {30.0, 0.2}, {32.0, 1.5}),
            "run, wall 32.00 s, 100 %, ETA 0 us");
}

TEST(ProgressTest, TheShareIsThatOfPacketsOrOfTimeWhicheverIsFurther) {
  EXPECT_EQ(RunProgressLine::Share(5, 250, 0, 1'000), 0.25);
  EXPECT_EQ(RunProgressLine::Share(5, 250, 10, 1'000), 0.5);
  EXPECT_EQ(RunProgressLine::Share(5, 250, 10, 0), 0.5);
  EXPECT_EQ(RunProgressLine::Share(5, 250, 0, 0), 0);
}

TEST(ProgressTest, RunsOfLargeMachinesAreLookedAtAfterFewerWindows) {
  EXPECT_EQ(LocalRunProgress::EveryWindows(1), 16U);
  EXPECT_EQ(LocalRunProgress::EveryWindows(32), 16U);
  EXPECT_EQ(LocalRunProgress::EveryWindows(512), 16U);
  EXPECT_EQ(LocalRunProgress::EveryWindows(1'024), 8U);
  EXPECT_EQ(LocalRunProgress::EveryWindows(16'384), 1U);
}

TEST(ProgressTest, MeasurementsWeighByTheirWorkAndGoByVirtualTime) {
  MeasurementsProgress progress({1, 3}, /*always=*/false);
  EXPECT_EQ(progress.Share(50), 0);  // nothing is expected yet
  progress.StartRound(100);
  EXPECT_EQ(progress.Share(50), 0.125);
  EXPECT_EQ(progress.Share(1'000), 0.25);
  progress.EndRound(100);
  progress.StartRound(300);
  EXPECT_EQ(progress.Share(100), 0.125);
  progress.NextMeasurement();
  EXPECT_EQ(progress.Share(0), 0.25);
  progress.StartRound(10);
  EXPECT_EQ(progress.Share(5), 0.625);
  progress.NextMeasurement();
  EXPECT_EQ(progress.Share(0), 1);
}

}  // namespace
}  // namespace percs
