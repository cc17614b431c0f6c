#include "proto/scenario/blades.h"

#include <charconv>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "emulator/base/status.h"
#include "emulator/cell/eib.h"
#include "emulator/node/blade_programs.h"
#include "emulator/node/triblade_node.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace percs {
namespace {

// Every blade of the file in order, with its place there.
struct Sites {
  std::vector<BladeSite> sites;
  std::vector<int> entries;  // of `blades` in the message
};

Sites SitesOf(const v1::Scenario& message, ErrorList* errors) {
  Sites all;
  std::map<std::string, int> numbers;
  for (int entry = 0; entry < message.blades_size(); ++entry) {
    const v1::Blades& blades = message.blades(entry);
    const std::string name = blades.has_name() ? blades.name() : "blade";
    if (name.empty() || (name.back() >= '0' && name.back() <= '9')) {
      errors->Add(fmt::format("blades[{}].name", entry),
                  fmt::format("\"{}\" ends with a digit, but the blade's number is appended to it; "
                              "write for example \"blade\"",
                              name));
      continue;
    }
    const int count = blades.has_count() ? blades.count() : 1;
    for (int i = 0; i < count; ++i) {
      all.sites.push_back({fmt::format("{}{}", name, numbers[name]++), blades.attach()});
      all.entries.push_back(entry);
    }
  }
  return all;
}

// A check of a collective runs a call of it. An entry may have thousands of blades with the same
// programs, so each collective is checked once.
class CollectiveChecks {
 public:
  const absl::Status& StatusOf(const CollectiveProgram& program) {
    const auto [it, fresh] =
        known_.try_emplace({program.operation, program.algorithm, program.spes, program.bytes});
    if (fresh) it->second = CheckCollective(program);
    return it->second;
  }

 private:
  std::map<std::tuple<CollectiveOperation, std::string, int, std::uint32_t>, absl::Status> known_;
};

// Programs of one entry, for one of its blades.
class ProgramBuilder {
 public:
  ProgramBuilder(const Topology& topology, NodeId node, std::string path, CollectiveChecks* checks,
                 ErrorList* errors)
      : topology_(topology),
        node_(node),
        path_(std::move(path)),
        checks_(*checks),
        errors_(*errors) {}

  std::vector<BladeProgram> Build(const v1::Blades& blades) {
    triblade_ = blades.type() == kTribladeType;
    std::vector<BladeProgram> programs;
    for (int i = 0; i < blades.programs_size(); ++i) {
      const v1::BladeProgram& program = blades.programs(i);
      const std::string at = fmt::format("{}.programs[{}]", path_, i);
      if (program.has_exchange() && triblade_) {
        errors_.Add(at, "triblades only run collectives of CML; write `collective`");
      } else if (program.has_exchange()) {
        programs.push_back(Exchange(program.exchange(), at + ".exchange"));
      } else if (program.has_collective()) {
        programs.push_back(Collective(program.collective(), at + ".collective"));
      }
    }
    return programs;
  }

 private:
  ExchangeProgram Exchange(const v1::Exchange& message, const std::string& at) {
    ExchangeProgram program;
    if (message.has_spes()) program.spes = message.spes();
    if (message.has_bytes()) program.bytes = static_cast<std::uint32_t>(message.bytes());
    if (message.has_rounds()) program.rounds = static_cast<std::uint64_t>(message.rounds());
    if (program.bytes % 16 != 0) {
      errors_.Add(
          at + ".bytes",
          fmt::format("{} bytes are not a multiple of 16 bytes, the unit of a DMA", program.bytes));
    }
    const std::string field = at + ".peer";
    // Of all blades of the entry: one error is enough, and what is nearest to a name takes time.
    program.peer = kNoNode;
    if (errors_.HasExactly(field)) return program;
    const auto peer = topology_.ParseNode(message.peer());
    if (peer.ok()) program.peer = *peer;
    if (!peer.ok()) {
      errors_.Add(field, MessageOf(peer.status()));
    } else if (!Reaches(*peer)) {
      errors_.Add(
          field,
          *peer == node_
              ? fmt::format("{} cannot exchange with itself; write another node", message.peer())
              : fmt::format("no network joins {} and {}; attach both to a hub, or one to "
                            "the other",
                            topology_.NodeName(node_), message.peer()));
    }
    return program;
  }

  CollectiveProgram Collective(const v1::Collective& message, const std::string& at) {
    CollectiveProgram program;
    if (message.operation() != v1::COLLECTIVE_OPERATION_UNSPECIFIED) {
      program.operation = static_cast<CollectiveOperation>(message.operation() - 1);
    }
    if (message.has_algorithm()) program.algorithm = message.algorithm();
    if (message.has_spes()) program.spes = message.spes();
    if (message.has_bytes()) program.bytes = static_cast<std::uint32_t>(message.bytes());
    if (message.has_iterations()) {
      program.iterations = static_cast<std::uint64_t>(message.iterations());
    }
    const absl::Status status =
        triblade_ ? CheckTribladeProgram(program) : checks_.StatusOf(program);
    if (!status.ok()) errors_.Add(at, MessageOf(status));
    return program;
  }

  bool Reaches(NodeId peer) const {
    if (peer == node_) return false;
    if (topology_.BladePeer(node_).node == peer) return !topology_.is_crossbar(peer);
    if (topology_.in_tree(node_) && topology_.in_tree(peer)) return !topology_.is_crossbar(peer);
    return topology_.ExitHub(node_) != kNoNode && topology_.ExitHub(peer) != kNoNode;
  }

  const Topology& topology_;
  const NodeId node_;
  const std::string path_;
  CollectiveChecks& checks_;
  ErrorList& errors_;
  bool triblade_ = false;
};

std::vector<ExchangeProgram> ExchangesWith(const BladeConfig& blade, NodeId peer) {
  std::vector<ExchangeProgram> exchanges;
  for (const BladeProgram& program : blade.programs) {
    const auto* exchange = std::get_if<ExchangeProgram>(&program);
    if (exchange && exchange->peer == peer) exchanges.push_back(*exchange);
  }
  return exchanges;
}

bool Match(const std::vector<ExchangeProgram>& a, const std::vector<ExchangeProgram>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].spes != b[i].spes || a[i].bytes != b[i].bytes || a[i].rounds != b[i].rounds) {
      return false;
    }
  }
  return true;
}

// `blade0:SPE3` is a blade and the numbers behind `parts`, which are below `limits`.
absl::StatusOr<std::pair<NodeId, std::vector<int>>> ParsePart(const std::string& text,
                                                              const std::vector<std::string>& parts,
                                                              const std::vector<int>& limits,
                                                              const Topology& topology) {
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    wanted.push_back(fmt::format("{0}0 to {0}{1}", parts[i], limits[i] - 1));
  }
  const absl::Status wrong = absl::InvalidArgumentError(
      fmt::format("\"{}\" does not name a part of a blade; write a blade and :{}", text,
                  fmt::join(wanted, ", then :")));
  std::size_t at = text.find(':');
  if (at == std::string::npos) return wrong;
  const auto node = topology.ParseNode(text.substr(0, at));
  if (!node.ok()) return node.status();
  std::vector<int> numbers;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string prefix = ":" + parts[i];
    if (text.compare(at, prefix.size(), prefix) != 0) return wrong;
    int number = -1;
    const char* first = text.data() + at + prefix.size();
    const auto [end, error] = std::from_chars(first, text.data() + text.size(), number);
    if (error != std::errc() || number < 0 || number >= limits[i]) return wrong;
    numbers.push_back(number);
    at = static_cast<std::size_t>(end - text.data());
  }
  if (at != text.size()) return wrong;
  return std::pair(*node, numbers);
}

}  // namespace

std::optional<Topology> BuildMachine(const v1::Scenario& message, TopologySpec spec,
                                     ErrorList* errors) {
  const Sites all = SitesOf(message, errors);
  const auto add = [&](std::size_t blade, const absl::Status& status) {
    const std::string what = MessageOf(status);
    if (what.starts_with("topology.") || what.starts_with("topology: "))
      return errors->AddNamed(what);
    const std::string entry = fmt::format("blades[{}]", all.entries[blade]);
    errors->Add(entry + (all.sites[blade].attach.empty() ? "" : ".attach"), what);
  };
  // A single hub is a machine only with a blade, so the first one is part of it from the start.
  if (!all.sites.empty()) spec.blades = {all.sites[0]};
  auto topology = Topology::Create(spec);
  if (!topology.ok()) {
    add(0, topology.status());
    return std::nullopt;
  }
  bool good = true;
  for (std::size_t i = 1; i < all.sites.size(); ++i) {
    const absl::Status status = topology->AddBlade(all.sites[i]);
    if (status.ok()) continue;
    add(i, status);
    good = false;
    break;  // errors of later ones would have wrong numbers
  }
  return good ? std::optional(*std::move(topology)) : std::nullopt;
}

std::vector<BladeConfig> BuildBlades(const v1::Scenario& message, const Topology& topology,
                                     ErrorList* errors) {
  std::vector<BladeConfig> configs;
  std::vector<std::string> paths;
  CollectiveChecks checks;
  for (int entry = 0; entry < message.blades_size(); ++entry) {
    const v1::Blades& blades = message.blades(entry);
    const std::string path = fmt::format("blades[{}]", entry);
    BladeConfig config;
    if (blades.has_type()) config.type = blades.type();
    const auto known = cell::ParametersOfBlade(config.type);
    if (!known.ok() && config.type != kTribladeType) {
      errors->Add(path + ".type", MessageOf(known.status()) + ", triblade");
    }
    for (int i = 0; i < (blades.has_count() ? blades.count() : 1); ++i) {
      if (configs.size() == topology.blades()) return configs;  // a name was wrong
      const NodeId node = topology.hubs() + static_cast<NodeId>(configs.size());
      config.programs = ProgramBuilder(topology, node, path, &checks, errors).Build(blades);
      configs.push_back(config);
      paths.push_back(path);
    }
  }
  for (std::size_t b = 0; b < configs.size(); ++b) {
    const NodeId node = topology.hubs() + static_cast<NodeId>(b);
    for (const BladeProgram& program : configs[b].programs) {
      const auto* exchange = std::get_if<ExchangeProgram>(&program);
      if (!exchange || exchange->peer == node || !topology.is_blade(exchange->peer)) continue;
      const BladeConfig& other = configs[exchange->peer - topology.hubs()];
      if (Match(ExchangesWith(configs[b], exchange->peer), ExchangesWith(other, node))) continue;
      errors->Add(
          paths[b] + ".programs",
          fmt::format(
              "{0} exchanges with {1}, but the exchanges of {1} with {0} differ (SPEs, bytes, "
              "rounds), so one side would wait for ever; give both the same exchanges",
              topology.NodeName(node), topology.NodeName(exchange->peer)));
      break;
    }
  }
  return configs;
}

bool IsBladeFault(const v1::Fault& fault) {
  return fault.has_spe_down() || fault.has_chip_link_degraded() || fault.has_eib_ring_lost();
}

absl::StatusOr<BladeFault> BuildBladeFault(const v1::Fault& message, const Topology& topology,
                                           const std::vector<BladeConfig>* blades) {
  // How many blades' parts there may be in the one that is named.
  const auto blades_in = [&](const std::string& text) {
    const auto node = topology.ParseNode(text.substr(0, text.find(':')));
    const bool single = blades && node.ok() && topology.is_blade(*node) &&
                        blades->at(*node - topology.hubs()).type != kTribladeType;
    return single ? 1 : roadrunner::kBladesPerTriblade;
  };
  BladeFault fault;
  fault.at = message.at();
  if (message.has_spe_down()) {
    const auto part = ParsePart(message.spe_down(), {"SPE"},
                                {blades_in(message.spe_down()) * cell::kSpes}, topology);
    if (!part.ok()) return part.status();
    fault.node = part->first;
    fault.unit = part->second[0];
  } else if (message.has_eib_ring_lost()) {
    const auto part =
        ParsePart(message.eib_ring_lost(), {"CELL", "RING"},
                  {blades_in(message.eib_ring_lost()) * cell::kCells, cell::kRings}, topology);
    if (!part.ok()) return part.status();
    fault.kind = BladeFault::Kind::kRingLost;
    fault.node = part->first;
    fault.unit = part->second[0];
    fault.ring = part->second[1];
  } else if (message.has_chip_link_degraded()) {
    const std::string& name = message.chip_link_degraded().blade();
    fault.kind = BladeFault::Kind::kChipLinkDegraded;
    if (name.find(':') != std::string::npos) {
      const auto part = ParsePart(name, {"BLADE"}, {blades_in(name)}, topology);
      if (!part.ok()) return part.status();
      fault.node = part->first;
      fault.unit = part->second[0];
    } else {
      const auto node = topology.ParseNode(name);
      if (!node.ok()) return node.status();
      fault.node = *node;
    }
    fault.share = message.chip_link_degraded().share();
    if (!(fault.share > 0 && fault.share <= 1)) {
      return absl::InvalidArgumentError(fmt::format(
          "a share of {} of the chip link's rate; it is above 0 and at most 1", fault.share));
    }
  } else {
    return absl::InvalidArgumentError("this fault does not act on part of a blade");
  }
  if (topology.is_blade(fault.node)) return fault;
  return absl::InvalidArgumentError(fmt::format(
      "{} is not a blade; only blades have SPEs, chip links and element interconnect buses",
      topology.NodeName(fault.node)));
}

std::string DescribeBladeFault(const BladeFault& fault, const Topology& topology) {
  const std::string name = topology.NodeName(fault.node);
  switch (fault.kind) {
    case BladeFault::Kind::kSpeDown:
      return fmt::format("{}:SPE{} down", name, fault.unit);
    case BladeFault::Kind::kChipLinkDegraded:
      return fmt::format("{} chip link at {} of its rate", name, fault.share);
    case BladeFault::Kind::kRingLost:
      return fmt::format("{}:CELL{}:RING{} lost", name, fault.unit, fault.ring);
  }
  return name;
}

absl::Status CheckLastBladeFault(const std::vector<BladeFault>& faults, const Topology& topology) {
  const BladeFault& last = faults.back();
  for (std::size_t i = 0; i + 1 < faults.size(); ++i) {
    const BladeFault& before = faults[i];
    if (before.kind != last.kind || before.node != last.node || before.unit != last.unit) continue;
    if (last.kind == BladeFault::Kind::kChipLinkDegraded) continue;
    if (last.kind == BladeFault::Kind::kSpeDown || before.ring == last.ring) {
      return absl::InvalidArgumentError(fmt::format("{} appears twice; remove one of the two",
                                                    DescribeBladeFault(last, topology)));
    }
    if ((before.ring ^ 1) == last.ring) {
      return absl::InvalidArgumentError(
          fmt::format("{0}:CELL{1} would lose RING{2} and RING{3}, both rings of one direction; "
                      "one has to stay",
                      topology.NodeName(last.node), last.unit, before.ring, last.ring));
    }
  }
  return absl::OkStatus();
}

}  // namespace percs
