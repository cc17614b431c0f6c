// One hub: its ports, what waits there, what is lost.
import type { DashboardBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { RowBuilder } from "@grafana/grafana-foundation-sdk/dashboard";
import { board, chart, hubVariable, mark, number, table, timeline } from "./panels.js";

const here = '{hub="$hub"}';

function latency(quantile: number): string {
  return (
    `histogram_quantile(${quantile}, ` +
    `sum by (le) (rate(percs_packet_latency_seconds_bucket${here}[$__rate_interval])))`
  );
}

export function hub(): DashboardBuilder {
  return board("hub", "one hub", "Ports, virtual channels, credits, replays and losses of one hub. Rates are per virtual second.")
    .withVariable(hubVariable())
    .annotation(mark("Link down", "red", 'percs_link_up{hub="$hub", port!=""} == 0', "{{port}} is down"))
    .withRow(new RowBuilder("Packets"))
    .withPanel(
      number(
        { title: "Created here", description: "Packets that entered the network here in this run.", unit: "none", width: 6 },
        { expr: `percs_packets_created_total${here}`, legend: "created" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Delivered here", description: "Packets that reached their destination here in this run.", unit: "none", width: 6 },
        { expr: `percs_packets_delivered_total${here}`, legend: "delivered" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Bytes delivered here", description: "Their payload.", unit: "bytes", width: 6 },
        { expr: `percs_delivered_bytes_total${here}`, legend: "delivered" },
        null,
      ),
    )
    .withPanel(
      number(
        { title: "Sent again", description: "Packets that the message layer sent again in this run.", unit: "none", width: 6 },
        { expr: `percs_packets_resent_total${here}`, legend: "sent again" },
        1,
      ),
    )
    .withRow(new RowBuilder("Ports"))
    .withPanel(
      chart(
        { title: "Sent by port", description: "Payload bytes per virtual second.", unit: "Bps", width: 12 },
        { expr: `hub_port:percs_link_transmitted_bytes:virtual_rate15s${here}`, legend: "{{port}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Waiting for credits by port", description: "Share of virtual time with a flit ready, the link idle and no credit.", unit: "percentunit", width: 12 },
        { expr: `hub_port:percs_link_credit_stall:virtual_share15s${here}`, legend: "{{port}}" },
      ),
    )
    .withPanel(
      chart(
        {
          title: "Sent by virtual channel",
          description:
            "Payload bytes per virtual second, by class of link. Of hubs observed so: " +
            "`percsctl observe $hub --metrics-detail vc`; ports one by one: `percsctl counters $hub --vc`.",
          unit: "Bps",
          width: 12,
        },
        {
          expr: `sum by (class, vc) (hub_port_vc:percs_vc_transmitted_bytes:virtual_rate15s${here})`,
          legend: "{{class}} {{vc}}",
        },
      ),
    )
    .withPanel(
      chart(
        {
          title: "Packets by virtual channel",
          description: "Sent in this run, of hubs that are observed by virtual channel.",
          unit: "none",
          width: 12,
        },
        { expr: `sum by (class, vc) (percs_vc_transmitted_packets_total${here})`, legend: "{{class}} {{vc}}" },
      ),
    )
    .withPanel(
      timeline(
        { title: "Links up", description: "1 while the link of a port is up.", unit: "none", width: 12 },
        { expr: `percs_link_up{hub="$hub", port!=""}`, legend: "{{port}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Links lost", description: "Times that the link of a port went down in this run.", unit: "none", width: 12 },
        { expr: `percs_link_down_total${here}`, legend: "{{port}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Corrupted transmissions and replays", description: "By port, in this run.", unit: "none", width: 12 },
        { expr: `percs_link_crc_errors_total${here}`, legend: "{{port}} corrupted" },
        { expr: `percs_link_replays_total${here}`, legend: "{{port}} replays" },
      ),
    )
    .withPanel(
      chart(
        { title: "Flits by class of link", description: "Of 128 bytes, sent in this run.", unit: "none", width: 12 },
        { expr: `sum by (class) (percs_link_transmitted_flits_total${here})`, legend: "{{class}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Packets by class of link", description: "Sent in this run.", unit: "none", width: 12 },
        { expr: `sum by (class) (percs_link_transmitted_packets_total${here})`, legend: "{{class}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Lanes lost", description: "Lanes that a port sends on and that do not work.", unit: "none", width: 12 },
        { expr: `percs_link_lanes_lost${here}`, legend: "{{port}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Packets lost", description: "By reason, in this run.", unit: "none", width: 12 },
        { expr: `sum by (reason) (percs_packets_dropped_total${here})`, legend: "{{reason}}" },
      ),
    )
    .withPanel(
      chart(
        { title: "Packet latency", description: "Virtual time from creation to delivery here.", unit: "s", width: 12 },
        { expr: latency(0.5), legend: "half of the packets" },
        { expr: latency(0.99), legend: "99 of 100 packets" },
      ),
    )
    .withPanel(
      table(
        { title: "Wiring", description: "Where each port leads.", unit: "none", width: 12 },
        { expr: `percs_link_info${here}`, legend: "{{port}} to {{peer}}:{{peer_port}}" },
      ),
    );
}
