// What a scrape answers. Method: hubs with known counters, looked up by name and label; the list of
// metrics held against the page that documents them; a real socket for the server.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "daemon/metrics/call_metrics.h"
#include "daemon/metrics/fabric_metrics.h"
#include "daemon/metrics/hub_metrics.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/metrics/process_metrics.h"
#include "daemon/stream/call_meter.h"
#include "tests/support/source_dir.h"

namespace percs {
namespace {

using ::testing::HasSubstr;
using Families = std::vector<prometheus::MetricFamily>;

HostState HostOfASupernode() {
  HostState host;
  host.topology = *Topology::Create({.supernodes = 2, .drawers = 4, .hubs = 8, .d_links_per_pair = 4});
  host.now = 3'000'000;  // 3 us
  NodeState hub;
  hub.node = 9;  // sn0-d1-h1
  for (PortId port = 0; port < kLinkPorts; ++port) {
    hub.stats.ports[port].vc[0].bytes = 100u + port;
    hub.stats.ports[port].credit_stall_ps = 2'000'000;
    if (host.topology->connected(9, port)) hub.links_up |= PortBit(port);
  }
  hub.links_up &= ~PortBit(0);
  hub.link_downs[0] = 3;
  hub.stats.packets_dropped[static_cast<std::size_t>(DropReason::kNoRoute)] = 5;
  hub.stats.packet_latency.Add(150'000);        // 150 ns
  hub.stats.packet_latency.Add(40'000'000);     // 40 us
  hub.stats.packet_latency.Add(2'000'000'000'000);  // 2 s
  hub.stats.service_answers = 3;
  hub.stats.service_wrong_partner = 1;
  hub.stats.service_round_trip_ps = 6'000'000;  // 6 us
  hub.stats.ports[2].service_flits = 4, hub.stats.ports[40].service_flits = 5;
  hub.stats.ports[kServicePort].service_flits = 9;  // to software, over no link
  hub.stats.CauReduction(ReduceOp::kSum, OperandType::kDouble) = 11;
  hub.stats.CauReduction(ReduceOp::kMax, OperandType::kInt32) = 1;
  hub.stats.Cau(CauCounter::kResultsRight) = 12;
  hub.epoch = 7;
  host.nodes.push_back(hub);
  return host;
}

Families HubFamilies(const HostState& host, MetricsDetail detail) {
  MetricFamilies families;
  AddHubMetrics(host, {detail}, &families);
  return families.Take();
}

const prometheus::ClientMetric* Find(const Families& families, const std::string& name,
                                     const std::map<std::string, std::string>& labels) {
  for (const auto& family : families) {
    if (family.name != name) continue;
    for (const auto& sample : family.metric) {
      std::map<std::string, std::string> has;
      for (const auto& label : sample.label) has[label.name] = label.value;
      if (has == labels) return &sample;
    }
  }
  return nullptr;
}

std::size_t Series(const Families& families) {
  std::size_t series = 0;
  for (const auto& family : families) {
    for (const auto& sample : family.metric) {
      const std::size_t buckets = sample.histogram.bucket.size();
      series += buckets > 0 ? buckets + 2 : 1;
    }
  }
  return series;
}

TEST(HubMetrics, CarryTheHubsNameAndBaseUnits) {
  const Families families = HubFamilies(HostOfASupernode(), MetricsDetail::kPort);
  const auto* bytes = Find(families, "percs_link_transmitted_bytes_total",
                           {{"hub", "sn0-d1-h1"}, {"port", "LL3"}, {"class", "LL"}});
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes->counter.value, 103);
  const auto* stall = Find(families, "percs_link_credit_stall_seconds_total",
                           {{"hub", "sn0-d1-h1"}, {"port", "LR5"}, {"class", "LR"}});
  ASSERT_NE(stall, nullptr);
  EXPECT_DOUBLE_EQ(stall->counter.value, 2e-6);
  const auto* down = Find(families, "percs_link_up",
                          {{"hub", "sn0-d1-h1"}, {"port", "LL0"}, {"class", "LL"}});
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->gauge.value, 0);
  const auto* downs = Find(families, "percs_link_down_total",
                           {{"hub", "sn0-d1-h1"}, {"port", "LL0"}, {"class", "LL"}});
  ASSERT_NE(downs, nullptr);
  EXPECT_EQ(downs->counter.value, 3);
  EXPECT_NE(Find(families, "percs_link_info",
                 {{"hub", "sn0-d1-h1"}, {"port", "LL0"}, {"peer", "sn0-d1-h0"}, {"peer_port", "LL0"}}),
            nullptr);
  const auto* dropped =
      Find(families, "percs_packets_dropped_total", {{"hub", "sn0-d1-h1"}, {"reason", "no_route"}});
  ASSERT_NE(dropped, nullptr);
  EXPECT_EQ(dropped->counter.value, 5);
  const auto* time = Find(families, "percs_virtual_time_seconds_total", {});
  ASSERT_NE(time, nullptr);
  EXPECT_DOUBLE_EQ(time->counter.value, 3e-6);
}

TEST(HubMetrics, ServicePortAndCauAreCounted) {
  const Families families = HubFamilies(HostOfASupernode(), MetricsDetail::kHub);
  const auto value = [&](const std::string& name, std::map<std::string, std::string> labels) {
    labels["hub"] = "sn0-d1-h1";
    const auto* sample = Find(families, name, labels);
    return sample == nullptr ? -1.0 : sample->counter.value;
  };
  EXPECT_EQ(value("percs_service_events_total", {{"event", "request"}}), 0);
  EXPECT_EQ(value("percs_service_events_total", {{"event", "answer"}}), 3);
  EXPECT_EQ(value("percs_service_events_total", {{"event", "unanswered"}}), 0);
  EXPECT_EQ(value("percs_service_events_total", {{"event", "wrong_partner"}}), 1);
  EXPECT_DOUBLE_EQ(value("percs_service_round_trip_seconds_total", {}), 6e-6);
  EXPECT_EQ(value("percs_service_flits_total", {}), 9);
  EXPECT_EQ(value("percs_cau_events_total", {{"counter", "reductions"}}), 12);
  EXPECT_EQ(value("percs_cau_events_total", {{"counter", "results_right"}}), 12);
  EXPECT_EQ(value("percs_cau_events_total", {{"counter", "results_wrong"}}), 0);
}

TEST(HubMetrics, LatenciesAreCumulativeAndInSeconds) {
  const Families families = HubFamilies(HostOfASupernode(), MetricsDetail::kPort);
  const auto* latency = Find(families, "percs_packet_latency_seconds", {{"hub", "sn0-d1-h1"}});
  ASSERT_NE(latency, nullptr);
  const auto& histogram = latency->histogram;
  EXPECT_EQ(histogram.sample_count, 3u);
  EXPECT_NEAR(histogram.sample_sum, 2.00004015, 1e-9);
  std::map<double, std::uint64_t> below;
  for (const auto& bucket : histogram.bucket) below[bucket.upper_bound] = bucket.cumulative_count;
  EXPECT_EQ(below.size(), LatencyEdges().size() + 1);
  EXPECT_EQ(below[1e-7], 0u);
  EXPECT_EQ(below[2e-7], 1u);
  EXPECT_EQ(below[2e-5], 1u);
  EXPECT_EQ(below[5e-5], 2u);
  EXPECT_EQ(below[1], 2u);
  EXPECT_EQ(below.rbegin()->second, 3u);
}

TEST(HubMetrics, SeriesOfAHubAreBounded) {
  // All 47 links connected.
  HostState host = HostOfASupernode();
  host.topology = *Topology::Create({.supernodes = 513, .drawers = 4, .hubs = 8});
  EXPECT_LE(Series(HubFamilies(host, MetricsDetail::kPort)), 1100u);
  EXPECT_LT(Series(HubFamilies(host, MetricsDetail::kHub)), 200u);
}

TEST(HubMetrics, VirtualChannelsAreToldOfHubsThatWereAskedFor) {
  HostState host = HostOfASupernode();
  NodeState other = host.nodes[0];
  other.node = 10;  // sn0-d1-h2
  host.nodes.push_back(other);
  MetricFamilies families;
  AddHubMetrics(host, {MetricsDetail::kPort, {{9, MetricsDetail::kVc}}}, &families);
  const Families list = families.Take();
  const auto* bytes = Find(list, "percs_vc_transmitted_bytes_total", {{"hub", "sn0-d1-h1"}, {"port", "LL3"}, {"class", "LL"}, {"vc", "0"}});
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes->counter.value, 103);
  EXPECT_EQ(Find(list, "percs_vc_transmitted_bytes_total", {{"hub", "sn0-d1-h2"}, {"port", "LL3"}, {"class", "LL"}, {"vc", "0"}}), nullptr);
  EXPECT_NE(Find(list, "percs_link_transmitted_bytes_total", {{"hub", "sn0-d1-h2"}, {"port", "LL3"}, {"class", "LL"}}), nullptr);
}

TEST(HubMetrics, SumsByClassAreThoseOfThePorts) {
  const HostState host = HostOfASupernode();
  double sum = 0;
  for (int port = 0; port < 7; ++port) sum += 100 + port;
  const Families families = HubFamilies(host, MetricsDetail::kHub);
  const auto* bytes = Find(families, "percs_link_transmitted_bytes_total",
                           {{"hub", "sn0-d1-h1"}, {"class", "LL"}});
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes->counter.value, sum);
  const auto* up = Find(families, "percs_link_up", {{"hub", "sn0-d1-h1"}, {"class", "LL"}});
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->gauge.value, 6);
}

TEST(Metrics, ThePageHasEachOfThemAndNoOther) {
  HostState host = HostOfASupernode();
  ASSERT_TRUE(host.topology->AddBlade({"blade0", "sn0-d0-h0"}).ok());
  NodeState blade;
  blade.node = host.topology->hubs();
  host.nodes.push_back(blade);
  host.nodes.front().stats.Hfi(0, HfiCounter::kSent) = 1;  // a window is used
  host.nodes.front().stats.Pcie(1, PcieCounter::kBytesIn) = 1;  // and a device
  { const CallRecord call(&CallsOf("/percs.v1.Control/Status"), CallType::kUnary); }
  MetricFamilies families;
  AddHubMetrics(host, {MetricsDetail::kVc}, &families);
  AddProcessMetrics(&families);
  AddFabricMetrics({}, &families);
  std::set<std::string> emitted, documented;
  for (const auto& family : families.Take()) emitted.insert(family.name);
  std::ifstream page(test::SourceDir() + "/docs/metrics.md");
  const std::regex row("^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\|.*");
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, match, row)) documented.insert(match[1]);
  }
  EXPECT_EQ(emitted, documented);
}

TEST(CallMetrics, AreThoseOfTheMethodAndOfHowItEnded) {
  const std::map<std::string, std::string> exchange = {
      {"grpc_type", "bidi_stream"}, {"grpc_service", "percs.v1.Link"}, {"grpc_method", "Exchange"}};
  const std::map<std::string, std::string> unknown = {
      {"grpc_type", "unary"}, {"grpc_service", "unknown"}, {"grpc_method", "unknown"}};
  {
    CallRecord ended(&CallsOf(kExchangePath), CallType::kBidiStream);
    const CallRecord cancelled(&CallsOf(kExchangePath), CallType::kBidiStream);
    for (int i = 0; i < 3; ++i) ended.Received();
    ended.Sent();
    ended.Ended(grpc::StatusCode::FAILED_PRECONDITION);
    for (const char* nobodys : {"/nobody/Serves", "/percs.v1.Link/This", ""}) {
      const CallRecord call(&CallsOf(nobodys), CallType::kUnary);
    }
  }
  MetricFamilies families;
  AddCallMetrics(&families);
  const Families list = families.Take();
  const auto handled = [&](std::map<std::string, std::string> labels, const std::string& code) {
    labels["grpc_code"] = code;
    const auto* sample = Find(list, "grpc_server_handled_total", labels);
    return sample == nullptr ? -1.0 : sample->counter.value;
  };
  EXPECT_EQ(Find(list, "grpc_server_started_total", exchange)->counter.value, 2);
  EXPECT_EQ(handled(exchange, "FailedPrecondition"), 1);
  EXPECT_EQ(handled(exchange, "Canceled"), 1);
  EXPECT_EQ(handled(exchange, "OK"), 0);
  EXPECT_EQ(handled(exchange, "Unavailable"), -1) << "no series for what never happened";
  EXPECT_EQ(Find(list, "grpc_server_msg_received_total", exchange)->counter.value, 3);
  EXPECT_EQ(Find(list, "grpc_server_msg_sent_total", exchange)->counter.value, 1);
  const auto& took = Find(list, "grpc_server_handling_seconds", exchange)->histogram;
  EXPECT_EQ(took.sample_count, 2u);
  EXPECT_EQ(took.bucket.size(), kCallSecondsEdges.size() + 1);
  EXPECT_EQ(took.bucket.back().cumulative_count, 2u);
  EXPECT_EQ(Find(list, "grpc_server_started_total", unknown)->counter.value, 3) << "one series for all of them";
}

TEST(FabricMetrics, SayTheStateAndWhereDaemonsAre) {
  v1::StatusReply status;
  status.set_state(v1::FABRIC_STATE_RUNNING);
  status.set_pace(2'000'000);
  auto* process = status.add_processes();
  process->set_connected(true);
  process->set_metrics_address("node7:9464");
  status.add_processes();
  auto* cut = status.add_faults();
  cut->set_id("cut");
  cut->set_kind("link_down");
  cut->set_phase("active");
  cut->add_targets("sn0-d0-h0:LL0");
  cut->set_selected(3);
  auto* later = status.add_faults();
  later->set_id("later");
  later->set_kind("flap");
  later->set_phase("scheduled");
  status.set_faults_active(7);
  MetricFamilies families;
  AddFabricMetrics(status, &families);
  const Families list = families.Take();
  const auto fault = [&](const std::string& id, const std::string& kind, const std::string& target) {
    const auto* found = Find(list, "percs_fault_info", {{"fault", id}, {"kind", kind}, {"target", target}});
    return found ? found->gauge.value : -1;
  };
  EXPECT_EQ(fault("cut", "link_down", "sn0-d0-h0:LL0 and 2 more"), 1);
  EXPECT_EQ(fault("later", "flap", ""), 0);
  EXPECT_EQ(fault("_overflow", "", ""), 5);
  EXPECT_EQ(Find(list, "percs_clock_state", {{"state", "running"}})->gauge.value, 1);
  EXPECT_EQ(Find(list, "percs_clock_state", {{"state", "idle"}})->gauge.value, 0);
  EXPECT_DOUBLE_EQ(Find(list, "percs_pace_requested", {})->gauge.value, 2e-6);
  EXPECT_EQ(Find(list, "percs_daemons", {})->gauge.value, 1);
  EXPECT_EQ(DiscoveryList(status, "here:1"),
            R"([{"labels":{"role":"controller"},"targets":["here:1"]},)"
            R"({"labels":{"role":"daemon"},"targets":["node7:9464"]}])");
}

// What the server answers to `request`, until it closes.
std::string Ask(const std::string& address, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  inet_pton(AF_INET, "127.0.0.1", &where.sin_addr);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof(where)) == 0) {
    EXPECT_EQ(send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(n));
    }
  }
  close(fd);
  return answer;
}

TEST(MetricsServer, AnswersItsPagesAndNoOthers) {
  auto server = MetricsServer::Start("127.0.0.1:0", {MetricsPage(AddProcessMetrics)});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string answer = Ask((*server)->address(), "GET /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("# TYPE process_resident_memory_bytes gauge"));
  EXPECT_THAT(answer, HasSubstr("percs_build_info{version="));
  EXPECT_THAT(Ask((*server)->address(), "GET /else HTTP/1.0\r\n\r\n"), HasSubstr("404"));
  EXPECT_THAT(Ask((*server)->address(), "nonsense\r\n\r\n"), HasSubstr("400"));
  EXPECT_THAT(Ask((*server)->address(), "GET /metrics HTTP/1.0\r\n\r\n"), HasSubstr("200 OK"));
}

TEST(MetricsServer, SaysWhyItCannotListen) {
  auto first = MetricsServer::Start("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(std::string(MetricsServer::Start((*first)->address(), {}).status().message()),
              HasSubstr("the port is taken"));
  EXPECT_THAT(std::string(MetricsServer::Start("unix:/tmp/x", {}).status().message()),
              HasSubstr("HOST:PORT only"));
}

}  // namespace
}  // namespace percs
