// The versions in every handshake (docs/protocol.md).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "emulator/base/version.h"
#include "percs/v1/common.pb.h"

namespace percs {

inline constexpr std::uint32_t kWireVersion = 20;
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr char kSoftwareVersion[] = "0.1.0";

v1::Versions OurVersions();
// FAILED_PRECONDITION with both versions unless `theirs` can work with ours: wire and model equal,
// format not newer. `who` begins the message.
absl::Status CheckVersions(const v1::Versions& theirs, const std::string& who);

}  // namespace percs
