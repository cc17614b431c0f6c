#include "tests/differential/network_part.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "tests/differential/random_network.h"

namespace percs::reference {
namespace {

constexpr const char *kPlanned = "planned", *kRandom = "random";

absl::Status Malformed(const std::string& line, const std::string& right) {
  return absl::InvalidArgumentError(fmt::format("'{}': {}", line, right));
}

template <typename T>
void Keep(const std::vector<std::size_t>& kept, std::vector<T>* items) {
  std::vector<T> left;
  for (const std::size_t number : kept) left.push_back(std::move((*items)[number]));
  *items = std::move(left);
}

absl::StatusOr<std::vector<std::size_t>> Numbers(const std::string& line, std::size_t limit) {
  std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  std::vector<std::size_t> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::uint64_t number = 0;
    const bool ascending = absl::SimpleAtoi(words[i], &number) && number < limit &&
                           (numbers.empty() || numbers.back() < number);
    if (!ascending) return Malformed(line, fmt::format("numbers below {}, ascending", limit));
    numbers.push_back(number);
  }
  return numbers;
}

// The line that begins with the word `name`.
std::optional<std::string> LineOf(const std::vector<std::string>& lines, const std::string& name) {
  for (const std::string& line : lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.front() == name) return line;
  }
  return std::nullopt;
}

}  // namespace

NetworkPart NetworkPart::Whole(std::uint64_t seed, bool random_tables) {
  const Scenario whole = RandomNetwork(seed);
  NetworkPart part{.seed = seed, .random_tables = random_tables, .kept = {}};
  part.kept[kPackets].resize(std::get<ScriptedWorkload>(whole.workload).packets.size());
  part.kept[kFaults].resize(whole.faults.size());
  part.kept[kPings].resize(whole.service.pings.size());
  for (auto& numbers : part.kept) std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return part;
}

Scenario NetworkPart::ToScenario() const {
  Scenario scenario = RandomNetwork(seed);
  if (random_tables) scenario.reroute = false;
  Keep(kept[kPackets], &std::get<ScriptedWorkload>(scenario.workload).packets);
  Keep(kept[kFaults], &scenario.faults);
  Keep(kept[kPings], &scenario.service.pings);
  return scenario;
}

std::string NetworkPart::ToText() const {
  std::string text = fmt::format("seed {}\ntables {}\n", seed, random_tables ? kRandom : kPlanned);
  for (std::size_t kind = 0; kind < kept.size(); ++kind) {
    text += fmt::format("{} {}\n", kNames[kind], absl::StrJoin(kept[kind], " "));
  }
  return text;
}

absl::StatusOr<NetworkPart> NetworkPart::Parse(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const auto seed_line = LineOf(lines, "seed");
  std::uint64_t seed = 0;
  if (!seed_line || !absl::SimpleAtoi(seed_line->substr(4), &seed)) {
    return Malformed(seed_line.value_or(""), "a line 'seed NUMBER' is needed");
  }
  const auto tables = LineOf(lines, "tables");
  const bool random = tables == fmt::format("tables {}", kRandom);
  if (!random && tables != fmt::format("tables {}", kPlanned)) {
    return Malformed(tables.value_or(""), "a line 'tables planned' or 'tables random' is needed");
  }
  NetworkPart part = Whole(seed, random);
  for (std::size_t kind = 0; kind < part.kept.size(); ++kind) {
    const auto line = LineOf(lines, kNames[kind]);
    if (!line) return Malformed("", fmt::format("a line '{}' is needed", kNames[kind]));
    auto numbers = Numbers(*line, part.kept[kind].size());
    if (!numbers.ok()) return numbers.status();
    part.kept[kind] = *std::move(numbers);
  }
  return part;
}

NetworkPart Shrink(NetworkPart part, const std::function<bool(const NetworkPart&)>& fails) {
  for (std::size_t kind = 0; kind < part.kept.size(); ++kind) {
    for (std::size_t piece = std::max<std::size_t>(1, part.kept[kind].size() / 2); piece > 0;
         piece /= 2) {
      for (std::size_t i = 0; i + piece <= part.kept[kind].size();) {
        NetworkPart smaller = part;
        const auto first = smaller.kept[kind].begin() + static_cast<std::ptrdiff_t>(i);
        smaller.kept[kind].erase(first, first + static_cast<std::ptrdiff_t>(piece));
        if (fails(smaller)) {
          part = std::move(smaller);
        } else {
          i += piece;
        }
      }
    }
  }
  return part;
}

}  // namespace percs::reference
