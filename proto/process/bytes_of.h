// A string as the bytes that it holds: protobuf has bytes as strings, the emulator as numbers.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"

namespace percs {

// Valid as long as `text`.
inline absl::Span<const std::uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace percs
