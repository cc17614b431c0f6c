// What a run prints: one function for people, one for programs. Both see the same RunReport,
// whether the run was in this process or over daemons.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/percsctl/outcome.h"
#include "emulator/sim/run.h"
#include "emulator/topology/topology.h"
#include "percs/v1/common.pb.h"

namespace percs {

struct RunReport {
  RunResult result;
  double wall_seconds = 0;
  std::string placement;                                          // `1 thread`, `4 daemons`
  google::protobuf::RepeatedPtrField<v1::TreeStatus> trees = {};  // of CAUs
  google::protobuf::RepeatedPtrField<v1::FaultStatus> faults = {};
  bool show_events = false;  // of the result
};

nlohmann::json ReportJson(const RunReport& report, const Topology& topology);
std::string ReportText(const RunReport& report, const Topology& topology);

// Prints the report to standard output; kViolation if a checker or a payload check failed.
Outcome PrintReport(const RunReport& report, const Topology& topology, bool json);

// Trees of CAUs, with what was repaired; vertices where the message has them.
nlohmann::json TreesJson(const google::protobuf::RepeatedPtrField<v1::TreeStatus>& trees);
std::string TreesText(const google::protobuf::RepeatedPtrField<v1::TreeStatus>& trees);

// What network management did about faults; "" if nothing.
std::string ReroutesText(const RunResult& result, const Topology& topology);

// A loop of collectives; null and "" without one.
nlohmann::json CollectiveJson(const CollectiveResult& collective);
std::string CollectiveText(const CollectiveResult& collective);

// One line of what happened to a fabric, and the line above the first.
std::string EventHeader();
std::string EventLine(std::uint64_t sequence, const std::string& kind, Time at,
                      const std::string& subject, const std::string& text);

// The counters of a hub or of all, without what only a finished run knows.
nlohmann::json CountersJson(const NodeStats& stats);
std::string CountersText(const NodeStats& stats);
std::string VcCountersText(const NodeStats& stats);  // every port and VC that did something
nlohmann::json VcCountersJson(const NodeStats& stats);
// Over the ports of one class, all in the first VC.
PortStats SumOfClass(const NodeStats& stats, LinkClass c);
std::uint64_t PacketsDropped(const NodeStats& stats);
// Bytes per second in the measurement phase: of each sending hub, and of the receiving hub that
// accepted least; 0 without such a phase.
struct LoadPerHub {
  double offered = 0, accepted = 0, least_accepted = 0, least_injected = 0;
};
LoadPerHub LoadOf(const RunResult& result);
// One line of a report: what it is, and the value.
std::string ReportLine(const char* label, const std::string& value);
std::string MeasuredText(const RunResult& result);  // "" without such a phase
std::string LatencyText(const NodeStats& stats, const Measurement& measurement = {});

}  // namespace percs
