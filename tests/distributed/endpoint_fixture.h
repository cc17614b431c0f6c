// A controller and two daemons with a hub each, to whose windows programs attach.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "client/endpoint/endpoint.h"
#include "client/lib/journalled_run.h"
#include "percs/v1/endpoint.grpc.pb.h"
#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"
#include "proto/security/channel.h"
#include "tests/distributed/cluster.h"

namespace percs::test {

using client::Bytes;
using client::Completion;
using client::Duration;
using client::EndpointOptions;
using client::Mode;
using client::Peer;
using EndpointPtr = std::unique_ptr<client::Endpoint>;

inline constexpr char kHub0[] = "sn0-d0-h0", kHub1[] = "sn0-d0-h1";
inline constexpr Address kHere = 0x10000, kThere = 0x20000;
inline constexpr Duration kSoon(20'000);

inline Bytes Pattern(std::size_t size, std::uint64_t seed) { return PatternBytes(size, seed); }

// Two hubs, one in each daemon.
inline v1::ApplyRequest TwoHubs() {
  v1::ApplyRequest request;
  request.mutable_scenario()->set_name("windows");
  request.mutable_scenario()->mutable_topology()->set_drawers(1);
  request.mutable_scenario()->mutable_topology()->set_hubs(2);
  request.set_hold(true);
  return request;
}

inline client::AtomicUpdate AddTo(Address address, std::uint64_t operand) {
  client::AtomicUpdate update;
  update.op = client::AtomicOp::kAdd;
  update.size = 8;
  update.fetch = true;
  update.address = address;
  update.operand = operand;
  return update;
}

class EndpointTest : public ::testing::Test {
 protected:
  explicit EndpointTest(std::optional<std::chrono::milliseconds> loss_deadline = {})
      : folder_(std::filesystem::temp_directory_path() /
                ("percs-endpoints-" + std::to_string(getpid()))),
        cluster_(Options(folder_, loss_deadline)) {}
  ~EndpointTest() override { std::filesystem::remove_all(folder_); }
  static ClusterOptions Options(const std::string& folder,
                                std::optional<std::chrono::milliseconds> loss_deadline) {
    std::filesystem::remove_all(folder);
    ClusterOptions options;
    options.state_dir = folder;
    options.loss_deadline = loss_deadline;
    return options;
  }

  EndpointOptions At(const std::string& hub, WindowId window, JobKey job = 1) {
    EndpointOptions options;
    options.controller = cluster_.controller_address();
    options.hub = hub;
    options.window = window;
    options.job = job;
    options.reattach = Duration(1'000);
    return options;
  }
  EndpointPtr Attach(const EndpointOptions& options) {
    auto endpoint = client::Endpoint::Attach(options);
    EXPECT_TRUE(endpoint.ok()) << options.hub << " window " << options.window << ": "
                               << endpoint.status();
    return endpoint.ok() ? *std::move(endpoint) : nullptr;
  }
  EndpointPtr Attach(const std::string& hub, WindowId window, JobKey job = 1) {
    return Attach(At(hub, window, job));
  }
  static Peer Of(const client::Endpoint& endpoint) {
    return {endpoint.node(), endpoint.window(), endpoint.context()};
  }

  absl::StatusOr<v1::GetResultReply> StopAndWait() {
    v1::StopReply reply;
    EXPECT_TRUE(cluster_.Call(&v1::Control::Stub::Stop, v1::StopRequest(), &reply).ok());
    return cluster_.WaitForResult();
  }
  void CheckReplays(const std::string& digest) {
    const auto run = ReadJournalledRun(folder_, 0);
    ASSERT_TRUE(run.ok()) << run.status();
    RunOptions options;
    v1::ApplyRequest again;
    *again.mutable_scenario() = run->scenario;
    for (const v1::JournalRecord& record : run->commands) {
      *again.add_replay() = record;
      options.commands.push_back({record.at(), [&record](Fabric& fabric, Time at) {
                                    return ActOnFabric(record, fabric, at);
                                  }});
    }
    const auto scenario = BuildScenario(run->scenario, "");
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto here = RunScenario(*scenario, options);
    ASSERT_TRUE(here.ok()) << here.status();
    EXPECT_EQ(here->digest.ToString(), digest) << "in process";
    const auto there = cluster_.Run(again);
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_EQ(there->result().digest(), digest) << "distributed";
  }

  // The windows that are attached at daemon `index`.
  v1::ListWindowsReply Windows(std::size_t index) {
    const auto stub =
        v1::Endpoint::NewStub(MakeChannel(cluster_.daemon_address(index), {}, Role::kDaemon));
    grpc::ClientContext context;
    v1::ListWindowsReply reply;
    const grpc::Status status = stub->ListWindows(&context, {}, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  std::string folder_;
  Cluster cluster_;
};

}  // namespace percs::test
