#include "tests/generate/random_scenario.h"

#include <algorithm>
#include <optional>

#include "emulator/sim/check_scenario.h"
#include "fmt/format.h"
#include "proto/scenario/build.h"
#include "proto/scenario/fields.h"
#include "tests/generate/random_message.h"
#include "tests/generate/repair.h"
#include "tests/support/source_dir.h"

namespace percs::generate {
namespace {

constexpr int kNodesMax = 40;
constexpr std::int64_t kContentMax = 256 << 20;  // bytes
constexpr std::int64_t kTimesMax = 1000;         // of a repeat of a window program
constexpr int kRepairsMax = 400;
constexpr std::uint32_t kElementsMax = 6;
constexpr char kTrace[] = "tests/fuzz/corpus/goal/ring";
constexpr char kPermutation[] = "tests/generate/permutation.txt";
constexpr char kLinks[] = "tests/generate/links.txt";

const FieldDescriptor* ScenarioField(const char* name) {
  return v1::Scenario::descriptor()->FindFieldByName(name);
}

// A network of few switches, by what was drawn for others. False: another kind.
bool KeepGraphSmall(v1::Topology* t) {
  const v1::Topology drawn = *t;
  const auto keep = [&drawn, t] {
    t->Clear();
    t->set_kind(drawn.kind());
    t->set_p(1 + drawn.p() % 4);
  };
  switch (drawn.kind()) {
    case v1::TOPOLOGY_KIND_TORUS:
    case v1::TOPOLOGY_KIND_HYPERX: {
      constexpr const char* kDims[] = {"2", "5", "3x3", "4x4", "2x2x2", "4x3x3", "5x4x2"};
      keep();
      t->set_dims(kDims[static_cast<std::size_t>(drawn.a() + drawn.g()) % std::size(kDims)]);
      return true;
    }
    case v1::TOPOLOGY_KIND_FAT_TREE:
      keep();
      t->set_levels(2 + drawn.levels() % 2);
      t->set_radix(t->levels() == 3 ? 4 : 4 + drawn.radix() % 3 * 2);
      return true;
    case v1::TOPOLOGY_KIND_FILE:
      keep();
      t->set_links_file(kLinks);
      return true;
    default:
      return false;
  }
}

// Of another kind than percs: few switches, and only the sizes that it has.
void KeepKindSmall(v1::Topology* t) {
  if (KeepGraphSmall(t)) return;
  const auto at_most = [](int value, int most) { return 1 + (value + most - 1) % most; };
  const bool mesh = t->kind() == v1::TOPOLOGY_KIND_FULL_MESH;
  const int a = at_most(t->a(), mesh ? 8 : 6), h = at_most(t->h(), 3), p = at_most(t->p(), 8);
  const int g = at_most(t->g(), std::min(kNodesMax / a, a * h + 1));
  t->Clear();
  t->set_kind(mesh ? v1::TOPOLOGY_KIND_FULL_MESH : v1::TOPOLOGY_KIND_DRAGONFLY);
  t->set_a(mesh ? std::max(a, 2) : a);
  t->set_p(p);
  if (mesh) return;
  t->set_g(g);
  t->set_h(h);
}

// Halves the largest dimension until the machine is small.
void KeepSmall(v1::Topology* t) {
  if (t->kind() > v1::TOPOLOGY_KIND_PERCS) return KeepKindSmall(t);
  for (const char* name : {"a", "g", "h", "p", "dims", "levels", "radix", "taper", "links_file"})
    t->GetReflection()->ClearField(t, v1::Topology::descriptor()->FindFieldByName(name));
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

// All steps of a program may be done at one instant, in which no cut ends a run.
void KeepShort(v1::WindowPrograms* windows) {
  for (v1::WindowProgram& program : *windows->mutable_programs()) {
    for (v1::WindowStep& step : *program.mutable_steps()) {
      if (step.has_repeat() && step.repeat().times() > kTimesMax)
        step.mutable_repeat()->set_times(kTimesMax);
    }
  }
}

// Buffers with content are of every task, and of all tasks' data for some operations.
void KeepCheap(v1::Workload* workload) {
  if (workload->has_windows()) KeepShort(workload->mutable_windows());
  if (!workload->has_collective()) return;
  v1::TaskCollective* c = workload->mutable_collective();
  const std::int64_t tasks =
      std::int64_t{kNodesMax} * (c->has_tasks_per_node() ? c->tasks_per_node() : 1);
  if (c->bytes() * tasks * tasks > kContentMax) c->set_verified(false);
}

// Networks of switches have no others of these; seldom they stay, to be refused.
void KeepParts(RandomStream* random, v1::Scenario* scenario) {
  const v1::TopologyKind kind = scenario->topology().kind();
  const bool graph = kind == v1::TOPOLOGY_KIND_TORUS || kind == v1::TOPOLOGY_KIND_HYPERX ||
                     kind == v1::TOPOLOGY_KIND_FAT_TREE || kind == v1::TOPOLOGY_KIND_FILE;
  if (!graph || random->Below(8) == 0) return;
  scenario->clear_blades();
  scenario->clear_multicast();
  scenario->clear_clock();
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
  names->blade = nullptr;
  if (shared->blades() > 0) {
    names->blade = [shared](RandomStream& random) {
      return shared->NodeName(shared->hubs() + random.Below(shared->blades()));
    };
  }
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

// One scenario: first as drawn, then as the check takes it.
class ScenarioDraw {
 public:
  explicit ScenarioDraw(std::uint64_t seed) : seed_(seed), random_(seed, "scenario") {
    settings_.optional = 0.05 + 0.4 * random_.Unit();
    settings_.elements = 1 + static_cast<int>(random_.Below(kElementsMax));
    settings_.least = random_.Below(8) == 0 ? 0.2 : 0;
    small_ = random_.Below(50) != 0;
  }

  v1::Scenario Draw() {
    MessageDraw draw(&random_, settings_);
    draw.names().file = kTrace;
    draw.names().permutation = kPermutation;
    draw.Draw(scenario_.mutable_topology());
    if (small_) KeepSmall(scenario_.mutable_topology());
    if (random_.Below(4) != 0) scenario_.mutable_topology()->clear_infiniband();
    NameMachine(scenario_, &draw.names());
    // What others refer to by name comes first.
    for (const char* name : {"blades", "multicast", "trees"}) {
      while (random_.Below(3) == 0) draw.DrawField(&scenario_, ScenarioField(name));
    }
    if (scenario_.blades_size() > 0) NameMachine(scenario_, &draw.names());
    // Seldom by chance, and with more conditions than other faults.
    while (random_.Below(3) == 0) {
      v1::Fault* fault = scenario_.add_faults();
      fault->mutable_inject();
      draw.Draw(fault->mutable_inject());
      draw.Draw(fault);
    }
    draw.DrawField(&scenario_, ScenarioField("workload"));
    draw.Draw(&scenario_);
    scenario_.set_seed(seed_);
    KeepParts(&random_, &scenario_);
    KeepCheap(scenario_.mutable_workload());
    names_ = draw.names();
    return scenario_;
  }

  // REQUIRES: Draw was called.
  v1::Scenario Repaired(std::vector<std::string>* refused) {
    RandomStream random(seed_, "repair");
    DrawSettings settings = settings_;
    settings.least = 0;
    MessageDraw draw(&random, settings);
    draw.names() = names_;
    Repair repair(&scenario_, &draw, &random);
    for (int i = 0; i < kRepairsMax; ++i) {
      const auto built = BuildScenario(scenario_, test::SourceDir());
      absl::Status status = built.ok() ? CheckScenario(*built, RunsOn::kProcess) : built.status();
      if (status.ok()) return scenario_;
      const std::string error(status.message());
      if (refused != nullptr) refused->push_back(error);
      if (built.ok() && RunsUntilStopped(*built) &&
          error.find("until it is stopped") != error.npos) {
        scenario_.set_stop_at(1 + random.Below(20'000'000));
        continue;
      }
      if (!repair.Follow(error)) break;
      scenario_.set_seed(seed_);
      if (small_ && scenario_.has_topology()) KeepSmall(scenario_.mutable_topology());
      KeepParts(&random, &scenario_);
      if (scenario_.has_workload()) KeepCheap(scenario_.mutable_workload());
      NameMachine(scenario_, &draw.names());
    }
    return v1::Scenario();
  }

 private:
  const std::uint64_t seed_;
  RandomStream random_;
  DrawSettings settings_;
  bool small_ = true;
  MessageDraw::Names names_;
  v1::Scenario scenario_;
};

}  // namespace

v1::Scenario DrawScenario(std::uint64_t seed) { return ScenarioDraw(seed).Draw(); }

v1::Scenario RandomScenario(std::uint64_t seed, std::vector<std::string>* refused) {
  ScenarioDraw draw(seed);
  draw.Draw();
  return draw.Repaired(refused);
}

std::vector<v1::JournalRecord> RandomCommands(std::uint64_t seed, const v1::Scenario& scenario,
                                              std::int64_t end) {
  RandomStream random(seed, "commands");
  MessageDraw draw(&random, {});
  NameMachine(scenario, &draw.names());
  for (const v1::Fault& fault : scenario.faults()) draw.names().declared.push_back(fault.id());
  for (const v1::Tree& tree : scenario.trees()) draw.names().declared.push_back(tree.name());
  // What a client can ask for; the others record what the controller itself did.
  constexpr const char* kCommands[] = {"fault",        "create_fault", "update_fault",
                                       "delete_fault", "reset_faults", "create_tree",
                                       "delete_tree",  "trace",        "reset_arbiters"};
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
