// What a controller journals, and that it replays. Method: two daemons in this process, traffic,
// and commands of every kind at times nobody chose; the journal's replay in process and over the
// daemons has the live digest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/journal_file.h"
#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

ClusterOptions Journalled(const std::string& folder, std::uint64_t limit) {
  ClusterOptions options;
  options.state_dir = folder;
  options.journal_limit = limit;
  return options;
}

class JournalTest : public ::testing::Test {
 protected:
  explicit JournalTest(std::uint64_t limit = 1 << 30)
      : folder_(fs::temp_directory_path() / ("percs-state-" + std::to_string(getpid()))),
        cluster_(Journalled(Cleared(folder_), limit)) {}
  ~JournalTest() override { fs::remove_all(folder_); }
  static const std::string& Cleared(const std::string& folder) {
    fs::remove_all(folder);
    return folder;
  }

  static v1::ApplyRequest ReliableTraffic() {
    v1::ApplyRequest request = Traffic(2, 2);
    request.mutable_scenario()->mutable_workload()->mutable_pattern()->set_reliable(true);
    return request;
  }
  grpc::Status Create(const std::string& id, v1::FaultKind kind, Time duration,
                      v1::FaultReply* reply) {
    v1::CreateFaultRequest request;
    request.mutable_fault()->set_id(id);
    v1::Injection* inject = request.mutable_fault()->mutable_inject();
    inject->set_kind(kind);
    inject->set_mode(v1::FAULT_MODE_ONE);
    if (duration > 0) inject->set_duration(duration);
    if (kind == v1::FAULT_KIND_FLAP) inject->set_period(3 * kMicrosecond);
    if (kind == v1::FAULT_KIND_BIT_ERRORS) inject->set_flit_error_rate(0.01);
    return cluster_.Call(&v1::Control::Stub::CreateFault, request, reply);
  }
  void PassTime(Time by) { cluster_.PassTime(by); }
  absl::StatusOr<v1::GetResultReply> StopAndWait() {
    v1::StopReply reply;
    EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::Stop, v1::StopRequest(), &reply).ok());
    return cluster_.WaitForResult();
  }

  std::string folder_;
  Cluster cluster_;
};

TEST_F(JournalTest, ReplaysToTheLiveDigestInProcessAndDistributed) {
  ASSERT_TRUE(cluster_.Apply(ReliableTraffic()).ok());
  v1::FaultReply fault;
  PassTime(5 * kMicrosecond);
  ASSERT_TRUE(Create("cut", v1::FAULT_KIND_LINK_DOWN, 0, &fault).ok());
  ASSERT_TRUE(Create("flap", v1::FAULT_KIND_FLAP, 0, &fault).ok());
  v1::InjectLinkFaultRequest link;
  link.set_link("sn0-d0-h0:LL0");
  v1::InjectLinkFaultReply linked;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::InjectLinkFault, link, &linked).ok());
  v1::CreateTreeRequest tree;
  tree.mutable_tree()->set_name("tree");
  tree.mutable_tree()->set_members("all");
  v1::CreateTreeReply made;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::CreateTree, tree, &made).ok());
  PassTime(40 * kMicrosecond);
  ASSERT_TRUE(Create("errors", v1::FAULT_KIND_BIT_ERRORS, 50 * kMicrosecond, &fault).ok());
  v1::InjectFaultRequest lanes;
  lanes.set_now(true);
  lanes.mutable_fault()->mutable_lanes_lost()->set_link("sn0-d1-h0:LL0");
  lanes.mutable_fault()->mutable_lanes_lost()->set_count(20);
  v1::InjectFaultReply injected;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::InjectFault, lanes, &injected).ok());
  link.set_up(true);
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::InjectLinkFault, link, &linked).ok());
  v1::DeleteFaultRequest gone;
  gone.set_id("cut");
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::DeleteFault, gone, &fault).ok());
  EXPECT_FALSE(cluster_.Call(&v1::Control::Stub::DeleteFault, gone, &fault).ok())
      << "refused now, and in the replay";
  PassTime(30 * kMicrosecond);
  const auto live = StopAndWait();
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_GT(live->result().reroutes_size(), 0);

  const auto journal = ReadJournal(folder_);
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_EQ(journal->records.size(), 12u) << "apply, ten commands, end";
  EXPECT_EQ(journal->records.back().end().digest(), live->result().digest());
  const auto bytes = ReadPayload(folder_, journal->records.front().apply().scenario());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::ApplyRequest again;
  ASSERT_TRUE(again.mutable_scenario()->ParseFromString(*bytes));
  RunOptions options;
  for (std::size_t i = 1; i + 1 < journal->records.size(); ++i) {
    const v1::JournalRecord& record = journal->records[i];
    *again.add_replay() = record;
    options.commands.push_back({record.at(), [&record](Fabric& fabric, Time at) {
                                  return ActOnFabric(record, fabric, at);
                                }});
  }
  const auto scenario = BuildScenario(again.scenario(), "");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const auto here = RunScenario(*scenario, options);
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(here->digest.ToString(), live->result().digest()) << "in process";
  const auto there = cluster_.Run(again);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->result().digest(), live->result().digest()) << "distributed";
}

TEST_F(JournalTest, AReplayThatIsNoneIsRefused) {
  v1::ApplyRequest request = ReliableTraffic();
  request.add_replay()->set_stop(true);
  const auto held = cluster_.Apply(request);
  EXPECT_EQ(held.status().code(), absl::StatusCode::kFailedPrecondition) << held.status();
  request.set_hold(false);
  request.mutable_replay(0)->set_at(5);
  request.add_replay()->set_stop(true);
  EXPECT_EQ(cluster_.Apply(request).status().code(), absl::StatusCode::kInvalidArgument)
      << "back in time";
  request.clear_replay();
  request.add_replay()->mutable_end();
  EXPECT_EQ(cluster_.Apply(request).status().code(), absl::StatusCode::kInvalidArgument);
}

class FullJournalTest : public JournalTest {
 protected:
  FullJournalTest() : JournalTest(600) {}
};

TEST_F(FullJournalTest, RefusesCommandsAndTheFabricGoesOn) {
  ASSERT_TRUE(cluster_.Apply(ReliableTraffic()).ok());
  v1::FaultReply reply;
  grpc::Status status;
  int taken = 0;
  while ((status =
              Create("fault-" + std::to_string(taken), v1::FAULT_KIND_ALERT_SUPPRESSED, 0, &reply))
             .ok())
    ++taken;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("no record is ever deleted"));
  EXPECT_GT(taken, 1);
  v1::ListFaultsReply list;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::ListFaults, v1::ListFaultsRequest(), &list).ok());
  EXPECT_EQ(list.faults_size(), taken) << "what was refused did not happen";
  PassTime(kMicrosecond);
  EXPECT_EQ(cluster_.Status().state(), v1::FABRIC_STATE_RUNNING);
}

}  // namespace
}  // namespace percs::test
