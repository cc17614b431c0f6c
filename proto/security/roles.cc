#include "proto/security/roles.h"

#include <algorithm>

#include "fmt/format.h"
#include "percs/v1/control.pb.h"
#include "percs/v1/endpoint.pb.h"
#include "percs/v1/link.pb.h"
#include "percs/v1/options.pb.h"
#include "percs/v1/ranks.pb.h"
#include "percs/v1/sync.pb.h"

namespace percs {
namespace {

using google::protobuf::FileDescriptor;

constexpr const char* kRoleNames[] = {"viewer", "operator", "daemon", "endpoint", "controller"};

constexpr RoleSet kLook(Role::kViewer, Role::kOperator);

RoleSet RolesOf(v1::Access access) {
  switch (access) {
    case v1::ACCESS_LOOK:
      return kLook;
    case v1::ACCESS_CHANGE:
      return RoleSet(Role::kOperator);
    case v1::ACCESS_JOIN:
      return RoleSet(Role::kDaemon);
    case v1::ACCESS_ATTACH:
      return RoleSet(Role::kEndpoint, Role::kOperator, Role::kDaemon);
    case v1::ACCESS_FIND:
      return RoleSet(Role::kViewer, Role::kOperator, Role::kEndpoint);
    default:
      return RoleSet();
  }
}

void AddServices(const FileDescriptor* file, std::vector<MethodRoles>* all) {
  for (int i = 0; i < file->service_count(); ++i) {
    const auto* service = file->service(i);
    for (int m = 0; m < service->method_count(); ++m) {
      const auto* method = service->method(m);
      const v1::Access access = method->options().GetExtension(v1::access);
      if (access == v1::ACCESS_UNSPECIFIED) continue;
      all->push_back(
          {fmt::format("/{}/{}", service->full_name(), method->name()), RolesOf(access)});
    }
  }
}

std::vector<MethodRoles> ReadAll() {
  std::vector<MethodRoles> all;
  AddServices(v1::StatusRequest::descriptor()->file(), &all);
  AddServices(v1::JoinRequest::descriptor()->file(), &all);
  AddServices(v1::LinkMessage::descriptor()->file(), &all);
  AddServices(v1::FromProgram::descriptor()->file(), &all);
  AddServices(v1::BeginRanksRequest::descriptor()->file(), &all);
  // Services of gRPC itself.
  all.push_back({"/grpc.health.v1.Health/Check", kAnybody});
  all.push_back({"/grpc.health.v1.Health/Watch", kAnybody});
  all.push_back({"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kLook});
  return all;
}

}  // namespace

const char* RoleName(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

absl::StatusOr<Role> ParseRole(const std::string& name) {
  for (const Role role : kAllRoles) {
    if (name == RoleName(role)) return role;
  }
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is not a role; roles are {}", name, fmt::join(kRoleNames, ", ")));
}

std::string RoleHost(Role role) { return fmt::format("{}.percs", RoleName(role)); }

std::string RoleSet::ToString() const {
  std::vector<const char*> names;
  for (const Role role : kAllRoles) {
    if (Has(role)) names.push_back(RoleName(role));
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

const std::vector<MethodRoles>& AllMethodRoles() {
  static const auto* const all = new std::vector<MethodRoles>(ReadAll());
  return *all;
}

const MethodRoles* FindMethodRoles(const std::string& method) {
  const std::vector<MethodRoles>& all = AllMethodRoles();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const MethodRoles& m) { return method == m.method; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace percs
