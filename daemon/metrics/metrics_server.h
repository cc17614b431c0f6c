// A small HTTP server for what Prometheus asks. A few connections at a time, each with a deadline, so
// that slow or many clients cost nothing but their own answers.
//
// THREAD: pages are made in the server's threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

class CivetServer;

namespace percs {

class MetricFamilies;

class MetricsServer {
 public:
  struct Page {
    std::string path;  // "/metrics"
    std::string type;  // "application/json"
    std::function<std::string(const MetricsServer&)> body;
  };
  // `address` is HOST:PORT, port 0 for any free one. INVALID_ARGUMENT or UNAVAILABLE says why it
  // cannot listen.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address,
                                                              std::vector<Page> pages);
  ~MetricsServer();
  // HOST:PORT as bound.
  const std::string& address() const { return address_; }
  // ... as others reach it: the name of this machine if it listens on all addresses.
  std::string advertised() const;

 private:
  class Handler;
  MetricsServer();

  std::string address_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  std::unique_ptr<CivetServer> server_;
};

// The page for `families`, in the text format of Prometheus.
MetricsServer::Page MetricsPage(std::function<void(MetricFamilies*)> families);

}  // namespace percs
