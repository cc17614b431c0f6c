#include "tests/distributed/cluster.h"

#include <gtest/gtest.h>

#include <thread>

#include "daemon/config/process_setup.h"
#include "fmt/format.h"
#include "proto/process/grpc_status.h"
#include "proto/scenario/build.h"
#include "proto/scenario/reader.h"
#include "proto/security/channel.h"
#include "tests/support/source_dir.h"

namespace percs::test {
namespace {

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + 2 * kPatience);
}

}  // namespace

Cluster::Cluster(ClusterOptions options) : options_(std::move(options)) {
  IgnoreLockOrder();  // with up to 32 daemons in this process its graph would cost minutes
  folder_.emplace(*percs::TemporaryFolder::MakeForSockets("percs-"));
  ControllerOptions controller;
  controller.listen =
      options_.tcp ? "127.0.0.1:0" : fmt::format("unix:{}/controller", folder_->path());
  controller.daemons = options_.daemons;
  controller.lost_after = options_.lost_after;
  controller.loss_deadline = options_.loss_deadline;
  controller.state_dir = options_.state_dir;
  controller.security.tls = IdentityOf(Role::kController);
  controller.security.requests_per_second = options_.requests_per_second;
  controller.journal_limit = options_.journal_limit;
  auto started = StartController(controller);
  if (!started.ok()) {
    ADD_FAILURE() << started.status();
    return;
  }
  controller_ = *std::move(started);
  Credentials credentials;
  if (!options_.tls.empty())
    credentials = *Credentials::Load(IdentityOf(Role::kOperator), RoleSet(Role::kOperator));
  control_ =
      v1::Control::NewStub(MakeChannel(controller_->address(), credentials, Role::kController));
  for (std::uint32_t i = 0; i < options_.daemons; ++i) {
    const absl::Status status = AddDaemon();
    EXPECT_TRUE(status.ok()) << status;
  }
}

std::string Cluster::IdentityOf(Role role) const {
  return options_.tls.empty() ? "" : fmt::format("{}/{}", options_.tls, RoleName(role));
}

Cluster::~Cluster() {
  daemons_.clear();
  controller_.reset();
}

absl::Status Cluster::AddDaemon() {
  const auto index = static_cast<std::uint32_t>(daemons_.size());
  DaemonOptions options;
  options.controller = controller_->address();
  if (index < options_.daemons) options.place = index;
  options.name = fmt::format("percsd-{}", index);
  options.security.tls = IdentityOf(Role::kDaemon);
  options.security.requests_per_second = options_.requests_per_second;
  if (options_.tcp) options.listen = "127.0.0.1:0";
  if (options_.proxy) {
    options.controller = options_.proxy(options.controller);
    options.listen = fmt::format("unix:{}/daemon-{}", folder_->path(), index);
    options.advertise_link = options_.proxy(options.listen);
  }
  if (options_.tap) {
    options.tap = [tap = options_.tap, index](std::uint32_t to, Outbox* outbox) {
      tap(index, to, outbox);
    };
  }
  auto daemon = Daemon::Start(std::move(options));
  if (!daemon.ok()) return daemon.status();
  daemons_.push_back(*std::move(daemon));
  return absl::OkStatus();
}

v1::StatusReply Cluster::Status() {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::StatusReply reply;
  const grpc::Status status = control_->Status(&context, {}, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return reply;
}

bool Cluster::WaitUntilJoined() {
  const auto end = std::chrono::steady_clock::now() + 2 * kPatience;
  while (Status().state() == v1::FABRIC_STATE_JOINING) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

void Cluster::PassTime(Time by) {
  const Time from = Status().virtual_time();
  while (Status().virtual_time() <= from + by) WaitABit();
}

absl::StatusOr<v1::ApplyReply> Cluster::Apply(const v1::ApplyRequest& request) {
  if (!WaitUntilJoined()) return absl::UnavailableError("the daemons did not join");
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ApplyReply reply;
  const grpc::Status status = control_->Apply(&context, request, &reply);
  if (!status.ok()) return FromGrpc(status);
  return reply;
}

absl::StatusOr<v1::GetResultReply> Cluster::WaitForResult() {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::WatchRunRequest watch;
  const auto reader = control_->WatchRun(&context, watch);
  v1::RunEvent event;
  v1::GetResultReply result;
  while (reader->Read(&event)) {
    if (event.has_result()) result = event.result();
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return FromGrpc(status);
  return result;
}

absl::StatusOr<v1::GetResultReply> Cluster::Run(const v1::ApplyRequest& request) {
  auto applied = Apply(request);
  if (!applied.ok()) return applied.status();
  return WaitForResult();
}

void WaitABit() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

v1::ApplyRequest RequestFromFile(const std::string& path) {
  auto loaded = LoadScenarioFile(SourceDir() + "/" + path);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  v1::ApplyRequest request;
  if (!loaded.ok()) return request;
  *request.mutable_scenario() = loaded->scenario;
  const absl::Status inlined = InlineFiles(request.mutable_scenario(), loaded->directory);
  EXPECT_TRUE(inlined.ok()) << inlined;
  return request;
}

v1::ApplyRequest Traffic(std::uint32_t drawers, std::uint32_t hubs, double load) {
  v1::ApplyRequest request;
  v1::Scenario* scenario = request.mutable_scenario();
  scenario->set_name("traffic");
  scenario->mutable_topology()->set_drawers(drawers);
  scenario->mutable_topology()->set_hubs(hubs);
  v1::PatternTraffic* pattern = scenario->mutable_workload()->mutable_pattern();
  pattern->set_pattern(v1::PATTERN_UNIFORM);
  pattern->set_load(load);
  request.set_hold(true);
  return request;
}

RunResult RunHere(const v1::Scenario& scenario) {
  auto built = BuildScenario(scenario, "");
  EXPECT_TRUE(built.ok()) << built.status();
  auto result = RunScenario(*built, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult{};
}

void ExpectSame(const v1::RunResult& there, const RunResult& here) {
  EXPECT_EQ(there.digest(), here.digest.ToString());
  EXPECT_EQ(there.virtual_time(), here.virtual_time);
  EXPECT_EQ(there.total().packets_delivered(), here.total.packets_delivered);
  EXPECT_EQ(there.flit_hops(), here.flit_hops);
  EXPECT_EQ(there.failed_size(), static_cast<int>(here.failed.size()));
  ASSERT_EQ(there.reroutes_size(), static_cast<int>(here.reroutes.size()));
  for (int i = 0; i < there.reroutes_size(); ++i) {
    EXPECT_EQ(there.reroutes(i).committed(), here.reroutes[static_cast<std::size_t>(i)].committed);
  }
  EXPECT_EQ(there.violations_size(), 0);
  EXPECT_TRUE(here.violations.empty());
  EXPECT_GT(here.total.packets_delivered, 0u);
}

}  // namespace percs::test
