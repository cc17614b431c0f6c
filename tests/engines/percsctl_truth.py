"""What percsctl knows of a fabric, under the names that Prometheus has for it.

`snapshot` asks percsctl; `metrics` gives metric -> [(labels, value)] of one snapshot; `rates` the
recording rules from two of them.
"""

PS = 1e-12
NS = 1e-9
REFUSALS = ("handshake", "no_certificate", "certificate", "role", "method", "rate", "streams")
SERVICE_EVENTS = {"requests": "request", "answers": "answer", "unanswered": "unanswered",
                  "wrong_partner": "wrong_partner"}


VCS = {"LL": 3, "LR": 3, "D": 2}  # virtual channels of the links of a class


def snapshot(ask, hubs, observed=()):
    """`ask` runs percsctl with arguments and gives the JSON it printed; `observed` are the hubs
    whose metrics are by virtual channel."""
    counters = {hub: ask("counters", hub, *(["--vc"] if hub in observed else []))["nodes"][0]
                for hub in hubs}
    return {"status": ask("status"), "version": ask("version"), "counters": counters,
            "links": ask("links")["links"]}


def of_links(seen):
    """Both directions of each link. A port has its peer's rank among the peers of its class."""
    directions = []
    for link in seen["links"]:
        near, far = link["ends"].split("/")
        directions += [(near, far, link, link["forward"]), (far, near, link, link["backward"])]
    peers = {}
    for hub, peer, link, _ in directions:
        peers.setdefault((hub, link["class"]), []).append(peer)
    for hub, peer, link, sent in directions:
        rank = sorted(peers[hub, link["class"]]).index(peer)
        port = f"{link['class']}{rank}"
        if hub == link["name"].split(":")[0]:
            assert link["name"] == f"{hub}:{port}", link
        labels = {"hub": hub, "port": port, "class": link["class"]}
        for what in ("bytes", "packets", "flits"):
            yield f"percs_link_transmitted_{what}_total", labels, sent[what]
        yield "percs_link_credit_stall_seconds_total", labels, sent["credit_stall_ps"] * PS
        yield "percs_link_crc_errors_total", labels, sent["crc_errors"]
        yield "percs_link_replays_total", labels, sent["replays"]
        yield "percs_link_lanes_lost", labels, sent["lanes_lost"]
        yield "percs_link_up", labels, int(link["up"])
        yield "percs_link_info", {"hub": hub, "port": port, "peer": peer}, 1


def of_channels(seen):
    """percsctl leaves out those that sent nothing."""
    for hub, node in seen["counters"].items():
        if "vcs" not in node:
            continue
        sent = {(vc["port"], vc["vc"]): vc for vc in node["vcs"]}
        ports = {(labels["port"], labels["class"]) for name, labels, _ in of_links(seen)
                 if name == "percs_link_up" and labels["hub"] == hub}
        for port, link_class in sorted(ports):
            for vc in range(VCS[link_class]):
                labels = {"hub": hub, "port": port, "class": link_class, "vc": str(vc)}
                for what in ("bytes", "packets", "flits"):
                    yield (f"percs_vc_transmitted_{what}_total", labels,
                           sent.get((port, vc), {what: 0})[what])


def of_hubs(seen):
    for hub, node in seen["counters"].items():
        labels = {"hub": hub}
        messages = node["messages"]
        yield "percs_packets_created_total", labels, node["packets_created"]
        yield "percs_packets_delivered_total", labels, node["packets_delivered"]
        yield "percs_delivered_bytes_total", labels, node["bytes_delivered"]
        yield "percs_packets_resent_total", labels, messages["packets_resent"]
        yield "percs_messages_delivered_total", labels, messages["delivered"]
        yield "percs_messages_failed_total", labels, messages["failed"]
        yield "percs_payload_errors_total", labels, messages["payload_errors"]
        yield "percs_alerts_total", labels, node["alerts_raised"]
        yield "percs_route_installs_total", labels, node["tables_installed"]
        yield "percs_route_epoch", labels, seen["status"]["epoch"]
        for reason, count in node["drops"].items():
            yield "percs_packets_dropped_total", {**labels, "reason": reason}, count
        service = node["service"]
        for name, event in SERVICE_EVENTS.items():
            yield "percs_service_events_total", {**labels, "event": event}, service[name]
        yield ("percs_service_round_trip_seconds_total", labels,
               (service["round_trip_mean_ns"] or 0) * service["answers"] * NS)
        reductions = sum(n for name, n in node["caus"].items() if name.startswith("reduce_"))
        yield "percs_cau_events_total", {**labels, "counter": "reductions"}, reductions
        for name, count in node["caus"].items():
            if name.startswith("reduce_"):
                op, dtype = name.split("_")[1:]
                yield "percs_cau_operations_total", {**labels, "op": op, "dtype": dtype}, count
            else:
                yield "percs_cau_events_total", {**labels, "counter": name}, count


def of_fabric(seen):
    status, version = seen["status"], seen["version"]
    processes = status["processes"]
    yield "percs_daemons", {}, sum(p["connected"] for p in processes)
    yield "percs_daemons_expected", {}, status["daemons_expected"]
    yield "percs_runs_total", {}, status["run"]
    yield "percs_windows_total", {}, status["windows"]
    yield "percs_windows_per_second", {}, status["windows_per_second"]
    yield "percs_pace_reached", {}, status["pace_reached"] * PS
    yield "percs_pace_requested", {}, status["pace_ps_per_wall_second"] * PS
    yield "percs_behind_seconds", {}, status["wall_behind_seconds"]
    yield ("percs_virtual_time_seconds_total", {"role": "controller"},
           status["virtual_ps"] * PS)
    states = ("joining", "empty", "configuring", "running", "idle", "finished", "failed", "paused")
    for state in states:
        yield "percs_clock_state", {"state": state}, int(state == status["state"])
    for fault in status["faults"]:
        more = f" and {fault['selected'] - 1} more" if fault["selected"] > 1 else ""
        labels = {"fault": fault["id"], "kind": fault["kind"],
                  "target": "".join(fault["targets"][:1]) + more}
        yield "percs_fault_info", labels, int(fault["phase"] == "active")
    yield ("percs_fault_info", {"fault": "_overflow"},
           status["faults_active"] - len(status["faults"]))
    for reason in REFUSALS:
        yield "percs_refusals_total", {"reason": reason}, 0  # nobody here is turned away
    for process in processes:
        yield ("percs_link_stream_reconnects_total", {"process": str(process["process"])},
               process["reconnects"])
    for process in ["controller", *processes]:
        labels = {"process": str(process), "version": version["software"],
                  "model": str(version["model"]), "wire": str(version["wire"])}
        yield "percs_build_info", labels, 1


def metrics(seen):
    found = {}
    for part in (of_links, of_channels, of_hubs, of_fabric):
        for name, labels, value in part(seen):
            found.setdefault(name, []).append((labels, value))
    return found


def rates(before, after):
    """The recording rules: differences per virtual second."""
    old, new = metrics(before), metrics(after)
    virtual = (after["status"]["virtual_ps"] - before["status"]["virtual_ps"]) * PS

    def per_second(metric, keep, fold=sum):
        groups = {}
        for (labels, was), (same, now) in zip(old[metric], new[metric]):
            assert labels == same
            group = tuple((label, labels[label]) for label in keep)
            groups.setdefault(group, []).append((now - was) / virtual)
        return [(dict(group), fold(values)) for group, values in groups.items()]

    sent, stall = "percs_link_transmitted_bytes_total", "percs_link_credit_stall_seconds_total"
    port = ("hub", "port", "class")
    of_vcs = ("percs_vc_transmitted_bytes_total", (*port, "vc"))
    return {
        "class:percs_link_transmitted_bytes:virtual_rate15s": per_second(sent, ("class",)),
        "hub_port:percs_link_transmitted_bytes:virtual_rate15s": per_second(sent, port),
        "hub_port_vc:percs_vc_transmitted_bytes:virtual_rate15s": per_second(*of_vcs),
        "hub_port:percs_link_credit_stall:virtual_share15s": per_second(stall, port),
        "hub:percs_link_credit_stall:virtual_share15s": per_second(stall, ("hub",), max),
        "hub:percs_delivered_bytes:virtual_rate15s":
            per_second("percs_delivered_bytes_total", ("hub",)),
        "counter:percs_cau_events:virtual_rate15s":
            per_second("percs_cau_events_total", ("counter",)),
        "percs_link_info": new["percs_link_info"],
    }


def quantile(seen, metric, share, hub=None):
    """Lowest and highest of the hubs, in seconds: where the quantile of all of them lies."""
    what = "packet" if "packet" in metric else "message"
    values = [node["latency_ns"][what][{0.5: "p50", 0.99: "p99"}[share]] * NS
              for name, node in seen["counters"].items() if hub in (None, name)]
    return min(values), max(values)
