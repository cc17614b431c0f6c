#include "client/percsctl/sizes.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

absl::StatusOr<std::uint64_t> SizeOf(const std::string& text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(),
                                                 [](unsigned char c) { return std::isdigit(c); });
  const auto bytes = ParseBytes(bare ? text + "B" : text);
  if (!bytes.ok()) return bytes.status();
  return static_cast<std::uint64_t>(*bytes);
}

}  // namespace

absl::StatusOr<std::vector<std::uint64_t>> ParseSizes(const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : texts) {
    const std::vector<std::string> ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
    const auto first = SizeOf(ends.front());
    if (!first.ok()) return first.status();
    const auto last = SizeOf(ends.back());
    if (!last.ok()) return last.status();
    if (ends.size() == 2 && (*first == 0 || *last < *first)) {
      return absl::InvalidArgumentError(fmt::format(
          "sizes \"{}\": a range starts at 1 B or more and goes up, for example 8..1MiB", text));
    }
    for (std::uint64_t size = *first; size <= *last; size *= 2) {
      sizes.push_back(size);
      if (size == 0) break;
    }
  }
  return sizes;
}

}  // namespace percs
