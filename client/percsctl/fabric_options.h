// Which fabric a command talks to: `--name` of a local or imported one, or `--controller` of any.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/lib/fabric_client.h"
#include "client/lib/fabric_record.h"
#include "client/percsctl/outcome.h"
#include "emulator/base/time.h"

namespace percs {

// Large machines take a while to be built.
inline constexpr std::chrono::milliseconds kApplyDeadline(120'000);

struct FabricOptions {
  std::string name = "default";
  std::string controller;
  std::string tls;  // folder of the identity to show; "": that of the local fabric, if it has one
  std::string format = "human";
};

void AddNameOption(CLI::App& app, std::string& name);
// --controller and --tls.
void AddControllerOptions(CLI::App& app, FabricOptions& options);
// --name, --controller, --tls and --format.
void AddFabricOptions(CLI::App& app, FabricOptions& options);
// For the fabric of a record. Errors of its identity.
absl::StatusOr<std::unique_ptr<FabricClient>> Connect(const FabricRecord& record);
// NOT_FOUND if there is no local fabric of that name.
absl::StatusOr<std::unique_ptr<FabricClient>> Connect(const FabricOptions& options);

// Folder of the identity to present; "" if the fabric has none.
absl::StatusOr<std::string> IdentityFor(const FabricOptions& options);

// A reply, or the outcome that says why there is none. A missing local fabric counts as
// unreachable.
using ClientBody = std::function<Outcome(FabricClient&)>;
Outcome WithFabric(const FabricOptions& options, const ClientBody& body);

// A time as a user writes it: virtual, or `wall:30s`.
struct UserTime {
  bool wall = false;
  Time time = 0;  // picoseconds of either
};
absl::StatusOr<UserTime> ParseUserTime(const std::string& text);
// For what can only be wall time: `wall:30s`.
absl::StatusOr<std::chrono::milliseconds> ParseWallTime(const std::string& text);

const char* StateName(v1::FabricState state);

}  // namespace percs
