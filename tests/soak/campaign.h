// The driver of a search: tries numbered things in several processes, so that one that crashes or
// does not end is a find like any other; makes a find small; runs what was written again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace percs::soak {

struct Campaign {
  const char* program;  // network_campaign
  const char* thing;    // network
  const char* things;   // networks
  const char* keep;     // how to keep a find; a line of the usage
  // The whole thing of that number, for people.
  std::function<std::string(std::uint64_t seed)> print;
  // Why it fails; empty if it does not.
  std::function<std::string(std::uint64_t seed)> failure;
  // The smallest part of it that still fails, as a file; empty if it does not fail.
  std::function<std::string(std::uint64_t seed)> shrink;
  // What a file of shrink() is about, and why it fails. Errors of reading it.
  struct Replayed {
    std::string about;
    std::function<std::string()> failure;
  };
  std::function<absl::StatusOr<Replayed>(const std::string& text, const std::string& path)> replay;
};

// The exit code: 0 nothing fails, 1 something fails, 2 wrong usage.
int Main(const Campaign& campaign, const std::vector<std::string>& arguments);

// What `failure` says in a process of its own, or how that process ended: a failed check of the
// engine ends it.
std::string FailureApart(const std::function<std::string()>& failure);

}  // namespace percs::soak
