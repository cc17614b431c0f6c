// The reference router: a whole small network, flit by flit, with one ordered event map. It is slow
// and meant to be obviously right. It is written from docs/semantics.md (part B), never from the
// engine, and shares with it only types, parameters, the topology and the installed tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/metrics/node_stats.h"
#include "emulator/routing/route_tables.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/scenario/scenario.h"
#include "emulator/topology/topology.h"

namespace percs::reference {

using TableSet = std::vector<std::shared_ptr<const HubTables>>;  // by node

// Tables that every hub uses from `at` on; the first set is for time 0.
struct TableSwitch {
  Time at = 0;
  TableSet tables;
};

struct ReferenceInput {
  const Topology* topology = nullptr;
  P7ihParameters parameters;
  std::vector<TableSwitch> tables;
  std::vector<ScriptedPacket> packets;  // any order; equal times of a source keep this order
  std::vector<FaultSpec> faults;  // that are set (rule 23), each of one direction but link_down
  std::vector<Cable> cables = {};
  ServiceTraffic service = {};
  std::uint64_t seed = 0;
  RoutingSettings routing = {};
};

struct ReferenceDelivery {
  Time time = 0;
  NodeId source = 0;
  std::uint64_t sequence = 0;
  int flits = 0;
  std::uint64_t path = 0;  // Mix64(path ^ ((node << 8 | output) + 1)) at every hub
  bool operator==(const ReferenceDelivery&) const = default;
};

// One commitment of an output.
struct ReferenceGrant {
  Time time = 0;
  PortId output = 0, input = 0;
  VcId output_vc = 0, input_vc = 0;
  NodeId source = 0;
  std::uint64_t sequence = 0;
  int first_flit = 0, flits = 0;
  bool tail = false, continued = false;
  bool multicast = false;
};

struct ReferenceNode {
  std::vector<ReferenceDelivery> deliveries;
  std::vector<ReferenceGrant> grants;
  NodeStats stats;  // what docs/semantics.md part C names, and the latency histogram
};

// How often each situation occurred: a campaign that never met one proves nothing about it.
struct Coverage {
  std::uint64_t credit_stalls = 0;       // stalls of an output that ended
  std::uint64_t slow_to_fast_waits = 0;  // begun later than the head's arrival to avoid underrun
  std::uint64_t fast_to_slow = 0;        // begun from a faster link onto a slower one
  std::uint64_t buffer_full_starts = 0;  // begun because the input buffer was full: depth < packet
  std::uint64_t vc_interleaves = 0;  // a link granted while a packet of another VC is open on it
  std::uint64_t runs_split_by_credit = 0;
  std::uint64_t runs_split_by_presence = 0;
  std::uint64_t continuations = 0;        // a packet kept its link after a split run
  std::uint64_t lost_after_split = 0;     // ... or lost it to another one
  std::uint64_t future_credits_used = 0;  // commitments that counted on announced credits
  std::uint64_t down_mid_packet = 0;      // receiver had an open packet
  std::uint64_t down_mid_commitment = 0;  // sender had a commitment running
  std::uint64_t poison_tails_added = 0, poison_tails_in_place = 0;
  std::uint64_t poison_overtaken = 0;  // the tail had already been announced onwards
  std::uint64_t down_again_before_poison =
      0;  // a second failure before the poison tail has arrived
  std::uint64_t begun_packets_drained = 0, waiting_packets_drained = 0;
  std::uint64_t credits_of_old_generation = 0, credits_after_up = 0;
  std::uint64_t slots_promised_twice = 0;  // up: slots of leaving flits already promised
  std::uint64_t grants_after_up = 0;
  std::uint64_t injection_waits_for_w = 0, ejection_waits_for_w = 0, isr_queue_full = 0;
  std::uint64_t contended_grants = 0;  // more than one input could be granted
  std::uint64_t contended_vcs = 0;     // of more than one output VC
  std::uint64_t route_choices = 0;     // round robin over parallel ports
  std::uint64_t striped = 0, sw_indirect = 0, indirect_round_robin = 0, indirect_random = 0;
  std::uint64_t striped_choices = 0, middle_l_hops = 0;  // D, L and D through a middle supernode
  std::uint64_t middles_closed = 0;                      // a candidate that was not open
  std::uint64_t indirect_went_direct = 0;                // no middle was open
  std::uint64_t adaptive_direct = 0, adaptive_indirect = 0, diverted = 0;
  std::uint64_t congestion_reports = 0, congestion_reports_lost = 0;  // with their link
  std::uint64_t pb_direct = 0, pb_indirect = 0;                       // a link was congested
  std::uint64_t multicasts = 0, branches = 0;                         // replicated
  std::uint64_t branches_dropped = 0;                                 // at once
  std::uint64_t multicasts_truncated = 0;
  std::uint64_t multicasts_overtaking = 0;  // whole before, or with, one ahead in the same buffer
  std::uint64_t replays = 0, replays_in_a_row = 0, replays_exhausted = 0;
  std::uint64_t runs_split_by_error = 0;
  std::uint64_t given_up_too_late = 0;  // the link had gone down before
  std::uint64_t retrained = 0;          // given up, and up again when its errors ended
  std::uint64_t rates_reduced = 0, links_without_lanes = 0;
  std::uint64_t fronts_moved_by_rate = 0, latencies_added = 0,
                held_behind_latency = 0;  // they request earlier or later than before it changed
  std::uint64_t credits_of_changed_rate =
      0;  // up: of a commitment granted at another rate than the present one
  std::uint64_t corrupted_packets = 0;  // with replay switched off
  std::uint64_t truncated = 0, no_route = 0, no_vc_position = 0;
  std::uint64_t detours = 0;                            // hops of a graph
  std::uint64_t service_grants = 0, service_waits = 0;  // a data commitment was in the way
  std::uint64_t service_made_way = 0;                   // for data: it had gone last
  std::uint64_t service_lacked_credit = 0, service_no_slot = 0, service_timeouts = 0,
                service_link_down = 0;
  std::uint64_t service_answers = 0, service_repeats = 0, service_unanswered = 0;

  void Add(const Coverage& other);
  // Names of the counters that are zero.
  std::vector<std::string> Missing() const;
  std::string ToString() const;
};

struct ReferenceResult {
  std::vector<ReferenceNode> nodes;
  Coverage coverage;
  std::uint64_t resident_packets = 0;  // without an event left: a deadlock
  std::uint64_t credits_wrong = 0;     // VCs of live links without exactly all their credits
  std::uint64_t events = 0;
  Time end = 0;  // of the last event
};

ReferenceResult RunReference(const ReferenceInput& input);

}  // namespace percs::reference
