#include "proto/scenario/permutation_file.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "emulator/workload/patterns.h"
#include "fmt/format.h"
#include "proto/scenario/file.h"
#include "proto/scenario/limits.h"

namespace percs {
namespace {

constexpr std::size_t kWordMax = 128;

absl::StatusOr<NodeId> ParsePlace(const std::string& text, const Topology& topology) {
  const NodeId places = PlacesOf(topology.spec());
  std::uint32_t number = 0;
  if (absl::SimpleAtoi(text, &number)) {
    if (number < places) return number;
    return absl::InvalidArgumentError(
        fmt::format("place {} does not exist; places are 0 to {}", number, places - 1));
  }
  const auto endpoints = static_cast<NodeId>(topology.spec().places());
  const std::size_t dot = text.find('.');
  const auto hub = topology.ParseNode(text.substr(0, dot));
  if (!hub.ok()) return hub.status();
  if (*hub >= topology.hubs())
    return absl::InvalidArgumentError(fmt::format("{} is no hub; write the name of a hub", text));
  if (dot == std::string::npos) {
    if (endpoints == 1) return *hub;
    return absl::InvalidArgumentError(fmt::format("{0} has {1} endpoints; write {0}.0 to {0}.{2}",
                                                  text, endpoints, endpoints - 1));
  }
  if (absl::SimpleAtoi(text.substr(dot + 1), &number) && number < endpoints)
    return *hub * endpoints + number;
  return absl::InvalidArgumentError(
      fmt::format("{} is no endpoint; hubs have {}, from 0 to {}", text, endpoints, endpoints - 1));
}

}  // namespace

absl::StatusOr<std::string> ReadPermutationFile(const v1::PatternTraffic& traffic,
                                                const std::string& directory) {
  if (traffic.has_inline_permutation()) {
    if (traffic.inline_permutation().size() <= kPermutationBytesMax)
      return traffic.inline_permutation();
    return absl::ResourceExhaustedError(
        fmt::format("a permutation of {} bytes; the limit is {} MiB",
                    traffic.inline_permutation().size(), kPermutationBytesMax >> 20));
  }
  auto text =
      ReadWholeFile((std::filesystem::path(directory) / traffic.permutation_file()).string(),
                    kPermutationBytesMax);
  if (text.ok()) return text;
  return absl::Status(text.status().code(),
                      fmt::format("{}; `permutation_file` is relative to the scenario file",
                                  std::string(text.status().message())));
}

absl::StatusOr<std::vector<NodeId>> ParsePermutation(const std::string& text,
                                                     const Topology& topology) {
  const NodeId places = PlacesOf(topology.spec());
  std::vector<NodeId> to(places, kNoNode);
  std::vector<int> receives(places, 0), sends(places, 0);  // in which line; 0: in none
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    const auto wrong = [number](const std::string& what) {
      return absl::InvalidArgumentError(fmt::format("line {}: {}", number, what));
    };
    if (words.size() != 2) {
      return wrong(fmt::format("{} word{}; write `SENDER RECEIVER`", words.size(),
                               words.size() == 1 ? "" : "s"));
    }
    for (const std::string& word : words) {
      if (word.size() <= kWordMax && std::all_of(word.begin(), word.end(), absl::ascii_isgraph))
        continue;
      return wrong(
          fmt::format("a word that is no name: at most {} letters, digits and signs", kWordMax));
    }
    const auto sender = ParsePlace(words[0], topology), receiver = ParsePlace(words[1], topology);
    if (!sender.ok()) return wrong(std::string(sender.status().message()));
    if (!receiver.ok()) return wrong(std::string(receiver.status().message()));
    if (*sender == *receiver) {
      return wrong(fmt::format("{} sends to itself; leave it out, then it is silent", words[0]));
    }
    if (sends[*sender] > 0)
      return wrong(fmt::format("{} sends in line {} already", words[0], sends[*sender]));
    if (receives[*receiver] > 0)
      return wrong(fmt::format("{} receives in line {} already", words[1], receives[*receiver]));
    sends[*sender] = receives[*receiver] = number;
    to[*sender] = *receiver;
  }
  return to;
}

}  // namespace percs
