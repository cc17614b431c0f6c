#include "daemon/controller/journal.h"

#include <filesystem>
#include <fstream>

#include "fmt/format.h"
#include "google/protobuf/util/json_util.h"

namespace percs {
namespace {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

}  // namespace

absl::Status Journal::Open(const std::string& folder) {
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream probe(folder + "/journal.jsonl", std::ios::app);
  if (!probe) {
    return absl::UnavailableError(
        fmt::format("cannot write a journal into {}: the folder must be writable", folder));
  }
  folder_ = folder;
  return absl::OkStatus();
}

void Journal::Write(const std::string& line) {
  if (folder_.empty()) return;
  std::ofstream(folder_ + "/journal.jsonl", std::ios::app) << line << "\n";
}

void Journal::Applied(std::uint64_t run, const v1::Scenario& scenario) {
  if (folder_.empty()) return;
  std::string json;
  const auto written = google::protobuf::util::MessageToJsonString(scenario, &json);
  const std::string name = fmt::format("run-{}.scenario.json", run);
  if (written.ok()) std::ofstream(folder_ + "/" + name) << json << "\n";
  Write(fmt::format(R"({{"run": {}, "event": "apply", "scenario": {}}})", run, Quoted(name)));
}

void Journal::Fault(std::uint64_t run, Time at, const std::string& link, bool up) {
  Write(fmt::format(R"({{"run": {}, "event": "{}", "at_ps": {}, "link": {}}})", run,
                    up ? "link_up" : "link_down", at, Quoted(link)));
}

void Journal::OtherFault(std::uint64_t run, Time at, const std::string& what) {
  Write(fmt::format(R"({{"run": {}, "event": "fault", "at_ps": {}, "what": {}}})", run, at,
                    Quoted(what)));
}

void Journal::RoutesLoaded(std::uint64_t run, Time at, std::uint64_t hash) {
  Write(fmt::format(R"({{"run": {}, "event": "routes_load", "at_ps": {}, "hash": "{:016x}"}})", run,
                    at, hash));
}

void Journal::Tree(std::uint64_t run, Time at, const std::string& name, const char* event) {
  Write(fmt::format(R"({{"run": {}, "event": "{}", "at_ps": {}, "tree": {}}})", run, event, at,
                    Quoted(name)));
}

void Journal::Stopped(std::uint64_t run, Time at) {
  Write(fmt::format(R"({{"run": {}, "event": "stop", "at_ps": {}}})", run, at));
}

void Journal::Ended(std::uint64_t run, const std::string& outcome) {
  Write(fmt::format(R"({{"run": {}, "event": "end", "outcome": {}}})", run, Quoted(outcome)));
}

}  // namespace percs
