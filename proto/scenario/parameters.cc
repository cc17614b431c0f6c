#include <algorithm>
#include <cstdint>

#include "fmt/format.h"
#include "proto/scenario/build.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

// One flit at `rate`, rounded up to a picosecond (docs/semantics.md rule 1).
Time FlitTime(std::int64_t bytes_per_second) {
  constexpr std::int64_t kFlitPicoBytes = 128 * kSecond;
  return (kFlitPicoBytes + bytes_per_second - 1) / bytes_per_second;
}

template <typename Link>
void ReadLink(const Link& from, LinkParameters* to) {
  if (from.has_rate()) to->flit_time = FlitTime(from.rate());
  if constexpr (requires { from.wire(); }) {
    if (from.has_wire()) to->wire = from.wire();
  }
  if (from.has_buffer_flits()) to->buffer_flits = from.buffer_flits();
  if constexpr (requires { from.lanes(); }) {
    if (from.has_lanes()) to->lanes = from.lanes();
    if (from.has_spare_lanes()) to->spare_lanes = from.spare_lanes();
    if (from.has_lanes_min()) to->lanes_min = from.lanes_min();
  }
}

void ReadWindows(const v1::P7ihParameters::Windows& message, WindowParameters* p) {
  if (message.has_rate()) p->flit_time = FlitTime(message.rate());
  if (message.has_pcie_lane_rate()) p->pcie_flit_time = FlitTime(message.pcie_lane_rate());
#define PERCS_COPY(field) \
  if (message.has_##field()) p->field = static_cast<decltype(p->field)>(message.field())
  PERCS_COPY(immediate_issue);
  PERCS_COPY(fifo_issue);
  PERCS_COPY(rdma_issue);
  PERCS_COPY(receive);
  PERCS_COPY(memory_read);
  PERCS_COPY(cache_read);
  PERCS_COPY(memory_write);
  PERCS_COPY(atomic_time);
  PERCS_COPY(packet_time);
  PERCS_COPY(immediate_buffers);
  PERCS_COPY(operations);
  PERCS_COPY(unacknowledged);
  PERCS_COPY(read_unit_packets);
  PERCS_COPY(read_units);
  PERCS_COPY(reassembly);
  PERCS_COPY(nmmu_hit);
  PERCS_COPY(nmmu_miss);
  PERCS_COPY(nmmu_entries);
  PERCS_COPY(page_bytes);
  PERCS_COPY(registered_bytes);
#undef PERCS_COPY
}

void CheckWindows(const WindowParameters& p, ErrorList* errors) {
  if ((p.page_bytes & (p.page_bytes - 1)) != 0) {
    errors->Add(
        "parameters.windows.page_bytes",
        fmt::format("{} bytes is not a power of two; write 4KiB, 64KiB or 16MiB", p.page_bytes));
  }
  if (p.nmmu_entries % 8 != 0) {
    errors->Add("parameters.windows.nmmu_entries",
                fmt::format("{} is not a multiple of 8, the number of ways of the cache; write {}",
                            p.nmmu_entries, (p.nmmu_entries + 7) / 8 * 8));
  }
}

void ApplyPreset(v1::ManagementPreset preset, P7ihParameters* p) {
  if (preset != v1::MANAGEMENT_PRESET_MACHINE) return;  // demo: the initial values of the struct
  p->management_latency = kMillisecond;
  p->detect = kMillisecond;
  p->plan = 20 * kMillisecond;
  p->install = 5 * kMillisecond;
  p->retransmit_timeout = 10 * kMillisecond;
  p->stall_limit = kSecond;
}

void CheckLink(const char* name, const LinkParameters& link, const P7ihParameters& p,
               ErrorList* errors) {
  if (link.lanes_min > link.lanes) {
    errors->Add(
        fmt::format("parameters.{}.lanes_min", name),
        fmt::format("lanes_min = {} is more than lanes = {}, so the link would never be up; write "
                    "at most {}",
                    link.lanes_min, link.lanes, link.lanes));
  }
  if (link.wire + p.credit_processing > 0) return;
  errors->Add(
      fmt::format("parameters.{}.wire", name),
      fmt::format("a credit would take {0}.wire + credit_processing = 0ps + 0ps = 0ps; whatever "
                  "crosses a link takes time, so raise one of the two",
                  name));
}

void CheckManagement(const P7ihParameters& p, ErrorList* errors) {
  if (p.detect < p.management_latency) {
    errors->Add(
        "parameters.detect",
        fmt::format("detect = {} is less than management_latency = {}, but an alert arrives only "
                    "after that; write at least {}",
                    PrintTime(p.detect), PrintTime(p.management_latency),
                    PrintTime(p.management_latency)));
  }
  if (p.install < 3 * p.management_latency) {
    errors->Add(
        "parameters.install",
        fmt::format("install = {} is less than 3 x management_latency = 3 x {} = {} for prepare, "
                    "acknowledge and commit; write at least {}",
                    PrintTime(p.install), PrintTime(p.management_latency),
                    PrintTime(3 * p.management_latency), PrintTime(3 * p.management_latency)));
  }
}

void CheckRetries(const P7ihParameters& p, ErrorList* errors) {
  const Time last = p.retransmit_timeout * ((Time{1} << p.retransmit_tries) - 1);
  const Time rerouted = p.detect + p.plan + p.install;
  if (last > rerouted) return;
  errors->Add(
      "parameters.retransmit_tries",
      fmt::format(
          "the last retransmission comes at retransmit_timeout x (2^retransmit_tries - 1) = "
          "{} x (2^{} - 1) = {}, not later than detect + plan + install = {} + {} + {} = "
          "{}; raise retransmit_timeout or retransmit_tries",
          PrintTime(p.retransmit_timeout), p.retransmit_tries, PrintTime(last), PrintTime(p.detect),
          PrintTime(p.plan), PrintTime(p.install), PrintTime(rerouted)));
}

}  // namespace

P7ihParameters BuildParameters(const v1::P7ihParameters& message, int endpoints) {
  P7ihParameters p;
  ReadLink(message.ll(), &p.ll);
  if (endpoints > 0) {
    p.lr = p.d = p.ll;
    p.hfi.flit_time = p.ll.flit_time;
    // An endpoint gets packets whole.
    p.hfi.buffer_flits = std::max(p.ll.buffer_flits, static_cast<int>(kPacketFlitsMax));
  }
  ReadLink(message.lr(), &p.lr);
  ReadLink(message.d(), &p.d);
  ReadLink(message.hfi(), &p.hfi);
  ReadLink(message.ib(), &p.ib);
  ReadWindows(message.windows(), &p.windows);
  ApplyPreset(message.management_preset(), &p);
  if (endpoints > 0) p.w_flit_time = (p.hfi.flit_time + endpoints - 1) / endpoints;
  if (message.has_w_rate()) p.w_flit_time = FlitTime(message.w_rate());
  if (message.vc_policy() == v1::VC_POLICY_SINGLE) p.vc_policy = VcPolicy::kSingle;
#define PERCS_COPY(field) \
  if (message.has_##field()) p.field = message.field()
  PERCS_COPY(link_replay);
  PERCS_COPY(replay_limit);
  PERCS_COPY(service_buffer_flits);
  PERCS_COPY(service_wait);
  PERCS_COPY(congestion_period);
  PERCS_COPY(congestion_threshold);
  PERCS_COPY(isr_latency);
  PERCS_COPY(ib_crossbar);
  PERCS_COPY(credit_processing);
  PERCS_COPY(hfi_queue_packets);
  PERCS_COPY(windows_per_hfi);
  PERCS_COPY(send_overhead);
  PERCS_COPY(receive_overhead);
  PERCS_COPY(flow_window_packets);
  PERCS_COPY(ack_every_packets);
  PERCS_COPY(reply_queue_packets);
  PERCS_COPY(route_table_entries);
  PERCS_COPY(multicast_table_entries);
  PERCS_COPY(retransmit_timeout);
  PERCS_COPY(retransmit_tries);
  PERCS_COPY(cau_pass_through);
  PERCS_COPY(cau_port_time);
  PERCS_COPY(cau_queue_packets);
  PERCS_COPY(management_latency);
  PERCS_COPY(detect);
  PERCS_COPY(plan);
  PERCS_COPY(install);
  PERCS_COPY(stall_limit);
#undef PERCS_COPY
  return p;
}

void CheckParameters(const P7ihParameters& p, ErrorList* errors) {
  CheckLink("ll", p.ll, p, errors);
  CheckLink("lr", p.lr, p, errors);
  CheckLink("d", p.d, p, errors);
  CheckLink("ib", p.ib, p, errors);
  CheckWindows(p.windows, errors);
  if (p.ib_crossbar < p.ib.flit_time) {
    errors->Add("parameters.ib_crossbar",
                fmt::format("ib_crossbar = {} is less than the {} that a flit of 128 bytes takes "
                            "on a cable; write at "
                            "least that, or raise ib.rate",
                            PrintTime(p.ib_crossbar), PrintTime(p.ib.flit_time)));
  }
  CheckManagement(p, errors);
  CheckRetries(p, errors);
  if (p.ack_every_packets > p.flow_window_packets) {
    errors->Add(
        "parameters.ack_every_packets",
        fmt::format("ack_every_packets = {} is more than flow_window_packets = {}, so a sender "
                    "would wait for an acknowledgement that is not yet due; write at most {}",
                    p.ack_every_packets, p.flow_window_packets, p.flow_window_packets));
  }
}

}  // namespace percs
