#include "daemon/metrics/process_metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>

#include "daemon/metrics/call_metrics.h"
#include "daemon/metrics/metric_list.h"
#include "daemon/stream/rate_limit.h"
#include "proto/process/version.h"
#include "proto/security/credentials.h"

namespace percs {
namespace {

// All of a file of /proc, which has no size beforehand; "" if it cannot be read.
std::string ReadProc(const char* path) {
  std::string text;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  std::array<char, 4096> part;
  for (ssize_t n; (n = read(fd, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  close(fd);
  return text;
}

// Of /proc/self/stat (proc(5)), from field 3 on.
struct KernelStat {
  double user_ticks = 0, system_ticks = 0, threads = 0, start_ticks = 0, resident_pages = 0;
};

bool ReadStat(KernelStat* stat) {
  const std::string text = ReadProc("/proc/self/stat");
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return false;
  const char* at = text.c_str() + name_end + 1;
  for (int number = 3; number <= 24; ++number) {
    at += std::strspn(at, " ");
    double* const into = number == 14   ? &stat->user_ticks
                         : number == 15 ? &stat->system_ticks
                         : number == 20 ? &stat->threads
                         : number == 22 ? &stat->start_ticks
                         : number == 24 ? &stat->resident_pages
                                        : nullptr;
    if (into != nullptr) *into = std::strtod(at, nullptr);
    at += std::strcspn(at, " ");
  }
  return true;
}

// Boot of the host since the epoch of Unix, as it was when first asked: setting the clock does not
// change when this process began, and reading it makes the kernel sum up all interrupts.
double BootTime() {
  static const double kBootTime = [] {
    const std::string text = ReadProc("/proc/stat");
    const std::size_t found = text.find("\nbtime ");
    return found == std::string::npos ? 0 : std::strtod(text.c_str() + found + 7, nullptr);
  }();
  return kBootTime;
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
