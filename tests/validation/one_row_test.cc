// No parameter moves exactly one judged row: such a row would only repeat its parameter, and is to
// be called restated.
//
// Method: every parameter of a machine is made a quarter larger and, if that does not move two, a
// fifth smaller, and the judged rows that come out otherwise are counted. Rows whose measurement
// takes minutes are left out; they could only add to the count.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/experiments/cell_validation.h"
#include "emulator/experiments/judge.h"
#include "emulator/experiments/p7ih_validation.h"
#include "emulator/experiments/roadrunner_validation.h"
#include "emulator/experiments/smartmap_validation.h"

namespace percs {
namespace {

using Values = std::map<std::string, double>;

Values JudgedValues(const std::vector<absl::StatusOr<std::vector<ValidationRow>>>& parts) {
  Values values;
  for (const auto& rows : parts) {
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (!rows.ok()) continue;
    for (const ValidationRow& row : *rows) {
      if (IsJudged(row)) values[row.id] = row.emulated;
    }
  }
  return values;
}

template <typename Parameters>
using Field = std::pair<const char*, std::function<void(Parameters&, double)>>;

template <typename Parameters, typename Owner, typename Number>
Field<Parameters> FieldOf(const char* name, Owner& (*owner)(Parameters&), Number Owner::*member) {
  return {name, [owner, member](Parameters& p, double factor) {
            Number& value = owner(p).*member;
            value = static_cast<Number>(static_cast<double>(value) * factor);
          }};
}

template <typename Parameters>
Parameters& Itself(Parameters& p) {
  return p;
}

template <typename Parameters>
void ExpectNoneMovesOneRow(const Parameters& defaults, const std::vector<Field<Parameters>>& fields,
                           const std::function<Values(const Parameters&)>& measure) {
  const Values before = measure(defaults);
  EXPECT_FALSE(before.empty());
  for (const auto& [name, scale] : fields) {
    std::set<std::string> moved;
    for (const double factor : {1.25, 0.8}) {
      if (moved.size() > 1) break;
      Parameters changed = defaults;
      scale(changed, factor);
      for (const auto& [id, value] : measure(changed)) {
        if (value != before.at(id)) moved.insert(id);
      }
    }
    EXPECT_NE(moved.size(), 1u) << name << " moves only " << *moved.begin();
  }
}

TEST(OneRow, NoParameterOfTheBladeMovesOneRow) {
  using P = cell::BladeParameters;
  const auto own = [](const char* name, Time P::*member) {
    return FieldOf<P, P, Time>(name, Itself<P>, member);
  };
  const auto link = [](const char* name, Time cell::ChipLinkParameters::*member) {
    return FieldOf<P, cell::ChipLinkParameters, Time>(
        name, [](P& p) -> cell::ChipLinkParameters& { return p.link; }, member);
  };
  const std::vector<Field<P>> fields{
      own("issue", &P::issue),
      own("command", &P::command),
      own("list_element", &P::list_element),
      own("coherence", &P::coherence),
      own("dma_done", &P::dma_done),
      own("tag_status", &P::tag_status),
      own("signal_set", &P::signal_set),
      own("signal_read", &P::signal_read),
      own("mailbox_access", &P::mailbox_access),
      own("mailbox_send", &P::mailbox_send),
      own("ppe_access", &P::ppe_access),
      own("memory_latency", &P::memory_latency),
      own("atomic_travel", &P::atomic_travel),
      own("atomic_service", &P::atomic_service),
      own("software_partner", &P::software_partner),
      own("combine_vector", &P::combine_vector),
      own("combine_call", &P::combine_call),
      link("line_time", &cell::ChipLinkParameters::line_time),
      link("single_line_time", &cell::ChipLinkParameters::single_line_time),
      link("latency", &cell::ChipLinkParameters::latency)};
  ExpectNoneMovesOneRow<P>(*cell::ParametersOfBlade("QS20"), fields,
                           [](const P& p) { return JudgedValues({cell::ValidateCell(p, 20)}); });
}

TEST(OneRow, NoParameterOfTheTribladesMovesOneRow) {
  using P = roadrunner::RoadrunnerParameters;
  using roadrunner::CmlParameters, roadrunner::InfinibandParameters, roadrunner::LayerParameters;
  const auto cml = [](const char* name, Time CmlParameters::*member) {
    return FieldOf<P, CmlParameters, Time>(
        name, [](P& p) -> CmlParameters& { return p.cml; }, member);
  };
  const auto tree = [](const char* name, Time InfinibandParameters::*member) {
    return FieldOf<P, InfinibandParameters, Time>(
        name, [](P& p) -> InfinibandParameters& { return p.infiniband; }, member);
  };
  using Layer = LayerParameters& (*)(P&);
  const std::pair<const char*, Layer> layers[] = {
      {"dacs", [](P& p) -> LayerParameters& { return p.dacs; }},
      {"mpi", [](P& p) -> LayerParameters& { return p.mpi; }},
      {"mpi_shared", [](P& p) -> LayerParameters& { return p.mpi_shared; }}};
  std::vector<Field<P>> fields{cml("call", &CmlParameters::call),
                               cml("spin", &CmlParameters::spin),
                               cml("match", &CmlParameters::match),
                               cml("ppe_handle", &CmlParameters::ppe_handle),
                               cml("ppe_store", &CmlParameters::ppe_store),
                               tree("crossbar", &InfinibandParameters::crossbar),
                               tree("cable", &InfinibandParameters::cable)};
  for (const auto& [name, layer] : layers) {
    fields.push_back(FieldOf<P, LayerParameters, Time>(name, layer, &LayerParameters::latency));
    fields.push_back(
        FieldOf<P, LayerParameters, double>(name, layer, &LayerParameters::bytes_per_ns));
  }
  ExpectNoneMovesOneRow<P>(roadrunner::DefaultParameters(), fields, [](const P& p) {
    return JudgedValues(
        {roadrunner::ValidateRoadrunner("RR-03", p), roadrunner::ValidateRoadrunner("RR-043", p)});
  });
}

template <typename P>
void AddHostFields(HostParameters& (*owner)(P&), std::vector<Field<P>>& fields) {
  const auto add = [&](const char* name, auto member) {
    fields.push_back(FieldOf<P, HostParameters>(name, owner, member));
  };
#define PERCS_FIELD(name) add(#name, &HostParameters::name)
  PERCS_FIELD(smt);
  PERCS_FIELD(collective_entry);
  PERCS_FIELD(local_send);
  PERCS_FIELD(local_receive);
  PERCS_FIELD(eager_limit);
  PERCS_FIELD(local_fragment);
  PERCS_FIELD(registration);
  PERCS_FIELD(network_registration);
  PERCS_FIELD(fifo_per_kib);
  PERCS_FIELD(fifo_latency);
  PERCS_FIELD(write_per_kib);
  PERCS_FIELD(copy_per_kib);
  PERCS_FIELD(memory_per_kib);
  PERCS_FIELD(cached);
  PERCS_FIELD(own_cache);
  PERCS_FIELD(own_per_kib);
  PERCS_FIELD(combine_per_kib);
  PERCS_FIELD(node_per_kib);
  PERCS_FIELD(line_same_core);
  PERCS_FIELD(line_same_chip);
  PERCS_FIELD(line_other_chip);
  PERCS_FIELD(line_repeat);
  PERCS_FIELD(shared_entry);
  PERCS_FIELD(shared_step);
  PERCS_FIELD(shared_memory_per_kib);
  PERCS_FIELD(shared_piece);
  PERCS_FIELD(two_buffers_from);
  PERCS_FIELD(poll);
  PERCS_FIELD(cau_send);
  PERCS_FIELD(cau_receive);
#undef PERCS_FIELD
}

TEST(OneRow, NoParameterOfTheOpteronMovesOneRow) {
  std::vector<Field<HostParameters>> fields;
  AddHostFields<HostParameters>(Itself<HostParameters>, fields);
  ExpectNoneMovesOneRow<HostParameters>(OpteronHost(), fields, [](const HostParameters& host) {
    return JudgedValues({ValidateSmartmap("", {}, host)});
  });
}

TEST(OneRow, NoParameterOfThePower7MovesOneRow) {
  using P = P7ihMachine;
  std::vector<Field<P>> fields;
  const auto host = [](P& p) -> HostParameters& { return p.host; };
  AddHostFields<P>(host, fields);
  // On the Opteron's network it is fifo_per_kib: a SeaStar has one rate.
  fields.push_back(FieldOf<P, HostParameters>("rdma_per_kib", host, &HostParameters::rdma_per_kib));
  const auto hub = [](const char* name, Time P7ihParameters::*member) {
    return FieldOf<P, P7ihParameters, Time>(
        name, [](P& p) -> P7ihParameters& { return p.parameters; }, member);
  };
  fields.push_back(hub("send_overhead", &P7ihParameters::send_overhead));
  fields.push_back(hub("receive_overhead", &P7ihParameters::receive_overhead));
  fields.push_back(hub("cau_pass_through", &P7ihParameters::cau_pass_through));
  fields.push_back(hub("cau_port_time", &P7ihParameters::cau_port_time));
  ExpectNoneMovesOneRow<P>({}, fields, [](const P& p) {
    std::vector<absl::StatusOr<std::vector<ValidationRow>>> parts;
    for (const char* only : {"P7IH-01", "P7IH-02", "fig13.p2p.1KB.32", "fig13.p2p.1KB.64",
                             "fig13.p2p.64KB.64", "fig13.p2p.128KB.32", "fig13.p2p.128KB.64",
                             "fig13.p2p.4MB.32", "fig13.hybrid.1KB.32", "fig13.hybrid.64KB.32",
                             "fig13.hybrid.64KB.64", "fig13.hybrid.128KB.32", "fig13.hybrid.1MB.64",
                             "fig13.hybrid.4MB.32", "fig13.p2p.8MB.32", "fig13.hybrid.8MB.32"}) {
      parts.push_back(ValidateP7ih(only, {}, p));
    }
    return JudgedValues(parts);
  });
}

}  // namespace
}  // namespace percs
