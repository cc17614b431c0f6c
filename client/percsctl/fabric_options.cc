#include "client/percsctl/fabric_options.h"

#include <fmt/format.h>

#include "client/percsctl/command.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

constexpr char kWallPrefix[] = "wall:";

absl::StatusOr<std::unique_ptr<FabricClient>> ConnectTo(const std::string& address,
                                                        const std::string& tls) {
  if (tls.empty()) return std::make_unique<FabricClient>(address);
  const auto credentials = Credentials::Load(tls, RoleSet(Role::kViewer, Role::kOperator));
  if (!credentials.ok()) return credentials.status();
  return std::make_unique<FabricClient>(address, *credentials);
}

}  // namespace

void AddNameOption(CLI::App& app, std::string& name) {
  app.add_option("--name", name, "Name of the local fabric")->capture_default_str();
}

void AddControllerOptions(CLI::App& app, FabricOptions& options) {
  app.add_option("--controller", options.controller,
                 "Address of the controller, instead of --name: host:port or unix:/path");
  app.add_option("--tls", options.tls,
                 "With --controller: folder of the identity to use (operator or viewer, made by "
                 "`percsctl ca`); default: plaintext");
}

void AddFabricOptions(CLI::App& app, FabricOptions& options) {
  AddNameOption(app, options.name);
  AddControllerOptions(app, options);
  AddFormatOption(app, options.format);
}

absl::StatusOr<std::unique_ptr<FabricClient>> Connect(const FabricRecord& record) {
  return ConnectTo(record.controller, record.tls);
}

absl::StatusOr<std::unique_ptr<FabricClient>> Connect(const FabricOptions& options) {
  if (!options.controller.empty()) return ConnectTo(options.controller, options.tls);
  const auto store = FabricStore::Open();
  if (!store.ok()) return store.status();
  const auto record = store->Load(options.name);
  if (!record.ok()) return record.status();
  if (record->controller.empty()) {
    return absl::NotFoundError(fmt::format(
        "local fabric \"{0}\" did not start completely; `percsctl down --name {0}` cleans it up",
        options.name));
  }
  return ConnectTo(record->controller, options.tls.empty() ? record->tls : options.tls);
}

absl::StatusOr<std::string> IdentityFor(const FabricOptions& options) {
  if (!options.tls.empty() || !options.controller.empty()) return options.tls;
  const auto store = FabricStore::Open();
  if (!store.ok()) return store.status();
  const auto record = store->Load(options.name);
  if (!record.ok()) return record.status();
  return record->tls;
}

Outcome WithFabric(const FabricOptions& options, const ClientBody& body) {
  const auto client = Connect(options);
  if (client.ok()) return body(**client);
  Outcome outcome = FromStatus(client.status());
  if (client.status().code() == absl::StatusCode::kNotFound) outcome.code = ExitCode::kUnreachable;
  return outcome;
}

absl::StatusOr<UserTime> ParseUserTime(const std::string& text) {
  UserTime result;
  result.wall = text.rfind(kWallPrefix, 0) == 0;
  const auto time = ParseTime(result.wall ? text.substr(sizeof(kWallPrefix) - 1) : text);
  if (!time.ok()) return time.status();
  result.time = *time;
  return result;
}

absl::StatusOr<std::chrono::milliseconds> ParseWallTime(const std::string& text) {
  const auto time = ParseUserTime(text);
  if (!time.ok()) return time.status();
  if (!time->wall) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{0}\" is a virtual time, but this option takes wall-clock time; write wall:{0}", text));
  }
  return std::chrono::milliseconds(time->time / kMillisecond);
}

const char* StateName(v1::FabricState state) {
  switch (state) {
    case v1::FABRIC_STATE_JOINING:
      return "joining";
    case v1::FABRIC_STATE_EMPTY:
      return "empty";
    case v1::FABRIC_STATE_CONFIGURING:
      return "configuring";
    case v1::FABRIC_STATE_RUNNING:
      return "running";
    case v1::FABRIC_STATE_IDLE:
      return "idle";
    case v1::FABRIC_STATE_FINISHED:
      return "finished";
    case v1::FABRIC_STATE_PAUSED:
      return "paused";
    case v1::FABRIC_STATE_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

}  // namespace percs
