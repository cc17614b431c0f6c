#include "proto/security/roles.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "fmt/format.h"

namespace percs {
namespace {

constexpr const char* kRoleNames[] = {"viewer", "operator", "daemon", "endpoint", "controller"};

constexpr RoleSet kLook(Role::kViewer, Role::kOperator);
constexpr RoleSet kChange(Role::kOperator);
constexpr RoleSet kJoin(Role::kDaemon);
constexpr RoleSet kAttach(Role::kEndpoint, Role::kOperator,
                          Role::kDaemon);  // percsd --tun, at itself
constexpr RoleSet kFind(Role::kViewer, Role::kOperator, Role::kEndpoint);

constexpr MethodRoles kMethods[] = {
    {"/percs.v1.Control/Version", kLook},
    {"/percs.v1.Control/Status", kLook},
    {"/percs.v1.Control/Apply", kChange},
    {"/percs.v1.Control/WatchRun", kLook},
    {"/percs.v1.Control/GetResult", kLook},
    {"/percs.v1.Control/Stop", kChange},
    {"/percs.v1.Control/Reset", kChange},
    {"/percs.v1.Control/Shutdown", kChange},
    {"/percs.v1.Control/ListLinks", kLook},
    {"/percs.v1.Control/GetRoutes", kLook},
    {"/percs.v1.Control/DumpRoutes", kLook},
    {"/percs.v1.Control/LoadRoutes", kChange},
    {"/percs.v1.Control/GetCounters", kLook},
    {"/percs.v1.Control/InjectLinkFault", kChange},
    {"/percs.v1.Control/InjectFault", kChange},
    {"/percs.v1.Control/CreateFault", kChange},
    {"/percs.v1.Control/UpdateFault", kChange},
    {"/percs.v1.Control/DeleteFault", kChange},
    {"/percs.v1.Control/ListFaults", kLook},
    {"/percs.v1.Control/ResetFaults", kChange},
    {"/percs.v1.Control/ResetArbiters", kChange},
    {"/percs.v1.Control/HoldFault", kChange},
    {"/percs.v1.Control/RepeatWorkload", kChange},
    {"/percs.v1.Control/BreakStreams", kChange},
    {"/percs.v1.Control/Pause", kChange},
    {"/percs.v1.Control/Resume", kChange},
    {"/percs.v1.Control/StepTime", kChange},
    {"/percs.v1.Control/SetPace", kChange},
    {"/percs.v1.Control/WatchEvents", kLook},
    {"/percs.v1.Control/GetHealth", kLook},
    {"/percs.v1.Control/PreviewFault", kLook},
    {"/percs.v1.Control/Trace", kChange},
    {"/percs.v1.Control/GetTrace", kLook},
    {"/percs.v1.Control/CreateTree", kChange},
    {"/percs.v1.Control/DeleteTree", kChange},
    {"/percs.v1.Control/ListTrees", kLook},
    {"/percs.v1.Control/Observe", kChange},
    {"/percs.v1.Control/FindHub", kFind},
    {"/percs.v1.Sync/Join", kJoin},
    {"/percs.v1.Sync/Session", kJoin},
    {"/percs.v1.Link/Exchange", kJoin},
    {"/percs.v1.Endpoint/Attach", kAttach},
    {"/percs.v1.Endpoint/ListWindows", kFind},
    {"/percs.v1.Endpoint/Detach", kAttach},
    {"/percs.v1.Endpoint/FindNodes", kFind},
    {"/grpc.health.v1.Health/Check", kAnybody},
    {"/grpc.health.v1.Health/Watch", kAnybody},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kLook},
};

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

absl::Span<const MethodRoles> AllMethodRoles() { return kMethods; }

const MethodRoles* FindMethodRoles(const std::string& method) {
  const auto* const found = std::find_if(std::begin(kMethods), std::end(kMethods),
                                         [&](const MethodRoles& m) { return method == m.method; });
  return found == std::end(kMethods) ? nullptr : found;
}

}  // namespace percs
