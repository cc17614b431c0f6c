// Key pairs and certificates (X.509, P-256), by OpenSSL. One authority signs one certificate per
// role; its key is not kept.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/security/roles.h"

namespace percs {

// What a process with a role has: all in PEM.
struct Identity {
  std::string authority;    // certificate of the authority
  std::string certificate;  // its own
  std::string key;          // private
};

// An authority and an identity for every role, valid from a little before now until `lifetime` from
// now, but for roles that have one of their own; a lifetime below zero gives an expired
// certificate.
using Lifetimes = std::map<Role, std::chrono::hours>;
absl::StatusOr<std::map<Role, Identity>> IssueIdentities(std::chrono::hours lifetime,
                                                         const Lifetimes& own = {});

// The role that `certificate` (PEM) proves to those who trust `authority` (PEM).
// UNAUTHENTICATED: it is none of this authority, has expired or names no role.
absl::StatusOr<Role> VerifyCertificate(const std::string& certificate,
                                       const std::string& authority);

// OK if key, certificate and authority belong together and are valid now.
absl::StatusOr<Role> VerifyIdentity(const Identity& identity);

// An identity as one text, and back. INVALID_ARGUMENT says which block is missing.
std::string ToBundle(const Identity& identity);
absl::StatusOr<Identity> FromBundle(const std::string& text);

// A folder with ca.pem and identity.pem (private key and certificate), readable for their owner
// only.
absl::Status WriteIdentity(const std::string& folder, const Identity& identity);
absl::StatusOr<Identity> ReadIdentity(const std::string& folder);

}  // namespace percs
