#include "client/lib/fabric_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "emulator/base/digest.h"

namespace percs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kSocketPathMax = 107;  // sockaddr_un, without the final zero
constexpr std::size_t kSocketNameMax = 24;   // `/controller.sock`, `/d12345.sock`
constexpr std::size_t kNameMax = 32;
constexpr int kRecordFormat = 1;
constexpr const char* kRecordFile = "/fabric.json";

absl::Status Broken(const std::string& path, const std::string& why) {
  return absl::DataLossError(fmt::format("{} is not a record of a fabric: {}", path, why));
}

Json ToJson(const FabricRecord& record) {
  Json processes = Json::array();
  for (const FabricProcess& p : record.processes) {
    processes.push_back({{"role", p.role},
                         {"pid", p.id.pid},
                         {"start", p.id.start},
                         {"log", p.log},
                         {"command", p.command}});
  }
  return {{"format", kRecordFormat},
          {"name", record.name},
          {"transport", record.transport},
          {"controller", record.controller},
          {"metrics", record.metrics},
          {"page", record.page},
          {"scenario", record.scenario},
          {"sockets", record.sockets},
          {"tls", record.tls},
          {"processes", std::move(processes)}};
}

FabricRecord FromJson(const Json& json) {
  FabricRecord record;
  record.name = json.at("name");
  record.transport = json.at("transport");
  record.controller = json.at("controller");
  record.metrics = json.value("metrics", "");
  record.page = json.value("page", "");
  record.scenario = json.at("scenario");
  record.sockets = json.at("sockets");
  record.tls = json.value("tls", "");
  for (const Json& p : json.at("processes")) {
    record.processes.push_back({p.at("role"), {p.at("pid"), p.at("start")}, p.at("log")});
    record.processes.back().command = p.value("command", std::vector<std::string>());
  }
  return record;
}

}  // namespace

std::string FabricProcess::name() const { return fs::path(log).stem().string(); }

int FabricRecord::running() const {
  return static_cast<int>(std::count_if(processes.begin(), processes.end(),
                                        [](const FabricProcess& p) { return IsRunning(p.id); }));
}

std::vector<ProcessId> FabricRecord::ids() const {
  std::vector<ProcessId> ids;
  for (const FabricProcess& p : processes) ids.push_back(p.id);
  return ids;
}

absl::Status CheckFabricName(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kNameMax && name[0] != '.' &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '.' || c == '-' || c == '_';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("fabric name \"{}\": expected 1 to {} letters, digits, '-', '_' and '.', not "
                  "starting with '.'",
                  name, kNameMax));
}

absl::StatusOr<FabricStore> FabricStore::Open() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state && state[0] == '/') return FabricStore(std::string(state) + "/percs");
  const char* home = std::getenv("HOME");
  if (home && home[0] == '/') return FabricStore(std::string(home) + "/.local/state/percs");
  return absl::FailedPreconditionError(
      "no folder for the state of local fabrics: set XDG_STATE_HOME or HOME to an absolute path");
}

std::string FabricStore::SocketFolderOf(const std::string& name) const {
  const std::string folder = FolderOf(name);
  if (folder.size() + kSocketNameMax <= kSocketPathMax) return folder;
  std::error_code error;
  const std::string temporary = fs::temp_directory_path(error).string();
  return fmt::format("{}/percs-{}-{:016x}", error ? "/tmp" : temporary, getuid(),
                     HashBytes(folder.data(), folder.size()));
}

std::vector<std::string> FabricStore::Names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_, error)) {
    if (fs::exists(entry.path().string() + kRecordFile, error)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<FabricRecord> FabricStore::Load(const std::string& name) const {
  if (absl::Status good = CheckFabricName(name); !good.ok()) return good;
  const std::string path = FolderOf(name) + kRecordFile;
  std::ifstream file(path);
  if (!file) {
    const std::vector<std::string> names = Names();
    return absl::NotFoundError(fmt::format(
        "no local fabric is called \"{}\"; {}", name,
        names.empty() ? "there is none, `percsctl up` starts one"
                      : fmt::format("write --name {}", fmt::join(names, " or --name "))));
  }
  std::stringstream text;
  text << file.rdbuf();
  try {
    const Json json = Json::parse(text.str());
    if (json.at("format") > kRecordFormat) return Broken(path, "a newer percsctl wrote it");
    return FromJson(json);
  } catch (const Json::exception& error) {
    return Broken(path, error.what());
  }
}

absl::Status FabricStore::Save(const FabricRecord& record) const {
  const std::string path = FolderOf(record.name) + kRecordFile;
  return ReplaceFile(path, ToJson(record).dump(2) + "\n");
}

void FabricStore::Remove(const FabricRecord& record) const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(record.sockets, ignored)) {
    if (entry.is_socket(ignored)) fs::remove(entry.path(), ignored);
  }
  const std::string folder = FolderOf(record.name);
  if (record.sockets != folder) fs::remove(record.sockets, ignored);
  fs::remove_all(TlsFolderOf(record.name), ignored);
  fs::remove(folder + kRecordFile, ignored);
  fs::remove(folder + kRecordFile + ".next", ignored);
}

absl::StatusOr<FabricLock> FabricLock::Take(const FabricStore& store, const std::string& name) {
  if (absl::Status good = CheckFabricName(name); !good.ok()) return good;
  const std::string folder = store.FolderOf(name);
  std::error_code error;
  fs::create_directories(folder, error);
  FabricLock lock;
  const absl::Status taken = lock.file_.Take(
      folder + "/lock",
      fmt::format("another percsctl is bringing fabric \"{}\" up or down right now; try again",
                  name));
  if (!taken.ok()) return taken;
  return lock;
}

}  // namespace percs
