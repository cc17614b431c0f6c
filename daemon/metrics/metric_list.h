// Every metric beside those of counters (emulator/metrics/node_stats.h). docs/metrics.md says what
// each means and when it is healthy; a test holds the page to this list.
#pragma once

#include <array>

#include "daemon/metrics/families.h"

namespace percs::metric {

inline constexpr auto kCounter = prometheus::MetricType::Counter;
inline constexpr auto kGauge = prometheus::MetricType::Gauge;
inline constexpr auto kHistogram = prometheus::MetricType::Histogram;

// Of a port: labels hub, port, class.
inline constexpr MetricInfo kLinkBytes{"percs_link_transmitted_bytes_total", kCounter,
                                       "Payload bytes sent over the link"};
inline constexpr MetricInfo kLinkPackets{"percs_link_transmitted_packets_total", kCounter,
                                         "Packets sent over the link"};
inline constexpr MetricInfo kLinkFlits{"percs_link_transmitted_flits_total", kCounter,
                                       "Flits of 128 bytes sent over the link"};
inline constexpr MetricInfo kLinkStall{
    "percs_link_credit_stall_seconds_total", kCounter,
    "Virtual time in which a flit was ready and the link idle, but no credit was available"};
inline constexpr MetricInfo kLinkCrcErrors{"percs_link_crc_errors_total", kCounter,
                                           "Transmissions that the receiving end found corrupted"};
inline constexpr MetricInfo kLinkReplays{"percs_link_replays_total", kCounter,
                                         "Rounds of link-level replay"};
inline constexpr MetricInfo kLinkLanesLost{"percs_link_lanes_lost", kGauge,
                                           "Sending lanes of the link that do not work"};
inline constexpr MetricInfo kLinkUp{"percs_link_up", kGauge, "1 while the link is up"};
inline constexpr MetricInfo kLinkDown{"percs_link_down_total", kCounter,
                                      "Times that this end of the link went down"};
// hub, port, class, vc: of hubs whose detail is vc
inline constexpr MetricInfo kVcBytes{"percs_vc_transmitted_bytes_total", kCounter,
                                     "Payload bytes sent over the link in the virtual channel"};
inline constexpr MetricInfo kVcPackets{"percs_vc_transmitted_packets_total", kCounter,
                                       "Packets sent over the link in the virtual channel"};
inline constexpr MetricInfo kVcFlits{
    "percs_vc_transmitted_flits_total", kCounter,
    "Flits of 128 bytes sent over the link in the virtual channel"};
// hub, port, peer, peer_port
inline constexpr MetricInfo kLinkInfo{"percs_link_info", kGauge, "1; says where the link leads"};

// Of a hub: label hub. Its counters have theirs from emulator/metrics/node_stats.h.
inline constexpr MetricInfo kEpoch{"percs_route_epoch", kGauge, "Epoch of the tables in use"};
inline constexpr MetricInfo kPacketLatency{
    "percs_packet_latency_seconds", kHistogram,
    "Virtual time from creation to delivery of the packets that arrived here"};
inline constexpr MetricInfo kMessageLatency{
    "percs_message_latency_seconds", kHistogram,
    "Virtual time from sending to arrival of the messages that arrived here"};
inline constexpr MetricInfo kServiceFlits{"percs_service_flits_total", kCounter,
                                          "Management packets, of one flit, sent over links"};
// Of a process.
inline constexpr MetricInfo kBuild{"percs_build_info", kGauge,
                                   "1; versions of software, model and wire"};
inline constexpr MetricInfo kVirtualTime{"percs_virtual_time_seconds_total", kCounter,
                                         "Virtual time of the run"};
inline constexpr MetricInfo kReconnects{"percs_link_stream_reconnects_total", kCounter,
                                        "Link streams to other daemons that were reopened"};
// Programs outside, at windows of the hubs of the process.
inline constexpr MetricInfo kPrograms{"percs_endpoint_programs", kGauge,
                                      "Programs that have or requested a window"};
inline constexpr MetricInfo kProgramsOwing{"percs_endpoint_programs_owing", kGauge,
                                           "Exclusive programs that virtual time waits for"};
inline constexpr MetricInfo kProgramsAttached{"percs_endpoint_attached_total", kCounter,
                                              "Windows given to programs"};
inline constexpr MetricInfo kProgramsReattached{"percs_endpoint_reattached_total", kCounter,
                                                "Streams of programs that were reopened"};
inline constexpr MetricInfo kEndpointOperations{"percs_endpoint_operations_total", kCounter,
                                                "Operations of programs that took effect"};
inline constexpr MetricInfo kEndpointBytes{"percs_endpoint_operation_bytes_total", kCounter,
                                           "Bytes of data in operations of programs"};
inline constexpr MetricInfo kEndpointEvents{
    "percs_endpoint_events_total", kCounter,
    "Completions, packets and notifications sent to programs"};
// reason
inline constexpr MetricInfo kEndpointRefusals{
    "percs_endpoint_refusals_total", kCounter,
    "Requests of programs refused before they reached a hub"};
// reason
inline constexpr MetricInfo kRefused{
    "percs_refusals_total", kCounter,
    "Calls refused because of the caller's role or its request rate"};
// grpc_type, grpc_service, grpc_method
inline constexpr MetricInfo kGrpcStarted{"grpc_server_started_total", kCounter,
                                         "Calls started, by method"};
// ... and grpc_code
inline constexpr MetricInfo kGrpcHandled{"grpc_server_handled_total", kCounter,
                                         "Calls completed, by method and status"};
inline constexpr MetricInfo kGrpcReceived{"grpc_server_msg_received_total", kCounter,
                                          "Messages received from callers, by method"};
inline constexpr MetricInfo kGrpcSent{"grpc_server_msg_sent_total", kCounter,
                                      "Messages sent to callers, by method"};
inline constexpr MetricInfo kGrpcSeconds{"grpc_server_handling_seconds", kHistogram,
                                         "Wall time from start to end of a call, by method"};
inline constexpr MetricInfo kCpu{"process_cpu_seconds_total", kCounter,
                                 "Processor time of the process, user and system"};
inline constexpr MetricInfo kResident{"process_resident_memory_bytes", kGauge,
                                      "Resident memory of the process"};
inline constexpr MetricInfo kThreads{"process_threads", kGauge, "Threads of the process"};
inline constexpr MetricInfo kOpenFiles{"process_open_fds", kGauge, "Open file descriptors"};
inline constexpr MetricInfo kStartTime{"process_start_time_seconds", kGauge,
                                       "Start time of the process since the Unix epoch"};

// Of the controller.
inline constexpr MetricInfo kWindows{"percs_windows_total", kCounter,
                                     "Windows of virtual time opened in the run"};
inline constexpr MetricInfo kWindowRate{
    "percs_windows_per_second", kGauge,
    "Windows per second of wall time, over about the last second"};
inline constexpr MetricInfo kPaceReached{
    "percs_pace_reached", kGauge,
    "Virtual seconds per second of wall time, over about the last second"};
inline constexpr MetricInfo kPaceRequested{
    "percs_pace_requested", kGauge,
    "Requested virtual seconds per second of wall time; 0: no limit"};
inline constexpr MetricInfo kBehind{"percs_behind_seconds", kGauge,
                                    "Wall time by which virtual time is behind its pace"};
// state
inline constexpr MetricInfo kClockState{"percs_clock_state", kGauge,
                                        "1 for the state the fabric is in, 0 for every other one"};
inline constexpr MetricInfo kDaemons{"percs_daemons", kGauge, "Daemons with a session"};
inline constexpr MetricInfo kDaemonsWanted{"percs_daemons_expected", kGauge,
                                           "Places for daemons in the fabric"};
// fault, kind, target
inline constexpr MetricInfo kFaultInfo{
    "percs_fault_info", kGauge, "Faults that have not ended: 1 while in force, 0 while waiting"};
inline constexpr MetricInfo kRuns{"percs_runs_total", kCounter, "Scenarios applied"};

}  // namespace percs::metric
