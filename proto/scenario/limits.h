// Limits of a scenario, so that no file and no request takes unbounded memory. docs/scenario.md
// lists them; those of a trace's statements are in emulator/workload/goal.h, that of a request in
// proto/security/channel.h.
#pragma once

#include <cstdint>

namespace percs {

inline constexpr std::uint64_t kScenarioBytesMax = std::uint64_t{16} << 20;  // of a file
inline constexpr std::uint64_t kScenarioValuesMax =
    1'000'000;  // an alias counts wherever it is used
inline constexpr std::uint64_t kTraceBytesMax = std::uint64_t{256} << 20;  // uncompressed, too
inline constexpr std::uint64_t kPermutationBytesMax = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kLinkListBytesMax = std::uint64_t{8} << 20;

}  // namespace percs
