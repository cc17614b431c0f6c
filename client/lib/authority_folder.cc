#include "client/lib/authority_folder.h"

#include "proto/security/certificate.h"

namespace percs {
namespace {

bool AllValid(const std::string& folder) {
  std::string authority;
  for (const Role role : kAllRoles) {
    const auto identity = ReadIdentity(RoleFolder(folder, role));
    if (!identity.ok()) return false;
    const auto proven = VerifyIdentity(*identity);
    if (!proven.ok() || *proven != role) return false;
    if (!authority.empty() && identity->authority != authority) return false;
    authority = identity->authority;
  }
  return true;
}

}  // namespace

std::string RoleFolder(const std::string& folder, Role role) {
  return folder + "/" + RoleName(role);
}

absl::StatusOr<bool> MakeAuthorityFolder(const std::string& folder, std::chrono::hours lifetime,
                                         bool renew) {
  if (!renew && AllValid(folder)) return false;
  const auto identities = IssueIdentities(lifetime);
  if (!identities.ok()) return identities.status();
  for (const auto& [role, identity] : *identities) {
    if (absl::Status s = WriteIdentity(RoleFolder(folder, role), identity); !s.ok()) return s;
  }
  return true;
}

}  // namespace percs
