// The standard health service and server reflection, on a controller and on a daemon. Method: the
// calls that a generic tool would make, without generated code of the two protocols.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "daemon/stream/channel.h"
#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A protobuf message of one short text field.
std::string Field(int number, const std::string& text) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size())} + text;
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return "";
  std::string bytes;
  for (const grpc::Slice& s : slices) bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
  return bytes;
}

// One call with one message each way; all these services can be called like that.
class Caller {
 public:
  explicit Caller(const std::string& address) : stub_(MakeChannel(address)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }
  grpc::Status Call(const std::string& method, const std::string& request, std::string* reply) {
    auto call = stub_.PrepareCall(&context_, method, &queue_);
    call->StartCall(nullptr);
    Await();
    call->WriteLast(ToBuffer(request), grpc::WriteOptions(), nullptr);
    Await();
    grpc::ByteBuffer buffer;
    call->Read(&buffer, nullptr);
    if (Await()) *reply = ToString(buffer);
    grpc::Status status;
    call->Finish(&status, nullptr);
    Await();
    return status;
  }

 private:
  bool Await() {
    void* tag = nullptr;
    bool good = false;
    return queue_.Next(&tag, &good) && good;
  }
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
};

grpc::Status Health(const std::string& address, const std::string& service, std::string* reply) {
  return Caller(address).Call("/grpc.health.v1.Health/Check",
                              service.empty() ? "" : Field(1, service), reply);
}

std::string Reflect(const std::string& address, const std::string& request) {
  std::string reply;
  const grpc::Status status =
      Caller(address).Call("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                           request, &reply);
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
  const std::string list = Field(7, "");  // ServerReflectionRequest.list_services
  EXPECT_THAT(Reflect(cluster_.controller_address(), list),
              AllOf(HasSubstr("percs.v1.Control"), HasSubstr("percs.v1.Sync"),
                    HasSubstr("grpc.health.v1.Health"), Not(HasSubstr("percs.v1.Link"))));
  EXPECT_THAT(Reflect(daemon_, list),
              AllOf(HasSubstr("percs.v1.Link"), HasSubstr("grpc.health.v1.Health"),
                    Not(HasSubstr("percs.v1.Control"))));
}

TEST_F(StandardServicesTest, ReflectionDescribesAServiceByItsName) {
  // ServerReflectionRequest.file_containing_symbol; the answer is the file's descriptor.
  EXPECT_THAT(Reflect(cluster_.controller_address(), Field(4, "percs.v1.Control")),
              AllOf(HasSubstr("percs/v1/control.proto"), HasSubstr("InjectLinkFault")));
  EXPECT_THAT(Reflect(daemon_, Field(4, "percs.v1.Link")),
              AllOf(HasSubstr("percs/v1/link.proto"), HasSubstr("Exchange")));
}

}  // namespace
}  // namespace percs::test
