// The parts of a run on daemons: leases, batches, programs, questions, streams.
#include <gmock/gmock.h>

#include "daemon/controller/run/cable_streams.h"
#include "daemon/controller/run/fault_leases.h"
#include "daemon/controller/run/final_answers.h"
#include "daemon/controller/run/finished_runs.h"
#include "daemon/controller/run/manager_log.h"
#include "daemon/controller/run/run_programs.h"
#include "daemon/controller/run/sent_batches.h"
#include "daemon/controller/run/unreached_peers.h"
#include "daemon/link/codec.h"
#include "daemon/sync/answer_codec.h"
#include "played_run.h"
#include "proto/convert/node_result.h"

namespace percs {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

const FaultLeases::Clock::time_point kBegin{};

bool AllThere(const std::string&, std::uint32_t) { return true; }

std::vector<std::string> NamesOf(const std::map<std::string, FaultLeases::Lease>& leases) {
  std::vector<std::string> names;
  for (const auto& [name, lease] : leases) names.push_back(name);
  return names;
}

TEST(FaultLeasesTest, ALeaseIsOverAtItsEndAndOnce) {
  FaultLeases leases;
  EXPECT_EQ(leases.next(), FaultLeases::Clock::time_point::max());
  leases.Set("cut", 1, milliseconds(30), kBegin + milliseconds(30));
  leases.Set("late", 2, milliseconds(90), kBegin + milliseconds(90));
  EXPECT_EQ(leases.next(), kBegin + milliseconds(30));
  EXPECT_THAT(NamesOf(leases.TakeExpired(kBegin + milliseconds(29), AllThere)), IsEmpty());
  EXPECT_THAT(NamesOf(leases.TakeExpired(kBegin + milliseconds(30), AllThere)), ElementsAre("cut"));
  EXPECT_THAT(NamesOf(leases.TakeExpired(kBegin + milliseconds(30), AllThere)), IsEmpty());
  EXPECT_EQ(leases.next(), kBegin + milliseconds(90));
}

TEST(FaultLeasesTest, ARenewalExtendsByTheSpanAndAnotherFaultOfTheNameHasNone) {
  FaultLeases leases;
  leases.Set("cut", 1, milliseconds(30), kBegin + milliseconds(30));
  EXPECT_EQ(*leases.Renew("cut", 1, kBegin + milliseconds(20)), milliseconds(30));
  EXPECT_EQ(leases.next(), kBegin + milliseconds(50));
  EXPECT_EQ(leases.Renew("cut", 2, kBegin).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(leases.Renew("storm", 1, kBegin).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(leases.Renumber("cut", 7, 8));
  EXPECT_TRUE(leases.Renumber("cut", 1, 2));
  EXPECT_TRUE(leases.Renew("cut", 2, kBegin).ok()) << "an update keeps the lease";
}

TEST(FaultLeasesTest, TheLeaseOfAFaultThatIsGoneIsForgotten) {
  FaultLeases leases;
  leases.Set("cut", 1, milliseconds(30), kBegin + milliseconds(30));
  const auto gone = [](const std::string&, std::uint32_t number) { return number != 1; };
  EXPECT_THAT(NamesOf(leases.TakeExpired(kBegin + milliseconds(99), gone)), IsEmpty());
  EXPECT_FALSE(leases.Renew("cut", 1, kBegin).ok());
}

TEST(FaultLeasesTest, ALeaseThatWasSavedHasItsWholeSpanAgain) {
  FaultLeases leases, again;
  leases.Set("cut", 3, milliseconds(30), kBegin + milliseconds(1));
  v1::SavedRun saved;
  leases.Save(&saved);
  again.Restore(saved, kBegin + milliseconds(1'000));
  EXPECT_EQ(again.next(), kBegin + milliseconds(1'030));
  EXPECT_TRUE(again.Renew("cut", 3, kBegin).ok());
}

v1::WindowReport Sent(std::uint32_t to, std::uint64_t batch) {
  v1::WindowReport report;
  report.add_peers(to);
  report.add_batches(batch);
  report.add_carried(batch == 0 ? "with the report" : "");
  return report;
}

v1::WindowGrant Named(std::uint32_t from, std::uint64_t batch) {
  v1::WindowGrant grant;
  grant.add_peers(from);
  grant.add_batches(batch);
  return grant;
}

TEST(SentBatchesTest, WhatTheReceiverLacksBeginsWithTheWindowOfTheFirstBatchItDoesNotHave) {
  SentBatches batches(2);
  EXPECT_EQ(batches.Last(0, 1), 0u);
  batches.OnReport(0, Sent(1, 1), 100);
  batches.OnReport(0, Sent(1, 2), 200);
  EXPECT_EQ(batches.Last(0, 1), 2u);
  EXPECT_EQ(batches.FirstMissing(0, 1, 0), 100);
  EXPECT_EQ(batches.FirstMissing(0, 1, 1), 200);
  EXPECT_EQ(batches.FirstMissing(0, 1, 2), kNever);
  EXPECT_EQ(batches.FirstMissing(1, 0, 0), kNever);
}

TEST(SentBatchesTest, AReportMeansThatWhatTheGrantNamedWasTakenIn) {
  SentBatches batches(2);
  batches.OnReport(0, Sent(1, 1), 100);
  batches.OnGrant(1, Named(0, 1));
  batches.OnReport(0, Sent(1, 2), 200);
  EXPECT_EQ(batches.FirstMissing(0, 1, 0), 100) << "granted is not taken in";
  batches.OnReport(1, {}, 300);
  EXPECT_EQ(batches.FirstMissing(0, 1, 0), 200);
}

TEST(SentBatchesTest, OfALostSenderAReportMeansNothing) {
  SentBatches batches(3);
  batches.OnReport(0, Sent(1, 1), 100);
  batches.OnReport(2, Sent(1, 7), 100);
  v1::WindowGrant grant = Named(0, 1);
  grant.MergeFrom(Named(2, 7));
  batches.OnGrant(1, grant);
  batches.Lose(0);
  batches.OnReport(1, {}, 300);
  EXPECT_EQ(batches.FirstMissing(0, 1, 0), 100);
  EXPECT_EQ(batches.FirstMissing(2, 1, 0), kNever) << "that of the other one was taken in";
}

// Those with the report arrive if they are granted, and otherwise nothing does that came after
// them.
TEST(SentBatchesTest, WhatTheControllerCarriesArrivesIfItIsGranted) {
  for (const bool taken_over : {false, true}) {
    SentBatches batches(2);
    batches.OnReport(0, Sent(1, 1), 100);
    batches.OnReport(0, Sent(1, 0), 200);
    batches.OnReport(0, Sent(1, 2), 300);
    EXPECT_EQ(batches.Last(0, 1), 1u) << "2 comes after what is not granted";
    EXPECT_EQ(batches.FirstMissing(0, 1, 1), 200);
    batches.OnGrant(1, Named(0, 2));
    batches.OnReport(0, Sent(1, 0), 400);
    batches.OnReport(0, Sent(1, 3), 500);
    if (taken_over) {
      v1::SavedRun saved;
      batches.Save(&saved);
      batches = SentBatches(2);
      batches.Restore(saved);
    }
    batches.Lose(0);
    EXPECT_EQ(batches.Last(0, 1), 2u);
    EXPECT_EQ(batches.FirstMissing(0, 1, 0), 100);
    EXPECT_EQ(batches.FirstMissing(0, 1, 1), 300);
    EXPECT_EQ(batches.FirstMissing(0, 1, 2), 400);
  }
}

TEST(SentBatchesTest, AreSavedAndForgottenWithTheirProcess) {
  SentBatches batches(3);
  batches.OnReport(0, Sent(1, 1), 100);
  batches.OnReport(1, Sent(2, 4), 150);
  v1::SavedRun saved;
  batches.Save(&saved);
  SentBatches again(3);
  again.Restore(saved);
  EXPECT_EQ(again.FirstMissing(0, 1, 0), 100);
  EXPECT_EQ(again.Last(1, 2), 4u);
  again.Forget(0);
  EXPECT_EQ(again.Last(0, 1), 0u);
  EXPECT_EQ(again.Last(1, 2), 4u);
}

v1::EndpointReport Programs(std::uint64_t attached, std::uint64_t owing, std::uint64_t arrived) {
  v1::EndpointReport report;
  report.set_attached(attached);
  report.set_owing(owing);
  report.set_arrived(arrived);
  return report;
}

TEST(RunProgramsTest, VirtualTimeWaitsForThoseThatAreWantedThenForThoseThatOwe) {
  RunPrograms programs(2, 3);
  EXPECT_EQ(programs.counts().awaited, 3u);
  EXPECT_TRUE(programs.hold());
  v1::EndpointReport two = Programs(2, 0, 2), one = Programs(1, 1, 1);
  programs.OnReport(0, &two);
  EXPECT_EQ(programs.counts().awaited, 1u);
  programs.OnReport(1, &one);
  EXPECT_EQ(programs.counts().awaited, 0u);
  EXPECT_EQ(programs.counts().attached, 3u);
  EXPECT_TRUE(programs.hold()) << "one owes its next call";
  one = Programs(0, 0, 1);
  two = Programs(0, 0, 2);
  programs.OnReport(1, &one);
  EXPECT_FALSE(programs.hold());
  programs.OnReport(0, &two);
  EXPECT_FALSE(programs.expected());
  programs.Forget(0);
  EXPECT_FALSE(programs.hold()) << "as many as were wanted have been there";
}

TEST(RunProgramsTest, AStopWaitsForNobody) {
  RunPrograms programs(1, 2);
  v1::EndpointReport report = Programs(1, 1, 1);
  programs.OnReport(0, &report);
  programs.Stop();
  EXPECT_FALSE(programs.hold());
  EXPECT_FALSE(programs.expected());
  EXPECT_EQ(programs.counts().awaited, 0u);
}

TEST(RunProgramsTest, SubmissionsAreTakenOnceInTheOrderOfHubsWindowsAndPrograms) {
  RunPrograms programs(2, 0);
  v1::EndpointReport here, there;
  const auto add = [](v1::EndpointReport* report, std::uint32_t node, std::uint32_t window,
                      std::uint64_t number) {
    v1::EndpointSubmission* submission = report->add_submissions();
    submission->set_node(node);
    submission->set_window(window);
    submission->set_number(number);
  };
  add(&here, 1, 5, 1);
  add(&here, 1, 2, 2);
  add(&there, 0, 9, 1);
  programs.OnReport(0, &here);
  programs.OnReport(1, &there);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  for (const auto& s : programs.Take()) order.emplace_back(s.node(), s.window());
  EXPECT_THAT(order, ElementsAre(Pair(0, 9), Pair(1, 2), Pair(1, 5)));
  EXPECT_THAT(programs.Take(), IsEmpty());
  programs.Taken(0, 2);
  add(&here, 1, 2, 2);  // said again by a daemon that does not know
  programs.OnReport(0, &here);
  EXPECT_THAT(programs.Take(), IsEmpty());
}

TEST(RunProgramsTest, WhatIsSavedIsFoundAgainAndALostDaemonAsksForNothing) {
  RunPrograms programs(1, 2), again(1, 2);
  v1::EndpointReport report = Programs(2, 1, 2);
  report.add_submissions()->set_number(4);
  programs.OnReport(0, &report);
  programs.Taken(0, 3);
  v1::SavedRun saved;
  programs.Save(&saved);
  again.Restore(saved);
  EXPECT_EQ(again.counts().owing, 1u);
  again.Lose(0);
  EXPECT_EQ(again.counts().attached, 0u);
  EXPECT_EQ(again.counts().awaited, 0u);
  EXPECT_THAT(again.Take(), IsEmpty());
}

v1::LinkState Unreached(std::initializer_list<std::uint32_t> peers, double seconds) {
  v1::LinkState state;
  for (const std::uint32_t process : peers) {
    v1::UnreachablePeer* peer = state.add_unreachable();
    peer->set_process(process);
    peer->set_wall_seconds(seconds);
    peer->set_why("refused");
  }
  return state;
}

TEST(UnreachedPeersTest, NamesTheFirstFourAndCountsTheOthers) {
  UnreachedPeers unreached;
  const auto describe = [](std::uint32_t process) {
    v1::Peer peer;
    if (process == 9) return peer;  // lost
    peer.set_name("d" + std::to_string(process));
    peer.set_link_address("host:" + std::to_string(process));
    return peer;
  };
  EXPECT_EQ(unreached.Text(describe), "");
  unreached.OnLinkState(0, Unreached({1}, 3));
  EXPECT_EQ(unreached.Text(describe), "d0 does not reach d1 at host:1 (refused)");
  unreached.OnLinkState(2, Unreached({3, 4, 5, 6, 9}, 7));
  EXPECT_EQ(unreached.longest_seconds(), 7);
  EXPECT_THAT(unreached.Text(describe), HasSubstr("d2 does not reach d5 at host:5"));
  EXPECT_THAT(unreached.Text(describe), testing::EndsWith("; and 1 more"));
  unreached.OnLinkState(2, Unreached({9}, 7));
  unreached.OnLinkState(0, {});
  EXPECT_EQ(unreached.Text(describe), "") << "nobody waits for a lost one";
  unreached.Forget(2);
  EXPECT_EQ(unreached.longest_seconds(), 0);
}

TEST(CableStreamsTest, ASwappedCableJoinsProcessesThatShareNoLink) {
  TopologySpec spec;
  spec.supernodes = 3;
  spec.drawers = 1;
  spec.hubs = 2;
  const auto topology = Topology::Create(spec);
  ASSERT_TRUE(topology.ok()) << topology.status();
  Placement placement = Placement::Single(topology->nodes());
  placement.processes = 1 + static_cast<int>(topology->nodes());
  for (NodeId node = 0; node < topology->nodes(); ++node)
    placement.process_of_node[node] = static_cast<std::uint16_t>(node);
  CableStreams cables(*topology, placement);
  FaultAction action;
  action.kind = FaultAction::Kind::kRewired;
  action.end = {0, 0};
  std::uint32_t stranger = 0;
  for (std::uint32_t p = 1; p < topology->nodes(); ++p) {
    if (!SharedChannels(*topology, placement, 0).contains(p)) stranger = p;
  }
  ASSERT_NE(stranger, 0u) << "some two hubs share no link";
  action.peer.node = stranger;
  EXPECT_EQ(cables.Joins(0, action), stranger);
  EXPECT_EQ(cables.Joins(stranger, action), std::nullopt) << "the cable is another hub's";
  cables.Note({action});
  EXPECT_THAT(cables.PeersOf(0), UnorderedElementsAre(stranger));
  action.peer.node = 1;  // of the same drawer
  EXPECT_EQ(cables.Joins(0, action), std::nullopt);
  action.begins = false;
  action.peer.node = stranger;
  EXPECT_EQ(cables.Joins(0, action), std::nullopt) << "it goes back to where it belongs";
  cables.Forget(stranger);
  EXPECT_THAT(cables.PeersOf(0), IsEmpty());
}

class NodeQueriesTest : public testing::Test {
 protected:
  NodeQueriesTest() {
    TopologySpec spec;
    spec.drawers = 1;
    spec.hubs = 2;
    topology_.emplace(*Topology::Create(spec));
    placement_ = Placement::Single(2);
    placement_.process_of_node[1] = 1;
    placement_.manager_process = 2;
    placement_.processes = 3;
    queries_.emplace(*topology_, parameters_, placement_, &port_);
  }
  NodeQueries::Query Ask(std::vector<NodeId> nodes) {
    return {std::move(nodes),
            [this](absl::StatusOr<std::vector<NodeState>> states) {
              answers_.push_back(states.status());
            },
            nullptr};
  }
  v1::Snapshot Answer(int sent) {
    v1::Snapshot snapshot;
    snapshot.set_query(port_.messages.at(static_cast<std::size_t>(sent)).collect().query());
    return snapshot;
  }
  static bool None(std::uint32_t) { return false; }

  std::optional<Topology> topology_;
  P7ihParameters parameters_;
  Placement placement_;
  test::SentMessages port_;
  std::optional<NodeQueries> queries_;
  std::vector<absl::Status> answers_;
};

TEST_F(NodeQueriesTest, AreAnsweredWhenAllOfTheirDaemonsHaveAnswered) {
  queries_->Add(Ask({}));
  EXPECT_FALSE(queries_->awaits_any()) << "it was not sent";
  queries_->Send(None);
  ASSERT_EQ(port_.messages.size(), 2u);
  queries_->Send(None);
  EXPECT_EQ(port_.messages.size(), 2u) << "it is sent once";
  EXPECT_TRUE(queries_->Awaits(0));
  ASSERT_TRUE(queries_->OnSnapshot(0, Answer(0)).ok());
  ASSERT_TRUE(queries_->OnSnapshot(0, Answer(0)).ok());
  EXPECT_FALSE(queries_->Awaits(0));
  EXPECT_THAT(answers_, IsEmpty());
  ASSERT_TRUE(queries_->OnSnapshot(1, Answer(0)).ok());
  EXPECT_THAT(answers_, ElementsAre(absl::OkStatus()));
  EXPECT_FALSE(queries_->awaits_any());
}

TEST(NodeStates, TellWhatIsUnderWayAndRefuseWhatCannotBe) {
  NodeState state;
  state.in_flight = {{{3, 1, 2, {{0, 4}, {5, 1}}}}, {{7, 2, {{1, 11, true, 9}, {0, 3, false, 1}}}}};
  v1::NodeSnapshot message;
  NodeStateToProto(state, &message);
  const auto back = NodeStateFromProto(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->in_flight, state.in_flight);
  const auto refused = [&message](const std::function<void(v1::NodeSnapshot*)>& change) {
    v1::NodeSnapshot bad = message;
    change(&bad);
    return std::string(NodeStateFromProto(bad).status().message());
  };
  EXPECT_THAT(refused([](auto* bad) { bad->mutable_trees(0)->add_packets(1); }),
              HasSubstr("has 2 neighbours and 3 numbers of packets"));
  EXPECT_THAT(refused([](auto* bad) { bad->mutable_trees(0)->set_vertex(65'536); }),
              HasSubstr("vertex 65536 of tree 3; both are 0..65535"));
  EXPECT_THAT(refused([](auto* bad) { bad->mutable_spes(0)->add_moves(1); }),
              HasSubstr("has 9 numbers of moves; each move has 4"));
  EXPECT_THAT(refused([](auto* bad) { bad->mutable_spes(0)->set_spe(16); }),
              HasSubstr("an SPE 16; there are 0..15"));
  EXPECT_THAT(refused([](auto* bad) { bad->mutable_spes(0)->set_moves(1, 12); }),
              HasSubstr("unit 12 of Cell 1; there are units 0..11 of Cells 0..1"));
}

TEST_F(NodeQueriesTest, GoToThoseWhoHaveTheNodesAndNotToLostOnes) {
  queries_->Add(Ask({1}));
  queries_->Send(None);
  ASSERT_EQ(port_.messages.size(), 1u);
  EXPECT_THAT(port_.messages[0].collect().nodes(), ElementsAre(1));
  queries_->Lose(1);
  EXPECT_THAT(answers_, ElementsAre(absl::OkStatus())) << "with what there is";
  queries_->Add(Ask({1}));
  queries_->Send([](std::uint32_t process) { return process == 1; });
  EXPECT_EQ(answers_.size(), 2u) << "nobody is left to ask";
  EXPECT_FALSE(queries_->awaits_any());
}

TEST_F(NodeQueriesTest, ThatAsksNoDaemonIsAnsweredWhenItIsSent) {
  NodeQueries::Query query = Ask({});
  query.asks_daemons = false;
  queries_->Add(std::move(query));
  EXPECT_THAT(answers_, IsEmpty());
  queries_->Send(None);
  EXPECT_THAT(answers_, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(port_.messages, IsEmpty());
}

TEST_F(NodeQueriesTest, AnAnswerThatCannotBeReadIsAnError) {
  queries_->Add(Ask({0}));
  queries_->Send(None);
  v1::Snapshot snapshot = Answer(0);
  snapshot.add_nodes()->add_stats(1);
  EXPECT_FALSE(queries_->OnSnapshot(0, snapshot).ok());
  queries_->RefuseAll(absl::UnavailableError("the run has failed"));
  EXPECT_THAT(answers_, ElementsAre(absl::UnavailableError("the run has failed")));
  EXPECT_TRUE(queries_->OnSnapshot(0, Answer(0)).ok()) << "nobody asked";
}

TEST_F(NodeQueriesTest, AnAnswerToAnEarlierControllerIsNotHeard) {
  queries_->Add(Ask({0}));
  queries_->Send(None);
  const v1::Snapshot old = Answer(0);
  NodeQueries later(*topology_, parameters_, placement_, &port_);
  later.ContinueAfter(1);
  later.Add(Ask({0}));
  later.Send(None);
  ASSERT_TRUE(later.OnSnapshot(0, old).ok());
  EXPECT_TRUE(later.Awaits(0));
}

TEST(FinishedRunsTest, KeepsTheLastOnesAndSaysWhichThoseAre) {
  FinishedRuns finished;
  EXPECT_EQ(finished.Get(0).status(), absl::NotFoundError("no run has ended yet"));
  EXPECT_EQ(finished.Get(77).status(),
            absl::NotFoundError("run 77 is unknown; no run has ended yet"));
  for (std::uint64_t run = 1; run <= FinishedRuns::kKept + 1; ++run) {
    v1::GetResultReply reply;
    reply.set_run(run);
    finished.Add(run, std::move(reply));
  }
  finished.Add(99, absl::UnavailableError("lost d0"));
  EXPECT_EQ(finished.Get(0).status(), absl::UnavailableError("lost d0")) << "of the last one";
  EXPECT_EQ(finished.Get(3)->run(), 3u);
  EXPECT_EQ(finished.Get(2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(finished.Get(2).status().message()),
              HasSubstr("run 2 is unknown; the last run that ended is 99"));
}

TEST(AnswerCodecTest, WaitEdgesComeBackAndPortsThatNoHubHasAreRefused) {
  const std::vector<WaitEdge> edges = {{7, 1, 2, 0, 3}, {9, 46, 0, 1, 0}};
  v1::WaitEdges message;
  WaitEdgesToProto(edges, &message);
  const auto back = WaitEdgesFromProto(message);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[1].node, 9u);
  EXPECT_EQ((*back)[1].input, 46);
  EXPECT_EQ((*back)[0].output_vc, 3);
  message.mutable_edges(1)->set_output(256 + 46);
  EXPECT_EQ(WaitEdgesFromProto(message).status().code(), absl::StatusCode::kInvalidArgument);
}

v1::NodeResults ResultOf(NodeId node) {
  NodeResult result;
  result.node = node;
  v1::NodeResults message;
  NodeResultToProto(result, message.add_nodes());
  return message;
}

TEST(FinalAnswersTest, ResultsAreThoseOfTheNodesThatAProcessHasButForLostOnes) {
  Placement placement = Placement::Single(3);
  placement.process_of_node[2] = 1;
  FinalAnswers answers(placement);
  answers.Await(0);
  answers.Await(1);
  EXPECT_TRUE(answers.Awaits(1));
  EXPECT_TRUE(answers.OnResults(0, ResultOf(0), {}).ok());
  EXPECT_TRUE(answers.OnResults(0, ResultOf(1), {1}).ok());
  EXPECT_EQ(answers.results(), 1u);
  EXPECT_TRUE(answers.awaits_any());
  EXPECT_EQ(answers.OnResults(1, ResultOf(0), {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(answers.OnResults(1, ResultOf(3), {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(answers.awaits_any());
  ASSERT_EQ(answers.TakeResults().size(), 1u);
}

TEST(FinalAnswersTest, WhatWaitsIsGatheredAndSorted) {
  const Placement placement = Placement::Single(2);
  FinalAnswers answers(placement);
  v1::WaitEdges message;
  message.add_edges()->set_node(1);
  message.add_blocked("SPE 1 waits");
  message.add_blocked("SPE 0 waits");
  EXPECT_TRUE(answers.OnWaitEdges(0, message).ok());
  EXPECT_THAT(answers.Blocked(), ElementsAre("SPE 0 waits", "SPE 1 waits"));
  EXPECT_EQ(answers.wait_edges().size(), 1u);
  message.mutable_edges(0)->set_input(4711);
  EXPECT_FALSE(answers.OnWaitEdges(0, message).ok());
  message.mutable_edges(0)->set_input(0);
  message.mutable_edges(0)->set_node(2);
  EXPECT_THAT(std::string(answers.OnWaitEdges(0, message).message()),
              HasSubstr("process 0 sent a wait of node 2, which it does not have"));
  EXPECT_EQ(answers.wait_edges().size(), 1u);
}

TEST(ManagerLogTest, KeepsWhatWasTakenInWithTheStepThatTookIt) {
  Outbox outbox;
  std::string bytes;
  EncodeOutbox(outbox, &bytes);
  ManagerLog log(/*keeps=*/true), forgetful(/*keeps=*/false);
  ASSERT_TRUE(log.Receive(bytes).ok());
  v1::SavedRun saved;
  log.Save(&saved);
  EXPECT_EQ(saved.manager_inbox_size(), 1) << "it has not been taken in";
  EXPECT_TRUE(log.TakeInbox().empty());
  log.RanWindow(3, 550);
  log.RanFaults(4, 600);
  ASSERT_EQ(log.new_steps().size(), 2u);
  EXPECT_EQ(log.new_steps()[0].commands(), 3u);
  EXPECT_EQ(log.new_steps()[0].inbox_size(), 1);
  EXPECT_EQ(log.new_steps()[1].faults_until(), 600);
  log.Kept();
  EXPECT_EQ(log.steps(), 2u);
  EXPECT_THAT(log.new_steps(), IsEmpty());
  ManagerLog again(/*keeps=*/true);
  saved.Clear();
  log.Save(&saved);
  ASSERT_TRUE(again.Restore(saved).ok());
  EXPECT_EQ(again.steps(), 2u);
  forgetful.RanWindow(0, 1);
  EXPECT_EQ(forgetful.steps(), 0u);
  EXPECT_FALSE(log.Receive("nonsense").ok());
}

}  // namespace
}  // namespace percs
