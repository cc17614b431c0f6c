#include "tests/differential/random_network.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include "emulator/base/check.h"
#include "emulator/base/payload.h"
#include "emulator/base/random.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/link_settings.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "tests/differential/random_storm.h"

namespace percs::reference {
namespace {

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed, "random network") {
    scenario_.name = fmt::format("random network {}", seed);
    scenario_.seed = seed;
  }
  Scenario Make() {
    // On a coarse grid many things happen at the same instant; off it, nearly nothing does.
    grid_ = Chance(70) ? 1000 : 1;
    // Latencies below a packet's time on its link: what was announced and what is still leaving
    // overlap.
    tight_ = Chance(15);
    scenario_.topology = scenario_.seed < kGraphNetworks ? MakeTopology() : MakeGraph();
    if (!scenario_.topology.graph) MakeBlades();
    scenario_.parameters = MakeParameters();
    MakeLinksAlike(&scenario_);
    scenario_.workload = MakeTraffic();
    MakeGroups();
    if (Chance(tight_ ? 80 : 50)) MakeFaults();
    MakeRoutes();
    MakeAdaptive();
    scenario_.reroute = !scenario_.faults.empty() && Chance(50);
    MakeErrors();
    MakeCables();
    AddStorm(&scenario_);
    MakeService();
    return scenario_;
  }

 private:
  int Range(int low, int high) {
    return low + static_cast<int>(random_.Below(static_cast<std::uint32_t>(high - low + 1)));
  }
  bool Chance(int percent) { return Range(1, 100) <= percent; }
  template <typename T>
  T Pick(std::initializer_list<T> values) {
    return values.begin()[random_.Below(static_cast<std::uint32_t>(values.size()))];
  }
  // `low..high` thousand picoseconds, on the grid.
  Time Duration(int low, int high) {
    return grid_ == 1000 ? Range(low, high) * grid_ : Range(low * 1000, high * 1000);
  }

  TopologySpec MakeTopology() {
    TopologySpec spec;
    spec.supernodes = Pick({1, 1, 2, 2, 3, 4});
    do {
      spec.drawers = Range(1, 4);
      spec.hubs = Range(1, 8);
    } while (spec.supernodes * spec.drawers * spec.hubs < 2 ||
             spec.supernodes * spec.drawers * spec.hubs > 8);
    spec.d_links_per_pair = Range(1, 4);
    nodes_ = spec.supernodes * spec.drawers * spec.hubs;
    return spec;
  }

  TopologySpec MakeGraph() {
    using Dims = std::vector<int>;
    GraphSpec graph{.kind = static_cast<GraphSpec::Kind>(scenario_.seed % 4)};
    if (graph.kind == GraphSpec::Kind::kListed) {
      const int switches = Range(2, 8);
      for (int i = 0; i < switches; ++i) graph.names.push_back(fmt::format("s{}", i));
      const auto join = [&](int a, int b) {
        const LinkClass link_class = Chance(30) ? LinkClass::kLl : LinkClass::kLr;
        graph.links.push_back({static_cast<NodeId>(a), static_cast<NodeId>(b), link_class});
      };
      for (int i = 1; i < switches; ++i) join(Range(0, i - 1), i);
      for (int more = Range(0, 5); more > 0 && switches > 2; --more) {
        const int a = Range(0, switches - 1);
        join(a, (a + Range(1, switches - 1)) % switches);
      }
    } else if (graph.kind == GraphSpec::Kind::kFatTree) {
      graph.levels = Pick({2, 2, 3});
      graph.radix = graph.levels == 3 ? 4 : Pick({2, 4, 8});
      graph.taper = graph.radix > 2 ? Pick({1, 2}) : 1;
    } else if (graph.kind == GraphSpec::Kind::kTorus) {
      graph.dims = Pick({Dims{2}, Dims{3}, Dims{4}, Dims{5}, Dims{8}, Dims{2, 3}, Dims{3, 3},
                         Dims{4, 2}, Dims{2, 2, 2}, Dims{3, 2, 2}});
    } else {
      graph.dims =
          Pick({Dims{2}, Dims{3}, Dims{6}, Dims{2, 2}, Dims{2, 4}, Dims{3, 3}, Dims{2, 2, 2}});
    }
    TopologySpec spec;
    PERCS_CHECK(spec.UseGraph(graph).ok());
    nodes_ = spec.hubs;
    return spec;
  }

  // Of their own stream, so that networks without blades are what they were.
  void MakeBlades() {
    RandomStream random(scenario_.seed, "blades");
    if (random.Below(4) != 0) return;
    const std::uint32_t count = 1 + random.Below(4);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Topology topology = Topology::Create(scenario_.topology).value();
      // One in eight stands alone until the next one may be plugged into it.
      const bool alone = random.Below(8) == 0;
      const NodeId at = random.Below(topology.nodes());
      const bool free = !topology.is_blade(at) || topology.BladePeer(at).node == kNoNode;
      scenario_.topology.blades.push_back(
          {fmt::format("blade{}", i), alone || !free ? "" : topology.NodeName(at)});
    }
    nodes_ += static_cast<int>(count);
  }

  // Likewise: groups with random members, and packets to them among the others.
  void MakeGroups() {
    RandomStream random(scenario_.seed, "groups");
    if (random.Below(3) != 0) return;
    const Topology topology = Topology::Create(scenario_.topology).value();
    for (LinkParameters* link :
         {&scenario_.parameters.ll, &scenario_.parameters.lr, &scenario_.parameters.d}) {
      link->buffer_flits = std::max(link->buffer_flits, kPacketFlitsMax);
    }
    const std::uint32_t count = 1 + random.Below(3);
    for (std::uint32_t g = 0; g < count; ++g) {
      MulticastSite group{
          fmt::format("group{}", g), topology.NodeName(random.Below(topology.leaves())), {}};
      for (NodeId hub = 0; hub < topology.leaves(); ++hub) {
        if (random.Below(3) != 0) group.members.push_back(topology.NodeName(hub));
      }
      scenario_.topology.multicast.push_back(group);
    }
    const Topology with_groups = Topology::Create(scenario_.topology).value();
    for (ScriptedPacket& packet : std::get<ScriptedWorkload>(scenario_.workload).packets) {
      const std::uint32_t g = random.Below(2 * count);
      if (g >= count) continue;
      packet.source = with_groups.groups()[g].source;
      packet.destination = with_groups.nodes() + g;
    }
  }

  LinkParameters MakeLink() {
    LinkParameters link;
    link.flit_time = Duration(1, 8);
    link.wire = Duration(0, tight_ ? 1 : Pick({2, 10, 40}));
    link.buffer_flits = Chance(40) ? Range(1, 4) : Range(1, 24);
    return link;
  }

  P7ihParameters MakeParameters() {
    P7ihParameters p;
    p.ll = MakeLink();
    p.lr = MakeLink();
    p.d = MakeLink();
    p.hfi.flit_time = Duration(1, 5);
    p.hfi.wire = 0;
    p.hfi.buffer_flits = Range(16, 40);
    p.isr_latency = Duration(1, tight_ ? 2 : Pick({5, 60}));
    p.credit_processing = Duration(1, tight_ ? 2 : Pick({5, 60}));
    p.w_flit_time = std::max<Time>(1, p.hfi.flit_time / Pick({1, 2, 4, 4}));
    p.hfi_queue_packets = Range(1, 3);
    p.windows_per_hfi = Pick({4, 256});
    p.management_latency = Duration(60, 120);
    p.detect = p.management_latency + Duration(0, 100);
    p.plan = Duration(0, 300);
    p.install = 3 * p.management_latency + Duration(0, 100);
    return p;
  }

  ScriptedWorkload MakeTraffic() {
    ScriptedWorkload script;
    const int count = Range(2, Pick({20, 60, 120}));
    const int flits_max = Pick({1, 3, 8, 16, 16, 16});
    const bool mixed = Chance(70);
    const int windows = Pick({1, 2, 8});
    const int hot_percent = Pick({0, 0, 50, 100});
    const int hot = Range(0, nodes_ - 1);
    const bool to_self = Chance(5);
    // From all at once (saturated) to one packet at a time.
    span_ = count * Pick({0, 1, 4, 16, 60}) + 1;
    for (int i = 0; i < count; ++i) {
      ScriptedPacket packet;
      packet.at = Duration(0, span_);
      packet.source = static_cast<NodeId>(Range(0, nodes_ - 1));
      do {
        packet.destination = static_cast<NodeId>(Chance(hot_percent) ? hot : Range(0, nodes_ - 1));
        if (packet.destination == packet.source && !to_self) packet.source = Other(packet.source);
      } while (packet.destination == packet.source && !to_self);
      packet.source_window = Window(windows);
      packet.destination_window = Window(windows);
      packet.bytes = mixed ? Range(0, flits_max * kFlitBytes) : flits_max * kFlitBytes;
      script.packets.push_back(packet);
    }
    return script;
  }
  RouteSetting MakeRoute() {
    RouteSetting route;
    const int supernodes = scenario_.topology.supernodes;
    const RouteMode last = supernodes > 2 ? RouteMode::kAdaptive : RouteMode::kHwDirectStriped;
    route.mode = static_cast<RouteMode>(Range(0, static_cast<int>(last)));
    const bool adaptive = route.mode == RouteMode::kAdaptive;
    if (adaptive) route.adaptive_threshold = Pick({0, 4, 100});
    if ((adaptive || route.mode == RouteMode::kHwIndirect) && Chance(50)) {
      route.selection = MiddleSelection::kRandom;
    }
    if (route.mode == RouteMode::kSwIndirect && Chance(30)) {
      route.middle = static_cast<std::uint16_t>(Range(0, supernodes - 1));
    }
    return route;
  }
  void MakeRoutes() {
    if (scenario_.topology.supernodes == 1 || Chance(30)) return;  // direct
    scenario_.routing.fifo = MakeRoute();
    scenario_.routing.rdma = MakeRoute();
    if (Chance(30)) scenario_.routing.workload = TrafficClass::kRdma;
    if (Chance(50)) return;
    for (ScriptedPacket& packet : std::get<ScriptedWorkload>(scenario_.workload).packets) {
      if (Chance(50)) packet.route = MakeRoute();
    }
  }
  // Streams of their own: all else of a network stays what it was.
  void MakeAdaptive() {
    RandomStream random(scenario_.seed, "adaptive"), in_transit(scenario_.seed, "in transit");
    P7ihParameters& p = scenario_.parameters;
    p.congestion_period = (5'000 + random.Below(100'000)) / grid_ * grid_;
    p.congestion_threshold = 1 + static_cast<int>(random.Below(16));
    const auto choose = [&](RouteSetting* route) {
      if (route->mode != RouteMode::kAdaptive) return;
      route->adaptive = static_cast<AdaptiveAlgorithm>(random.Below(3));
      if (in_transit.Below(3) == 0) route->adaptive = AdaptiveAlgorithm::kInTransit;
    };
    choose(&scenario_.routing.fifo);
    choose(&scenario_.routing.rdma);
    for (ScriptedPacket& packet : std::get<ScriptedWorkload>(scenario_.workload).packets) {
      if (!packet.route) continue;
      choose(&*packet.route);
      if (!CheckReports(*packet.route, scenario_.routing.reports()).ok())
        packet.route->adaptive = AdaptiveAlgorithm::kUgalL;
    }
  }
  NodeId Other(NodeId node) { return (node + Range(1, nodes_ - 1)) % nodes_; }
  WindowId Window(int windows) {
    const int i = Range(0, windows - 1);  // over both HFIs and their four ports
    return static_cast<WindowId>((i % 2) * scenario_.parameters.windows_per_hfi + i / 2);
  }

  void MakeFaults() {
    const Topology topology = Topology::Create(scenario_.topology).value();
    const std::vector<LinkEnd> links = topology.Links();
    const int broken = Range(1, std::min<int>(4, static_cast<int>(links.size())));
    std::set<std::size_t> used;
    for (int i = 0; i < broken; ++i) {
      const std::size_t link = random_.Below(static_cast<std::uint32_t>(links.size()));
      if (!used.insert(link).second) continue;
      LinkEnd end = links[link];
      if (Chance(50)) end = topology.Peer(end.node, end.port);
      std::set<Time> times;  // down, up, down, ...
      for (int k = tight_ ? Range(4, 20) : Range(1, 4); k > 0; --k) {
        const Time at = *times.insert(Duration(0, 2 * span_ + 200)).first;
        // A short flap: back before what was on its way has arrived.
        if (Chance(tight_ ? 90 : 40)) times.insert(at + Duration(1, tight_ ? 8 : 30));
      }
      bool up = false;
      for (Time at : times) {
        scenario_.faults.push_back(up ? SetLinkUp(at, end) : SetLinkDown(at, end));
        up = !up;
      }
    }
  }

  void MakeCables() {
    RandomStream random(scenario_.seed, "cables");
    if (random.Below(4) != 0) return;
    for (const LinkEnd& link : Topology::Create(scenario_.topology).value().Links()) {
      if (random.Below(2) == 0) scenario_.cables.push_back({link, random.Below(60) * grid_});
    }
  }
  // Of their own stream, so that networks without errors are what they were.
  void MakeErrors() {
    RandomStream random(scenario_.seed, "errors");
    if (random.Below(3) != 0) return;
    const Topology topology = Topology::Create(scenario_.topology).value();
    const std::vector<LinkEnd> links = topology.Links();
    if (links.empty()) return;
    scenario_.parameters.link_replay = random.Below(6) != 0;
    scenario_.parameters.replay_limit = 2 + static_cast<int>(random.Below(7));
    for (LinkParameters* link :
         {&scenario_.parameters.ll, &scenario_.parameters.lr, &scenario_.parameters.d}) {
      link->lanes = 1 + static_cast<int>(random.Below(5));
      link->spare_lanes = static_cast<int>(random.Below(3));
      link->lanes_min = 1 + static_cast<int>(random.Below(static_cast<std::uint32_t>(link->lanes)));
    }
    MakeLinksAlike(&scenario_);
    for (std::uint32_t k = 1 + random.Below(6); k > 0; --k) {
      const Time at =
          static_cast<Time>(random.Below(static_cast<std::uint32_t>(span_ + 100))) * 1000;
      LinkEnd sender = links[random.Below(static_cast<std::uint32_t>(links.size()))];
      if (random.Below(2) == 0) sender = topology.Peer(sender.node, sender.port);
      const std::uint32_t kind = random.Below(6);
      if (kind == 5) {
        const Time latency = random.Below(3) == 0 ? 0 : static_cast<Time>(random.Below(200'000));
        scenario_.faults.push_back(SetLatency(at, sender, latency));
        if (latency == 0) continue;
        // It falls again while there is traffic: what is sent then must not overtake. No new number
        // is drawn for it.
        scenario_.faults.push_back(
            SetLatency(at + 1000 * (1 + latency % (span_ + 1)), sender, latency / 8));
      } else if (kind < 2) {
        const LinkParameters& link = scenario_.parameters.link(ClassOf(sender.port));
        const std::uint32_t lost =
            random.Below(static_cast<std::uint32_t>(link.lanes + link.spare_lanes + 1));
        scenario_.faults.push_back(SetLanesLost(at, sender, lost));
      } else if (kind == 2) {
        const std::uint32_t count = 1 + random.Below(random.Below(2) == 0 ? 3 : 12);
        scenario_.faults.push_back(SetCorruptNext(at, sender, count));
      } else {
        constexpr double kRates[] = {0, 0.001, 0.01, 0.1, 0.3, 0.6, 1};
        const double rate = kRates[random.Below(7)];
        scenario_.faults.push_back(SetErrorRate(at, sender, rate));
        // A link that may have been given up by then is retrained, without a new number either.
        if (rate >= 0.6) {
          scenario_.faults.push_back(
              SetErrorRate(at + 1000 * (1 + at / 1000 % (span_ + 1)), sender, 0));
        }
      }
    }
  }

  // Likewise; from now and then up to more than the slots can take.
  void MakeService() {
    RandomStream random(scenario_.seed, "service");
    if (random.Below(3) != 0) return;
    P7ihParameters& p = scenario_.parameters;
    const auto hubs =
        static_cast<std::uint32_t>(Topology::Create(scenario_.topology).value().hubs());
    const auto duration = [&](std::uint32_t thousands) {
      return 1 + static_cast<Time>(random.Below(thousands)) * 1000;
    };
    p.service_buffer_flits = 1 + static_cast<int>(random.Below(4));
    p.service_wait = duration(random.Below(2) == 0 ? 40 : 2000);
    ServiceTraffic& service = scenario_.service;
    service.timeout = duration(random.Below(2) == 0 ? 300 : 3000);
    service.tries = 1 + static_cast<int>(random.Below(3));
    if (random.Below(2) == 0) {
      service.probe_rounds = 1 + random.Below(6);
      service.probe_at = duration(static_cast<std::uint32_t>(span_ + 1));
      service.probe_period = duration(random.Below(2) == 0 ? 20 : 400);
    }
    for (std::uint32_t k = random.Below(6); k > 0 && hubs > 1; --k) {
      ServicePing ping{.from = random.Below(hubs),
                       .to = 0,
                       .at = duration(static_cast<std::uint32_t>(span_ + 1))};
      ping.to = (ping.from + 1 + random.Below(hubs - 1)) % hubs;
      ping.count = 1 + random.Below(30);
      ping.period = duration(random.Below(2) == 0 ? 4 : 100);
      service.pings.push_back(ping);
    }
  }

  RandomStream random_;
  Scenario scenario_;
  Time grid_ = 1000;
  bool tight_ = false;
  int nodes_ = 0, span_ = 0;
};

std::string DescribeRoute(const RouteSetting& r) {
  return fmt::format("{} random={} middle={} threshold={} adaptive={}", RouteModeName(r.mode),
                     r.selection == MiddleSelection::kRandom, r.middle, r.adaptive_threshold,
                     AdaptiveName(r.adaptive));
}

std::string DescribeLink(const char* name, const LinkParameters& link) {
  return fmt::format("  {:4} flit_time={} wire={} buffer_flits={} lanes={}+{} min {}\n", name,
                     link.flit_time, link.wire, link.buffer_flits, link.lanes, link.spare_lanes,
                     link.lanes_min);
}

}  // namespace

Scenario RandomNetwork(std::uint64_t seed) { return Generator(seed).Make(); }

TableSet RandomTables(const Topology& topology, std::uint64_t seed) {
  RandomStream random(seed, "random tables");
  TableSet tables;
  for (const auto& planned : Planner(topology).Plan({})) {
    const auto node = static_cast<NodeId>(tables.size());
    std::vector<PortId> ports;
    for (PortId p = 0; p < kLinkPorts; ++p) {
      if (topology.connected(node, p) && !topology.is_blade(topology.Peer(node, p).node))
        ports.push_back(p);
    }
    if (topology.is_blade(node)) {  // switches nothing, so it has no routes to disturb
      tables.push_back(planned);
      continue;
    }
    const auto change = [&](PortMask& mask) {
      const std::uint32_t draw = random.Below(100);
      if (draw < 75) return;
      mask = 0;
      if (draw < 80) return;
      for (int k = 0; k < 2; ++k) {
        mask |= PortBit(ports[random.Below(static_cast<std::uint32_t>(ports.size()))]);
      }
    };
    const auto disturbed = [&](const std::shared_ptr<const RouteTable>& table) {
      auto copy = std::make_shared<RouteTable>(*table);
      for (PortMask& mask : copy->intra) change(mask);
      for (PortMask& mask : copy->inter) change(mask);
      return copy;
    };
    auto hub = std::make_shared<HubTables>(*planned);
    hub->source_direct = disturbed(planned->source_direct);
    hub->source_striped = disturbed(planned->source_striped);
    hub->source_indirect = disturbed(planned->source_indirect);
    for (auto* ports : {&hub->port_direct, &hub->port_indirect}) {
      for (auto& table : *ports) table = disturbed(table);
    }
    for (int pairs = topology.supernodes() * topology.supernodes(); pairs > 0; --pairs) {
      if (random.Below(8) != 0) continue;
      const auto supernodes = static_cast<std::uint32_t>(topology.supernodes());
      const int destination = static_cast<int>(random.Below(supernodes));
      hub->closed_middles.push_back(
          HubTables::ClosedMiddle(destination, static_cast<int>(random.Below(supernodes))));
    }
    for (PortMask& mask : hub->multicast) {
      if (random.Below(100) < 75) continue;
      mask = random.Below(2) == 0 ? 0 : HubTables::kDeliverHere;
      for (int k = 0; k < 2; ++k) {
        mask |= PortBit(ports[random.Below(static_cast<std::uint32_t>(ports.size()))]);
      }
    }
    if (topology.graph() != nullptr) {
      hub->detours.clear();
      for (NodeId to = 0; to < topology.hubs(); ++to) {
        if (random.Below(3) == 0) hub->detours.push_back(to);
      }
    }
    std::sort(hub->closed_middles.begin(), hub->closed_middles.end());
    tables.push_back(hub);
  }
  return tables;
}

std::string Describe(const Scenario& s) {
  const P7ihParameters& p = s.parameters;
  std::string text =
      fmt::format("{}: {} supernodes x {} drawers x {} hubs, {} D links per pair, reroute={}\n",
                  s.name, s.topology.supernodes, s.topology.drawers, s.topology.hubs,
                  s.topology.d_links_per_pair, s.reroute);
  if (s.topology.graph) {
    text += fmt::format("  graph {}: dims {}, levels {}, radix {}, taper {}\n",
                        static_cast<int>(s.topology.graph->kind),
                        fmt::join(s.topology.graph->dims, " x "), s.topology.graph->levels,
                        s.topology.graph->radix, s.topology.graph->taper);
  }
  for (const BladeSite& blade : s.topology.blades) {
    text +=
        fmt::format("  {} at {}\n", blade.name, blade.attach.empty() ? "nothing" : blade.attach);
  }
  for (const MulticastSite& group : s.topology.multicast) {
    text += fmt::format("  {} from {} to", group.name, group.source);
    for (const std::string& member : group.members) text += " " + member;
    text += "\n";
  }
  text += DescribeLink("LL", p.ll) + DescribeLink("LR", p.lr) + DescribeLink("D", p.d) +
          DescribeLink("HFI", p.hfi);
  text += fmt::format(
      "  isr_latency={} credit_processing={} w_flit_time={} hfi_queue_packets={} "
      "windows_per_hfi={} "
      "single_vc={}\n  management_latency={} detect={} plan={} install={}\n",
      p.isr_latency, p.credit_processing, p.w_flit_time, p.hfi_queue_packets, p.windows_per_hfi,
      p.vc_policy == VcPolicy::kSingle, p.management_latency, p.detect, p.plan, p.install);
  text += fmt::format("  fifo {}; rdma {}; packets are {}\n", DescribeRoute(s.routing.fifo),
                      DescribeRoute(s.routing.rdma),
                      s.routing.workload == TrafficClass::kRdma ? "rdma" : "fifo");
  if (const auto* script = std::get_if<ScriptedWorkload>(&s.workload)) {
    for (const ScriptedPacket& k : script->packets) {
      text += fmt::format("  at {} from {}.{} to {}.{} bytes {}{}\n", k.at, k.source,
                          k.source_window, k.destination, k.destination_window, k.bytes,
                          k.route ? " " + DescribeRoute(*k.route) : "");
    }
  }
  for (const Cable& cable : s.cables) {
    text += fmt::format("  wire of {}:{} {}\n", cable.link.node, cable.link.port, cable.wire);
  }
  const ServiceTraffic& service = s.service;
  if (service.any()) {
    text += fmt::format(
        "  service_buffer_flits={} service_wait={} timeout={} tries={} probes {} from {} every "
        "{}\n",
        p.service_buffer_flits, p.service_wait, service.timeout, service.tries,
        service.probe_rounds, service.probe_at, service.probe_period);
  }
  for (const ServicePing& ping : service.pings) {
    text += fmt::format("  from {} every {} {} pings from {} to {}\n", ping.at, ping.period,
                        ping.count, ping.from, ping.to);
  }
  if (!s.faults.empty()) {
    text += fmt::format("  link_replay={} replay_limit={}\n", p.link_replay, p.replay_limit);
  }
  for (const FaultSpec& f : s.faults) {
    text += fmt::format("  at {} {} of {}:{} {}: rate {} corrupt {} lanes {} latency {}\n", *f.at,
                        FaultKindName(f.kind), f.select.link->node, f.select.link->port,
                        f.sets == FaultSets::kMended ? "ends" : "is set", f.flit_error_rate,
                        f.corrupt, f.lanes, f.latency);
  }
  return text;
}

}  // namespace percs::reference
