// What a scrape answers. Method: hubs with known counters, looked up by name and label; the list of
// metrics held against the page that documents them; a real socket for the server.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "daemon/metrics/call_metrics.h"
#include "daemon/metrics/fabric_metrics.h"
#include "daemon/metrics/hub_metrics.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/metrics/process_metrics.h"
#include "daemon/stream/call_meter.h"
#include "emulator/metrics/named_counters.h"
#include "tests/support/source_dir.h"

namespace percs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

HostState HostOfASupernode() {
  HostState host;
  host.topology =
      *Topology::Create({.supernodes = 2, .drawers = 4, .hubs = 8, .d_links_per_pair = 4});
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
  hub.stats.packet_latency.Add(150'000);            // 150 ns
  hub.stats.packet_latency.Add(40'000'000);         // 40 us
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

using LabelMap = std::map<std::string, std::string>;

// A page in the text format of Prometheus, read line by line; what is not in that format fails the
// test.
class Page {
 public:
  explicit Page(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) Read(line);
  }
  explicit Page(const MetricFamilies& families) : Page(families.Text()) {}

  std::optional<double> Value(const std::string& name, const LabelMap& labels) const {
    const auto found = series_.find({name, labels});
    return found == series_.end() ? std::nullopt : std::optional(found->second);
  }
  bool Has(const std::string& name, const LabelMap& labels) const {
    return Value(name, labels).has_value();
  }
  // Of a histogram by upper edge.
  std::map<double, double> Buckets(const std::string& name, const LabelMap& labels) const {
    std::map<double, double> below;
    for (const auto& [key, value] : series_) {
      LabelMap without = key.second;
      const auto edge = without.find("le");
      if (key.first != name + "_bucket" || edge == without.end()) continue;
      const double upper = std::stod(edge->second);
      without.erase(edge);
      if (without == labels) below[upper] = value;
    }
    return below;
  }
  std::size_t size() const { return series_.size(); }
  // "percs_link_up gauge"
  const std::set<std::string>& families() const { return families_; }

 private:
  void Read(const std::string& line) {
    static const std::regex type("# TYPE ([a-z_]+) (counter|gauge|histogram)"),
        help("# HELP ([a-z_]+) .+");
    static const std::regex series(
        "([a-z_]+)(?:\\{((?:[a-z_]+=\"(?:[^\"\\\\]|\\\\.)*\",?)+)\\})? (\\S+)");
    static const std::regex label("([a-z_]+)=\"((?:[^\"\\\\]|\\\\.)*)\"");
    std::smatch match;
    if (std::regex_match(line, match, type)) {
      family_ = match[1];
      EXPECT_TRUE(families_.insert(family_ + " " + match[2].str()).second)
          << line << ": a family has to be in one piece";
    } else if (!std::regex_match(line, match, help)) {
      ASSERT_TRUE(std::regex_match(line, match, series)) << line;
      EXPECT_EQ(match[1].str().rfind(family_, 0), 0u) << line << " stands with " << family_;
      const std::string list = match[2];
      LabelMap labels;
      for (std::sregex_iterator it(list.begin(), list.end(), label), end; it != end; ++it)
        labels[(*it)[1]] = (*it)[2];
      EXPECT_TRUE(series_.emplace(std::pair(match[1].str(), labels), std::stod(match[3])).second)
          << line << " twice";
    }
  }

  std::map<std::pair<std::string, LabelMap>, double> series_;
  std::set<std::string> families_;
  std::string family_;
};

Page HubPage(const HostState& host, MetricsDetail detail) {
  MetricFamilies families;
  AddHubMetrics(host, {detail}, &families);
  return Page(families);
}

TEST(HubMetrics, CarryTheHubsNameAndBaseUnits) {
  const Page page = HubPage(HostOfASupernode(), MetricsDetail::kPort);
  const auto of_port = [](const char* port, const char* link_class) {
    return LabelMap{{"hub", "sn0-d1-h1"}, {"port", port}, {"class", link_class}};
  };
  EXPECT_EQ(page.Value("percs_link_transmitted_bytes_total", of_port("LL3", "LL")), 103);
  EXPECT_EQ(page.Value("percs_link_credit_stall_seconds_total", of_port("LR5", "LR")), 2e-6);
  EXPECT_EQ(page.Value("percs_link_up", of_port("LL0", "LL")), 0);
  EXPECT_EQ(page.Value("percs_link_up", of_port("LL1", "LL")), 1);
  EXPECT_EQ(page.Value("percs_link_down_total", of_port("LL0", "LL")), 3);
  EXPECT_EQ(
      page.Value(
          "percs_link_info",
          {{"hub", "sn0-d1-h1"}, {"port", "LL0"}, {"peer", "sn0-d1-h0"}, {"peer_port", "LL0"}}),
      1);
  EXPECT_EQ(
      page.Value("percs_packets_dropped_total", {{"hub", "sn0-d1-h1"}, {"reason", "no_route"}}), 5);
  EXPECT_EQ(page.Value("percs_virtual_time_seconds_total", {}), 3e-6);
}

TEST(HubMetrics, ServicePortAndCauAreCounted) {
  const Page page = HubPage(HostOfASupernode(), MetricsDetail::kHub);
  const auto value = [&](const std::string& name, LabelMap labels) {
    labels["hub"] = "sn0-d1-h1";
    return page.Value(name, labels);
  };
  EXPECT_EQ(value("percs_service_events_total", {{"event", "request"}}), 0);
  EXPECT_EQ(value("percs_service_events_total", {{"event", "answer"}}), 3);
  EXPECT_EQ(value("percs_service_events_total", {{"event", "unanswered"}}), 0);
  EXPECT_EQ(value("percs_service_events_total", {{"event", "wrong_partner"}}), 1);
  EXPECT_EQ(value("percs_service_round_trip_seconds_total", {}), 6e-6);
  EXPECT_EQ(value("percs_service_flits_total", {}), 9);
  EXPECT_EQ(value("percs_cau_events_total", {{"counter", "reductions"}}), 12);
  EXPECT_EQ(value("percs_cau_operations_total", {{"op", "sum"}, {"dtype", "double"}}), 11);
  EXPECT_EQ(value("percs_cau_events_total", {{"counter", "results_right"}}), 12);
  EXPECT_EQ(value("percs_cau_events_total", {{"counter", "results_wrong"}}), 0);
}

TEST(HubMetrics, LatenciesAreCumulativeAndInSeconds) {
  const Page page = HubPage(HostOfASupernode(), MetricsDetail::kPort);
  const LabelMap hub = {{"hub", "sn0-d1-h1"}};
  EXPECT_EQ(page.Value("percs_packet_latency_seconds_count", hub), 3);
  EXPECT_NEAR(page.Value("percs_packet_latency_seconds_sum", hub).value_or(0), 2.00004015, 1e-9);
  std::map<double, double> below = page.Buckets("percs_packet_latency_seconds", hub);
  EXPECT_EQ(below.size(), LatencyEdges().size() + 1);
  EXPECT_EQ(below[1e-7], 0);
  EXPECT_EQ(below[2e-7], 1);
  EXPECT_EQ(below[2e-5], 1);
  EXPECT_EQ(below[5e-5], 2);
  EXPECT_EQ(below[1], 2);
  EXPECT_EQ(below.rbegin()->second, 3);
}

TEST(HubMetrics, SeriesOfAHubAreBounded) {
  // All 47 links connected.
  HostState host = HostOfASupernode();
  host.topology = *Topology::Create({.supernodes = 513, .drawers = 4, .hubs = 8});
  EXPECT_LE(HubPage(host, MetricsDetail::kPort).size(), 1100u);
  EXPECT_LT(HubPage(host, MetricsDetail::kHub).size(), 200u);
}

TEST(HubMetrics, VirtualChannelsAreToldOfHubsThatWereAskedFor) {
  HostState host = HostOfASupernode();
  NodeState other = host.nodes[0];
  other.node = 10;  // sn0-d1-h2
  host.nodes.push_back(other);
  MetricFamilies families;
  AddHubMetrics(host, {MetricsDetail::kPort, {{9, MetricsDetail::kVc}}}, &families);
  const Page page(families);
  const auto of_hub = [](const char* hub) {
    return LabelMap{{"hub", hub}, {"port", "LL3"}, {"class", "LL"}};
  };
  LabelMap channel = of_hub("sn0-d1-h1"), others = of_hub("sn0-d1-h2");
  channel["vc"] = others["vc"] = "0";
  EXPECT_EQ(page.Value("percs_vc_transmitted_bytes_total", channel), 103);
  EXPECT_FALSE(page.Has("percs_vc_transmitted_bytes_total", others));
  EXPECT_TRUE(page.Has("percs_link_transmitted_bytes_total", of_hub("sn0-d1-h2")));
}

TEST(HubMetrics, SumsByClassAreThoseOfThePorts) {
  double sum = 0;
  for (int port = 0; port < 7; ++port) sum += 100 + port;
  const Page page = HubPage(HostOfASupernode(), MetricsDetail::kHub);
  EXPECT_EQ(
      page.Value("percs_link_transmitted_bytes_total", {{"hub", "sn0-d1-h1"}, {"class", "LL"}}),
      sum);
  EXPECT_EQ(page.Value("percs_link_up", {{"hub", "sn0-d1-h1"}, {"class", "LL"}}), 6);
}

TEST(Metrics, ThePageHasEachOfThemAndNoOther) {
  HostState host = HostOfASupernode();
  ASSERT_TRUE(host.topology->AddBlade({"blade0", "sn0-d0-h0"}).ok());
  NodeState blade;
  blade.node = host.topology->hubs();
  host.nodes.push_back(blade);
  host.nodes.front().stats.Hfi(0, HfiCounter::kSent) = 1;  // a window is used
  host.nodes.front().stats.nmmu_hits = 1;
  host.nodes.front().stats.Pcie(1, PcieCounter::kBytesIn) = 1;  // and a device
  { const CallRecord call(&CallsOf("/percs.v1.Control/Status"), CallType::kUnary); }
  // The controller has virtual time, too, but is another process.
  MetricFamilies daemon, controller;
  AddHubMetrics(host, {MetricsDetail::kVc}, &daemon);
  AddProcessMetrics(&daemon);
  AddFabricMetrics({}, &controller);
  std::set<std::string> emitted = Page(daemon).families(), documented;
  emitted.merge(std::set<std::string>(Page(controller).families()));
  std::ifstream page(test::SourceDir() + "/docs/metrics.md");
  // Without an empty cell.
  const std::regex row("^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| [^|]+ \\| [^|]+ \\|");
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, match, row))
      documented.insert(match[1].str() + " " + match[2].str());
  }
  // Of a counter without a line of its own, the page says how its metric is named.
  for (const NamedCounter& counter : NamedCounters()) {
    if (counter.row->metric.name == nullptr && !counter.metric.empty()) {
      EXPECT_EQ(emitted.erase(counter.metric + " counter"), 1u) << counter.metric;
    }
  }
  EXPECT_EQ(emitted, documented);
}

TEST(CallMetrics, AreThoseOfTheMethodAndOfHowItEnded) {
  const LabelMap exchange = {
      {"grpc_type", "bidi_stream"}, {"grpc_service", "percs.v1.Link"}, {"grpc_method", "Exchange"}};
  const LabelMap unknown = {
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
  const Page page(families);
  const auto handled = [&](LabelMap labels, const std::string& code) {
    labels["grpc_code"] = code;
    return page.Value("grpc_server_handled_total", labels);
  };
  EXPECT_EQ(page.Value("grpc_server_started_total", exchange), 2);
  EXPECT_EQ(handled(exchange, "FailedPrecondition"), 1);
  EXPECT_EQ(handled(exchange, "Canceled"), 1);
  EXPECT_EQ(handled(exchange, "OK"), 0);
  EXPECT_EQ(handled(exchange, "Unavailable"), std::nullopt) << "no series for what never happened";
  EXPECT_EQ(page.Value("grpc_server_msg_received_total", exchange), 3);
  EXPECT_EQ(page.Value("grpc_server_msg_sent_total", exchange), 1);
  EXPECT_EQ(page.Value("grpc_server_handling_seconds_count", exchange), 2);
  const auto took = page.Buckets("grpc_server_handling_seconds", exchange);
  EXPECT_EQ(took.size(), kCallSecondsEdges.size() + 1);
  EXPECT_EQ(took.rbegin()->second, 2);
  EXPECT_EQ(page.Value("grpc_server_started_total", unknown), 3) << "one series for all of them";
}

TEST(FabricMetrics, SayTheStateAndWhereDaemonsAre) {
  v1::StatusReply status;
  status.set_state(v1::FABRIC_STATE_RUNNING);
  status.set_pace(2'000'000);
  auto* process = status.add_processes();
  process->set_connected(true);
  process->set_metrics_address("node7:9464");
  process->set_name("d7");
  process->set_process(3);
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
  const Page page(families);
  const auto fault = [&](const std::string& id, const std::string& kind,
                         const std::string& target) {
    return page.Value("percs_fault_info", {{"fault", id}, {"kind", kind}, {"target", target}});
  };
  EXPECT_EQ(fault("cut", "link_down", "sn0-d0-h0:LL0 and 2 more"), 1);
  EXPECT_EQ(fault("later", "flap", ""), 0);
  EXPECT_EQ(fault("_overflow", "", ""), 5);
  EXPECT_EQ(page.Value("percs_clock_state", {{"state", "running"}}), 1);
  EXPECT_EQ(page.Value("percs_clock_state", {{"state", "idle"}}), 0);
  EXPECT_EQ(page.Value("percs_pace_requested", {}), 2e-6);
  EXPECT_EQ(page.Value("percs_daemons", {}), 1);
  const std::string own =
      R"j([{"labels":{"instance":"controller","role":"controller"},"targets":["here:1"]},)j";
  EXPECT_EQ(DiscoveryList(status, "here:1"),
            own + R"j({"labels":{"instance":"d7 (place 3)","role":"daemon"},)j"
                  R"j("targets":["node7:9464"]}])j");
  process = status.mutable_processes(0);
  process->set_metrics_address("https://node7:9464");
  EXPECT_EQ(DiscoveryList(status, "here:1"),
            own + R"j({"labels":{"__scheme__":"https","instance":"d7 (place 3)","role":"daemon"},)j"
                  R"j("targets":["node7:9464"]}])j");
}

// A client of `address`, HOST:PORT.
class Client {
 public:
  explicit Client(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    inet_pton(AF_INET, "127.0.0.1", &where.sin_addr);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&where), sizeof(where)), 0);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(fd_); }

  void Send(const std::string& text) {
    EXPECT_EQ(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // What comes until `last` was seen, or until the server closes.
  std::string Receive(const std::string& last = "") {
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = recv(fd_, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(n));
      if (!last.empty() && answer.find(last) != std::string::npos) break;
    }
    return answer;
  }
  // Whether the server has closed it, without waiting.
  bool IsClosed() {
    char byte;
    return recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

 private:
  const int fd_;
};

std::string Ask(const std::string& address, const std::string& request) {
  Client client(address);
  client.Send(request);
  return client.Receive();
}

constexpr char kGet[] = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";
MetricsServer::Page SmallPage() {
  return {"/page", "text/plain", [](const MetricsServer&) { return std::string("small page"); }};
}

TEST(MetricsServer, AnswersItsPagesAndNoOthers) {
  auto server = MetricsServer::Start("127.0.0.1:0", "", {MetricsPage(AddProcessMetrics)});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  EXPECT_EQ((*server)->url(), "http://" + address + "/metrics");
  EXPECT_EQ((*server)->advertised(), address);
  const std::string answer = Ask(address, "GET /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  const Page page(answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_GT(page.Value("process_resident_memory_bytes", {}).value_or(0), 1e6);
  EXPECT_GT(page.Value("process_open_fds", {}).value_or(0), 3);
  EXPECT_GT(page.Value("process_threads", {}).value_or(0), 1);
  const double started = page.Value("process_start_time_seconds", {}).value_or(0);
  EXPECT_LE(started, std::time(nullptr) + 1.0);
  EXPECT_GT(started, std::time(nullptr) - 7200.0);
  EXPECT_TRUE(page.families().contains("percs_build_info gauge"));
  EXPECT_THAT(Ask(address, "GET /else HTTP/1.0\r\n\r\n"), HasSubstr("404"));
  EXPECT_THAT(Ask(address, "GET /metrics/ HTTP/1.0\r\n\r\n"), HasSubstr("404"));
  EXPECT_THAT(Ask(address, "POST /metrics HTTP/1.0\r\nContent-Length: 4\r\n\r\nfour"),
              HasSubstr("405"));
  EXPECT_THAT(Ask(address, "GET /metrics HTTP/1.0\r\nContent-Length: 4\r\n\r\nfour"),
              Not(HasSubstr("200")));
  EXPECT_THAT(Ask(address, "nonsense\r\n\r\n"), Not(HasSubstr("200")));
  EXPECT_THAT(Ask(address, "GET /metrics HTTP/1.0\r\n\r\n"), HasSubstr("200 OK"));
}

TEST(MetricsServer, AnswersManyRequestsOnOneConnection) {
  auto server = MetricsServer::Start("127.0.0.1:0", "", {SmallPage()});
  ASSERT_TRUE(server.ok()) << server.status();
  Client client((*server)->address());
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    EXPECT_THAT(client.Receive("small page"), HasSubstr("200 OK"));
  }
  client.Send(std::string(kGet) + "GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string both = client.Receive();
  EXPECT_NE(both.find("small page"), both.rfind("small page"));
}

TEST(MetricsServer, WhoSaysNothingMakesRoom) {
  auto server = MetricsServer::Start("127.0.0.1:0", "", {SmallPage()});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  constexpr std::size_t kMany = 300;  // more than may be connected
  const std::string kOnce = "GET /page HTTP/1.0\r\n\r\n";
  std::vector<std::unique_ptr<Client>> silent;
  Client regular(address);
  for (std::size_t i = 0; i < kMany; ++i) {
    silent.push_back(std::make_unique<Client>(address));
    if (i % 2 == 0) silent.back()->Send("GET /pa");
    if (i % 20 != 0) continue;
    // Connections are taken in their order: whoever has an answer knows that none before waits any
    // more.
    ASSERT_THAT(Ask(address, kOnce), HasSubstr("small page")) << "after " << i;
    regular.Send(kGet);  // it has had an answer later than any of them
    ASSERT_THAT(regular.Receive("small page"), HasSubstr("200 OK")) << "after " << i;
  }
  EXPECT_THAT(Ask(address, kOnce), HasSubstr("small page"));
  EXPECT_EQ(silent[1]->Receive(), "");  // until it is closed
  EXPECT_FALSE(regular.IsClosed());
}

TEST(MetricsServer, ClosesWhatSaysNothingForLong) {
  auto server = MetricsServer::Start("127.0.0.1:0", "", {SmallPage()});
  ASSERT_TRUE(server.ok()) << server.status();
  Client silent((*server)->address());
  EXPECT_EQ(silent.Receive(), "");
}

TEST(MetricsServer, SaysWhyItCannotListen) {
  auto first = MetricsServer::Start("127.0.0.1:0", "", {});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto why = [](const std::string& address, const std::string& tls) {
    return std::string(MetricsServer::Start(address, tls, {}).status().message());
  };
  EXPECT_THAT(why((*first)->address(), ""), HasSubstr("the port is taken"));
  EXPECT_THAT(why("192.0.2.1:0", ""), HasSubstr("not an address of this host"));
  EXPECT_THAT(why("unix:/tmp/x", ""), HasSubstr("HOST:PORT only"));
  EXPECT_THAT(why("0.0.0.0:0", ""), HasSubstr("give --metrics-tls FILE"));
  EXPECT_TRUE(MetricsServer::Start("0.0.0.0:0", "", {}, true).ok());
  EXPECT_THAT(why("127.0.0.1:0", "/nowhere/identity.pem"),
              HasSubstr("/nowhere/identity.pem: No such file"));
  EXPECT_THAT(why("127.0.0.1:0", test::SourceDir() + "/README.md"),
              HasSubstr("a private key and its certificate"));
}

}  // namespace
}  // namespace percs
