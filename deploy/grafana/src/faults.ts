// What breaks, who notices, what network management does about it, and what it costs.
import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { RowBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { board, chart, mark, number, table } from "./panels.js";

const answers = 'sum(percs_service_events_total{event="answer"})';

export function faults(): DashboardBuilder {
  return board("faults", "faults and reroutes", "Links down, alerts, route epochs, losses and repairs.")
    .annotation(mark("Link down", "red", 'percs_link_up{port!=""} == 0', "{{hub}}:{{port}} is down"))
    .annotation(
      mark("Fault", "orange", 'percs_fault_info{fault!="_overflow"} == 1', "{{fault}}: {{kind}} of {{target}}"),
    )
    .annotation(mark("New routes", "blue", "changes(percs_route_epoch[2s]) > 0", "{{hub}} has new route tables"))
    .withRow(new RowBuilder("Now"))
    .withPanel(
      number(
        { title: "Link ends down", description: "A link has two ends, each of which counts.", unit: "none", width: 6 },
        { expr: 'sum(1 - percs_link_up{port!=""})', legend: "down" },
        1,
      ),
    )
    .withPanel(
      number(
        { title: "Lanes lost", description: "Over all links and both directions.", unit: "none", width: 6 },
        { expr: "sum(percs_link_lanes_lost)", legend: "lost" },
        1,
      ),
    )
    .withPanel(
      number(
        { title: "Route epoch", description: "Of the hub that has the newest tables.", unit: "none", width: 6 },
        { expr: "max(percs_route_epoch)", legend: "epoch" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Epochs behind", description: "Between the newest and the oldest tables in use.", unit: "none", width: 6 },
        { expr: "max(percs_route_epoch) - min(percs_route_epoch)", legend: "behind" },
        1,
      ),
    )
    .withPanel(
      table(
        { title: "Faults", description: "That are not over: 1 while in force. The series _overflow counts those without one of their own.", unit: "none", width: 12 },
        { expr: "percs_fault_info", legend: "{{fault}}" },
      ),
    )
    .withPanel(
      table(
        { title: "Alerts of Prometheus", description: "What the shipped rules say now.", unit: "none", width: 12 },
        { expr: 'ALERTS{alertname=~"Percs.*"}', legend: "{{alertname}}" },
      ),
    )
    .withRow(new RowBuilder("Network management"))
    .withPanel(
      chart(
        { title: "Links lost", description: "Times that a link end of the hub went down in this run.", unit: "none", width: 12 },
        { expr: "sum by (hub) (percs_link_down_total)", legend: "{{hub}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Alerts raised", description: "To network management, in this run.", unit: "none", width: 12 },
        { expr: "sum by (hub) (percs_alerts_total)", legend: "{{hub}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Route tables installed", description: "In this run.", unit: "none", width: 12 },
        { expr: "sum by (hub) (percs_route_installs_total)", legend: "{{hub}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Service ports", description: "Questions to partners and what came of them, in this run.", unit: "none", width: 12 },
        { expr: "sum by (event) (percs_service_events_total)", legend: "{{event}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Round trip of service ports", description: "Virtual time from question to answer, mean of this run.", unit: "s", width: 12 },
        {
          expr: `sum(percs_service_round_trip_seconds_total) / (${answers} > 0) or ${answers} * 0`,
          legend: "round trip",
        },
      ),
    )
    .withRow(new RowBuilder("What it costs"))
    .withPanel(
      chart(
        { title: "Packets lost", description: "By reason, in this run.", unit: "none", width: 12 },
        { expr: "sum by (reason) (percs_packets_dropped_total)", legend: "{{reason}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Packets sent again, messages given up", description: "By the message layer, in this run.", unit: "none", width: 12 },
        { expr: "sum(percs_packets_resent_total)", legend: "sent again" },
        { expr: "sum(percs_messages_failed_total)", legend: "given up" },
      ),
    )
    .withPanel(
      chart(
        { title: "Corrupted transmissions", description: "By class of link, in this run.", unit: "none", width: 12 },
        { expr: "sum by (class) (percs_link_crc_errors_total)", legend: "{{class}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Replays", description: "By class of link, in this run.", unit: "none", width: 12 },
        { expr: "sum by (class) (percs_link_replays_total)", legend: "{{class}}" },
      ),
    );
}
