// Mutual TLS and roles, from outside. Method: a fabric over TCP with identities made for it, called
// by plain gRPC clients that show those identities, none, an expired one, that of a stranger, or
// speak plaintext. What methods there are is asked from the servers themselves, by reflection.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>

#include "grpcpp/create_channel.h"
#include "proto/security/channel.h"
#include "tests/distributed/cluster.h"
#include "tests/distributed/generic_call.h"
#include "tests/support/temporary_folder.h"

namespace percs::test {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::hours kDay(24);
constexpr int kBriefMs =
    500;  // for streams that go on for ever, which is the answer: nobody was refused
constexpr int kLongMs = 20'000;
constexpr char kStatusPath[] = "/percs.v1.Control/Status";
constexpr char kShutdown[] = "/percs.v1.Control/Shutdown";

void Write(const std::string& folder, const Lifetimes& own) {
  const auto identities = IssueIdentities(kDay, own);
  ASSERT_TRUE(identities.ok()) << identities.status();
  for (const auto& [role, identity] : *identities) {
    const absl::Status status = WriteIdentity(folder + "/" + RoleName(role), identity);
    ASSERT_TRUE(status.ok()) << status;
  }
}

class SecurityTest : public ::testing::Test {
 protected:
  static ClusterOptions Options(const std::string& tls, const Lifetimes& own) {
    Write(tls, own);
    ClusterOptions options;
    options.tcp = true;
    options.tls = tls;
    return options;
  }
  explicit SecurityTest(const Lifetimes& own = {}) : cluster_(Options(tls_.path(), own)) {
    EXPECT_TRUE(cluster_.WaitUntilJoined());
  }

  std::shared_ptr<grpc::Channel> As(Role role, const std::string& address, Role server) const {
    const auto credentials = Credentials::Load(tls_.path() + "/" + RoleName(role), RoleSet(role));
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    return MakeChannel(address, *credentials, server);
  }
  // With `options`, which the caller spoiled; trusts our authority.
  grpc::Status CallWith(grpc::SslCredentialsOptions options) {
    options.pem_root_certs = ReadIdentity(tls_.path() + "/viewer")->authority;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(RoleHost(Role::kController));
    std::string reply;
    return GenericCall(grpc::CreateCustomChannel(cluster_.controller_address(),
                                                 grpc::SslCredentials(options), arguments),
                       kStatusPath, "", &reply);
  }
  // "/package.Service/Method" of everything that the server at `address` offers.
  std::set<std::string> MethodsAt(const std::string& address, Role server) const;

  TemporaryFolder tls_;
  Cluster cluster_;
};

std::set<std::string> SecurityTest::MethodsAt(const std::string& address, Role server) const {
  const auto channel = As(Role::kViewer, address, server);
  std::string list;
  const grpc::Status status = Reflect(channel, TextField(7, ""), &list);
  EXPECT_TRUE(status.ok()) << status.error_message();
  std::set<std::string> methods;
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  for (const char* known : {"percs.v1.Control", "percs.v1.Sync", "percs.v1.Link",
                            "percs.v1.Endpoint", "percs.v1.Ranks"}) {
    if (list.find(known) == std::string::npos) continue;
    const auto* const service = pool->FindServiceByName(known);
    for (int i = 0; i < service->method_count(); ++i) {
      methods.insert("/" + service->full_name() + "/" + service->method(i)->name());
    }
  }
  // Of these two no code is generated here.
  for (const char* standard : {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
                               "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    const std::string service(standard + 1, std::string(standard).rfind('/') - 1);
    if (list.find(service) != std::string::npos) methods.insert(standard);
  }
  // Every service of the list is one of these.
  std::size_t services = 0;
  for (std::size_t at = list.find('\n'); at != std::string::npos; at = list.find('\n', at + 1)) {
    const auto size = at + 1 < list.size() ? static_cast<std::size_t>(list[at + 1]) : 0u;
    if (at + 2 + size > list.size() || size < 8) continue;
    const std::string name = list.substr(at + 2, size);
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.") !=
        std::string::npos) {
      continue;
    }
    ++services;
    const std::string prefix = "/" + name + "/";
    const auto next = methods.lower_bound(prefix);
    EXPECT_TRUE(next != methods.end() && next->rfind(prefix, 0) == 0)
        << "a service that nobody thought of: " << name;
  }
  EXPECT_GE(services, 3u);
  return methods;
}

TEST_F(SecurityTest, EveryMethodHasItsRolesAndEveryRoleIsHeldToThem) {
  const std::string daemon = cluster_.daemon_address(0);
  std::set<std::string> seen;
  for (const auto& [address, server] :
       {std::pair(daemon, Role::kDaemon),
        std::pair(cluster_.controller_address(), Role::kController)}) {
    const std::set<std::string> methods = MethodsAt(address, server);
    seen.insert(methods.begin(), methods.end());
    for (const std::string& method : methods) {
      const MethodRoles* const entry = FindMethodRoles(method);
      ASSERT_NE(entry, nullptr) << method << " has no roles";
      for (const Role role : kAllRoles) {
        if (method == kShutdown && entry->roles.Has(role)) continue;  // the last call of all
        std::string reply;
        const bool may = entry->roles.Has(role);
        const grpc::Status status =
            GenericCall(As(role, address, server), method, "", &reply, may ? kBriefMs : kLongMs);
        EXPECT_NE(status.error_code(), grpc::UNAUTHENTICATED) << status.error_message();
        EXPECT_NE(status.error_code(), grpc::UNAVAILABLE)
            << method << ": " << status.error_message();
        EXPECT_EQ(status.error_code() == grpc::PERMISSION_DENIED, !may)
            << method << " by " << RoleName(role) << ": " << status.error_message();
      }
    }
  }
  for (const MethodRoles& entry : AllMethodRoles()) {
    EXPECT_EQ(seen.count(entry.method), 1u) << entry.method << " has roles, and nobody serves it";
  }
  std::string reply;
  EXPECT_TRUE(GenericCall(As(Role::kOperator, cluster_.controller_address(), Role::kController),
                          kShutdown, "", &reply)
                  .ok());
}

TEST_F(SecurityTest, NoCertificateIsRefusedAndCounted) {
  const std::uint64_t before = RefusalCount(Refusal::kNoCertificate);
  const grpc::Status status = CallWith({});
  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("no certificate"));
  EXPECT_EQ(RefusalCount(Refusal::kNoCertificate), before + 1);
}

class ExpiredTest : public SecurityTest {
 protected:
  ExpiredTest() : SecurityTest({{Role::kEndpoint, -kDay}}) {}
};

TEST_F(ExpiredTest, AnExpiredCertificateIsRefusedAndCounted) {
  const Identity expired = *ReadIdentity(tls_.path() + "/endpoint");
  const std::uint64_t before = RefusalCount(Refusal::kCertificate);
  const grpc::Status status = CallWith({"", expired.key, expired.certificate});
  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("expired on "));
  EXPECT_EQ(RefusalCount(Refusal::kCertificate), before + 1);
}

TEST_F(SecurityTest, AStrangersCertificateIsRefused) {
  const Identity stranger = IssueIdentities(kDay)->at(Role::kOperator);
  const grpc::Status status = CallWith({"", stranger.key, stranger.certificate});
  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("not issued by this fabric's authority"));
}

TEST_F(SecurityTest, PlaintextIsRefusedAndCounted) {
  const std::uint64_t before = RefusalCount(Refusal::kHandshake);
  std::string reply;
  const grpc::Status status =
      GenericCall(MakeChannel(cluster_.controller_address(), {}, Role::kController), kStatusPath,
                  "", &reply, kLongMs);
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE) << status.error_message();
  EXPECT_GT(RefusalCount(Refusal::kHandshake), before);
}

TEST_F(SecurityTest, AServerOfAnotherRoleIsNotBelieved) {
  // A daemon's certificate does not make a controller.
  std::string reply;
  const grpc::Status status =
      GenericCall(As(Role::kOperator, cluster_.daemon_address(0), Role::kController), kStatusPath,
                  "", &reply, kLongMs);
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE) << status.error_message();
}

TEST_F(SecurityTest, TheResultIsThatOfOneProcess) {
  const v1::ApplyRequest request = RequestFromFile("deploy/scenarios/two-hubs.yaml");
  const auto result = cluster_.Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->result().digest(), RunHere(request.scenario()).digest.ToString());
  EXPECT_EQ(result->transport(), "tcp");
}

}  // namespace
}  // namespace percs::test
