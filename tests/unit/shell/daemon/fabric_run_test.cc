// What a run answers when hubs are gone. Method: a run whose daemon is played by the test, and a
// host without hubs; every question must be answered at once.
#include "daemon/controller/fabric_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/node/host.h"
#include "daemon/sync/node_result_codec.h"
#include "tests/unit/shell/daemon/played_run.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

// Nothing to do: one message from the daemon, and it collects results.
class FinishedRunTest : public test::PlayedRunTest {
 protected:
  FinishedRunTest() {
    Apply({});
    v1::DaemonMessage results;
    for (NodeId node : {0, 1}) {
      NodeResult result;
      result.node = node;
      PackResult(result, results.mutable_results()->add_nodes());
    }
    run_->OnMessage(0, results);
    EXPECT_EQ(run_->state(), v1::FABRIC_STATE_FINISHED);
  }
  absl::Status Ask() {
    answer_ = absl::UnknownError("no answer yet");
    run_->Snapshot(
        {}, [this](absl::StatusOr<std::vector<NodeState>> states) { answer_ = states.status(); });
    return answer_;
  }
  void Fail(const std::string& why) {
    v1::DaemonMessage failure;
    failure.mutable_failure()->set_run(kRun);
    failure.mutable_failure()->set_code(static_cast<std::uint32_t>(absl::StatusCode::kDataLoss));
    failure.mutable_failure()->set_message(why);
    run_->OnMessage(0, failure);
  }

  absl::Status answer_;
};

TEST_F(FinishedRunTest, AnswersAFailureToTheQuestionsThatWaitAndToLaterOnes) {
  EXPECT_EQ(Ask(), absl::UnknownError("no answer yet"));
  EXPECT_TRUE(port_.messages.back().has_collect());
  Fail("a link broke");
  EXPECT_EQ(answer_, absl::DataLossError("process 0: a link broke"));
  EXPECT_EQ(Ask(), absl::DataLossError("process 0: a link broke"));
  EXPECT_TRUE(run_->result().ok()) << "what was measured stays";
}

TEST(HostTest, AQuestionToAHostWithoutHubsIsAnsweredWithAFailure) {
  ProcessLock lock;
  const LockGuard guard(lock.mutex());
  LinkMesh mesh(&lock, {[] {}, [](const absl::Status&) {}, nullptr});
  Programs programs(&lock, {});
  std::vector<v1::DaemonMessage> sent;
  Host host(&mesh, &programs,
            {[] { return std::make_unique<v1::DaemonMessage>(); },
             [&](std::unique_ptr<v1::DaemonMessage> message) { sent.push_back(*message); }},
            nullptr);
  v1::Collect collect;
  for (const auto what : {v1::Collect::WHAT_SNAPSHOT, v1::Collect::WHAT_RESULTS}) {
    collect.set_what(what);
    sent.clear();
    host.Collect(collect);
    ASSERT_EQ(sent.size(), 1u);
    ASSERT_TRUE(sent[0].has_failure());
    EXPECT_THAT(sent[0].failure().message(), HasSubstr("its hubs are gone"));
  }
}

}  // namespace
}  // namespace percs
