// Good files in the three spellings, and the whole message for bad ones.
#include "proto/scenario/reader.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "proto/scenario/describe.h"
#include "tests/support/temporary_folder.h"

namespace percs {
namespace {

std::string ReadErrorOf(const std::string& text, ScenarioFormat format = ScenarioFormat::kYaml) {
  const std::string name = format == ScenarioFormat::kTextproto ? "bad.textproto"
                           : format == ScenarioFormat::kJson    ? "bad.json"
                                                                : "bad.yaml";
  const auto scenario = ReadScenarioText(text, name, format);
  return scenario.ok() ? "no error" : std::string(scenario.status().message());
}

v1::Scenario Read(const std::string& text, ScenarioFormat format = ScenarioFormat::kYaml) {
  const auto scenario = ReadScenarioText(text, "good", format);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.ok() ? *scenario : v1::Scenario();
}

constexpr char kYaml[] = R"(
name: three spellings
seed: 18446744073709551615
machine: p7ih
topology: {supernodes: 2, drawers: 1, hubs: 4}
parameters:
  lr: {rate: 2.5GB/s, wire: 30ns}
  detect: 1.5us
workload:
  pattern: {pattern: supernode_pair, message_bytes: 4KiB, load: 0.25, measure: 10us}
faults:
  - {id: cut, at: 5us, link_down: "sn0-d0-h0/sn0-d0-h1"}
  - at: 9us
    link_up: sn0-d0-h0:LL0
reroute: false
run: {clock: live, pace: max}
)";
constexpr char kJson[] = R"({
	"name": "three spellings", "seed": 18446744073709551615, "machine": "p7ih",
  "topology": {"supernodes": 2, "drawers": 1, "hubs": 4},
  "parameters": {"lr": {"rate": "2.5GB/s", "wire": "30ns"}, "detect": "1.5us"},
  "workload": {"pattern": {"pattern": "supernode_pair", "message_bytes": "4KiB",
                           "load": 0.25, "measure": "10us"}},
  "faults": [{"id": "cut", "at": "5us", "link_down": "sn0-d0-h0\/sn0-d0-h1"},
             {"at": "9us", "link_up": "sn0-d0-h0:LL0"}],
  "reroute": false, "run": {"clock": "live", "pace": "max"}
})";
constexpr char kTextproto[] = R"(
name: "three spellings"
seed: 18446744073709551615
machine: MACHINE_P7IH
topology { supernodes: 2 drawers: 1 hubs: 4 }
parameters { lr { rate: 2500000000 wire: 30000 } detect: 1500000 }
workload { pattern { pattern: PATTERN_SUPERNODE_PAIR message_bytes: 4096 load: 0.25
                     measure: 10000000 } }
faults { id: "cut" at: 5000000 link_down: "sn0-d0-h0/sn0-d0-h1" }
faults { at: 9000000 link_up: "sn0-d0-h0:LL0" }
reroute: false
run { clock: CLOCK_LIVE pace: 0 }
)";

TEST(Reader, ThreeSpellingsAreOneMessage) {
  const std::string yaml = Read(kYaml).DebugString();
  EXPECT_EQ(yaml, Read(kJson, ScenarioFormat::kJson).DebugString());
  EXPECT_EQ(yaml, Read(kTextproto, ScenarioFormat::kTextproto).DebugString());
  EXPECT_EQ(yaml, Read(Read(kYaml).DebugString(), ScenarioFormat::kTextproto).DebugString());
}

TEST(Reader, WhatTheWriterPrintsReadsBack) {
  const v1::Scenario scenario = Read(kYaml);
  EXPECT_EQ(Read(PrintScenarioYaml(scenario)).DebugString(), scenario.DebugString());
}

TEST(Reader, AListStandsForAPacketScript) {
  const v1::Scenario scenario = Read(R"(
workload:
  packets:
    - {at: 1ns, source: sn0-d0-h0, destination: sn0-d0-h1}
    - {source: sn0-d0-h1, destination: sn0-d0-h0, bytes: 128B}
)");
  ASSERT_EQ(scenario.workload().packets().list_size(), 2);
  EXPECT_EQ(scenario.workload().packets().list(0).at(), 1'000);
  EXPECT_EQ(scenario.workload().packets().list(1).bytes(), 128);
}

TEST(Reader, EmptyGroupsKeepTheirDefaults) {
  const v1::Scenario scenario = Read("topology:\nparameters:\n  ll: {}\nfaults:\n");
  EXPECT_TRUE(scenario.has_topology());
  EXPECT_FALSE(scenario.topology().has_supernodes());
  EXPECT_EQ(scenario.faults_size(), 0);
}

TEST(Reader, RemembersWhereFieldsStand) {
  const auto yaml = LoadScenarioText(kYaml, "a.yaml", ScenarioFormat::kYaml);
  ASSERT_TRUE(yaml.ok());
  EXPECT_EQ(yaml->marks.Find("faults[1].link_up").line, 14);
  EXPECT_EQ(yaml->marks.Find("faults[1].link_up").column, 14);
  EXPECT_EQ(yaml->marks.Find("parameters.lr.buffer_flits").line, 7);  // the group around it
  const auto text = LoadScenarioText(kTextproto, "a.textproto", ScenarioFormat::kTextproto);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->marks.Find("faults[1].link_up").line, 10);
  EXPECT_EQ(text->marks.Find("parameters.lr.wire").line, 6);
}

struct Bad {
  const char* text;
  const char* message;
};

const Bad kBadFields[] = {
    {"topology:\n  super_nodes: 2\n",
     "bad.yaml:2:3: topology.super_nodes: unknown field; did you mean \"supernodes\"? "
     "Fields here: supernodes, drawers, hubs, d_links_per_pair, kind, a, g, h, p, dims, levels, "
     "radix, taper, links_file, infiniband"},
    {"colour: red\n",
     "bad.yaml:1:1: colour: unknown field; did you mean \"clock\"? Fields here: name, "
     "description, seed, machine, "
     "topology, "
     "parameters, workload, pcie, cables, faults, reroute, stop_at, run, "
     "blades, clock, multicast, routing, service, trees"},
    {"workload:\n  trace:\n    file: a.goal\n    inline_trace: abc\n",
     "bad.yaml:4:5: workload.trace.inline_trace: unknown field; fields here: file, mapping, "
     "calc_scale"},
    {"topology:\n  hubs: 4\n  drawers: 2\n  hubs: 4\n",
     "bad.yaml:4:3: topology.hubs: written twice, first in line 2; keep one"},
    {"faults:\n  - {id: a, at: 1us, link_down: x}\n  - {id: a, at: 2us, link_up: x}\n",
     "bad.yaml:3:10: faults[1].id: \"a\" is already the id of faults[0]; write another"},
    {"faults:\n  - link_down: sn0-d0-h0:LL0\n",
     "bad.yaml:2:5: faults[0].at: missing; write for example `at: 5us`"},
    {"faults:\n  - at: 1us\n",
     "bad.yaml:2:5: faults[0]: incomplete; write exactly one of link_down, link_up, "
     "spe_down, chip_link_degraded, eib_ring_lost, link_errors, lanes_lost, inject"},
    {"faults:\n  - {at: 1us, link_down: x, link_up: x}\n",
     "bad.yaml:2:29: faults[0].link_up: only one of these may be given, and link_down is given "
     "already; remove one"},
    {"workload: {}\n",
     "bad.yaml:1:1: workload: incomplete; write exactly one of all_to_all, pattern, packets, "
     "trace, ticks, cau, collective, windows"},
    {"workload:\n  packets: []\n",
     "bad.yaml:2:3: workload.packets: the list is empty; write at least one element"},
    {"workload:\n  trace: {}\n",
     "bad.yaml:2:3: workload.trace.file: missing; write for example "
     "`file: traces/lammps-lj-32-2steps.goal.gz`"},
};

const Bad kBadValues[] = {
    {"workload:\n  all_to_all:\n    bytes: 65536\n",
     "bad.yaml:3:12: workload.all_to_all.bytes: 65536 needs a unit, for example 64KiB"},
    {"workload:\n  all_to_all:\n    bytes: 64us\n",
     "bad.yaml:3:12: workload.all_to_all.bytes: \"64us\" has the unknown unit \"us\"; "
     "units: B, kB, KiB, MB, MiB, GB, GiB"},
    {"parameters: {d: {wire: 0.5ps}}\n",
     "bad.yaml:1:24: parameters.d.wire: \"0.5ps\" is not a whole number of picoseconds"},
    {"parameters: {ll: {buffer_flits: 0}}\n",
     "bad.yaml:1:33: parameters.ll.buffer_flits: 0 is out of range; allowed: 1 to 1024"},
    {"parameters: {hfi: {buffer_flits: 15}}\n",
     "bad.yaml:1:34: parameters.hfi.buffer_flits: 15 is out of range; allowed: 16 to 1024"},
    {"parameters: {flow_window_packets: 65}\n",
     "bad.yaml:1:35: parameters.flow_window_packets: 65 is out of range; allowed: 1 to 64"},
    {"parameters: {retransmit_timeout: 999999ps}\n",
     "bad.yaml:1:34: parameters.retransmit_timeout: 999999ps is out of range; "
     "allowed: 1us to 10s"},
    {"topology: {supernodes: 99999999999}\n",
     "bad.yaml:1:24: topology.supernodes: 99999999999 is out of range; allowed: 1 to 513"},
    {"topology: {supernodes: -1}\n",
     "bad.yaml:1:24: topology.supernodes: -1 is out of range; allowed: 1 to 513"},
    {"topology: {supernodes: two}\n",
     "bad.yaml:1:24: topology.supernodes: \"two\" is not a whole number; write for example 1"},
    {"topology: {supernodes: 1.5}\n",
     "bad.yaml:1:24: topology.supernodes: \"1.5\" is not a whole number; write for example 1"},
    {"topology: {supernodes: \"2\"}\n",
     "bad.yaml:1:24: topology.supernodes: \"2\" is text, expected a number; remove the quotes"},
    {"seed: 18446744073709551616\n",
     "bad.yaml:1:7: seed: 18446744073709551616 is out of range; "
     "allowed: 0 to 18446744073709551615"},
    {"workload: {pattern: {load: 1.5}}\n",
     "bad.yaml:1:28: workload.pattern.load: 1.5 is out of range; allowed: above 0, at most 1"},
    {"workload: {pattern: {load: 0}}\n",
     "bad.yaml:1:28: workload.pattern.load: 0 is out of range; allowed: above 0, at most 1"},
    {"workload: {pattern: {load: .nan}}\n",
     "bad.yaml:1:28: workload.pattern.load: \".nan\" is not a number; write for example 0.5"},
    {"workload: {pattern: {pattern: unifrom}}\n",
     "bad.yaml:1:31: workload.pattern.pattern: \"unifrom\" is not a choice; did you mean "
     "\"uniform\"? Choices: uniform, hotspot, neighbor, tornado, transpose, bitcomp, randperm, "
     "supernode_pair, multicast, bitrev, shuffle, adversarial, stencil, "
     "permutation, diagonal, asymmetric"},
    {"workload: {all_to_all: {schedule: SCHEDULE_SPREAD}}\n",
     "bad.yaml:1:35: workload.all_to_all.schedule: \"SCHEDULE_SPREAD\" is not a choice; "
     "choices: spread, linear"},
    {"reroute: maybe\n",
     "bad.yaml:1:10: reroute: \"maybe\" is not true or false; write true or false"},
    {"reroute: 'true'\n",
     "bad.yaml:1:10: reroute: \"true\" is text, expected a truth value; remove the quotes"},
    {"run: {pace: 0us/s}\n",
     "bad.yaml:1:13: run.pace: 0us/s is out of range; allowed: 1ps/s to 1s/s, or max"},
};

const Bad kBadShapes[] = {
    {"topology: 5\n",
     "bad.yaml:1:11: topology: found \"5\"; write a group of fields: supernodes, drawers, "
     "hubs, "
     "d_links_per_pair, kind, a, g, h, p, dims, levels, radix, taper, links_file, infiniband"},
    {"topology: [1, 2]\n",
     "bad.yaml:1:11: topology: found a list; write a group of fields: supernodes, drawers, "
     "hubs, d_links_per_pair, kind, a, g, h, p, dims, levels, radix, taper, links_file, "
     "infiniband"},
    {"faults: {at: 1us}\n", "bad.yaml:1:9: faults: found a group of fields; write a list"},
    {"workload: {packets: 7}\n", "bad.yaml:1:21: workload.packets: found \"7\"; write a list"},
    {"seed: [1]\n", "bad.yaml:1:7: seed: found a list; write one value, for example 1"},
    {"stop_at:\n", "bad.yaml:1:1: stop_at: has no value; write for example `stop_at: 1ms`"},
    {"[1]: 2\n", "bad.yaml:1:1: found a list, expected a field name"},
    {"- a\n",
     "bad.yaml:1:1: found a list; write a group of fields: name, description, seed, machine, "
     "topology, parameters, workload, pcie, cables, faults, reroute, stop_at, run, "
     "blades, clock, multicast, routing, service, trees"},
    {"", "bad.yaml:1:1: the file is empty; write at least `topology:`"},
    {"# only a comment\n", "bad.yaml:1:1: the file is empty; write at least `topology:`"},
    {"seed: 1\n---\nseed: 2\n",
     "bad.yaml:3:1: a second document begins; a scenario file has one, remove `---`"},
    {"seed: {1\n", "bad.yaml:2:1: not readable as YAML: end of map flow not found"},
    {"topology:\n\thubs: 2\n", "bad.yaml:2:6: a tab indents this line; indent with spaces"},
};

TEST(Reader, SaysWhichFieldIsWrong) {
  for (const Bad& bad : kBadFields) EXPECT_EQ(ReadErrorOf(bad.text), bad.message) << bad.text;
}
TEST(Reader, SaysWhichValueIsWrong) {
  for (const Bad& bad : kBadValues) EXPECT_EQ(ReadErrorOf(bad.text), bad.message) << bad.text;
}
TEST(Reader, SaysWhatShapeIsWrong) {
  for (const Bad& bad : kBadShapes) EXPECT_EQ(ReadErrorOf(bad.text), bad.message) << bad.text;
}

TEST(Reader, StandsHostileFiles) {
  const std::string long_text(1'000, 'x');
  EXPECT_EQ(ReadErrorOf(std::string(100'000, '[')),
            "bad.yaml:1:1: groups and lists are nested too deep for a scenario");
  EXPECT_EQ(ReadErrorOf("seed: " + long_text),
            "bad.yaml:1:7: seed: found a text of 1000 bytes; write one value, for example 1");
  EXPECT_EQ(ReadErrorOf(long_text + ": 1"),
            "bad.yaml:1:1: found a text of 1000 bytes, expected a field name");
  EXPECT_EQ(
      ReadErrorOf("faults: &a [*a]\n"),
      "bad.yaml:1:9: faults[0]: found a list; write a group of fields: id, at, link_down, "
      "link_up, spe_down, chip_link_degraded, eib_ring_lost, link_errors, lanes_lost, inject");
  EXPECT_EQ(ReadErrorOf("workload: &w {pattern: *w}\n"),
            "bad.yaml:1:11: workload.pattern.pattern: found a group of fields; write one value, "
            "for example uniform");
}

TEST(Reader, ReportsAllErrorsInTheOrderOfTheFile) {
  EXPECT_EQ(ReadErrorOf("sed: 1\ntopology:\n  hubs: 9\n  drawers: x\nstop_at: 5\n"),
            "bad.yaml:1:1: sed: unknown field; did you mean \"seed\"? Fields here: name, "
            "description, seed, machine, topology, parameters, workload, pcie, cables, faults, "
            "reroute, stop_at, "
            "run, blades, clock, multicast, routing, service, trees\n"
            "bad.yaml:3:9: topology.hubs: 9 is out of range; allowed: 1 to 8\n"
            "bad.yaml:4:12: topology.drawers: \"x\" is not a whole number; write for example 4\n"
            "bad.yaml:5:10: stop_at: 5 needs a unit, for example 5us");
}

TEST(Reader, StopsListingAfterTwentyErrors) {
  std::string text;
  for (int i = 0; i < 25; ++i) text += "wrong" + std::to_string(i) + ": 1\n";
  const std::string message = ReadErrorOf(text);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  EXPECT_EQ(message.substr(message.rfind('\n') + 1), "bad.yaml: 5 more errors");
}

TEST(Reader, JsonErrorsAreLocatedToo) {
  EXPECT_EQ(ReadErrorOf("{\n  \"topology\": {\"hub\": 2}\n}\n", ScenarioFormat::kJson),
            "bad.json:2:16: topology.hub: unknown field; did you mean \"hubs\"? Fields here: "
            "supernodes, drawers, hubs, d_links_per_pair, kind, a, g, h, p, dims, levels, radix, "
            "taper, links_file, infiniband");
}

TEST(Reader, TextprotoErrorsAreLocatedToo) {
  const auto format = ScenarioFormat::kTextproto;
  EXPECT_EQ(ReadErrorOf("topology {\n  super_nodes: 2\n}\n", format),
            "bad.textproto:2:14: super_nodes: unknown field; did you mean \"supernodes\"? Fields "
            "here: supernodes, drawers, hubs, d_links_per_pair, kind, a, g, h, p, dims, levels, "
            "radix, taper, links_file, infiniband");
  EXPECT_EQ(ReadErrorOf("topology {\n  hubs: 9\n}\n", format),
            "bad.textproto:2:3: topology.hubs: 9 is out of range; allowed: 1 to 8");
  EXPECT_EQ(ReadErrorOf("faults { link_down: \"x\" }\n", format),
            "bad.textproto:1:1: faults[0].at: missing; write for example `at: 5us`");
  EXPECT_EQ(ReadErrorOf("seed: 1\nseed: 2\n", format),
            "bad.textproto:2:5: Non-repeated field \"seed\" is specified multiple times.");
}

TEST(Reader, FilesAreNamedInErrors) {
  const test::TemporaryFolder files;
  const std::string toml = files.path() + "/a.toml";
  std::ofstream(toml) << "name = \"a\"\n";
  EXPECT_EQ(ReadScenarioFile(toml).status().message(),
            toml +
                ": the extension \".toml\" is not a scenario format; name the file .yaml, .yml, "
                ".json, .textproto or .pbtxt");
  EXPECT_EQ(ReadScenarioFile(files.path()).status().message(),
            files.path() + ": is a directory; name a file");
  EXPECT_EQ(ReadScenarioFile("a.toml").status().message(),
            "a.toml: cannot be opened: No such file or directory");
  std::ofstream(files.path() + "/one-drawer.yaml") << "name: a\n";
  for (const char* wrong : {"/one-drawr.yaml", "/one-drawer", "/../one-drawer.yml"}) {
    const std::string message(ReadScenarioFile(files.path() + wrong).status().message());
    EXPECT_EQ(message.ends_with("one-drawer.yaml\"?"), wrong[1] != '.') << message;
  }
  const auto missing = ReadScenarioFile("no/such/file.yaml");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.status().message(),
            "no/such/file.yaml: cannot be opened: No such file or directory");
  const std::string folder = testing::TempDir() + "percs_folder.yaml";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(ReadScenarioFile(folder).status().message(), folder + ": is a directory; name a file");
  std::filesystem::remove(folder);
}

TEST(Reader, AliasesDoNotMultiplyValuesWithoutBounds) {
  std::string steps, programs;
  for (int i = 0; i < 2'000; ++i) steps += "reserve: {window: 0}, ";
  for (int i = 0; i < 300; ++i) programs += "  - {name: b, hub: sn0-d0-h0, steps: *s}\n";
  const std::string text = "workload:\n  windows:\n  - {name: a, hub: sn0-d0-h0, steps: &s [" +
                           steps + "]}\n" + programs;
  ASSERT_LT(text.size(), 100'000u);
  const std::string error = ReadErrorOf(text);
  EXPECT_NE(error.find("here the file has more than 1000000 values, which is the limit; an alias "
                       "counts wherever it is used"),
            std::string::npos)
      << error.substr(0, 1'000);
  EXPECT_EQ(error.find('\n'), std::string::npos) << "and nothing more is said";
}

TEST(Reader, AGoodFileReadsAfterABadOne) {
  EXPECT_NE(ReadErrorOf("seed: x\n"), "no error");
  EXPECT_EQ(Read("seed: 5\n").seed(), 5u);
}

}  // namespace
}  // namespace percs
