// The emulator itself: how fast virtual time goes, and what that costs the host. Times here are wall times
// unless they say virtual.
import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { board, chart, mark, number, table, timeline } from "./panels.js";

export function emulation(): DashboardBuilder {
  return board("emulation", "emulation", "Windows, pace and slowdown of virtual time; processes of the fabric.")
    .annotation(mark("Run", "green", "changes(percs_runs_total[2s]) > 0", "a scenario was applied"))
    .withPanel(
      number(
        { title: "Virtual time", description: "Of this run.", unit: "s", width: 6 },
        { expr: 'max(percs_virtual_time_seconds_total{role="controller"})', legend: "virtual" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Windows", description: "Opened in this run.", unit: "none", width: 6 },
        { expr: "percs_windows_total", legend: "windows" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Runs", description: "Scenarios applied since the controller started.", unit: "none", width: 6 },
        { expr: "percs_runs_total", legend: "runs" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Behind", description: "Wall time by which virtual time is behind its pace.", unit: "s", width: 6 },
        { expr: "percs_behind_seconds", legend: "behind" },
        1,
      ),
    )
    .withPanel(
      chart(
        { title: "Windows per second", description: "Of wall time.", unit: "cps", width: 12 },
        { expr: "percs_windows_per_second", legend: "windows" },
      ),
    )
    .withPanel(
      chart(
        { title: "Slowdown", description: "Wall seconds per virtual second; none while virtual time stands still.", unit: "none", width: 12 },
        { expr: "1 / (percs_pace_reached > 0)", legend: "reached" },
        { expr: "1 / (percs_pace_requested > 0)", legend: "requested" },
      ),
    )
    .withPanel(
      timeline(
        { title: "State", description: "Of the fabric: 1 for the one it is in.", unit: "none", width: 12 },
        { expr: "percs_clock_state", legend: "{{state}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Cost of a window", description: "Processor time of all processes per window of virtual time: events, batches, grants.", unit: "s", width: 12 },
        {
          expr: "sum(rate(process_cpu_seconds_total[$__rate_interval])) / on () (percs_windows_per_second > 0)",
          legend: "processor time",
        },
      ),
    )
    .withPanel(
      chart(
        { title: "Processors", description: "Processor seconds per second, by process.", unit: "none", width: 12 },
        { expr: "rate(process_cpu_seconds_total[$__rate_interval])", legend: "{{role}} {{instance}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Memory", description: "Resident, by process.", unit: "bytes", width: 12 },
        { expr: "process_resident_memory_bytes", legend: "{{role}} {{instance}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Threads and open files", description: "Of all processes.", unit: "none", width: 12 },
        { expr: "sum(process_threads)", legend: "threads" },
        { expr: "sum(process_open_fds)", legend: "open files" },
      ),
    )
    .withPanel(
      chart(
        { title: "Streams opened again", description: "Between daemons; costs wall time, never a result.", unit: "none", width: 12 },
        { expr: "sum(percs_link_stream_reconnects_total)", legend: "opened again" },
      ),
    )
    .withPanel(
      chart(
        { title: "Messages of calls", description: "That processes receive from callers and each other, by method.", unit: "cps", width: 12 },
        {
          expr: "sum by (grpc_method) (rate(grpc_server_msg_received_total[$__rate_interval])) > 0",
          legend: "{{grpc_method}}",
        },
      ),
    )
    .withPanel(
      chart(
        { title: "Time of calls", description: "99 of 100 single calls take at most this long.", unit: "s", width: 12 },
        {
          expr: 'histogram_quantile(0.99, sum by (le) (rate(grpc_server_handling_seconds_bucket{grpc_type="unary"}[$__rate_interval])))',
          legend: "p99",
        },
      ),
    )
    .withPanel(
      chart(
        { title: "Ends of calls", description: "By method and status; streams when they end.", unit: "none", width: 12 },
        {
          expr: "sum by (grpc_method, grpc_code) (increase(grpc_server_handled_total[$__rate_interval])) > 0",
          legend: "{{grpc_method}} {{grpc_code}}",
        },
      ),
    )
    .withPanel(
      chart(
        { title: "Callers turned away", description: "Since the processes began, by reason.", unit: "none", width: 12 },
        { expr: "sum by (reason) (percs_refusals_total)", legend: "{{reason}}" },
      ),
    )
    .withPanel(
      table(
        { title: "Versions", description: "The same everywhere, or a daemon is refused.", unit: "none", width: 24 },
        { expr: "count by (version, model, wire) (percs_build_info)", legend: "{{version}} {{model}} {{wire}}" },
      ),
    );
}
