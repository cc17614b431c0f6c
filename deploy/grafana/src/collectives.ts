// The Collective Acceleration Units: what they combine and copy, and whether it arrives.
import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { board, chart, number } from "./panels.js";

function events(counter: string): string {
  return `percs_cau_events_total{counter="${counter}"}`;
}

function latency(quantile: number): string {
  return (
    `histogram_quantile(${quantile}, ` +
    "sum by (le) (rate(percs_message_latency_seconds_bucket[$__rate_interval])))"
  );
}

export function collectives(): DashboardBuilder {
  return board("collectives", "collectives", "Collective Acceleration Units and messages. Rates are per virtual second.")
    .withPanel(
      number(
        { title: "Reductions", description: "Of all hubs, in this run.", unit: "none", width: 6 },
        { expr: `sum(${events("reductions")})`, legend: "reductions" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Multicasts", description: "Of all hubs, in this run.", unit: "none", width: 6 },
        { expr: `sum(${events("multicasts")})`, legend: "multicasts" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Operations failed", description: "In this run; trees that broke are repaired.", unit: "none", width: 6 },
        { expr: `sum(${events("operations_failed")})`, legend: "failed" },
        1,
      ),
    )
    .withPanel(
      number(
        { title: "Wrong results", description: "Compared with a serial reference: a bug.", unit: "none", width: 6 },
        { expr: `sum(${events("results_wrong")})`, legend: "wrong" },
        1,
      ),
    )
    .withPanel(
      chart(
        { title: "Events", description: "Of all CAUs per virtual second.", unit: "cps", width: 12 },
        { expr: "counter:percs_cau_events:virtual_rate15s", legend: "{{counter}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Reductions by hub", description: "In this run.", unit: "none", width: 12 },
        { expr: `sum by (hub) (${events("reductions")})`, legend: "{{hub}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Packets of CAUs", description: "Sent, sent again, reports and probes, in this run.", unit: "none", width: 12 },
        { expr: `sum(${events("packets_sent")})`, legend: "sent" },
        { expr: `sum(${events("packets_resent")})`, legend: "sent again" },
        { expr: `sum(${events("reports_sent")})`, legend: "reports" },
        { expr: `sum(${events("probes_sent")})`, legend: "probes" },
      ),
    )
    .withPanel(
      chart(
        { title: "Results", description: "That matched a serial reference, and trees that failed, in this run.", unit: "none", width: 12 },
        { expr: `sum(${events("results_right")})`, legend: "right" },
        { expr: `sum(${events("trees_failed")})`, legend: "trees failed" },
      ),
    )
    .withPanel(
      chart(
        { title: "Message latency", description: "Virtual time from sending to arrival of messages.", unit: "s", width: 24 },
        { expr: latency(0.5), legend: "half of the messages" },
        { expr: latency(0.99), legend: "99 of 100 messages" },
      ),
    );
}
