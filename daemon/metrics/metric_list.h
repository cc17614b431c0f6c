// Every metric there is. docs/metrics.md says what each means and when it is healthy; a test holds
// the page to this list.
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
    "Virtual time in which a flit was ready, the link idle and no credit there"};
inline constexpr MetricInfo kLinkCrcErrors{"percs_link_crc_errors_total", kCounter,
                                           "Transmissions that the far end found corrupted"};
inline constexpr MetricInfo kLinkReplays{"percs_link_replays_total", kCounter,
                                         "Rounds of flits sent again by link-level replay"};
inline constexpr MetricInfo kLinkLanesLost{"percs_link_lanes_lost", kGauge,
                                           "Lanes that the link sends on and that do not work"};
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

// Of a hub: label hub.
inline constexpr MetricInfo kPacketsCreated{"percs_packets_created_total", kCounter,
                                            "Packets that entered the network here"};
inline constexpr MetricInfo kPacketsDelivered{"percs_packets_delivered_total", kCounter,
                                              "Packets that reached their destination here"};
inline constexpr MetricInfo kBytesDelivered{"percs_delivered_bytes_total", kCounter,
                                            "Payload bytes that reached their destination here"};
// hub, reason
inline constexpr MetricInfo kPacketsDropped{"percs_packets_dropped_total", kCounter,
                                            "Packets that were lost here, by reason"};
inline constexpr MetricInfo kPacketsResent{"percs_packets_resent_total", kCounter,
                                           "Packets sent again by the message layer"};
inline constexpr MetricInfo kMessagesDelivered{"percs_messages_delivered_total", kCounter,
                                               "Messages that arrived whole"};
inline constexpr MetricInfo kMessagesFailed{"percs_messages_failed_total", kCounter,
                                            "Messages that were given up by their sender"};
inline constexpr MetricInfo kPayloadErrors{"percs_payload_errors_total", kCounter,
                                           "Packets that arrived with other bytes than were sent"};
inline constexpr MetricInfo kAlerts{"percs_alerts_total", kCounter,
                                    "Alerts raised to network management"};
inline constexpr MetricInfo kTables{"percs_route_installs_total", kCounter,
                                    "Sets of route tables installed"};
inline constexpr MetricInfo kEpoch{"percs_route_epoch", kGauge, "Epoch of the tables in use"};
inline constexpr MetricInfo kPacketLatency{
    "percs_packet_latency_seconds", kHistogram,
    "Virtual time from creation to delivery of the packets that arrived here"};
inline constexpr MetricInfo kMessageLatency{
    "percs_message_latency_seconds", kHistogram,
    "Virtual time from sending to arrival of the messages that arrived here"};
// hub, event
inline constexpr MetricInfo kService{
    "percs_service_events_total", kCounter,
    "What the hub's service port asked its partners and what came of it"};
inline constexpr MetricInfo kServiceRoundTrip{
    "percs_service_round_trip_seconds_total", kCounter,
    "Virtual time from a question of the service port to its answer, of all answered ones"};
inline constexpr MetricInfo kServiceFlits{"percs_service_flits_total", kCounter,
                                          "Management packets, of one flit, sent over links"};
// hub, counter
inline constexpr MetricInfo kCau{"percs_cau_events_total", kCounter,
                                 "What the hub's CAU counts; the label has the counter's name"};
// hub, op, dtype
inline constexpr MetricInfo kCauOperations{
    "percs_cau_operations_total", kCounter,
    "Packets that the hub's CAU reduced, by operation and operand type"};
// hub, hfi, counter: of hubs whose windows are used
inline constexpr MetricInfo kHfi{
    "percs_hfi_events_total", kCounter,
    "What an HFI counts for the windows of programs; the label has the counter's name"};
// hub, result
inline constexpr MetricInfo kNmmu{
    "percs_nmmu_translations_total", kCounter,
    "Pages that the hub's NMMU translated, by whether its cache had them"};
// hub, port, counter: of hubs with devices that were used
inline constexpr MetricInfo kPcie{
    "percs_pcie_events_total", kCounter,
    "What a PCI Express port of a hub counts; the label has the counter's name"};
// hub, counter
inline constexpr MetricInfo kBlade{"percs_blade_events_total", kCounter,
                                   "What a Cell blade counts; the label has the counter's name"};

// Of a process.
inline constexpr MetricInfo kBuild{"percs_build_info", kGauge,
                                   "1; versions of software, model and wire"};
inline constexpr MetricInfo kVirtualTime{"percs_virtual_time_seconds_total", kCounter,
                                         "Virtual time of the run"};
inline constexpr MetricInfo kReconnects{"percs_link_stream_reconnects_total", kCounter,
                                        "Link streams to other daemons that were opened again"};
// Programs outside, at windows of the hubs of the process.
inline constexpr MetricInfo kPrograms{"percs_endpoint_programs", kGauge,
                                      "Programs that have a window or have asked for one"};
inline constexpr MetricInfo kProgramsOwing{"percs_endpoint_programs_owing", kGauge,
                                           "Exclusive programs that virtual time waits for"};
inline constexpr MetricInfo kProgramsAttached{"percs_endpoint_attached_total", kCounter,
                                              "Windows that programs got"};
inline constexpr MetricInfo kProgramsReattached{"percs_endpoint_reattached_total", kCounter,
                                                "Streams of programs that were opened again"};
inline constexpr MetricInfo kEndpointOperations{"percs_endpoint_operations_total", kCounter,
                                                "Operations of programs that took effect"};
inline constexpr MetricInfo kEndpointBytes{"percs_endpoint_operation_bytes_total", kCounter,
                                           "Bytes of data that came with operations of programs"};
inline constexpr MetricInfo kEndpointEvents{
    "percs_endpoint_events_total", kCounter,
    "Completions, packets and notifications that programs were told"};
// reason
inline constexpr MetricInfo kEndpointRefusals{
    "percs_endpoint_refusals_total", kCounter,
    "What programs asked for and was refused before it reached a hub"};
// reason
inline constexpr MetricInfo kRefused{
    "percs_refusals_total", kCounter,
    "Callers turned away because of who they are or how much they ask"};
// grpc_type, grpc_service, grpc_method
inline constexpr MetricInfo kGrpcStarted{"grpc_server_started_total", kCounter,
                                         "Calls that began, by method"};
// ... and grpc_code
inline constexpr MetricInfo kGrpcHandled{"grpc_server_handled_total", kCounter,
                                         "Calls that ended, by method and status"};
inline constexpr MetricInfo kGrpcReceived{"grpc_server_msg_received_total", kCounter,
                                          "Messages that callers sent, by method"};
inline constexpr MetricInfo kGrpcSent{"grpc_server_msg_sent_total", kCounter,
                                      "Messages sent to callers, by method"};
inline constexpr MetricInfo kGrpcSeconds{
    "grpc_server_handling_seconds", kHistogram,
    "Wall time from the beginning to the end of a call, by method"};
inline constexpr MetricInfo kCpu{"process_cpu_seconds_total", kCounter,
                                 "Processor time of the process, user and system"};
inline constexpr MetricInfo kResident{"process_resident_memory_bytes", kGauge,
                                      "Resident memory of the process"};
inline constexpr MetricInfo kThreads{"process_threads", kGauge, "Threads of the process"};
inline constexpr MetricInfo kOpenFiles{"process_open_fds", kGauge, "Open file descriptors"};
inline constexpr MetricInfo kStartTime{"process_start_time_seconds", kGauge,
                                       "Start of the process since the epoch of Unix"};

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
    "percs_pace_requested", kGauge, "Virtual seconds per second of wall time asked for; 0: none"};
inline constexpr MetricInfo kBehind{"percs_behind_seconds", kGauge,
                                    "Wall time by which virtual time is behind its pace"};
// state
inline constexpr MetricInfo kClockState{"percs_clock_state", kGauge,
                                        "1 for the state the fabric is in, 0 for every other one"};
inline constexpr MetricInfo kDaemons{"percs_daemons", kGauge, "Daemons with a session"};
inline constexpr MetricInfo kDaemonsWanted{"percs_daemons_expected", kGauge,
                                           "Daemons that the fabric has places for"};
// fault, kind, target
inline constexpr MetricInfo kFaultInfo{
    "percs_fault_info", kGauge, "Faults that are not over: 1 while in force, 0 while waiting"};
inline constexpr MetricInfo kRuns{"percs_runs_total", kCounter, "Scenarios applied"};

}  // namespace percs::metric
