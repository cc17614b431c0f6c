#include "daemon/metrics/metrics_server.h"

#include <unistd.h>

#include <array>

#include "CivetServer.h"
#include "daemon/config/address.h"
#include "daemon/metrics/families.h"
#include "fmt/format.h"
#include "prometheus/text_serializer.h"

namespace percs {
namespace {

constexpr char kThreads[] = "16";
constexpr char kQueue[] = "16";             // connections that wait for a thread
constexpr char kDeadlineMilliseconds[] = "500";

bool IsAnyAddress(const std::string& host) { return host == "0.0.0.0" || host == "[::]"; }

}  // namespace

class MetricsServer::Handler final : public CivetHandler {
 public:
  Handler(Page page, const MetricsServer* server) : page_(std::move(page)), server_(server) {}
  const std::string& path() const { return page_.path; }

  bool handleGet(CivetServer*, mg_connection* connection) override {
    const std::string body = page_.body(*server_);
    mg_printf(connection,
              "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
              "Connection: close\r\n\r\n",
              page_.type.c_str(), body.size());
    mg_write(connection, body.data(), body.size());
    return true;
  }

 private:
  const Page page_;
  const MetricsServer* const server_;
};

MetricsServer::MetricsServer() = default;
MetricsServer::~MetricsServer() = default;

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                                    std::vector<Page> pages) {
  const auto where = ParseAddress(address, 0);
  if (!where.ok()) return where.status();
  if (where->is_unix()) {
    return absl::InvalidArgumentError(
        fmt::format("metrics at {}: Prometheus scrapes HOST:PORT only", address));
  }
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  const std::vector<std::string> options = {
      "listening_ports",    fmt::format("{}:{}", where->host, where->port),
      "num_threads",        kThreads,
      "connection_queue",   kQueue,
      "request_timeout_ms", kDeadlineMilliseconds,
      "enable_keep_alive",  "no"};
  try {
    server->server_ = std::make_unique<CivetServer>(options);
  } catch (const CivetException&) {
    return absl::UnavailableError(fmt::format(
        "cannot serve metrics at {}: the port is taken, or this is not an address of this host",
        address));
  }
  const std::vector<int> ports = server->server_->getListeningPorts();
  server->address_ = fmt::format("{}:{}", where->host, ports.empty() ? where->port : ports.front());
  for (Page& page : pages) {
    server->handlers_.push_back(std::make_unique<Handler>(std::move(page), server.get()));
    Handler* const handler = server->handlers_.back().get();
    server->server_->addHandler(handler->path() + "$", handler);
  }
  return server;
}

std::string MetricsServer::advertised() const {
  const std::size_t colon = address_.rfind(':');
  if (!IsAnyAddress(address_.substr(0, colon))) return address_;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return address_;
  return name.data() + address_.substr(colon);
}

MetricsServer::Page MetricsPage(std::function<void(MetricFamilies*)> families) {
  return {"/metrics", "text/plain; version=0.0.4; charset=utf-8", [families = std::move(families)](const MetricsServer&) {
            MetricFamilies list;
            families(&list);
            return prometheus::TextSerializer().Serialize(list.Take());
          }};
}

}  // namespace percs
