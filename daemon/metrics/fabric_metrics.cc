#include "daemon/metrics/fabric_metrics.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "daemon/metrics/metric_list.h"
#include "fmt/format.h"

namespace percs {
namespace {

// `running` of FABRIC_STATE_RUNNING.
std::string StateLabel(const google::protobuf::EnumValueDescriptor& value) {
  std::string name = value.name();
  constexpr std::string_view kPrefix = "FABRIC_STATE_";
  if (name.rfind(kPrefix, 0) == 0) name.erase(0, kPrefix.size());
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// One series for each fault that the status lists, which are not many, and one that counts the
// others.
void AddFaults(const v1::StatusReply& status, MetricFamilies* families) {
  const auto add = [&](const std::string& fault, const std::string& kind, const std::string& target,
                       double value) {
    families->Add(metric::kFaultInfo, {{"fault", fault}, {"kind", kind}, {"target", target}},
                  value);
  };
  for (const v1::FaultStatus& fault : status.faults()) {
    std::string target = fault.targets().empty() ? "" : fault.targets(0);
    if (fault.selected() > 1) target += fmt::format(" and {} more", fault.selected() - 1);
    add(fault.id(), fault.kind(), target, fault.phase() == "active");
  }
  add("_overflow", "", "", static_cast<double>(status.faults_active()) - status.faults_size());
}

}  // namespace

void AddFabricMetrics(const v1::StatusReply& status, MetricFamilies* families) {
  const auto* const states = v1::FabricState_descriptor();
  for (int i = 0; i < states->value_count(); ++i) {
    const auto& state = *states->value(i);
    if (state.number() == 0) continue;
    families->Add(metric::kClockState, {{"state", StateLabel(state)}},
                  status.state() == state.number());
  }
  const auto connected = std::count_if(status.processes().begin(), status.processes().end(),
                                       [](const auto& p) { return p.connected(); });
  families->Add(metric::kDaemons, {}, static_cast<double>(connected));
  families->Add(metric::kDaemonsWanted, {}, status.daemons_expected());
  AddFaults(status, families);
  families->Add(metric::kRuns, {}, static_cast<double>(status.run()));
  families->Add(metric::kVirtualTime, {}, InSeconds(static_cast<double>(status.virtual_time())));
  families->Add(metric::kWindows, {}, static_cast<double>(status.windows()));
  families->Add(metric::kWindowRate, {}, status.windows_per_second());
  families->Add(metric::kPaceReached, {}, InSeconds(status.pace_reached()));
  families->Add(metric::kPaceRequested, {}, InSeconds(static_cast<double>(status.pace())));
  families->Add(metric::kBehind, {}, status.wall_behind_seconds());
}

std::string DiscoveryList(const v1::StatusReply& status, const std::string& own_address) {
  using Json = nlohmann::json;
  Json list = Json::array();
  // Addresses of containers mean nothing to people, so `instance` is a name.
  const auto add = [&list](std::string address, const char* role, const std::string& name) {
    Json labels = {{"role", role}, {"instance", name}};
    if (constexpr std::string_view kTls = "https://"; address.rfind(kTls, 0) == 0) {
      address.erase(0, kTls.size());
      labels["__scheme__"] = "https";
    }
    list.push_back({{"targets", {address}}, {"labels", labels}});
  };
  add(own_address, "controller", "controller");
  for (const v1::ProcessStatus& process : status.processes()) {
    if (process.metrics_address().empty()) continue;
    add(process.metrics_address(), "daemon",
        fmt::format("{} (place {})", process.name(), process.process()));
  }
  return list.dump();
}

}  // namespace percs
