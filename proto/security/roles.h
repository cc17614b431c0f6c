// Roles of callers. A certificate proves one role; the option `access` of a method says which roles
// may call it (percs/v1/options.proto).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace percs {

enum class Role : std::uint8_t {
  kViewer,      // looks, changes nothing
  kOperator,    // everything of the Control service
  kDaemon,      // a percsd: joins the controller, and exchanges batches with its peers
  kEndpoint,    // a program that speaks through a window of a hub
  kController,  // the one percs-controller of a fabric; makes no calls
};
inline constexpr Role kAllRoles[] = {Role::kViewer, Role::kOperator, Role::kDaemon, Role::kEndpoint,
                                     Role::kController};

const char* RoleName(Role role);
// INVALID_ARGUMENT lists the roles there are.
absl::StatusOr<Role> ParseRole(const std::string& name);
// The name in the certificate that a client compares: certificates prove roles, and addresses of
// containers and jobs are not known beforehand.
std::string RoleHost(Role role);

class RoleSet {
 public:
  template <typename... Roles>
  explicit constexpr RoleSet(Roles... roles)
      : bits_((0u | ... | (1u << static_cast<unsigned>(roles)))) {}
  constexpr bool Has(Role role) const { return (bits_ >> static_cast<unsigned>(role) & 1u) != 0; }
  std::string ToString() const;  // "viewer or operator"

 private:
  unsigned bits_;
};

inline constexpr RoleSet kAnybody(Role::kViewer, Role::kOperator, Role::kDaemon, Role::kEndpoint,
                                  Role::kController);

struct MethodRoles {
  std::string method;  // as in HTTP/2's :path, "/percs.v1.Control/Status"
  RoleSet roles;
};
// Of all services that processes have.
const std::vector<MethodRoles>& AllMethodRoles();
// Null: no role may call it.
const MethodRoles* FindMethodRoles(const std::string& method);

}  // namespace percs
