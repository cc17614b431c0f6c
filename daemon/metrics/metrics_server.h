// A small HTTP server for what Prometheus asks, plain or with TLS (libmicrohttpd). One thread
// answers all clients, and a client may stay connected after an answer. The number of connections
// is limited: one more replaces the one that has waited longest without an answer, so that slow or
// many clients delay only themselves.
//
// THREAD: pages are made in the server's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace percs {

class MetricFamilies;

class MetricsServer {
 public:
  struct Page {
    std::string path;  // "/metrics"
    std::string type;  // "application/json"
    std::function<std::string(const MetricsServer&)> body;
  };
  // `address` is HOST:PORT, port 0 for any free one. `tls` is a file with a private key and its
  // certificate, of TLS 1.2 or newer; "": plain HTTP, which goes no farther than loopback and
  // private networks unless `plaintext_allowed` (FAILED_PRECONDITION). INVALID_ARGUMENT, NOT_FOUND
  // or UNAVAILABLE says why it cannot listen.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address,
                                                              const std::string& tls,
                                                              std::vector<Page> pages,
                                                              bool plaintext_allowed = false);
  ~MetricsServer();
  // HOST:PORT as bound.
  const std::string& address() const { return address_; }
  // ... as others reach it: the name of this machine if it listens on all addresses, and `https://`
  // before it if it speaks TLS.
  std::string advertised() const;
  // `https://HOST:PORT/metrics` as bound.
  std::string url() const;

 private:
  struct Requests;
  struct Stop {
    void operator()(MHD_Daemon* daemon) const;
  };
  explicit MetricsServer(std::vector<Page> pages) : pages_(std::move(pages)) {}
  const Page* Find(const std::string& path) const;
  void Listen(const std::string& tls_identity, int socket);

  const std::vector<Page> pages_;
  std::string address_;
  bool encrypted_ = false;
  std::vector<int>
      open_;  // sockets; the one that has been without an answer for longest is the first
  const std::thread::id starter_ = std::this_thread::get_id();
  std::string problem_;                       // what the library said while it started
  std::unique_ptr<MHD_Daemon, Stop> daemon_;  // last: it uses the others until it has stopped
};

// The page for `families`, in the text format of Prometheus.
MetricsServer::Page MetricsPage(std::function<void(MetricFamilies*)> families);

}  // namespace percs
