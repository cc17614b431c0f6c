#include <filesystem>

#include "fmt/format.h"
#include "proto/scenario/build.h"
#include "proto/scenario/file.h"
#include "proto/scenario/limits.h"
#include "proto/scenario/link_list_file.h"
#include "proto/scenario/permutation_file.h"

namespace percs {
namespace {

absl::StatusOr<std::string> ReadTraceBytes(const v1::Trace& trace, const std::string& directory) {
  if (trace.has_inline_trace()) {
    if (trace.inline_trace().size() <= kTraceBytesMax) return trace.inline_trace();
    return absl::ResourceExhaustedError(fmt::format("a trace of {} bytes; the limit is {} MiB",
                                                    trace.inline_trace().size(),
                                                    kTraceBytesMax >> 20));
  }
  auto bytes =
      ReadWholeFile((std::filesystem::path(directory) / trace.file()).string(), kTraceBytesMax);
  if (bytes.ok()) return bytes;
  return absl::Status(bytes.status().code(),
                      fmt::format("{}; `file` is relative to the scenario file",
                                  std::string(bytes.status().message())));
}

}  // namespace

absl::StatusOr<std::string> ReadTrace(const v1::Trace& trace, const std::string& directory) {
  auto bytes = ReadTraceBytes(trace, directory);
  if (!bytes.ok() || !IsGzip(*bytes)) return bytes;
  auto text = Gunzip(*bytes, kTraceBytesMax);
  if (text.ok()) return text;
  return absl::Status(text.status().code(),
                      fmt::format("{}: {}", trace.file(), std::string(text.status().message())));
}

absl::Status InlineFiles(v1::Scenario* scenario, const std::string& directory) {
  if (!scenario->topology().links_file().empty()) {
    auto text = ReadLinkListFile(scenario->topology(), directory);
    if (!text.ok()) return text.status();
    scenario->mutable_topology()->set_inline_links(*std::move(text));
  }
  if (!scenario->has_workload()) return absl::OkStatus();
  v1::Workload* workload = scenario->mutable_workload();
  for (v1::PatternTraffic* traffic :
       {workload->has_pattern() ? workload->mutable_pattern() : nullptr,
        workload->has_background() ? workload->mutable_background() : nullptr}) {
    if (!traffic || traffic->permutation_file().empty()) continue;
    auto text = ReadPermutationFile(*traffic, directory);
    if (!text.ok()) return text.status();
    traffic->set_inline_permutation(*std::move(text));
  }
  if (!scenario->workload().has_trace()) return absl::OkStatus();
  v1::Trace* trace = scenario->mutable_workload()->mutable_trace();
  if (trace->has_inline_trace()) return absl::OkStatus();
  auto bytes = ReadTraceBytes(*trace, directory);
  if (!bytes.ok()) return bytes.status();
  trace->set_inline_trace(IsGzip(*bytes) ? *std::move(bytes) : Gzip(*bytes));
  return absl::OkStatus();
}

}  // namespace percs
