#include "daemon/page/page_server.h"

#include <microhttpd.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <utility>
#include <vector>

#include "daemon/config/http_socket.h"
#include "daemon/page/page_requests.h"
#include "fmt/format.h"
#include "proto/security/certificate.h"

namespace percs {
namespace {

constexpr unsigned kConnections = 64;
constexpr unsigned kSilenceSeconds = 3;          // of a client that neither asks nor reads
constexpr std::size_t kConnectionBytes = 65536;  // its head, and what is written at once
constexpr HttpPurpose kPurpose = {"the page", "browsers open", "--tls FOLDER"};

void KeepProblem(void* text, const char* format, va_list arguments) {
  std::array<char, 512> said{};
  std::vsnprintf(said.data(), said.size(), format, arguments);
  auto* const problem = static_cast<std::string*>(text);
  *problem = said.data();
  while (!problem->empty() && problem->back() == '\n') problem->pop_back();
}

}  // namespace

void PageServer::Stop::operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }

PageServer::PageServer(const std::string& address, std::string authority, std::string token,
                       Role anybody, const std::shared_ptr<grpc::Channel>& control,
                       LookAtFabric look)
    : address_(address),
      authority_(std::move(authority)),
      guard_(address, std::move(token), authority_, anybody),
      gateway_(control),
      feed_(control, std::move(look)) {}

PageServer::~PageServer() {
  if (daemon_) close(MHD_quiesce_daemon(daemon_.get()));
  gateway_.Cancel();  // no call may be under way when the library stops
  feed_.Stop();
}

void PageServer::Listen(const std::string& identity, int socket) {
  unsigned flags =
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
  if (!authority_.empty()) flags |= MHD_USE_TLS;
  std::vector<MHD_OptionItem> tls = HttpTlsOptions(identity, authority_);
  daemon_.reset(MHD_start_daemon(flags, 0, nullptr, nullptr, &PageRequests::OnRequest, this,  //
                                 MHD_OPTION_EXTERNAL_LOGGER, &PageRequests::OnLog, this,      //
                                 MHD_OPTION_LISTEN_SOCKET, socket,                            //
                                 MHD_OPTION_NOTIFY_COMPLETED, &PageRequests::OnCompleted, this,
                                 MHD_OPTION_CONNECTION_LIMIT, kConnections,
                                 MHD_OPTION_CONNECTION_TIMEOUT, kSilenceSeconds,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,
                                 MHD_OPTION_ARRAY, tls.data(), MHD_OPTION_END));
}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(
    const PageOptions& options, const std::shared_ptr<grpc::Channel>& control, LookAtFabric look) {
  Identity identity;
  if (!options.tls.empty()) {
    auto read = ReadIdentity(options.tls);
    if (!read.ok()) return read.status();
    identity = *std::move(read);
  }
  absl::StatusOr<std::string> token = NewPageToken();
  if (!options.token_file.empty()) token = KeptPageToken(options.token_file);
  if (!token.ok()) return token.status();
  const auto socket =
      ListenForHttp(options.address, kPurpose, !options.tls.empty() || options.plaintext_allowed);
  if (!socket.ok()) return socket.status();
  std::unique_ptr<PageServer> server(new PageServer(socket->address, identity.authority,
                                                    *std::move(token), options.anybody, control,
                                                    std::move(look)));
  server->Listen(identity.key + identity.certificate, socket->fd);
  if (server->daemon_) return server;
  return absl::UnavailableError(
      fmt::format("cannot serve the page at {}: {}", options.address,
                  server->problem_.empty() ? "the HTTP server did not start" : server->problem_));
}

std::string PageServer::link() const {
  return fmt::format("{}://{}/#{}", authority_.empty() ? "http" : "https",
                     ReachableAddress(address_), guard_.token());
}

// About some client, but while it starts.
void PageRequests::OnLog(void* server, const char* format, va_list arguments) {
  auto* const self = static_cast<PageServer*>(server);
  if (std::this_thread::get_id() == self->starter_) KeepProblem(&self->problem_, format, arguments);
}

}  // namespace percs
