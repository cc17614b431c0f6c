#include "daemon/metrics/metrics_server.h"

#include <microhttpd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "daemon/config/http_socket.h"
#include "daemon/metrics/families.h"
#include "fmt/format.h"

namespace percs {
namespace {

constexpr std::size_t kConnections = 64;
constexpr unsigned kConnectionsLeaving = 64;  // whose place is taken, but who are not closed yet
constexpr unsigned kSilenceSeconds = 2;       // of who has had no answer yet
constexpr unsigned kIdleSeconds = 150;    // of who has; beyond the intervals at which people scrape
constexpr std::size_t kHeadBytes = 8192;  // of a request
constexpr HttpPurpose kPurpose = {"metrics", "Prometheus scrapes", "--metrics-tls FILE"};

MHD_Result Answer(MHD_Connection* connection, unsigned status, const std::string& type,
                  std::string text) {
  auto* const body = new std::string(std::move(text));
  MHD_Response* const response = MHD_create_response_from_buffer_with_free_callback_cls(
      body->size(), body->data(), [](void* b) { delete static_cast<std::string*>(b); }, body);
  if (response == nullptr) {
    delete body;
    return MHD_NO;
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type.c_str());
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  const MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

}  // namespace

// Callbacks of the library, in its thread; Log also while it starts.
struct MetricsServer::Requests {
  static void Log(void* server, const char* format, va_list arguments) {
    auto* const self = static_cast<MetricsServer*>(server);
    if (std::this_thread::get_id() != self->starter_) return;  // about some client
    std::array<char, 512> text{};
    std::vsnprintf(text.data(), text.size(), format, arguments);
    self->problem_ = text.data();
    while (!self->problem_.empty() && self->problem_.back() == '\n') self->problem_.pop_back();
  }

  static void OnConnection(void* server, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode what) {
    std::vector<int>& open = static_cast<MetricsServer*>(server)->open_;
    std::erase(open, SocketOf(connection));
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) return;
    open.push_back(SocketOf(connection));
    if (open.size() <= kConnections) return;
    shutdown(open.front(), SHUT_RDWR);  // the library reads its end and closes it
    open.erase(open.begin());
  }

  // Called for the head of a request, for each part of a body, and for the answer.
  static MHD_Result OnRequest(void* server, MHD_Connection* connection, const char* path,
                              const char* method, const char*, const char*, std::size_t* body_bytes,
                              void** begun) {
    auto* const self = static_cast<MetricsServer*>(server);
    constexpr char kText[] = "text/plain; charset=utf-8";
    if (std::strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        std::strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
      return Answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, kText,
                    "only GET and HEAD are supported\n");
    }
    if (*begun == nullptr) {
      *begun = self;
      return MHD_YES;
    }
    if (*body_bytes != 0) return MHD_NO;  // there is no one to answer: the connection ends
    const Page* const page = self->Find(path);
    if (page == nullptr) return Answer(connection, MHD_HTTP_NOT_FOUND, kText, "no such page\n");
    const int socket = SocketOf(connection);
    if (std::erase(self->open_, socket) != 0) self->open_.push_back(socket);
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, kIdleSeconds);
    return Answer(connection, MHD_HTTP_OK, page->type, page->body(*self));
  }
};

void MetricsServer::Stop::operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }

MetricsServer::~MetricsServer() = default;

void MetricsServer::Listen(const std::string& tls_identity, int socket) {
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG;
  if (encrypted_) flags |= MHD_USE_TLS;
  std::vector<MHD_OptionItem> tls = HttpTlsOptions(tls_identity, /*authority=*/"");
  daemon_.reset(MHD_start_daemon(
      flags, 0, nullptr, nullptr, &Requests::OnRequest, this,  //
      MHD_OPTION_EXTERNAL_LOGGER, &Requests::Log, this,        //
      MHD_OPTION_LISTEN_SOCKET, socket,                        //
      MHD_OPTION_NOTIFY_CONNECTION, &Requests::OnConnection, this, MHD_OPTION_CONNECTION_LIMIT,
      static_cast<unsigned>(kConnections) + kConnectionsLeaving, MHD_OPTION_CONNECTION_TIMEOUT,
      kSilenceSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kHeadBytes, MHD_OPTION_ARRAY, tls.data(),
      MHD_OPTION_END));
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                                    const std::string& tls,
                                                                    std::vector<Page> pages,
                                                                    bool plaintext_allowed) {
  std::unique_ptr<MetricsServer> server(new MetricsServer(std::move(pages)));
  std::string identity;
  if (!tls.empty()) {
    std::ifstream file(tls, std::ios::binary);
    if (!file)
      return absl::NotFoundError(
          fmt::format("metrics with TLS: cannot read {}: {}", tls, std::strerror(errno)));
    identity.assign(std::istreambuf_iterator<char>(file), {});
    server->encrypted_ = true;
  }
  const auto socket = ListenForHttp(address, kPurpose, !tls.empty() || plaintext_allowed);
  if (!socket.ok()) return socket.status();
  server->address_ = socket->address;
  server->Listen(identity, socket->fd);
  if (server->daemon_) return server;
  const std::string why =
      server->problem_.empty() ? "the HTTP server did not start" : server->problem_;
  if (tls.empty())
    return absl::UnavailableError(fmt::format("cannot serve metrics at {}: {}", address, why));
  return absl::InvalidArgumentError(
      fmt::format("cannot serve metrics at {} with {}, which must contain a private key and its "
                  "certificate, both PEM: {}",
                  address, tls, why));
}

const MetricsServer::Page* MetricsServer::Find(const std::string& path) const {
  for (const Page& page : pages_) {
    if (page.path == path) return &page;
  }
  return nullptr;
}

std::string MetricsServer::advertised() const {
  return (encrypted_ ? "https://" : "") + ReachableAddress(address_);
}

std::string MetricsServer::url() const {
  return fmt::format("{}://{}/metrics", encrypted_ ? "https" : "http", address_);
}

MetricsServer::Page MetricsPage(std::function<void(MetricFamilies*)> families) {
  return {"/metrics", "text/plain; version=0.0.4; charset=utf-8",
          [families = std::move(families)](const MetricsServer&) {
            MetricFamilies list;
            families(&list);
            return list.Text();
          }};
}

}  // namespace percs
