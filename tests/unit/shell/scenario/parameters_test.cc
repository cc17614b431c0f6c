// The parameter table against the struct: same defaults, every field wired, rules with arithmetic.
#include <cstddef>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "proto/scenario/build.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/reader.h"

namespace percs {
namespace {

// Every number of the struct, in order. The size check below makes a new field fail here.
std::vector<std::int64_t> Numbers(const P7ihParameters& p) {
  std::vector<std::int64_t> numbers;
  for (const LinkParameters* link : {&p.ll, &p.lr, &p.d, &p.hfi, &p.ib}) {
    numbers.insert(numbers.end(), {link->flit_time, link->wire, link->buffer_flits, link->lanes,
                                   link->spare_lanes, link->lanes_min});
  }
  numbers.insert(numbers.end(), {p.ib_crossbar,
                                 p.isr_latency,
                                 p.credit_processing,
                                 p.w_flit_time,
                                 p.hfi_queue_packets,
                                 p.route_table_entries,
                                 p.multicast_table_entries,
                                 p.windows_per_hfi,
                                 static_cast<int>(p.vc_policy),
                                 p.link_replay,
                                 p.replay_limit,
                                 p.send_overhead,
                                 p.receive_overhead,
                                 p.flow_window_packets,
                                 p.ack_every_packets,
                                 p.reply_queue_packets,
                                 p.retransmit_timeout,
                                 p.retransmit_tries,
                                 p.cau_pass_through,
                                 p.cau_port_time,
                                 p.cau_queue_packets,
                                 p.service_buffer_flits,
                                 p.service_wait,
                                 p.congestion_period,
                                 p.congestion_threshold,
                                 p.management_latency,
                                 p.detect,
                                 p.plan,
                                 p.install,
                                 p.stall_limit});
  const WindowParameters& w = p.windows;
  numbers.insert(
      numbers.end(),
      {w.immediate_issue,   w.fifo_issue,    w.rdma_issue,     w.receive,           w.memory_read,
       w.cache_read,        w.memory_write,  w.atomic_time,    w.flit_time,         w.packet_time,
       w.immediate_buffers, w.operations,    w.unacknowledged, w.read_unit_packets, w.read_units,
       w.reassembly,        w.nmmu_hit,      w.nmmu_miss,      w.nmmu_entries,      w.page_bytes,
       w.registered_bytes,  w.pcie_flit_time});
  return numbers;
}

struct SameFieldsAsWindowParameters {
  Time issue[3], receive, memory[3], atomic_time, flit_time, packet_time;
  int immediate_buffers, operations, unacknowledged, read_unit_packets, read_units;
  Time reassembly, nmmu_hit, nmmu_miss;
  int nmmu_entries, page_bytes;
  std::int64_t registered_bytes;
  Time pcie_flit_time;
};
static_assert(sizeof(WindowParameters) == sizeof(SameFieldsAsWindowParameters),
              "a field came or went: p7ih.proto, parameters.cc and Numbers() have to follow");

struct SameFieldsAsP7ihParameters {
  LinkParameters links[5];
  Time ib_crossbar, isr_latency, credit_processing, w_flit_time;
  int hfi_queue_packets, route_table_entries, multicast_table_entries, windows_per_hfi;
  VcPolicy vc_policy;
  bool link_replay;
  int replay_limit, service_buffer_flits;
  Time service_wait, congestion_period;
  int congestion_threshold;
  Time send_overhead, receive_overhead;
  int flow_window_packets, ack_every_packets, reply_queue_packets;
  Time retransmit_timeout;
  int retransmit_tries;
  SameFieldsAsWindowParameters windows;
  Time cau_pass_through, cau_port_time;
  int cau_queue_packets;
  Time management_latency, detect, plan, install, stall_limit;
};
static_assert(sizeof(P7ihParameters) == sizeof(SameFieldsAsP7ihParameters),
              "a field came or went: p7ih.proto, parameters.cc and Numbers() have to follow");

std::string Rules(const P7ihParameters& p) {
  const SourceMarks marks;
  ErrorList errors(&marks);
  CheckParameters(p, &errors);
  return std::string(errors.ToStatus().message());
}

// Calls visit(top message, message, field) for each value of the parameter table, always from
// empty.
void VisitValues(
    const std::function<void(v1::P7ihParameters*, Message*, const FieldDescriptor*)>& visit) {
  const Descriptor* type = v1::P7ihParameters::descriptor();
  for (const FieldDescriptor* field : VisibleFields(type)) {
    v1::P7ihParameters top;
    if (field->message_type() == nullptr) {
      visit(&top, &top, field);
      continue;
    }
    for (const FieldDescriptor* inner : VisibleFields(field->message_type())) {
      top.Clear();
      visit(&top, top.GetReflection()->MutableMessage(&top, field), inner);
    }
  }
}

TEST(Parameters, AnEmptyGroupYieldsTheDefaultsOfTheStruct) {
  const auto scenario = ReadScenarioText("parameters:\n", "empty.yaml", ScenarioFormat::kYaml);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(Numbers(BuildParameters(scenario->parameters())), Numbers(P7ihParameters()));
}

TEST(Parameters, EveryDefaultInTheTableIsTheOneOfTheStruct) {
  int values = 0;
  VisitValues([&](v1::P7ihParameters* top, Message* message, const FieldDescriptor* field) {
    ASSERT_FALSE(DefaultValue(field).empty()) << field->full_name();
    ASSERT_TRUE(SetFromText(message, field, DefaultValue(field)).ok()) << field->full_name();
    EXPECT_EQ(Numbers(BuildParameters(*top)), Numbers(P7ihParameters())) << field->full_name();
    ++values;
  });
  // All of the struct but hfi.wire, which is 0 by rule, and the lanes of a port that has none, and
  // the preset, which is not in the struct.
  EXPECT_EQ(values, static_cast<int>(Numbers(P7ihParameters()).size()) - 4 + 1);
}

TEST(Parameters, EveryFieldChangesExactlyOneNumber) {
  VisitValues([](v1::P7ihParameters* top, Message* message, const FieldDescriptor* field) {
    if (field->name() == "management_preset") return;
    const bool truth = field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
    const std::string other = field->enum_type() != nullptr ? "single"
                              : truth                       ? "false"
                                                            : RulesOf(field).max();
    const bool at_max = DefaultValue(field) == other;
    ASSERT_TRUE(SetFromText(message, field, at_max ? RulesOf(field).min() : other).ok());
    const auto changed = Numbers(BuildParameters(*top)), before = Numbers(P7ihParameters());
    int differences = 0;
    for (std::size_t i = 0; i < changed.size(); ++i) differences += changed[i] != before[i];
    EXPECT_EQ(differences, 1) << field->full_name();
  });
}

TEST(Parameters, RatesBecomeFlitTimesRoundedUp) {
  v1::P7ihParameters message;
  message.mutable_ll()->set_rate(24'000'000'000);
  message.mutable_lr()->set_rate(3'000'000'000);
  message.mutable_d()->set_rate(1'000'000'000'000);
  message.set_w_rate(1'000'000);
  const P7ihParameters p = BuildParameters(message);
  EXPECT_EQ(p.ll.flit_time, 5'334);
  EXPECT_EQ(p.lr.flit_time, 42'667);
  EXPECT_EQ(p.d.flit_time, 128);
  EXPECT_EQ(p.w_flit_time, 128'000'000);
}

TEST(Parameters, APresetGivesWayToFieldsGivenByThemselves) {
  v1::P7ihParameters message;
  message.set_management_preset(v1::MANAGEMENT_PRESET_MACHINE);
  EXPECT_EQ(BuildParameters(message).plan, 20 * kMillisecond);
  EXPECT_EQ(Rules(BuildParameters(message)), "");
  message.set_plan(kMillisecond);
  EXPECT_EQ(BuildParameters(message).plan, kMillisecond);
  EXPECT_EQ(BuildParameters(message).install, 5 * kMillisecond);
}

TEST(Parameters, TheDefaultsKeepTheRules) { EXPECT_EQ(Rules(P7ihParameters()), ""); }

TEST(Parameters, TheLastRetransmissionMustFindTheNewRoutes) {
  P7ihParameters p;
  p.retransmit_timeout = 2 * kMicrosecond;
  p.retransmit_tries = 3;
  EXPECT_EQ(
      Rules(p),
      "scenario: parameters.retransmit_tries: the last retransmission comes at "
      "retransmit_timeout x (2^retransmit_tries - 1) = 2us x (2^3 - 1) = 14us, not later than "
      "detect + plan + install = 1us + 20us + 5us = 26us; raise retransmit_timeout or "
      "retransmit_tries");
  p.retransmit_tries = 4;  // 30 us
  EXPECT_EQ(Rules(p), "");
}

TEST(Parameters, AnAlertHasToArriveBeforePlanning) {
  P7ihParameters p;
  p.detect = p.management_latency - 1;
  EXPECT_EQ(Rules(p),
            "scenario: parameters.detect: detect = 999999ps is less than management_latency = 1us, "
            "but an alert arrives only after that; write at least 1us");
}

TEST(Parameters, AnInstallTakesThreeMessages) {
  P7ihParameters p;
  p.install = 2'999'999;
  EXPECT_EQ(
      Rules(p),
      "scenario: parameters.install: install = 2999999ps is less than 3 x management_latency = "
      "3 x 1us = 3us for prepare, acknowledge and commit; write at least 3us");
}

TEST(Parameters, AcknowledgementsComeWithinTheWindow) {
  P7ihParameters p;
  p.flow_window_packets = 8;
  EXPECT_EQ(
      Rules(p),
      "scenario: parameters.ack_every_packets: ack_every_packets = 16 is more than "
      "flow_window_packets = 8, so a sender would wait for an acknowledgement that is not yet "
      "due; write at most 8");
}

TEST(Parameters, ACrossbarTakesAFlitsTimeAtLeast) {
  P7ihParameters p;
  p.ib_crossbar = 63'999;
  EXPECT_EQ(Rules(p),
            "scenario: parameters.ib_crossbar: ib_crossbar = 63999ps is less than the 64ns that a "
            "flit of 128 bytes "
            "takes on a cable; write at least that, or raise ib.rate");
}

TEST(Parameters, ACreditTakesTime) {
  P7ihParameters p;
  p.credit_processing = 0;
  p.lr.wire = 0;
  EXPECT_EQ(Rules(p),
            "scenario: parameters.lr.wire: a credit would take lr.wire + credit_processing = 0ps + "
            "0ps = 0ps; whatever crosses a link takes time, so raise one of the two");
}

}  // namespace
}  // namespace percs
