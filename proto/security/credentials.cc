#include "proto/security/credentials.h"

#include <grpc/grpc_security.h>
#include <grpc/support/log.h>

#include <cstring>

#include "fmt/format.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/auth_metadata_processor.h"

namespace percs {
namespace {

std::array<std::atomic<std::uint64_t>, kRefusals> refusals{};

void Count(Refusal refusal) {
  refusals[static_cast<std::size_t>(refusal)].fetch_add(1, std::memory_order_relaxed);
}

// gRPC reports no failed handshake (plaintext, another authority), but logs it; its other log lines
// are dropped, because our own messages are clearer.
void OnGrpcLog(gpr_log_func_args* line) {
  if (std::strstr(line->message, "Handshake failed") != nullptr) Count(Refusal::kHandshake);
}

void CountHandshakes() {
  static const bool once = [] {
    gpr_set_log_function(&OnGrpcLog);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
    return true;
  }();
  (void)once;
}

std::string Property(const grpc::AuthContext* context, const char* name) {
  const std::vector<grpc::string_ref> values = context->FindPropertyValues(name);
  return values.empty() ? std::string() : std::string(values[0].data(), values[0].size());
}

// In the name of the certificate that came with the connection. It runs inside of gRPC's threads,
// before any service sees the call.
class RoleCheck final : public grpc::AuthMetadataProcessor {
 public:
  explicit RoleCheck(std::string authority) : authority_(std::move(authority)) {}
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(":path");
    const std::string method =
        path == metadata.end() ? "" : std::string(path->second.data(), path->second.size());
    const absl::Status status =
        CheckCaller(method, Property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME), authority_);
    return status.ok() ? grpc::Status::OK
                       : grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                                      std::string(status.message()));
  }

 private:
  const std::string authority_;
};

}  // namespace

std::uint64_t RefusalCount(Refusal refusal) {
  return refusals[static_cast<std::size_t>(refusal)].load(std::memory_order_relaxed);
}

absl::Status CheckCaller(const std::string& method, const std::string& certificate,
                         const std::string& authority) {
  if (certificate.empty()) {
    Count(Refusal::kNoCertificate);
    return absl::UnauthenticatedError(
        "no certificate: every caller must present the certificate of its role (percsctl --tls "
        "FOLDER)");
  }
  const auto role = VerifyCertificate(certificate, authority);
  if (!role.ok()) {
    Count(Refusal::kCertificate);
    return role.status();
  }
  const MethodRoles* const entry = FindMethodRoles(method);
  if (entry == nullptr) {
    Count(Refusal::kMethod);
    return absl::PermissionDeniedError(fmt::format("no role may call {}", method));
  }
  if (entry->roles.Has(*role)) return absl::OkStatus();
  Count(Refusal::kRole);
  return absl::PermissionDeniedError(
      fmt::format("this request needs the role {}; the certificate has the role {}",
                  entry->roles.ToString(), RoleName(*role)));
}

absl::StatusOr<Credentials> Credentials::Load(const std::string& folder, RoleSet roles) {
  auto identity = ReadIdentity(folder);
  if (!identity.ok()) return identity.status();
  const auto role = VerifyIdentity(*identity);
  if (!role.ok()) {
    return absl::Status(role.status().code(),
                        fmt::format("{}: {}", folder, std::string(role.status().message())));
  }
  if (!roles.Has(*role)) {
    return absl::InvalidArgumentError(fmt::format("{} has the identity of the role {}; expected {}",
                                                  folder, RoleName(*role), roles.ToString()));
  }
  Credentials credentials;
  credentials.role_ = *role;
  credentials.identity_ = std::make_shared<const Identity>(*std::move(identity));
  return credentials;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials::ForChannel(
    Role server, grpc::ChannelArguments* arguments) const {
  if (!encrypted()) return grpc::InsecureChannelCredentials();
  arguments->SetSslTargetNameOverride(RoleHost(server));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = identity_->authority;
  options.pem_private_key = identity_->key;
  options.pem_cert_chain = identity_->certificate;
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> Credentials::ForServer() const {
  if (!encrypted()) return grpc::InsecureServerCredentials();
  CountHandshakes();
  // gRPC asks for a certificate and sees that its owner has the key; RoleCheck judges it, with an
  // error that the caller gets, while a failed handshake would say nothing.
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.pem_root_certs = identity_->authority;
  options.pem_key_cert_pairs = {{identity_->key, identity_->certificate}};
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::SslServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<RoleCheck>(identity_->authority));
  return credentials;
}

}  // namespace percs
