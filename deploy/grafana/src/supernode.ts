// The whole machine at a glance: is it healthy, what does it carry, between whom, how fast.
import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { RowBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { board, chart, mark, matrix, number, word } from "./panels.js";

function latency(quantile: number): string {
  return (
    `histogram_quantile(${quantile}, ` +
    "sum by (le) (rate(percs_packet_latency_seconds_bucket[$__rate_interval])))"
  );
}

export function supernode(): DashboardBuilder {
  return board("supernode", "supernode", "Health, traffic by class of link, who sends to whom. Rates are per virtual second.")
    .annotation(mark("Link down", "red", 'percs_link_up{port!=""} == 0', "{{hub}}:{{port}} is down"))
    .withRow(new RowBuilder("Health"))
    .withPanel(
      word(
        { title: "Fabric", description: "State of the fabric.", unit: "none", width: 4 },
        { expr: "percs_clock_state == 1", legend: "{{state}}" },
      ),
    )
    .withPanel(
      number(
        { title: "Link ends down", description: "A link has two ends, each of which counts.", unit: "none", width: 4 },
        { expr: 'sum(1 - percs_link_up{port!=""})', legend: "down" },
        1,
      ),
    )
    .withPanel(
      number(
        { title: "Daemons missing", description: "Places without a daemon.", unit: "none", width: 4 },
        { expr: "percs_daemons_expected - percs_daemons", legend: "missing" },
        1,
      ),
    )
    .withPanel(
      number(
        { title: "Packets lost", description: "Dropped for whatever reason, in this run.", unit: "none", width: 4 },
        { expr: "sum(percs_packets_dropped_total)", legend: "lost" },
        1,
      ),
    )
    .withPanel(
      number(
        { title: "Messages given up", description: "After all retransmissions, in this run.", unit: "none", width: 4 },
        { expr: "sum(percs_messages_failed_total)", legend: "given up" },
        1,
      ),
    )
    .withPanel(
      number(
        { title: "Wrong bytes", description: "Packets that arrived with other bytes than were sent: a bug.", unit: "none", width: 4 },
        { expr: "sum(percs_payload_errors_total)", legend: "wrong" },
        1,
      ),
    )
    .withRow(new RowBuilder("Traffic"))
    .withPanel(
      chart(
        { title: "Sent over links", description: "Payload bytes per virtual second over all links of a class.", unit: "Bps", width: 12 },
        { expr: "class:percs_link_transmitted_bytes:virtual_rate15s", legend: "{{class}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Delivered", description: "Payload bytes per virtual second that reached their destination at a hub.", unit: "Bps", width: 12 },
        { expr: "hub:percs_delivered_bytes:virtual_rate15s", legend: "{{hub}}" },
      ),
    )
    .withPanel(
      matrix(
        { title: "Link matrix", description: "Payload bytes per virtual second from the hub of a row to the hub of a column, over all links between them.", unit: "Bps", width: 24 },
        {
          expr:
            "sum by (hub, peer) (hub_port:percs_link_transmitted_bytes:virtual_rate15s " +
            "* on (hub, port) group_left (peer) percs_link_info)",
          legend: "{{hub}} to {{peer}}",
        },
        "hub",
        "peer",
      ),
    )
    .withPanel(
      chart(
        { title: "Packet latency", description: "Virtual time from creation to delivery.", unit: "s", width: 12 },
        { expr: latency(0.5), legend: "half of the packets" },
        { expr: latency(0.99), legend: "99 of 100 packets" },
      ),
    )
    .withPanel(
      chart(
        { title: "Waiting for credits", description: "Share of virtual time in which the worst link of a hub had a flit ready and no credit.", unit: "percentunit", width: 12 },
        { expr: "hub:percs_link_credit_stall:virtual_share15s", legend: "{{hub}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Packets created and delivered", description: "In this run, by all hubs; the difference is on its way or lost.", unit: "none", width: 12 },
        { expr: "sum(percs_packets_created_total)", legend: "created" },
        { expr: "sum(percs_packets_delivered_total)", legend: "delivered" },
      ),
    )
    .withPanel(
      chart(
        { title: "Messages delivered", description: "In this run, at each hub.", unit: "none", width: 12 },
        { expr: "sum by (hub) (percs_messages_delivered_total)", legend: "{{hub}}" },
      ),
    );
}
