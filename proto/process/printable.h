// Text from outside that people read: names are checked, and printed text cannot control a terminal
// or forge a line of a log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace percs {

// Of a scenario, fault, tree, group of blades or daemon: bytes of UTF-8. Programs have less.
inline constexpr std::size_t kNameBytesMax = 128;

enum class Lines : bool { kOne, kSeveral };
// With `\xNN` for control characters and for bytes that are not UTF-8; line feeds and tabs stay in
// text of several lines.
std::string Printable(std::string_view text, Lines lines);

// INVALID_ARGUMENT unless `name` has at most kNameBytesMax bytes, all of them printable UTF-8. The
// empty name is one: whether there must be one is not decided here.
absl::Status CheckName(std::string_view name);

}  // namespace percs
