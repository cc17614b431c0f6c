// The folder that `percsctl ca` makes: below it one folder per role, each with what a process of
// that role is to have (certificate.h). The authority's key is not kept.
#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "proto/security/roles.h"

namespace percs {

std::string RoleFolder(const std::string& folder, Role role);

// Leaves valid identities of one authority as they are (false), or creates all of them again
// (true): if one is missing, has expired or is of another authority, or with `renew`. Role folders
// that are there are kept, as they may be mounted.
absl::StatusOr<bool> MakeAuthorityFolder(const std::string& folder, std::chrono::hours lifetime,
                                         bool renew);

}  // namespace percs
