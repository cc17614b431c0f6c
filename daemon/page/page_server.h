// The page of a fabric for browsers, and what it asks for: its files, GET /api/events
// (fabric_feed.h) and POST /api/METHOD (control_gateway.h). A small HTTP server (libmicrohttpd) on
// loopback, or with TLS and the certificates of roles. Connections, readers, requests under way and
// bodies are limited; answers carry headers that keep other pages out.
//
// docs/page.md
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "daemon/page/control_gateway.h"
#include "daemon/page/fabric_feed.h"
#include "daemon/page/page_guard.h"
#include "grpcpp/channel.h"

struct MHD_Daemon;

namespace percs {

struct PageOptions {
  std::string address;             // HOST:PORT, port 0 for any free one
  std::string tls;                 // folder of the controller's identity; "": plain HTTP
  bool plaintext_allowed = false;  // also where other networks reach it
  std::string token_file = {};     // keeps the token of the link; "": a new one at every start
  Role anybody = Role::kOperator;  // of a caller without TLS
};

class PageServer {
 public:
  // `control`: the controller's own Control service, within this process. `look` is called from a
  // thread of this, and never again when this is gone; it may call back later. Errors as those of
  // ListenForHttp, and of reading the identity.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(
      const PageOptions& options, const std::shared_ptr<grpc::Channel>& control, LookAtFabric look);
  ~PageServer();

  // The link that opens the page, with its token: `http://127.0.0.1:4711/#6f1c...`.
  std::string link() const;

 private:
  friend struct PageRequests;
  struct Stop {
    void operator()(MHD_Daemon* daemon) const;
  };
  PageServer(const std::string& address, std::string authority, std::string token, Role anybody,
             const std::shared_ptr<grpc::Channel>& control, LookAtFabric look);
  void Listen(const std::string& identity, int socket);

  const std::string address_, authority_;
  const PageGuard guard_;
  ControlGateway gateway_;
  FabricFeed feed_;
  const std::thread::id starter_ = std::this_thread::get_id();
  std::string problem_;                       // what the library said while it started
  std::unique_ptr<MHD_Daemon, Stop> daemon_;  // last: it uses the others until it has stopped
};

}  // namespace percs
