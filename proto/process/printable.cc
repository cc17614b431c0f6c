#include "proto/process/printable.h"

#include <cstdint>
#include <iterator>

#include "fmt/format.h"

namespace percs {
namespace {

constexpr std::size_t kQuotedMax = 32;

// Bytes of the character at the front of `text`; 0 if it is a control character, or not UTF-8.
std::size_t PrintableCharacter(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = at(0);
  if (first < 0x80) return first >= ' ' && first != 0x7f ? 1 : 0;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && at(1) < 0xa0) || (first == 0xf0 && at(1) < 0x90);
  const bool beyond = (first == 0xed && at(1) >= 0xa0) || (first == 0xf4 && at(1) >= 0x90);
  const bool control = first == 0xc2 && at(1) < 0xa0;
  return overlong || beyond || control ? 0 : size;
}

}  // namespace

std::string Printable(std::string_view text, Lines lines) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const bool layout = lines == Lines::kSeveral && (text[0] == '\n' || text[0] == '\t');
    const std::size_t size = layout ? 1 : PrintableCharacter(text);
    if (size > 0) {
      printable.append(text.substr(0, size));
    } else {
      fmt::format_to(std::back_inserter(printable), "\\x{:02x}",
                     static_cast<std::uint8_t>(text[0]));
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return printable;
}

absl::Status CheckName(std::string_view name) {
  const std::string quoted =
      Printable(name.substr(0, kQuotedMax), Lines::kOne) + (name.size() > kQuotedMax ? "..." : "");
  if (name.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(fmt::format("the name \"{}\" has {} bytes; at most {}",
                                                  quoted, name.size(), kNameBytesMax));
  }
  while (!name.empty()) {
    const std::size_t size = PrintableCharacter(name);
    if (size == 0) {
      return absl::InvalidArgumentError(fmt::format(
          "the name \"{}\" has a control character, or is not UTF-8; use printable characters",
          quoted));
    }
    name.remove_prefix(size);
  }
  return absl::OkStatus();
}

}  // namespace percs
