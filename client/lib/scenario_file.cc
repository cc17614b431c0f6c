#include "client/lib/scenario_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "emulator/base/payload.h"
#include "proto/scenario/build.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/reader.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

struct PathStep {
  std::string name;
  int index = -1;  // of a list's element; -1: none given
};

// `faults[0]` into name and index; false if it is not spelled like that.
bool ParseSegment(const std::string& text, PathStep& segment) {
  const std::size_t bracket = text.find('[');
  segment.name = text.substr(0, bracket);
  if (bracket == std::string::npos) return !segment.name.empty();
  const char* first = text.data() + bracket + 1;
  const char* last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(first, last, segment.index);
  return *last == ']' && error == std::errc() && end == last && segment.index >= 0;
}

absl::Status Refuse(const std::string& setting, const std::string& why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", setting, why));
}

// The message that `field` of `parent` holds, made if it is not there yet; "" in `problem` if all
// is well.
Message* Enter(Message* parent, const FieldDescriptor* field, const PathStep& segment,
               std::string& problem) {
  const auto* reflection = parent->GetReflection();
  if (!field->is_repeated()) {
    if (segment.index >= 0) problem = fmt::format("\"{}\" is not a list", segment.name);
    return problem.empty() ? reflection->MutableMessage(parent, field) : nullptr;
  }
  const int size = reflection->FieldSize(*parent, field);
  if (segment.index < 0 || segment.index >= size) {
    problem = fmt::format("\"{0}\" is a list of {1}; expected {0}[0] to {0}[{2}]", segment.name,
                          size, size - 1);
    if (size == 0) problem = fmt::format("the list \"{}\" is empty", segment.name);
    return nullptr;
  }
  return reflection->MutableRepeatedMessage(parent, field, segment.index);
}

// The groups of `type`, if it has nothing but groups of one type, and that type has the field:
// `routing.mode` is `routing.fifo.mode` and `routing.rdma.mode`.
std::vector<const FieldDescriptor*> GroupsWith(const Descriptor* type, const std::string& field) {
  const auto groups = VisibleFields(type);
  for (const FieldDescriptor* group : groups) {
    const bool alike = group->message_type() != nullptr && !group->is_repeated() &&
                       group->message_type() == groups[0]->message_type() &&
                       group->message_type()->FindFieldByName(field) != nullptr;
    if (!alike) return {};
  }
  return groups;
}

// Adds every path below `type` that ends with a field of this name; `before` is the path of `type`
// with its dot. The scenario is a tree of types, so this ends.
void AddPathsTo(const std::string& name, const Descriptor* type, const std::string& before,
                std::vector<std::string>& paths) {
  if (!GroupsWith(type, name).empty()) return paths.push_back(before + name);
  for (const FieldDescriptor* field : VisibleFields(type)) {
    const std::string path =
        fmt::format("{}{}{}", before, field->name(),
                    field->is_repeated() && field->message_type() ? "[0]" : "");
    if (field->message_type() != nullptr) {
      AddPathsTo(name, field->message_type(), path + ".", paths);
    } else if (field->name() == name) {
      paths.push_back(path);
    }
  }
}

// The nearest field of `type`, or where else in a scenario a field of this name is: the least deep.
std::string WhereElse(const std::string& name, const Descriptor* type) {
  constexpr std::size_t kPathsListed = 2;
  const std::string near = DidYouMean(name, FieldNames(type));
  std::vector<std::string> paths;
  AddPathsTo(name, v1::Scenario::descriptor(), "", paths);
  if (!near.empty() || paths.empty()) return near;
  const auto depth = [](const std::string& path) {
    return std::count(path.begin(), path.end(), '.');
  };
  std::stable_sort(paths.begin(), paths.end(),
                   [&](const std::string& a, const std::string& b) { return depth(a) < depth(b); });
  paths.resize(std::min(paths.size(), kPathsListed));
  return fmt::format("; did you mean \"{}\"?", fmt::join(paths, "\" or \""));
}

// Sets `before`GROUP.`rest` for each of the groups.
absl::Status SetInAll(v1::Scenario* scenario, const std::vector<const FieldDescriptor*>& groups,
                      const std::string& before, const std::string& rest,
                      std::vector<std::string>* paths) {
  for (const FieldDescriptor* group : groups) {
    const absl::Status set =
        ApplySetting(scenario, fmt::format("{}{}.{}", before, group->name(), rest), paths);
    if (!set.ok()) return set;
  }
  return absl::OkStatus();
}

std::uint64_t PacketsOf(std::uint64_t bytes, bool reliable, int ack_every) {
  const std::uint64_t data = (bytes + kPacketBytesMax - 1) / kPacketBytesMax;
  if (!reliable) return data;
  return data + (data + ack_every - 1) / ack_every;
}

std::uint64_t TracePackets(const GoalTrace& trace, int ack_every) {
  std::uint64_t packets = 0;
  for (const auto& rank : trace.ranks) {
    for (const GoalOp& op : rank) {
      if (op.kind == GoalOp::Kind::kSend) packets += PacketsOf(op.size, true, ack_every);
    }
  }
  return packets;
}

// The errors, those found later too, name the `option` that the settings were given with.
absl::Status ApplySettings(const std::vector<std::string>& settings, std::string_view option,
                           LoadedScenario* loaded) {
  for (const std::string& setting : settings) {
    std::vector<std::string> paths;
    if (absl::Status set = ApplySetting(&loaded->scenario, setting, &paths); !set.ok())
      return absl::Status(set.code(), fmt::format("{} {}", option, std::string(set.message())));
    for (const std::string& path : paths)
      loaded->marks.SetFrom(path, fmt::format("{} {}", option, setting));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplySetting(v1::Scenario* scenario, const std::string& setting,
                          std::vector<std::string>* paths) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Refuse(setting, "expected path=value, like topology.supernodes=4");
  }
  std::string path = setting.substr(0, equals);
  const std::string value = setting.substr(equals + 1);
  Message* message = scenario;
  std::string parent = "a scenario";
  while (true) {
    const std::size_t dot = path.find('.');
    PathStep segment;
    if (!ParseSegment(path.substr(0, dot), segment)) {
      return Refuse(setting, fmt::format("\"{}\" is not a path; expected names joined by dots, "
                                         "with list elements like faults[0]",
                                         path));
    }
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(segment.name);
    if (!field) {
      const auto groups = GroupsWith(message->GetDescriptor(), segment.name);
      if (!groups.empty() && segment.index < 0) {
        const std::size_t here = equals - path.size();
        return SetInAll(scenario, groups, setting.substr(0, here), setting.substr(here), paths);
      }
    }
    if (!field || Hidden(field)) {
      return Refuse(setting, fmt::format("no field \"{}\" in {}{}", segment.name, parent,
                                         WhereElse(segment.name, message->GetDescriptor())));
    }
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (dot == std::string::npos && is_message) {
      return Refuse(setting,
                    fmt::format("\"{}\" is a group; set one of its fields: {}", segment.name,
                                fmt::join(FieldNames(field->message_type()), ", ")));
    }
    if (dot == std::string::npos) {
      absl::Status set = SetFromText(message, field, value);
      if (set.ok() && !field->is_repeated()) set = CheckValue(*message, field);
      if (set.ok() && paths != nullptr) paths->push_back(setting.substr(0, equals));
      if (set.ok()) return absl::OkStatus();
      return Refuse(setting, std::string(set.message().data(), set.message().size()));
    }
    if (!is_message) {
      return Refuse(setting,
                    fmt::format("\"{}\" is a single value and has no fields", segment.name));
    }
    std::string problem;
    message = Enter(message, field, segment, problem);
    if (!message) return Refuse(setting, problem);
    parent = fmt::format("\"{}\"", segment.name);
    path = path.substr(dot + 1);
  }
}

absl::StatusOr<ScenarioInput> LoadScenario(const std::string& path,
                                           const std::vector<std::string>& settings,
                                           std::optional<std::uint64_t> seed,
                                           const std::vector<std::string>& over) {
  auto loaded = LoadScenarioFile(path);
  if (!loaded.ok()) return loaded.status();
  if (auto set = ApplySettings(settings, "--set", &*loaded); !set.ok()) return set;
  if (auto set = ApplySettings(over, "--over", &*loaded); !set.ok()) return set;
  if (seed) loaded->scenario.set_seed(*seed);
  auto scenario = BuildScenario(*loaded);
  if (!scenario.ok()) return scenario.status();
  return ScenarioInput{std::move(loaded->scenario), *std::move(scenario), loaded->directory};
}

absl::Status CheckLoaded(const std::string& path, const Scenario& scenario, RunsOn where) {
  const absl::Status status = CheckScenario(scenario, where);
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}: {}", path, std::string(status.message())));
}

std::uint64_t ExpectedPackets(const Scenario& scenario) {
  const std::uint64_t nodes = static_cast<std::uint64_t>(scenario.topology.supernodes) *
                              scenario.topology.drawers * scenario.topology.hubs;
  const int ack_every = scenario.parameters.ack_every_packets;
  if (const auto* w = std::get_if<AllToAllWorkload>(&scenario.workload)) {
    return nodes * (nodes - 1) * PacketsOf(w->bytes, w->reliable, ack_every);
  }
  if (const auto* w = std::get_if<PatternWorkload>(&scenario.workload)) {
    return nodes * w->count * PacketsOf(w->message_bytes, w->reliable, ack_every);
  }
  if (const auto* w = std::get_if<ScriptedWorkload>(&scenario.workload)) return w->packets.size();
  if (const auto* w = std::get_if<TraceWorkload>(&scenario.workload)) {
    return TracePackets(w->trace, ack_every);
  }
  return 0;
}

Time ExpectedEnd(const Scenario& scenario) {
  if (scenario.stop_at > 0) return scenario.stop_at;
  const PatternWorkload* w = scenario.pattern();
  return w && w->measure > 0 ? w->warm_up + w->measure : 0;
}

}  // namespace percs
