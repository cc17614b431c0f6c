// The standard health service and server reflection, on a controller and on a daemon. Method: the
// calls that a generic tool would make, without generated code of the two protocols.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/security/channel.h"
#include "tests/distributed/cluster.h"
#include "tests/distributed/generic_call.h"

namespace percs::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<grpc::Channel> Channel(const std::string& address) {
  return MakeChannel(address, {}, Role::kDaemon);
}

grpc::Status Health(const std::string& address, const std::string& service, std::string* reply) {
  return GenericCall(Channel(address), "/grpc.health.v1.Health/Check",
                     service.empty() ? "" : TextField(1, service), reply);
}

std::string Reflect(const std::string& address, const std::string& request) {
  std::string reply;
  const grpc::Status status = test::Reflect(Channel(address), request, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return reply;
}

class StandardServicesTest : public ::testing::Test {
 protected:
  StandardServicesTest() {
    EXPECT_TRUE(cluster_.WaitUntilJoined());
    daemon_ = cluster_.Status().processes(0).link_address();
  }
  Cluster cluster_{ClusterOptions{}};
  std::string daemon_;
};

TEST_F(StandardServicesTest, HealthIsServingOnControllerAndDaemon) {
  const std::string serving = {8, 1};  // HealthCheckResponse.status = SERVING
  for (const std::string& address : {cluster_.controller_address(), daemon_}) {
    std::string reply;
    grpc::Status status = Health(address, "", &reply);
    EXPECT_TRUE(status.ok()) << address << ": " << status.error_message();
    EXPECT_EQ(reply, serving) << address;
    status = Health(address, "percs.v1.NoSuchService", &reply);
    EXPECT_EQ(status.error_code(), grpc::NOT_FOUND) << address;
  }
}

TEST_F(StandardServicesTest, ReflectionNamesTheServicesOfEachProcess) {
  const std::string list = TextField(7, "");  // ServerReflectionRequest.list_services
  EXPECT_THAT(Reflect(cluster_.controller_address(), list),
              AllOf(HasSubstr("percs.v1.Control"), HasSubstr("percs.v1.Sync"),
                    HasSubstr("grpc.health.v1.Health"), Not(HasSubstr("percs.v1.Link"))));
  EXPECT_THAT(Reflect(daemon_, list),
              AllOf(HasSubstr("percs.v1.Link"), HasSubstr("grpc.health.v1.Health"),
                    Not(HasSubstr("percs.v1.Control"))));
}

TEST_F(StandardServicesTest, ReflectionDescribesAServiceByItsName) {
  // ServerReflectionRequest.file_containing_symbol; the answer is the file's descriptor.
  EXPECT_THAT(Reflect(cluster_.controller_address(), TextField(4, "percs.v1.Control")),
              AllOf(HasSubstr("percs/v1/control.proto"), HasSubstr("InjectLinkFault")));
  EXPECT_THAT(Reflect(daemon_, TextField(4, "percs.v1.Link")),
              AllOf(HasSubstr("percs/v1/link.proto"), HasSubstr("Exchange")));
}

}  // namespace
}  // namespace percs::test
