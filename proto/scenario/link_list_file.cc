#include "proto/scenario/link_list_file.h"

#include <filesystem>

#include "fmt/format.h"
#include "proto/scenario/file.h"
#include "proto/scenario/limits.h"

namespace percs {

absl::StatusOr<std::string> ReadLinkListFile(const v1::Topology& topology,
                                             const std::string& directory) {
  if (topology.has_inline_links()) {
    if (topology.inline_links().size() <= kLinkListBytesMax) return topology.inline_links();
    return absl::ResourceExhaustedError(
        fmt::format("a list of links of {} bytes; the limit is {} "
                    "MiB",
                    topology.inline_links().size(), kLinkListBytesMax >> 20));
  }
  auto text = ReadWholeFile((std::filesystem::path(directory) / topology.links_file()).string(),
                            kLinkListBytesMax);
  if (text.ok()) return text;
  return absl::Status(text.status().code(),
                      fmt::format("{}; `links_file` is relative to the scenario file",
                                  std::string(text.status().message())));
}

}  // namespace percs
