// Counts of outside programs of a process, for scrapes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace percs {

// Why a request of a program was refused before it reached a hub.
enum class EndpointRefusal : std::uint8_t {
  kAttach,     // no window: not here, not now, or as many programs as there may be
  kMalformed,  // fields out of range, operations out of order
  kTooLarge,   // more bytes than an operation carries
  kTooMany,    // more operations or bytes outstanding than a program may have
  kClosed,     // the window is not the program's
  kSlow,       // it did not read its events
  kJournal,    // the controller could not journal it
};
inline constexpr const char* kEndpointRefusalNames[] = {
    "attach", "malformed", "too_large", "too_many", "closed", "slow", "journal"};
inline constexpr std::size_t kEndpointRefusals = std::size(kEndpointRefusalNames);

struct EndpointStats {
  std::uint64_t programs = 0,
                owing = 0;       // attached now; exclusive ones of them that virtual time waits for
  std::uint64_t attached = 0;    // ever
  std::uint64_t reattached = 0;  // streams that were reopened
  std::uint64_t operations = 0;  // issued
  std::uint64_t operation_bytes = 0;  // of data in them
  std::uint64_t events = 0;           // sent to programs
  std::array<std::uint64_t, kEndpointRefusals> refused{};
};

}  // namespace percs
