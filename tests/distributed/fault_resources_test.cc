// Faults as resources on a live fabric. Method: two daemons in this process; what is created,
// updated, deleted and previewed over gRPC, and the same faults in a scenario in process and
// distributed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

using ::testing::HasSubstr;

v1::Fault LinkDown(const std::string& id, const std::string& link) {
  v1::Fault fault;
  fault.set_id(id);
  fault.mutable_inject()->set_kind(v1::FAULT_KIND_LINK_DOWN);
  fault.mutable_inject()->mutable_select()->set_link(link);
  return fault;
}

class FaultResourcesTest : public ::testing::Test {
 protected:
  grpc::Status Create(const v1::Fault& fault, v1::FaultReply* reply) {
    v1::CreateFaultRequest request;
    *request.mutable_fault() = fault;
    return cluster_.Call(&v1::Control::Stub::CreateFault, request, reply);
  }
  grpc::Status Update(const v1::Fault& fault, v1::FaultReply* reply) {
    v1::UpdateFaultRequest request;
    *request.mutable_fault() = fault;
    return cluster_.Call(&v1::Control::Stub::UpdateFault, request, reply);
  }
  grpc::Status Delete(const std::string& id, v1::FaultReply* reply) {
    v1::DeleteFaultRequest request;
    request.set_id(id);
    return cluster_.Call(&v1::Control::Stub::DeleteFault, request, reply);
  }
  v1::ListFaultsReply List() {
    v1::ListFaultsReply reply;
    EXPECT_TRUE(
        cluster_.Call(&v1::Control::Stub::ListFaults, v1::ListFaultsRequest(), &reply).ok());
    return reply;
  }
  bool LinkUp(const std::string& name) {
    v1::ListLinksReply reply;
    EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::ListLinks, v1::ListLinksRequest(), &reply).ok());
    for (const v1::LinkStatus& link : reply.links()) {
      if (link.name() == name) return link.up();
    }
    ADD_FAILURE() << "no link " << name;
    return false;
  }
  void PassTime(Time by) { cluster_.PassTime(by); }
  absl::StatusOr<v1::GetResultReply> StopAndWait() {
    v1::StopReply reply;
    EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::Stop, v1::StopRequest(), &reply).ok());
    return cluster_.WaitForResult();
  }
  Cluster cluster_{ClusterOptions{}};
};

TEST_F(FaultResourcesTest, AreCreatedListedUpdatedAndDeleted) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::FaultReply reply;
  grpc::Status status = Create(LinkDown("cut", "sn0-d0-h1/sn0-d0-h2"), &reply);  // of two processes
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.fault().selected(), 1u);
  PassTime(kMicrosecond);
  EXPECT_FALSE(LinkUp("sn0-d0-h1:LL1"));
  EXPECT_TRUE(LinkUp("sn0-d0-h0:LL0"));
  ASSERT_TRUE(Create(LinkDown("cut", "sn0-d0-h1/sn0-d0-h2"), &reply).ok()) << "twice is once";
  ASSERT_EQ(List().faults_size(), 1);
  EXPECT_EQ(List().faults(0).phase(), "active");
  EXPECT_EQ(List().faults(0).injections(), 1u);
  EXPECT_EQ(cluster_.Status().faults_active(), 1u);

  status = Create(LinkDown("cut", "sn0-d0-h0:LL0"), &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS) << status.error_message();
  ASSERT_TRUE(Update(LinkDown("cut", "sn0-d0-h0:LL0"), &reply).ok());
  PassTime(kMicrosecond);
  EXPECT_TRUE(LinkUp("sn0-d0-h1:LL1"));
  EXPECT_FALSE(LinkUp("sn0-d0-h0:LL0"));
  ASSERT_TRUE(Delete("cut", &reply).ok());
  PassTime(kMicrosecond);
  EXPECT_TRUE(LinkUp("sn0-d0-h0:LL0"));
  status = Delete("cut", &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("already deleted"));

  v1::Fault bad = LinkDown("bad", "sn0-d0-h9:LL0");
  EXPECT_EQ(Create(bad, &reply).error_code(), grpc::StatusCode::NOT_FOUND);
  bad = LinkDown("bad", "sn0-d0-h0:LL0");
  bad.set_at(1);
  status = Create(bad, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("is in the past"));
  bad.clear_at();
  bad.mutable_inject()->set_duty(2);
  status = Create(bad, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("duty"));
  bad.clear_inject();
  bad.set_spe_down("blade0:SPE0");
  status = Create(bad, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();

  const auto result = StopAndWait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().violations_size(), 0);
}

TEST_F(FaultResourcesTest, AnEndlessFlapEndsWithTheRun) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::Fault flap = LinkDown("flap", "sn0-d0-h0:LL0");
  flap.mutable_inject()->set_kind(v1::FAULT_KIND_FLAP);
  flap.mutable_inject()->set_period(2 * kMicrosecond);
  v1::FaultReply reply;
  ASSERT_TRUE(Create(flap, &reply).ok());
  PassTime(20 * kMicrosecond);
  EXPECT_GE(List().faults(0).injections(), 5u);
  const auto result = StopAndWait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().violations_size(), 0);
}

TEST_F(FaultResourcesTest, ResetEndsAllOfThem) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::FaultReply reply;
  ASSERT_TRUE(Create(LinkDown("a", "sn0-d0-h0:LL0"), &reply).ok());
  ASSERT_TRUE(Create(LinkDown("b", "sn0-d0-h0:LL1"), &reply).ok());
  v1::ResetFaultsReply reset;
  ASSERT_TRUE(
      cluster_.Call(&v1::Control::Stub::ResetFaults, v1::ResetFaultsRequest(), &reset).ok());
  EXPECT_EQ(reset.deleted(), 2u);
  EXPECT_EQ(List().faults_size(), 0);
  PassTime(kMicrosecond);
  EXPECT_TRUE(LinkUp("sn0-d0-h0:LL0"));
  ASSERT_TRUE(StopAndWait().ok());
}

TEST_F(FaultResourcesTest, APreviewTellsWhatWouldBeTouched) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::PreviewFaultRequest request;
  *request.mutable_fault() = LinkDown("cut", "sn0-d0-h1/sn0-d0-h2");
  v1::PreviewFaultReply reply;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::PreviewFault, request, &reply).ok());
  const v1::FaultPreview& link = reply.preview();
  EXPECT_THAT(link.pair_names(),
              ::testing::ElementsAre("sn0-d0-h1 to sn0-d0-h2", "sn0-d0-h2 to sn0-d0-h1"));
  EXPECT_EQ(link.routes(), 2u);
  EXPECT_EQ(link.pairs_unreachable(), 0u);
  EXPECT_EQ(link.jobs_size(), 1);
  EXPECT_TRUE(link.loses_packets());
  v1::Injection* inject = request.mutable_fault()->mutable_inject();
  inject->set_kind(v1::FAULT_KIND_HUB_DOWN);
  inject->mutable_select()->Clear();
  inject->mutable_select()->set_in("sn0-d0-h3");
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::PreviewFault, request, &reply).ok());
  EXPECT_EQ(reply.preview().pairs(), 6u);
  EXPECT_EQ(reply.preview().pairs_unreachable(), 6u);
  EXPECT_THAT(reply.preview().hubs_cut_off(), ::testing::ElementsAre("sn0-d0-h3"));
  EXPECT_GT(reply.preview().windows(), 0u);
  EXPECT_EQ(List().faults_size(), 0) << "nothing was changed";
  ASSERT_TRUE(StopAndWait().ok());
}

TEST_F(FaultResourcesTest, ALeaseEndsAFaultThatNobodyHolds) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::CreateFaultRequest request;
  *request.mutable_fault() = LinkDown("leased", "sn0-d0-h0:LL0");
  request.set_lease_wall_ms(2'000);
  v1::FaultReply reply;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::CreateFault, request, &reply).ok());
  v1::HoldFaultRequest hold;
  hold.set_id("leased");
  v1::HoldFaultReply held;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3'000);
  while (std::chrono::steady_clock::now() < until) {
    ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::HoldFault, hold, &held).ok()) << "held, it stays";
    WaitABit();
  }
  EXPECT_EQ(held.lease_wall_ms(), 2'000u);
  while (List().faults_size() > 0) WaitABit();
  const grpc::Status gone = cluster_.Call(&v1::Control::Stub::HoldFault, hold, &held);
  EXPECT_EQ(gone.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(gone.error_message(), HasSubstr("already deleted"));
  PassTime(kMicrosecond);
  EXPECT_TRUE(LinkUp("sn0-d0-h0:LL0"));
  ASSERT_TRUE(Create(LinkDown("stays", "sn0-d0-h0:LL0"), &reply).ok());
  hold.set_id("stays");
  EXPECT_THAT(cluster_.Call(&v1::Control::Stub::HoldFault, hold, &held).error_message(),
              HasSubstr("has no lease"));
  ASSERT_TRUE(StopAndWait().ok());
}

TEST_F(FaultResourcesTest, TimeStandsStillGoesOnForAWhileAndGoesOn) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  PassTime(kMicrosecond);
  v1::PauseReply paused;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::Pause, v1::PauseRequest(), &paused).ok());
  while (cluster_.Status().state() != v1::FABRIC_STATE_PAUSED) WaitABit();
  const auto packets = cluster_.Status().packets_delivered();
  v1::FaultReply reply;
  ASSERT_TRUE(Create(LinkDown("cut", "sn0-d0-h0:LL0"), &reply).ok()) << "commands are taken";
  EXPECT_EQ(reply.at(), cluster_.Status().virtual_time());
  EXPECT_EQ(cluster_.Status().packets_delivered(), packets);
  EXPECT_TRUE(LinkUp("sn0-d0-h0:LL0")) << "and wait for time to go on";
  v1::StepTimeRequest step;
  EXPECT_EQ(cluster_.Call(&v1::Control::Stub::StepTime, step, &paused).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  step.set_by(2 * kMicrosecond);
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::StepTime, step, &paused).ok());
  EXPECT_EQ(paused.at(), reply.at() + 2 * kMicrosecond);
  while (cluster_.Status().state() != v1::FABRIC_STATE_PAUSED) WaitABit();
  EXPECT_FALSE(LinkUp("sn0-d0-h0:LL0"));
  EXPECT_LE(cluster_.Status().virtual_time(), paused.at());
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::Resume, v1::ResumeRequest(), &paused).ok());
  PassTime(10 * kMicrosecond);
  const auto result = StopAndWait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().violations_size(), 0);
}

TEST_F(FaultResourcesTest, EventsAndHealthTellOfFaultAlertAndReroute) {
  ASSERT_TRUE(cluster_.Apply(Traffic(1, 4)).ok());
  v1::HealthReply health;
  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::GetHealth, v1::GetHealthRequest(), &health).ok());
  EXPECT_TRUE(health.healthy()) << health.ShortDebugString();
  v1::FaultReply reply;
  ASSERT_TRUE(Create(LinkDown("cut", "sn0-d0-h0:LL0"), &reply).ok());

  grpc::ClientContext context;
  v1::WatchEventsRequest watch;
  watch.set_follow(true);
  const auto stream = cluster_.control().WatchEvents(&context, watch);
  std::vector<std::string> kinds;
  std::uint64_t last = 0;
  v1::EventBatch batch;
  while ((kinds.empty() || kinds.back() != "reroute") && stream->Read(&batch)) {
    EXPECT_EQ(batch.lost(), 0u);
    for (const v1::FabricEvent& event : batch.events()) {
      EXPECT_EQ(event.sequence(), ++last);
      kinds.push_back(event.kind());
    }
  }
  context.TryCancel();
  while (stream->Read(&batch)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_THAT(kinds, ::testing::ElementsAre("fault_selected", "fault_injected", "alert", "alert",
                                            "reroute"));

  ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::GetHealth, v1::GetHealthRequest(), &health).ok());
  EXPECT_FALSE(health.healthy());
  EXPECT_THAT(health.links_down(), ::testing::ElementsAre("sn0-d0-h0:LL0"));
  ASSERT_EQ(health.reroutes_size(), 1);
  EXPECT_EQ(health.faults_size(), 1);
  EXPECT_GT(health.packets_dropped().at("link_down"), 0u);
  v1::ResetFaultsReply reset;
  ASSERT_TRUE(
      cluster_.Call(&v1::Control::Stub::ResetFaults, v1::ResetFaultsRequest(), &reset).ok());
  do {
    WaitABit();
    ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::GetHealth, v1::GetHealthRequest(), &health).ok());
  } while (health.reroutes_count() < 2);
  EXPECT_TRUE(health.healthy()) << health.ShortDebugString();
  ASSERT_TRUE(StopAndWait().ok());
}

TEST_F(FaultResourcesTest, BadInputIsRefusedWithTheReasonAndTheNextGoodOneIsTaken) {
  v1::ApplyRequest traffic = Traffic(1, 4);
  traffic.mutable_scenario()->mutable_topology()->set_supernodes(3);
  traffic.mutable_scenario()->mutable_topology()->set_hubs(2);
  ASSERT_TRUE(cluster_.Apply(traffic).ok());
  PassTime(5 * kMicrosecond);
  v1::FaultReply reply;
  int good = 0;
  const auto refused = [&](const v1::Fault& fault, grpc::StatusCode code, const std::string& why) {
    const grpc::Status status = Create(fault, &reply);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(why));
    EXPECT_TRUE(Create(LinkDown("good-" + std::to_string(++good), "sn2-d0-h0:LL0"), &reply).ok());
  };
  refused(LinkDown("a", "sn0-d0-h9:LL0"), grpc::StatusCode::NOT_FOUND,
          "no hub is named \"sn0-d0-h9\"; the nearest are");
  v1::Fault nothing = LinkDown("b", "sn0-d0-h0:LL0");
  nothing.mutable_inject()->mutable_select()->set_link_class(v1::FAULT_LINK_CLASS_D);
  refused(nothing, grpc::StatusCode::NOT_FOUND, "its selector matches no link of this machine");
  v1::Fault past = LinkDown("c", "sn0-d0-h0:LL0");
  past.set_at(1);
  refused(past, grpc::StatusCode::INVALID_ARGUMENT, "is in the past: virtual time is");
  v1::Fault other = LinkDown("good-1", "sn0-d0-h0:LL0");
  refused(other, grpc::StatusCode::ALREADY_EXISTS, "another fault \"good-1\"");
  v1::Fault swap;
  swap.set_id("swap");
  swap.mutable_inject()->set_kind(v1::FAULT_KIND_MISWIRED);
  swap.mutable_inject()->mutable_select()->set_link("sn0-d0-h0:D0");
  swap.mutable_inject()->set_with("sn0-d0-h1:D0");
  ASSERT_TRUE(Create(swap, &reply).ok());
  refused(LinkDown("d", "sn0-d0-h0:D0"), grpc::StatusCode::FAILED_PRECONDITION,
          "conflicts with fault swap (miswired, ");
  const grpc::Status gone = Delete("nobody", &reply);
  EXPECT_EQ(gone.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(gone.error_message(),
              HasSubstr("no fault \"nobody\" exists, or it is already deleted; faults: good-1"));
  v1::HoldFaultRequest hold;
  hold.set_id("swap");
  v1::HoldFaultReply held;
  EXPECT_THAT(cluster_.Call(&v1::Control::Stub::HoldFault, hold, &held).error_message(),
              HasSubstr("has no lease"));
  ASSERT_TRUE(Delete("swap", &reply).ok());
  v1::ResetArbitersReply reset;
  ASSERT_TRUE(
      cluster_.Call(&v1::Control::Stub::ResetArbiters, v1::ResetArbitersRequest(), &reset).ok());
  EXPECT_GT(reset.at(), 0);
  const auto result = StopAndWait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().violations_size(), 0);
}

TEST_F(FaultResourcesTest, ToldInFullWithTheirTimelineAndWhatTheyCost) {
  v1::ApplyRequest traffic = Traffic(1, 4);
  traffic.mutable_scenario()->mutable_workload()->mutable_pattern()->set_reliable(true);
  ASSERT_TRUE(cluster_.Apply(traffic).ok());
  v1::FaultReply reply;
  ASSERT_TRUE(Create(LinkDown("cut", "sn0-d0-h0:LL0"), &reply).ok());
  v1::ListFaultsRequest request;
  request.set_id("cut");
  v1::ListFaultsReply list;
  do {
    WaitABit();
    ASSERT_TRUE(cluster_.Call(&v1::Control::Stub::ListFaults, request, &list).ok());
    ASSERT_EQ(list.faults_size(), 1);
  } while (!list.faults(0).has_first_packet_at());
  const v1::FaultStatus& fault = list.faults(0);
  const P7ihParameters p;
  EXPECT_EQ(fault.detected_at(), fault.injected_at());
  EXPECT_EQ(fault.alerted_at(), fault.detected_at() + p.management_latency);
  EXPECT_EQ(fault.planned_at(), fault.detected_at() + p.detect + p.plan);
  EXPECT_EQ(fault.committed_at(), fault.planned_at() + p.install);
  EXPECT_GE(fault.first_packet_at(), fault.committed_at());
  EXPECT_EQ(fault.epoch(), 2u);
  EXPECT_GT(fault.packets_lost(), 0u);
  EXPECT_GE(fault.packets_lost(), fault.packets_resent());
  ASSERT_TRUE(StopAndWait().ok());
}

TEST_F(FaultResourcesTest, OfCausWindowsClocksAndCablesDoTheSameDistributedAsInProcess) {
  v1::ApplyRequest request;
  v1::Scenario* scenario = request.mutable_scenario();
  scenario->mutable_topology()->set_supernodes(3);
  scenario->mutable_topology()->set_drawers(1);
  scenario->mutable_topology()->set_hubs(2);
  scenario->mutable_clock()->set_period(10 * kMicrosecond);
  scenario->mutable_service()->set_probe_rounds(10);
  scenario->mutable_service()->set_probe_period(10 * kMicrosecond);
  scenario->mutable_workload()->mutable_all_to_all()->set_bytes(65536);
  const auto add = [&](v1::FaultKind kind) {
    v1::Fault* fault = scenario->add_faults();
    fault->set_id(v1::FaultKind_Name(kind));
    fault->set_at(2 * kMicrosecond);
    fault->mutable_inject()->set_kind(kind);
    fault->mutable_inject()->set_duration(30 * kMicrosecond);
    return fault->mutable_inject();
  };
  add(v1::FAULT_KIND_LATENCY)->set_latency(700'000);
  scenario->mutable_faults(0)->mutable_inject()->mutable_select()->set_link("sn0-d0-h0:LL0");
  add(v1::FAULT_KIND_CAU_DOWN)->mutable_select()->set_in("sn0");
  add(v1::FAULT_KIND_HFI_DOWN)->set_hfi(1);
  add(v1::FAULT_KIND_WINDOW_DOWN)->set_window(2);
  add(v1::FAULT_KIND_CLOCK_DRIFT)->set_drift_ppb(-1'000'000);
  for (const char* hub : {"sn0-d0-h1", "sn2-d0-h0"}) scenario->add_pcie()->set_hub(hub);
  add(v1::FAULT_KIND_PCIE_UNPLUGGED)->set_pcie_port(0);
  v1::Injection* swap = add(v1::FAULT_KIND_MISWIRED);
  swap->mutable_select()->set_link("sn0-d0-h0:D0");
  swap->set_with("sn0-d0-h1:D0");
  const RunResult here = RunHere(*scenario);
  EXPECT_EQ(here.faults.size(), 7u);
  const auto there = cluster_.Run(request);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->result().digest(), here.digest.ToString());
  EXPECT_EQ(there->result().faults_size(), 7);
}

TEST_F(FaultResourcesTest, OfAScenarioDoTheSameDistributedAsInProcess) {
  v1::ApplyRequest request;
  v1::Scenario* scenario = request.mutable_scenario();
  scenario->mutable_topology()->set_supernodes(2);
  scenario->mutable_topology()->set_drawers(2);
  scenario->mutable_topology()->set_hubs(2);
  scenario->mutable_workload()->mutable_all_to_all()->set_bytes(65536);
  int number = 0;
  const auto add = [&](v1::FaultKind kind) {
    v1::Fault* fault = scenario->add_faults();
    fault->set_id(std::to_string(++number));
    fault->set_at(number * kMicrosecond);
    v1::Injection* inject = fault->mutable_inject();
    inject->set_kind(kind);
    inject->set_mode(v1::FAULT_MODE_ONE);
    inject->set_duration(20 * kMicrosecond);
    return inject;
  };
  add(v1::FAULT_KIND_LINK_DOWN)->mutable_select()->set_link_class(v1::FAULT_LINK_CLASS_LR);
  add(v1::FAULT_KIND_PORT_DOWN)->set_direction(v1::FAULT_DIRECTION_BACKWARD);
  add(v1::FAULT_KIND_FLAP)->set_period(5 * kMicrosecond);
  add(v1::FAULT_KIND_LANE_LOSS)->set_lanes(3);
  add(v1::FAULT_KIND_BIT_ERRORS)->set_bit_error_rate(1e-4);
  add(v1::FAULT_KIND_CORRUPT_NEXT)->set_corrupt_next(5);
  add(v1::FAULT_KIND_HUB_DOWN);
  add(v1::FAULT_KIND_TABLE_DAMAGE)->set_destination("sn1-d0-h0");
  add(v1::FAULT_KIND_ALERT_SUPPRESSED)->mutable_select()->set_in("sn0-d0");
  add(v1::FAULT_KIND_PARTITION)->mutable_select()->set_in("sn0");
  const RunResult here = RunHere(*scenario);
  EXPECT_EQ(here.faults.size(), 10u);
  const auto there = cluster_.Run(request);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->result().digest(), here.digest.ToString());
  ASSERT_EQ(there->result().faults_size(), 10);
  for (const v1::FaultStatus& fault : there->result().faults()) {
    EXPECT_EQ(fault.phase(), "recovered") << fault.id();
    EXPECT_EQ(fault.recoveries(), fault.injections()) << fault.id();
  }
}

}  // namespace
}  // namespace percs::test
