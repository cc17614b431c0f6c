#include "tests/generate/random_scenario.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "emulator/sim/check_scenario.h"
#include "fmt/format.h"
#include "proto/scenario/build.h"
#include "proto/scenario/fields.h"
#include "tests/generate/random_message.h"
#include "tests/support/source_dir.h"

namespace percs::generate {
namespace {

constexpr int kNodesMax = 40;
constexpr int kRepairsMax = 200;
constexpr char kTrace[] = "tests/fuzz/corpus/goal/ring";

const FieldDescriptor* ScenarioField(const char* name) {
  return v1::Scenario::descriptor()->FindFieldByName(name);
}

// Halves the largest dimension until the machine is small.
void KeepSmall(v1::Topology* t) {
  const auto of = [](bool has, int value, int otherwise) { return has ? value : otherwise; };
  int supernodes = of(t->has_supernodes(), t->supernodes(), 1);
  int drawers = of(t->has_drawers(), t->drawers(), 4), hubs = of(t->has_hubs(), t->hubs(), 8);
  while (supernodes * drawers * hubs > kNodesMax) {
    int& largest = supernodes >= hubs ? supernodes : hubs >= drawers ? hubs : drawers;
    largest = (largest + 1) / 2;
  }
  t->set_supernodes(supernodes);
  t->set_drawers(drawers);
  t->set_hubs(hubs);
}

void NameMachine(const v1::Scenario& scenario, MessageDraw::Names* names) {
  v1::Scenario machine;
  *machine.mutable_topology() = scenario.topology();
  *machine.mutable_blades() = scenario.blades();
  const auto built = BuildScenario(machine, "");
  if (!built.ok()) return;
  auto topology = Topology::Create(built->topology);
  if (!topology.ok()) return;
  const auto shared = std::make_shared<const Topology>(*std::move(topology));
  names->node = [shared](RandomStream& random) {
    return shared->NodeName(random.Below(random.Below(8) == 0 ? shared->nodes() : shared->hubs()));
  };
  names->link = [shared](RandomStream& random) {
    const NodeId node = random.Below(shared->hubs());
    std::vector<PortId> ports;
    for (PortId port = 0; port < kLinkPorts; ++port) {
      if (shared->connected(node, port)) ports.push_back(port);
    }
    if (ports.empty()) return shared->NodeName(node) + ":LL0";
    const PortId port = ports[random.Below(static_cast<std::uint32_t>(ports.size()))];
    if (random.Below(2) == 0) return shared->LinkName({node, port});
    return shared->NodeName(node) + "/" + shared->NodeName(shared->Peer(node, port).node);
  };
}

// One step of a path, `faults[0]`.
struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;
  int index = -1;
};

// The places that a path leads through, as far as there is something.
std::vector<Place> Follow(Message* message, std::string path) {
  std::vector<Place> places;
  while (!path.empty() && message != nullptr) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    std::string name = path.substr(0, dot);
    path = dot < path.size() ? path.substr(dot + 1) : "";
    int index = -1;
    if (const std::size_t bracket = name.find('['); bracket != std::string::npos) {
      std::from_chars(name.data() + bracket + 1, name.data() + name.size(), index);
      name.resize(bracket);
    }
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) break;
    const auto* reflection = message->GetReflection();
    places.push_back({message, field, index});
    // A message that a list stands for has the list's path.
    if (!field->is_repeated() && index >= 0 && field->message_type() != nullptr &&
        reflection->HasField(*message, field)) {
      Message* inner = reflection->MutableMessage(message, field);
      if (const FieldDescriptor* list = ListOf(inner->GetDescriptor())) {
        message = inner, field = list;
        reflection = message->GetReflection();
        places.push_back({message, field, index});
      }
    }
    if (field->message_type() == nullptr) break;
    if (field->is_repeated()) {
      const bool there = index >= 0 && index < reflection->FieldSize(*message, field);
      message = there ? reflection->MutableRepeatedMessage(message, field, index) : nullptr;
    } else {
      message = reflection->HasField(*message, field) ? reflection->MutableMessage(message, field)
                                                      : nullptr;
    }
  }
  return places;
}

bool Remove(const Place& place) {
  const auto* reflection = place.message->GetReflection();
  if (!place.field->is_repeated()) {
    if (!reflection->HasField(*place.message, place.field)) return false;
    reflection->ClearField(place.message, place.field);
    return true;
  }
  const int size = reflection->FieldSize(*place.message, place.field);
  if (size == 0) return false;
  const int index = place.index >= 0 && place.index < size ? place.index : size - 1;
  for (int i = index; i + 1 < size; ++i)
    reflection->SwapElements(place.message, place.field, i, i + 1);
  reflection->RemoveLast(place.message, place.field);
  return true;
}

// Takes out what the first line of an error names, or what is `up` levels around it.
bool RemoveNamed(v1::Scenario* scenario, const std::string& error, int up) {
  const std::string line = error.substr(0, error.find('\n'));
  const std::size_t begin = line.find(": ");
  if (begin == std::string::npos) return false;
  const std::string path = line.substr(begin + 2, line.find(": ", begin + 2) - begin - 2);
  std::vector<Place> places = Follow(scenario, path);
  for (int i = 0; i < up && !places.empty(); ++i) places.pop_back();
  while (!places.empty() && !Remove(places.back())) places.pop_back();
  return !places.empty();
}

// Takes out any part: the error does not say which one is to blame.
bool RemoveAny(v1::Scenario* scenario, RandomStream& random) {
  std::vector<const FieldDescriptor*> fields;
  scenario->GetReflection()->ListFields(*scenario, &fields);
  std::erase_if(fields, [](const FieldDescriptor* f) { return f->message_type() == nullptr; });
  if (fields.empty()) return false;
  const auto* field = fields[random.Below(static_cast<std::uint32_t>(fields.size()))];
  if (!field->is_repeated() && random.Below(2) == 0) {  // only a part of it
    Message* part = scenario->GetReflection()->MutableMessage(scenario, field);
    std::vector<const FieldDescriptor*> inside;
    part->GetReflection()->ListFields(*part, &inside);
    if (!inside.empty())
      return Remove({part, inside[random.Below(static_cast<std::uint32_t>(inside.size()))]});
  }
  return Remove({scenario, field});
}

}  // namespace

v1::Scenario DrawScenario(std::uint64_t seed) {
  RandomStream random(seed, "scenario");
  DrawSettings settings;
  settings.optional = 0.05 + 0.4 * random.Unit();
  MessageDraw draw(&random, settings);
  v1::Scenario scenario;
  draw.names().file = kTrace;
  draw.Draw(scenario.mutable_topology());
  if (random.Below(50) != 0) KeepSmall(scenario.mutable_topology());
  if (random.Below(4) != 0) scenario.mutable_topology()->clear_infiniband();
  NameMachine(scenario, &draw.names());
  // What others refer to by name comes first.
  for (const char* name : {"blades", "multicast", "trees"}) {
    while (random.Below(3) == 0) draw.DrawField(&scenario, ScenarioField(name));
  }
  if (scenario.blades_size() > 0) NameMachine(scenario, &draw.names());
  draw.DrawField(&scenario, ScenarioField("workload"));
  draw.Draw(&scenario);
  scenario.set_seed(seed);
  return scenario;
}

v1::Scenario RandomScenario(std::uint64_t seed, std::vector<std::string>* refused) {
  v1::Scenario scenario = DrawScenario(seed);
  RandomStream random(seed, "repair");
  std::string last;
  int up = 0;
  for (int i = 0; i < kRepairsMax; ++i) {
    const auto built = BuildScenario(scenario, test::SourceDir());
    absl::Status status = built.ok() ? CheckScenario(*built, RunsOn::kProcess) : built.status();
    if (status.ok()) return scenario;
    std::string error(status.message());
    if (refused != nullptr) refused->push_back(error);
    up = error == last ? up + 1 : 0;
    last = error;
    if (built.ok() && RunsUntilStopped(*built) && error.find("until it is stopped") != error.npos) {
      scenario.set_stop_at(1 + random.Below(20'000'000));
      continue;
    }
    if (built.ok() || !RemoveNamed(&scenario, error, up)) {
      if (!RemoveAny(&scenario, random)) break;
    }
  }
  return v1::Scenario();
}

std::vector<v1::JournalRecord> RandomCommands(std::uint64_t seed, const v1::Scenario& scenario,
                                              std::int64_t end) {
  RandomStream random(seed, "commands");
  MessageDraw draw(&random, {});
  NameMachine(scenario, &draw.names());
  for (const v1::Fault& fault : scenario.faults()) draw.names().declared.push_back(fault.id());
  for (const v1::Tree& tree : scenario.trees()) draw.names().declared.push_back(tree.name());
  // What a client can ask for; the others record what the controller itself did.
  constexpr const char* kCommands[] = {
      "link_fault",   "fault",       "create_fault", "update_fault", "delete_fault",
      "reset_faults", "create_tree", "delete_tree",  "trace",        "reset_arbiters"};
  std::vector<v1::JournalRecord> commands;
  while (random.Below(4) != 0) {
    v1::JournalRecord& record = commands.emplace_back();
    const char* kind = kCommands[random.Below(std::size(kCommands))];
    draw.DrawField(&record, v1::JournalRecord::descriptor()->FindFieldByName(kind));
    record.set_at(static_cast<std::int64_t>(random.Unit() * static_cast<double>(end)));
  }
  std::stable_sort(commands.begin(), commands.end(),
                   [](const auto& a, const auto& b) { return a.at() < b.at(); });
  return commands;
}

void ShrinkMessage(Message* message, const std::function<bool()>& fails) {
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const auto attempt = [&](const std::function<void()>& change) {
      std::unique_ptr<Message> before(message->New());
      before->CopyFrom(*message);
      change();
      if (fails()) return true;
      message->CopyFrom(*before);
      return false;
    };
    if (attempt([&] { reflection->ClearField(message, field); })) continue;
    if (!field->is_repeated()) {
      if (field->message_type() != nullptr)
        ShrinkMessage(reflection->MutableMessage(message, field), fails);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field);) {
      if (!attempt([&] { Remove({message, field, i}); })) ++i;
    }
    if (field->message_type() == nullptr) continue;
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
      ShrinkMessage(reflection->MutableRepeatedMessage(message, field, i), fails);
  }
}

}  // namespace percs::generate
