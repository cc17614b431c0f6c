#include "daemon/metrics/process_metrics.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "daemon/config/version.h"
#include "daemon/metrics/call_metrics.h"
#include "daemon/metrics/metric_list.h"
#include "daemon/stream/rate_limit.h"
#include "proto/security/credentials.h"

namespace percs {
namespace {

// Of /proc/self/stat (proc(5)), from field 3 on.
struct KernelStat {
  double user_ticks = 0, system_ticks = 0, threads = 0, start_ticks = 0, resident_pages = 0;
};

bool ReadStat(KernelStat* stat) {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 24 && fields >> field; ++number) {
    double* const into = number == 14   ? &stat->user_ticks
                         : number == 15 ? &stat->system_ticks
                         : number == 20 ? &stat->threads
                         : number == 22 ? &stat->start_ticks
                         : number == 24 ? &stat->resident_pages
                                        : nullptr;
    if (into != nullptr) *into = std::stod(field);
  }
  return true;
}

// Boot of the host since the epoch of Unix.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

}  // namespace

void AddProcessMetrics(MetricFamilies* families) {
  families->Add(metric::kBuild,
                {{"version", kSoftwareVersion},
                 {"model", std::to_string(kModelVersion)},
                 {"wire", std::to_string(kWireVersion)}},
                1);
  for (std::size_t i = 0; i < kRefusals; ++i) {
    families->Add(metric::kRefused, {{"reason", kRefusalNames[i]}},
                  static_cast<double>(RefusalCount(static_cast<Refusal>(i))));
  }
  for (std::size_t i = 0; i < kExcesses; ++i) {
    families->Add(metric::kRefused, {{"reason", kExcessNames[i]}},
                  static_cast<double>(ExcessCount(static_cast<Excess>(i))));
  }
  AddCallMetrics(families);
  KernelStat stat;
  if (!ReadStat(&stat)) return;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  families->Add(metric::kCpu, {}, (stat.user_ticks + stat.system_ticks) / ticks);
  families->Add(metric::kResident, {},
                stat.resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  families->Add(metric::kThreads, {}, stat.threads);
  families->Add(metric::kStartTime, {}, BootTime() + stat.start_ticks / ticks);
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (!error) {
    families->Add(metric::kOpenFiles, {},
                  static_cast<double>(std::distance(begin(files), end(files))));
  }
}

}  // namespace percs
