// Virtual time: integer picoseconds since the start of the run. Nothing in emulator/ reads a clock.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace percs {

using Time = std::int64_t;  // picoseconds

inline constexpr Time kPicosecond = 1;
inline constexpr Time kNanosecond = 1'000;
inline constexpr Time kMicrosecond = 1'000'000;
inline constexpr Time kMillisecond = 1'000'000'000;
inline constexpr Time kSecond = 1'000'000'000'000;
// "No event": later than every event, with room to add a delay without overflow.
inline constexpr Time kNever = std::numeric_limits<Time>::max() / 4;

// `1.5us`: in the largest unit that leaves a whole part, with at most `decimals` decimals, none of
// them a trailing zero. kNever is `never`.
inline constexpr int kEveryDecimal = 12;
std::string FormatTime(Time time, int decimals = kEveryDecimal);

}  // namespace percs
