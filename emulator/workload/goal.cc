#include "emulator/workload/goal.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "emulator/base/digest.h"
#include "emulator/base/random.h"
#include "emulator/workload/goal_scanner.h"
#include "fmt/format.h"

namespace percs {
namespace {

constexpr std::uint64_t kUint32Max = 0xffffffffu;
constexpr std::size_t kCycleShown = 8;  // labels of a cycle that a message lists

struct LabelHash {
  std::size_t operator()(std::string_view s) const { return HashBytes(s.data(), s.size()); }
};

// All messages of one (source, destination, tag).
struct Channel {
  std::uint32_t source, destination, tag;
  bool operator==(const Channel&) const = default;
};
struct ChannelHash {
  std::size_t operator()(const Channel& c) const {
    return Mix64(Mix64(std::uint64_t{c.source} << 32 | c.destination) ^ c.tag);
  }
};

const char* KindName(GoalOp::Kind kind) {
  return kind == GoalOp::Kind::kCalc ? "calc" : kind == GoalOp::Kind::kSend ? "send" : "recv";
}
const char* KindExample(GoalOp::Kind kind) {
  return kind == GoalOp::Kind::kCalc   ? "calc 1000"
         : kind == GoalOp::Kind::kSend ? "send 8b to 1 tag 0"
                                       : "recv 8b from 1 tag 0";
}
bool KindOf(std::string_view word, GoalOp::Kind* kind) {
  for (GoalOp::Kind k : {GoalOp::Kind::kCalc, GoalOp::Kind::kSend, GoalOp::Kind::kRecv}) {
    if (word != KindName(k)) continue;
    *kind = k;
    return true;
  }
  return false;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view name, std::uint64_t statements_max)
      : in_(text, name), statements_max_(statements_max) {}
  absl::StatusOr<GoalTrace> Parse();

 private:
  struct Block {
    std::uint32_t rank;
    std::size_t at;
    std::vector<GoalOp> operations;
  };
  struct Dependency {
    std::string_view label, other;
    std::size_t label_at, other_at;
    bool on_start;
  };
  struct Message {
    Channel channel;
    bool is_send;
    std::size_t at;
  };

  bool ParseHeader();
  bool ParseRank();
  bool ParseRankNumber(std::size_t at);
  bool ParseStatement();
  bool ParseDependency(std::string_view label, std::size_t label_at);
  bool ParseOperation(GoalOp::Kind kind, std::size_t at, std::string_view label);
  bool ParsePeer(GoalOp& op);
  bool ParseOptions(GoalOp& op);
  bool ResolveDependencies();
  bool FindLabel(std::string_view label, std::size_t at, std::uint32_t* operation);
  bool CheckCycles();
  bool FailCycle(const std::vector<std::uint32_t>& waiting);
  bool PlaceRanks(GoalTrace* trace);
  bool CheckMessages();

  std::vector<GoalOp>& operations() { return blocks_.back().operations; }

  goal::Scanner in_;
  const std::uint64_t statements_max_;
  std::uint64_t statements_ = 0;
  std::uint32_t ranks_ = 0;
  std::vector<Block> blocks_;
  absl::flat_hash_map<std::uint32_t, std::size_t> rank_at_;
  std::vector<Message> messages_;
  // Of the rank being read.
  std::uint32_t rank_ = 0;
  absl::flat_hash_map<std::string_view, std::uint32_t, LabelHash> labels_;
  std::vector<std::pair<std::string_view, std::size_t>> label_of_;  // per operation, and position
  std::vector<Dependency> dependencies_;
};

absl::StatusOr<GoalTrace> Parser::Parse() {
  GoalTrace trace;
  bool good = ParseHeader();
  while (good) {
    in_.SkipLines();
    if (in_.at_end()) break;
    good = ParseRank();
  }
  if (good && in_.status().ok() && PlaceRanks(&trace) && CheckMessages()) return trace;
  return in_.status();
}

bool Parser::ParseHeader() {
  in_.SkipLines();
  const std::size_t at = in_.at();
  if (in_.Word() != "num_ranks") {
    return in_.Fail(at, fmt::format("found {}; a trace starts with its number of ranks, as in "
                                    "`num_ranks 32`",
                                    in_.Found(at)));
  }
  std::uint64_t ranks = 0;
  if (!in_.Number("the number of ranks", kGoalRanksMax, &ranks)) return false;
  if (ranks == 0) return in_.Fail(at, "num_ranks is 0; expected at least 1");
  ranks_ = static_cast<std::uint32_t>(ranks);
  return in_.EndOfStatement();
}

bool Parser::ParseRank() {
  const std::size_t at = in_.at();
  const std::string_view word = in_.Word();
  if (word == "num_ranks") {
    return in_.Fail(at, "num_ranks is given twice; expected once, on the first line");
  }
  if (word != "rank") {
    return in_.Fail(at, fmt::format("found {} outside a rank; expected `rank R {{` with R from "
                                    "0 to {}",
                                    in_.Found(at), ranks_ - 1));
  }
  if (!ParseRankNumber(at)) return false;
  in_.SkipLines();
  if (in_.peek() != '{') {
    return in_.Fail(in_.at(), fmt::format("found {} where '{{' belongs; expected `rank {} {{`",
                                          in_.Found(in_.at()), rank_));
  }
  in_.Advance();
  blocks_.push_back({rank_, at, {}});
  labels_.clear();
  label_of_.clear();
  dependencies_.clear();
  for (in_.SkipLines(); in_.peek() != '}'; in_.SkipLines()) {
    if (in_.at_end()) {
      return in_.Fail(at, fmt::format("the block of rank {} never ends; close it with }}", rank_));
    }
    if (!ParseStatement()) return false;
  }
  in_.Advance();
  return ResolveDependencies() && CheckCycles();
}

bool Parser::ParseRankNumber(std::size_t at) {
  std::uint64_t rank = 0;
  in_.SkipBlanks();
  const std::size_t number_at = in_.at();
  if (!in_.Number("the rank", kUint32Max, &rank)) return false;
  if (rank >= ranks_) {
    return in_.Fail(number_at, fmt::format("rank {} is out of range; num_ranks {} allows 0 to {}",
                                           rank, ranks_, ranks_ - 1));
  }
  rank_ = static_cast<std::uint32_t>(rank);
  const auto [seen, is_new] = rank_at_.try_emplace(rank_, at);
  if (!is_new) {
    return in_.Fail(at, fmt::format("rank {} is given twice, first on line {}; expected one "
                                    "block per rank",
                                    rank_, in_.LineOf(seen->second)));
  }
  return true;
}

bool Parser::ParseStatement() {
  const std::size_t at = in_.at();
  if (++statements_ > statements_max_) {
    return in_.Fail(at, fmt::format("more than {} operations and dependencies, which is the limit "
                                    "of a trace; expected a shorter part of it",
                                    statements_max_));
  }
  const std::string_view word = in_.Word();
  if (word.empty()) {
    return in_.Fail(at, fmt::format("found {}; expected a statement, as in `l1: calc 1000`, or "
                                    "the closing }}",
                                    in_.Found(at)));
  }
  in_.SkipBlanks();
  GoalOp::Kind kind;
  if (in_.peek() != ':') {
    return KindOf(word, &kind) ? ParseOperation(kind, at, {}) : ParseDependency(word, at);
  }
  in_.Advance();
  in_.SkipBlanks();
  const std::size_t kind_at = in_.at();
  if (!KindOf(in_.Word(), &kind)) {
    return in_.Fail(kind_at, fmt::format("found {} where an operation belongs; expected calc, "
                                         "send or recv",
                                         in_.Found(kind_at)));
  }
  const auto [first, is_new] =
      labels_.try_emplace(word, static_cast<std::uint32_t>(operations().size()));
  if (!is_new) {
    return in_.Fail(at,
                    fmt::format("label {} of rank {} is given twice, first on line {}; expected "
                                "one operation per label",
                                in_.Found(at), rank_, in_.LineOf(label_of_[first->second].second)));
  }
  return ParseOperation(kind, at, word);
}

bool Parser::ParseDependency(std::string_view label, std::size_t label_at) {
  const std::size_t at = in_.at();
  const std::string_view word = in_.Word();
  if (word != "requires" && word != "irequires") {
    return in_.Fail(at, fmt::format("found {} after {}; expected ':' and an operation, "
                                    "'requires' or 'irequires'",
                                    in_.Found(at), in_.Found(label_at)));
  }
  in_.SkipBlanks();
  const std::size_t other_at = in_.at();
  const std::string_view other = in_.Word();
  if (other.empty()) {
    return in_.Fail(other_at, fmt::format("found {} where a label belongs; expected `{} {} "
                                          "LABEL`",
                                          in_.Found(other_at), label.substr(0, 24), word));
  }
  dependencies_.push_back({label, other, label_at, other_at, word == "irequires"});
  return in_.EndOfStatement();
}

bool Parser::ParseOperation(GoalOp::Kind kind, std::size_t at, std::string_view label) {
  GoalOp& op = operations().emplace_back();
  label_of_.emplace_back(label, at);
  op.kind = kind;
  if (kind == GoalOp::Kind::kCalc) {
    if (!in_.Number("the time in nanoseconds", kGoalCalcMax, &op.size)) return false;
  } else if (!in_.Number("the size in bytes", kGoalBytesMax, &op.size) ||
             !in_.Expect("b", KindExample(kind)) || !ParsePeer(op)) {
    return false;
  }
  if (!ParseOptions(op) || !in_.EndOfStatement()) return false;
  if (kind == GoalOp::Kind::kSend) messages_.push_back({{rank_, op.peer, op.tag}, true, at});
  if (kind == GoalOp::Kind::kRecv) messages_.push_back({{op.peer, rank_, op.tag}, false, at});
  return true;
}

bool Parser::ParsePeer(GoalOp& op) {
  const bool is_send = op.kind == GoalOp::Kind::kSend;
  if (!in_.Expect(is_send ? "to" : "from", KindExample(op.kind))) return false;
  in_.SkipBlanks();
  const std::size_t at = in_.at();
  std::uint64_t peer = 0;
  if (!in_.Number("the peer's rank", kUint32Max, &peer)) return false;
  if (peer >= ranks_) {
    return in_.Fail(at, fmt::format("rank {} is out of range; num_ranks {} allows 0 to {}", peer,
                                    ranks_, ranks_ - 1));
  }
  if (peer == rank_) {
    return in_.Fail(at, fmt::format("rank {} {} itself; expected another rank", rank_,
                                    is_send ? "sends to" : "receives from"));
  }
  op.peer = static_cast<std::uint32_t>(peer);
  return true;
}

bool Parser::ParseOptions(GoalOp& op) {
  const bool is_calc = op.kind == GoalOp::Kind::kCalc;
  bool has_tag = false, has_cpu = false, has_nic = false;
  for (;;) {
    in_.SkipBlanks();
    const std::size_t at = in_.at();
    const std::string_view word = in_.Word();
    if (word.empty()) return true;
    std::uint32_t* const option = word == "tag" && !is_calc ? &op.tag
                                  : word == "cpu"           ? &op.cpu
                                  : word == "nic"           ? &op.nic
                                                            : nullptr;
    if (option == nullptr) {
      return in_.Fail(at, fmt::format("found {} after a {}; expected {}cpu, nic or a new line",
                                      in_.Found(at), KindName(op.kind), is_calc ? "" : "tag, "));
    }
    bool& given = option == &op.tag ? has_tag : option == &op.cpu ? has_cpu : has_nic;
    if (std::exchange(given, true)) {
      return in_.Fail(at, fmt::format("{} is given twice; expected once", word));
    }
    std::uint64_t value = 0;
    const std::uint64_t max = option == &op.tag ? kUint32Max : kGoalCpuMax;
    if (!in_.Number(option == &op.tag   ? "the tag"
                    : option == &op.cpu ? "the cpu"
                                        : "the nic",
                    max, &value)) {
      return false;
    }
    *option = static_cast<std::uint32_t>(value);
  }
}

bool Parser::FindLabel(std::string_view label, std::size_t at, std::uint32_t* operation) {
  const auto found = labels_.find(label);
  if (found == labels_.end()) {
    return in_.Fail(at, fmt::format("rank {} has no label {}; expected the label of one of its "
                                    "operations",
                                    rank_, in_.Found(at)));
  }
  *operation = found->second;
  return true;
}

bool Parser::ResolveDependencies() {
  for (const Dependency& d : dependencies_) {
    std::uint32_t dependent = 0, other = 0;
    if (!FindLabel(d.label, d.label_at, &dependent) || !FindLabel(d.other, d.other_at, &other)) {
      return false;
    }
    GoalOp& from = operations()[other];
    (d.on_start ? from.after_start : from.after_finish).push_back(dependent);
    ++operations()[dependent].dependencies;
  }
  return true;
}

// Removes operations whose dependencies are all removed; what stays is on a cycle or behind one.
bool Parser::CheckCycles() {
  const std::vector<GoalOp>& ops = operations();
  std::vector<std::uint32_t> waiting(ops.size()), ready;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    waiting[i] = ops[i].dependencies;
    if (waiting[i] == 0) ready.push_back(i);
  }
  std::size_t removed = 0;
  while (!ready.empty()) {
    const GoalOp& op = ops[ready.back()];
    ready.pop_back();
    ++removed;
    for (const auto* list : {&op.after_finish, &op.after_start}) {
      for (std::uint32_t i : *list) {
        if (--waiting[i] == 0) ready.push_back(i);
      }
    }
  }
  return removed == ops.size() || FailCycle(waiting);
}

bool Parser::FailCycle(const std::vector<std::uint32_t>& waiting) {
  const std::vector<GoalOp>& ops = operations();
  constexpr std::uint32_t kNone = 0xffffffffu;
  std::vector<std::uint32_t> needs(ops.size(), kNone);  // one unfinished requirement of each
  std::uint32_t at = kNone;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (waiting[i] == 0) continue;
    if (at == kNone) at = i;
    for (const auto* list : {&ops[i].after_finish, &ops[i].after_start}) {
      for (std::uint32_t j : *list) needs[j] = i;
    }
  }
  for (std::size_t i = 0; i < ops.size(); ++i) at = needs[at];  // now surely on a cycle
  std::vector<std::uint32_t> cycle;
  for (std::uint32_t i = at; cycle.empty() || i != at; i = needs[i]) cycle.push_back(i);
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  const std::uint32_t first = cycle.front();
  std::string path = in_.Found(label_of_[first].second);
  for (std::size_t i = 1; i < cycle.size() && i < kCycleShown; ++i) {
    path += fmt::format(" needs {}", in_.Found(label_of_[cycle[i]].second));
  }
  if (cycle.size() > kCycleShown) path += fmt::format(" ({} more)", cycle.size() - kCycleShown);
  return in_.Fail(label_of_[first].second,
                  fmt::format("dependencies of rank {} go in a circle: {} needs {}; expected "
                              "an order in which each can start",
                              rank_, path, in_.Found(label_of_[first].second)));
}

bool Parser::PlaceRanks(GoalTrace* trace) {
  if (blocks_.size() < ranks_) {
    std::uint32_t missing = 0;
    while (rank_at_.contains(missing)) ++missing;
    return in_.Fail(in_.at(),
                    fmt::format("rank {} is missing; num_ranks {} needs a block for each of "
                                "0 to {}",
                                missing, ranks_, ranks_ - 1));
  }
  trace->ranks.resize(ranks_);
  for (Block& block : blocks_) trace->ranks[block.rank] = std::move(block.operations);
  return true;
}

// An unmatched receive would never finish, an unmatched send never be received.
bool Parser::CheckMessages() {
  struct Counts {
    std::uint64_t sends = 0, receives = 0, seen = 0;
  };
  absl::flat_hash_map<Channel, Counts, ChannelHash> counts;
  counts.reserve(messages_.size() / 2 + 1);
  for (const Message& m : messages_) {
    Counts& c = counts[m.channel];
    ++(m.is_send ? c.sends : c.receives);
  }
  for (const Message& m : messages_) {
    Counts& c = counts[m.channel];
    const bool surplus = m.is_send ? c.sends > c.receives : c.receives > c.sends;
    if (!surplus || ++c.seen <= std::min(c.sends, c.receives)) continue;
    return in_.Fail(m.at,
                    fmt::format("this {} has no {}: from rank {} to rank {} with tag {} the "
                                "trace has {} send{} and {} recv{}; expected as many of "
                                "each",
                                m.is_send ? "send" : "recv", m.is_send ? "recv" : "send",
                                m.channel.source, m.channel.destination, m.channel.tag, c.sends,
                                c.sends == 1 ? "" : "s", c.receives, c.receives == 1 ? "" : "s"));
  }
  return true;
}

}  // namespace

absl::StatusOr<GoalTrace> ParseGoal(std::string_view text, std::string_view name,
                                    std::uint64_t statements_max) {
  return Parser(text, name, statements_max).Parse();
}

}  // namespace percs
