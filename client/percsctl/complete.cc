#include "client/percsctl/complete.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "client/percsctl/command_line.h"
#include "client/percsctl/fabric_options.h"
#include "emulator/topology/topology.h"
#include "percs/v1/scenario.pb.h"
#include "proto/convert/topology.h"
#include "proto/scenario/fields.h"

namespace percs {
namespace {

using Candidates = std::vector<std::string>;

constexpr std::size_t kHubsMax = 1024;  // more names would be no help
constexpr std::chrono::milliseconds kPatience(500);

// The command and the fabric that the words before the last one name.
struct CursorPlace {
  const CLI::App* app = nullptr;
  const CLI::Option* awaits = nullptr;  // its value is the last word
  std::size_t positionals = 0;          // words before the last one that belong to no option
  FabricOptions fabric;
};

void Note(const CLI::Option& option, const std::string& value, FabricOptions& fabric) {
  if (option.check_name("--name")) fabric.name = value;
  if (option.check_name("--controller")) fabric.controller = value;
  if (option.check_name("--tls")) fabric.tls = value;
}

CursorPlace Follow(const CLI::App& root, const Candidates& words) {
  CursorPlace at;
  at.app = &root;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (at.awaits != nullptr) {
      Note(*at.awaits, word, at.fabric);
      at.awaits = nullptr;
      continue;
    }
    const std::size_t equals = word.find('=');
    if (const CLI::Option* option = FindOption(*at.app, word.substr(0, equals))) {
      if (equals != std::string::npos) {
        Note(*option, word.substr(equals + 1), at.fabric);
      } else if (TakesValue(*option)) {
        at.awaits = option;
      }
    } else if (const CLI::App* sub = FindSubcommand(*at.app, word)) {
      at.app = sub;
      at.positionals = 0;
    } else if (word.empty() || word[0] != '-') {
      ++at.positionals;
    }
  }
  return at;
}

// Of the fabric of the line; nothing if it does not answer.
using Ask = std::function<Candidates(FabricClient&, const std::string& word)>;
Candidates FromFabric(const FabricOptions& options, const std::string& word, const Ask& ask) {
  const auto client = Connect(options);
  if (!client.ok()) return {};
  (*client)->set_deadline(kPatience);
  return ask(**client, word);
}

// The tables of one hub are the cheapest way to learn the shape of the machine.
absl::StatusOr<Topology> Shape(FabricClient& client) {
  const auto reply = client.DumpRoutes("sn0-d0-h0");
  if (!reply.ok()) return reply.status();
  return TopologyFromProto(reply->topology(), reply->blades());
}

Candidates HubsOf(const Topology& topology, const std::string& word) {
  Candidates names;
  for (NodeId node = 0; node < topology.nodes() && names.size() < kHubsMax; ++node) {
    std::string name = topology.NodeName(node);
    if (name.starts_with(word)) names.push_back(std::move(name));
  }
  return names;
}

Candidates Hubs(FabricClient& client, const std::string& word) {
  const auto topology = Shape(client);
  return topology.ok() ? HubsOf(*topology, word) : Candidates{};
}

// Links have one end and its port: first the hub, then what it has.
Candidates LinkNames(FabricClient& client, const std::string& word) {
  const auto topology = Shape(client);
  if (!topology.ok()) return {};
  const std::size_t colon = word.find(':');
  Candidates names;
  if (colon == std::string::npos) {
    for (const std::string& hub : HubsOf(*topology, word)) names.push_back(hub + ":");
    return names;
  }
  const auto node = topology->ParseNode(word.substr(0, colon));
  for (PortId port = 0; node.ok() && port < kLinkPorts; ++port) {
    const LinkEnd peer = topology->Peer(*node, port);
    if (peer.node == kNoNode) continue;
    names.push_back(
        fmt::format("{}\tto {}", topology->LinkName({*node, port}), topology->NodeName(peer.node)));
  }
  return names;
}

Candidates FaultNames(FabricClient& client, const std::string&) {
  const auto reply = client.ListFaults("");
  Candidates names;
  if (!reply.ok()) return names;
  for (const v1::FaultStatus& fault : reply->faults()) names.push_back(fault.id());
  return names;
}

Candidates TreeNames(FabricClient& client, const std::string&) {
  const auto reply = client.ListTrees("");
  Candidates names;
  if (!reply.ok()) return names;
  for (const v1::TreeStatus& tree : reply->trees()) names.push_back(tree.name());
  return names;
}

Candidates Processes(FabricClient& client, const std::string&) {
  const auto reply = client.Status();
  Candidates names{"controller"};
  if (!reply.ok()) return names;
  for (const v1::ProcessStatus& process : reply->processes()) names.push_back(process.name());
  return names;
}

Candidates Fabrics() {
  const auto store = FabricStore::Open();
  return store.ok() ? store->Names() : Candidates{};
}

// Fields of a scenario, down to where the word has come.
Candidates Settings(const std::string& word) {
  const Descriptor* type = v1::Scenario::descriptor();
  std::string path;
  for (std::size_t dot; (dot = word.find('.', path.size())) != std::string::npos;) {
    const std::string segment = word.substr(path.size(), dot - path.size());
    const FieldDescriptor* field = type->FindFieldByName(segment.substr(0, segment.find('[')));
    if (field == nullptr || field->message_type() == nullptr || Hidden(field)) return {};
    type = field->message_type();
    path = word.substr(0, dot + 1);
  }
  const std::size_t equals = word.find('=', path.size());
  Candidates lines;
  if (equals != std::string::npos) {
    const FieldDescriptor* field =
        type->FindFieldByName(word.substr(path.size(), equals - path.size()));
    if (field == nullptr || field->enum_type() == nullptr) return {};
    for (const std::string& choice : ChoiceNames(field->enum_type()))
      lines.push_back(word.substr(0, equals + 1) + choice);
    return lines;
  }
  for (const FieldDescriptor* field : VisibleFields(type)) {
    const char* more = field->message_type() == nullptr ? "=" : field->is_repeated() ? "[" : ".";
    lines.push_back(fmt::format("{}{}{}\t{}", path, field->name(), more, RulesOf(field).doc()));
  }
  return lines;
}

// Options of faults are fields of messages: --kind.
Candidates FaultChoices(const std::string& option) {
  std::string name = option.substr(std::min<std::size_t>(2, option.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  for (const Descriptor* type : {v1::Injection::descriptor(), v1::FaultSelector::descriptor()}) {
    const FieldDescriptor* field = type->FindFieldByName(name);
    if (field != nullptr && field->enum_type() != nullptr) return ChoiceNames(field->enum_type());
  }
  return {};
}

// By the name of an option, or of a positional.
Candidates Values(const std::string& name, const CursorPlace& at, const std::string& word) {
  static const std::set<std::string_view> kFiles = {"FILE",     "JOURNAL",  "BEFORE",
                                                    "AFTER",    "SCENARIO", "--scenario",
                                                    "--routes", "--output", "--withhold"};
  static const std::set<std::string_view> kFolders = {"FOLDER", "--tls", "--checkpoint",
                                                      "--journal"};
  static const std::set<std::string_view> kSettings = {"--set", "--over"};
  static const std::map<std::string_view, Candidates (*)(FabricClient&, const std::string&)> kLive =
      {{"NODE", Hubs},        {"HUB", Hubs},      {"SRC", Hubs},         {"DST", Hubs},
       {"FROM", Hubs},        {"TO", Hubs},       {"--node", Hubs},      {"--from", Hubs},
       {"--to", Hubs},        {"--in", Hubs},     {"LINK", LinkNames},   {"--link", LinkNames},
       {"--down", LinkNames}, {"ID", FaultNames}, {"PROCESS", Processes}};
  if (kFiles.contains(name)) return {kCompleteFiles};
  if (kFolders.contains(name)) return {kCompleteFolders};
  if (kSettings.contains(name)) return Settings(word);
  if (name == "--name") return Fabrics();
  if (at.app->get_parent() != nullptr && at.app->get_parent()->get_name() == "fault") {
    if (Candidates choices = FaultChoices(name); !choices.empty()) return choices;
  }
  if (name == "COMMAND") return SubcommandNames(*at.app->get_parent());
  if (name == "NAME" && at.app->get_parent()->get_name() == "context") return Fabrics();
  if (name == "NAME") return FromFabric(at.fabric, word, TreeNames);
  const auto live = kLive.find(name);
  return live == kLive.end() ? Candidates{} : FromFabric(at.fabric, word, live->second);
}

// Of an option or positional: its choices, else what its name stands for.
Candidates ValuesOf(const CLI::Option& option, const CursorPlace& at, const std::string& word) {
  Candidates choices = ChoicesOf(option);
  if (!choices.empty()) return choices;
  if (!option.nonpositional()) return Values(option.get_name(true), at, word);
  // --output rather than -o.
  return Values("--" + (option.get_lnames().empty() ? "" : option.get_lnames()[0]), at, word);
}

Candidates OptionLines(const CLI::App& app) {
  Candidates lines;
  for (const CLI::Option* option : NamedOptionsOf(app)) {
    for (const std::string& name : option->get_lnames())
      lines.push_back(fmt::format("--{}\t{}", name, option->get_description()));
  }
  return lines;
}

// What the next word that belongs to no option may be.
Candidates PositionalLines(const CursorPlace& at, const std::string& word) {
  Candidates lines;
  if (at.positionals == 0) {
    for (const CLI::App* sub : SubcommandsOf(*at.app))
      lines.push_back(fmt::format("{}\t{}", sub->get_name(), sub->get_description()));
  }
  std::size_t first = 0;  // place of the option's first word
  for (const CLI::Option* option : PositionalsOf(*at.app)) {
    const auto most = static_cast<std::size_t>(option->get_items_expected_max());
    if (at.positionals < first + most) {
      const Candidates values = ValuesOf(*option, at, word);
      lines.insert(lines.end(), values.begin(), values.end());
      break;
    }
    first += most;
  }
  return lines;
}

}  // namespace

std::vector<std::string> Complete(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const CursorPlace at = Follow(app, words);
  const std::string& word = words.back();
  Candidates lines;
  std::string before;  // of the word, that is not the value
  const std::size_t equals = word.find('=');
  if (at.awaits != nullptr) {
    lines = ValuesOf(*at.awaits, at, word);
  } else if (equals != std::string::npos && word[0] == '-') {
    const CLI::Option* option = FindOption(*at.app, word.substr(0, equals));
    if (option == nullptr) return {};
    before = word.substr(0, equals + 1);
    lines = ValuesOf(*option, at, word.substr(equals + 1));
  } else {
    lines = !word.empty() && word[0] == '-' ? OptionLines(*at.app) : PositionalLines(at, word);
  }
  Candidates fitting;
  for (std::string& line : lines) {
    const bool asks = line == kCompleteFiles || line == kCompleteFolders;
    if (!asks) line = before + line;
    if (asks || line.starts_with(word)) fitting.push_back(std::move(line));
  }
  return fitting;
}

}  // namespace percs
