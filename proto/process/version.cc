#include "proto/process/version.h"

#include "fmt/format.h"

namespace percs {

v1::Versions OurVersions() {
  v1::Versions versions;
  versions.set_wire(kWireVersion);
  versions.set_format(kFormatVersion);
  versions.set_model(kModelVersion);
  versions.set_software(kSoftwareVersion);
  return versions;
}

absl::Status CheckVersions(const v1::Versions& theirs, const std::string& who) {
  const auto refuse = [&](const char* what, std::uint32_t their, std::uint32_t our) {
    return absl::FailedPreconditionError(
        fmt::format("{} has {} version {} (software {}), this process has {} (software {}): use "
                    "programs of the same build",
                    who, what, their, theirs.software(), our, kSoftwareVersion));
  };
  if (theirs.wire() != kWireVersion) return refuse("wire", theirs.wire(), kWireVersion);
  if (theirs.model() != kModelVersion) return refuse("model", theirs.model(), kModelVersion);
  if (theirs.format() > kFormatVersion) return refuse("format", theirs.format(), kFormatVersion);
  return absl::OkStatus();
}

}  // namespace percs
