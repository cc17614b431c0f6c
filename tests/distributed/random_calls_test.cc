// Calls of every method of every service with messages drawn from their descriptors. Method: a
// controller and daemons in this process; whatever they are asked, they answer with a status, say
// why if it is not OK, and are there afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/protobuf/dynamic_message.h"
#include "proto/security/channel.h"
#include "proto/security/roles.h"
#include "tests/distributed/cluster.h"
#include "tests/distributed/generic_call.h"
#include "tests/generate/random_message.h"
#include "tests/support/seed.h"

namespace percs::test {
namespace {

constexpr int kRounds = 12;       // calls of each method
constexpr int kDeadlineMs = 300;  // streams stay open until then

// "/percs.v1.Control/Status"; null for services that are not ours.
const google::protobuf::MethodDescriptor* DescriptorOf(std::string path) {
  path = path.substr(1);
  std::replace(path.begin(), path.end(), '/', '.');
  return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(path);
}

// Ends what the others talk to, or waits for a run to end.
bool Left(const std::string& method) { return method == "/percs.v1.Control/Shutdown"; }

std::string DrawRequest(const google::protobuf::Descriptor* type, RandomStream* random) {
  generate::DrawSettings settings;
  settings.hidden_too = true;
  settings.optional = 0.6 * random->Unit();
  settings.large = 0.2;
  generate::MessageDraw draw(random, settings);
  draw.names().declared = {"sn0-d0-h0", "sn0-d0-h1", "sn0-d0-h0:LL0", "cut", "world", "d0"};
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  draw.Draw(message.get());
  return message->SerializeAsString();
}

class RandomCalls : public ::testing::Test {
 protected:
  RandomCalls() {
    ClusterOptions options;
    options.requests_per_second = 1e6;
    cluster_ = std::make_unique<Cluster>(options);
  }
  void CallAll(const std::string& address, const std::string& services) {
    const auto channel = MakeChannel(address, {}, Role::kController);
    RandomStream random(Seed(), services);
    for (int round = 0; round < kRounds; ++round) {
      for (const MethodRoles& entry : AllMethodRoles()) {
        const std::string method = entry.method;
        const auto* descriptor = DescriptorOf(method);
        if (descriptor == nullptr || Left(method)) continue;
        if (services.find(descriptor->service()->name()) == std::string::npos) continue;
        const std::string request = DrawRequest(descriptor->input_type(), &random);
        std::string reply;
        const grpc::Status status = GenericCall(channel, method, request, &reply, kDeadlineMs);
        if (status.ok()) continue;
        EXPECT_NE(status.error_message(), "") << method;
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNKNOWN)
            << method << ": " << status.error_message();
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE)
            << method << ": " << status.error_message();
      }
    }
  }
  // With a run, most requests have something to be about.
  void StartRun() { ASSERT_TRUE(cluster_->Apply(Traffic(1, 2)).ok()); }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(RandomCalls, TheControllerAnswersAllWithAStatus) {
  PERCS_TRACE_SEED();
  ASSERT_TRUE(cluster_->WaitUntilJoined());
  StartRun();
  CallAll(cluster_->controller_address(), "Control Sync");
  v1::VersionReply reply;
  EXPECT_TRUE(cluster_->Call(&v1::Control::Stub::Version, v1::VersionRequest(), &reply).ok());
}

TEST_F(RandomCalls, ADaemonAnswersAllWithAStatus) {
  PERCS_TRACE_SEED();
  ASSERT_TRUE(cluster_->WaitUntilJoined());
  StartRun();
  CallAll(cluster_->daemon_address(0), "Link Endpoint Ranks");
  v1::VersionReply reply;
  EXPECT_TRUE(cluster_->Call(&v1::Control::Stub::Version, v1::VersionRequest(), &reply).ok());
}

}  // namespace
}  // namespace percs::test
