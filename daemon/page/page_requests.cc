#include "daemon/page/page_requests.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/page/page_files.h"
#include "daemon/page/page_server.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace percs {
namespace {

constexpr std::size_t kBodyBytesMax = 65536;
constexpr unsigned kStalledSeconds = 15;  // of a reader of the feed who does not read
constexpr std::string_view kApi = "/api/";
constexpr char kJson[] = "application/json";

// One request from its head to the end of its answer.
struct Request {
  std::string method;  // of the Control service; "": none
  std::string body;
  bool asked = false;
  absl::StatusOr<std::string> answer = absl::UnknownError("");
  std::shared_ptr<FeedReader> reader;
};

struct Verdict {
  unsigned code = MHD_HTTP_OK;  // OK: not refused
  absl::Status status;
};

// As google.rpc.Code says.
unsigned HttpCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return MHD_HTTP_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return MHD_HTTP_BAD_REQUEST;
    case absl::StatusCode::kUnauthenticated:
      return MHD_HTTP_UNAUTHORIZED;
    case absl::StatusCode::kPermissionDenied:
      return MHD_HTTP_FORBIDDEN;
    case absl::StatusCode::kNotFound:
      return MHD_HTTP_NOT_FOUND;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return MHD_HTTP_CONFLICT;
    case absl::StatusCode::kResourceExhausted:
      return MHD_HTTP_TOO_MANY_REQUESTS;
    case absl::StatusCode::kUnimplemented:
      return MHD_HTTP_NOT_IMPLEMENTED;
    case absl::StatusCode::kUnavailable:
      return MHD_HTTP_SERVICE_UNAVAILABLE;
    case absl::StatusCode::kDeadlineExceeded:
      return MHD_HTTP_GATEWAY_TIMEOUT;
    default:
      return MHD_HTTP_INTERNAL_SERVER_ERROR;
  }
}

// The page runs only its own files and connects only to its own server, and no other page may frame
// it.
void AddHeaders(MHD_Response* response, const char* type) {
  const std::pair<const char*, const char*> headers[] = {
      {MHD_HTTP_HEADER_CONTENT_TYPE, type},
      {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
       "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  for (const auto& [name, value] : headers) MHD_add_response_header(response, name, value);
}

MHD_Result Queue(MHD_Connection* connection, unsigned code, const char* type,
                 MHD_Response* response) {
  if (response == nullptr) return MHD_NO;
  AddHeaders(response, type);
  if (code >= MHD_HTTP_BAD_REQUEST)  // its place is free for others at once
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST");
  const MHD_Result result = MHD_queue_response(connection, code, response);
  MHD_destroy_response(response);
  return result;
}

MHD_Result Answer(MHD_Connection* connection, unsigned code, const char* type, std::string text) {
  auto* const body = new std::string(std::move(text));
  return Queue(
      connection, code, type,
      MHD_create_response_from_buffer_with_free_callback_cls(
          body->size(), body->data(), [](void* b) { delete static_cast<std::string*>(b); }, body));
}

MHD_Result Refuse(MHD_Connection* connection, unsigned code, const absl::Status& status) {
  const nlohmann::json error = {{"code", absl::StatusCodeToString(status.code())},
                                {"message", std::string(status.message())}};
  return Answer(connection, code, kJson, error.dump() + "\n");
}

std::string Header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

// In PEM; "" if there is none.
std::string CertificateOf(MHD_Connection* connection) {
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  if (info == nullptr || info->tls_session == nullptr) return "";
  unsigned count = 0;
  const gnutls_datum_t* const chain =
      gnutls_certificate_get_peers(static_cast<gnutls_session_t>(info->tls_session), &count);
  if (chain == nullptr || count == 0) return "";
  gnutls_datum_t pem{};
  if (gnutls_pem_base64_encode2("CERTIFICATE", &chain[0], &pem) < 0) return "";
  std::string text(reinterpret_cast<const char*>(pem.data), pem.size);
  gnutls_free(pem.data);
  return text;
}

Verdict Refused(const absl::Status& status) { return {HttpCode(status.code()), status}; }

Verdict CheckBody(MHD_Connection* connection) {
  const std::string length = Header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  std::size_t bytes = 0;
  const auto read = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (length.empty() || read.ec != std::errc() || read.ptr != length.data() + length.size()) {
    return {MHD_HTTP_LENGTH_REQUIRED,
            absl::InvalidArgumentError("the request needs a Content-Length")};
  }
  if (bytes <= kBodyBytesMax) return {};
  return {MHD_HTTP_CONTENT_TOO_LARGE, absl::InvalidArgumentError(fmt::format(
                                          "a body of {} bytes; at most {}", bytes, kBodyBytesMax))};
}

// All checks of a request by its head.
Verdict Check(const PageGuard& guard, MHD_Connection* connection, std::string_view path,
              std::string_view method, std::string* called) {
  const bool look = method == MHD_HTTP_METHOD_GET || method == MHD_HTTP_METHOD_HEAD;
  if (!look && method != MHD_HTTP_METHOD_POST) {
    return {MHD_HTTP_METHOD_NOT_ALLOWED,
            absl::UnimplementedError("only GET, HEAD and POST are supported")};
  }
  const PageRequest head = {
      Header(connection, MHD_HTTP_HEADER_HOST), Header(connection, MHD_HTTP_HEADER_ORIGIN),
      Header(connection, "Sec-Fetch-Site"), Header(connection, PageGuard::kTokenHeader)};
  const bool api = path.substr(0, kApi.size()) == kApi;
  // A link in a mail or another page may open the page, but nothing else.
  const PageRequest opened = {head.host, "", "", ""};
  if (const auto s = guard.CheckSource(api ? head : opened); !s.ok()) return Refused(s);
  if (!api) {
    if (look && FindPageFile(path) != nullptr) return {};
    const unsigned code = look ? MHD_HTTP_NOT_FOUND : MHD_HTTP_METHOD_NOT_ALLOWED;
    return {code, absl::NotFoundError("no such page; / is the page")};
  }
  if (const auto s = guard.CheckToken(head); !s.ok()) return Refused(s);
  const std::string name(path.substr(kApi.size()));
  const bool events = name == "events";
  *called = events ? "WatchEvents" : name;
  if (const auto s = events ? absl::OkStatus() : ControlGateway::CheckMethod(name); !s.ok())
    return Refused(s);
  if (events != (method == MHD_HTTP_METHOD_GET)) {
    return {MHD_HTTP_METHOD_NOT_ALLOWED,
            absl::UnimplementedError("GET /api/events, and POST /api/METHOD")};
  }
  if (const auto s = guard.CheckRole(*called, CertificateOf(connection)); !s.ok())
    return Refused(s);
  return events ? Verdict{} : CheckBody(connection);
}

ssize_t ReadFeed(void* reader, std::uint64_t, char* into, std::size_t room) {
  const auto bytes = static_cast<FeedReader*>(reader)->Take(into, room);
  return bytes ? static_cast<ssize_t>(*bytes) : MHD_CONTENT_READER_END_OF_STREAM;
}

MHD_Result AnswerWithFeed(MHD_Connection* connection, const std::string& role, FabricFeed* feed,
                          Request* request) {
  request->reader = std::make_shared<FeedReader>(
      std::make_shared<const std::string>(
          fmt::format("event: hello\ndata: {{\"role\":\"{}\"}}\n\n", role)),
      [connection] { MHD_suspend_connection(connection); },
      [connection] { MHD_resume_connection(connection); });
  if (const auto status = feed->Add(request->reader); !status.ok()) {
    request->reader.reset();
    return Refuse(connection, HttpCode(status.code()), status);
  }
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, kStalledSeconds);
  return Queue(connection, MHD_HTTP_OK, "text/event-stream",
               MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, &ReadFeed,
                                                 request->reader.get(), nullptr));
}

MHD_Result AnswerCall(MHD_Connection* connection, ControlGateway* gateway, Request* request) {
  if (!std::exchange(request->asked, true)) {
    MHD_suspend_connection(connection);
    gateway->Call(request->method, request->body,
                  [connection, request](absl::StatusOr<std::string> json) {
                    request->answer = std::move(json);
                    MHD_resume_connection(connection);
                  });
    return MHD_YES;
  }
  const auto& answer = request->answer;
  if (!answer.ok()) return Refuse(connection, HttpCode(answer.status().code()), answer.status());
  return Answer(connection, MHD_HTTP_OK, kJson, *answer + "\n");
}

}  // namespace

MHD_Result PageRequests::OnRequest(void* server, MHD_Connection* connection, const char* path,
                                   const char* method, const char*, const char* body,
                                   std::size_t* body_bytes, void** state) {
  auto* const self = static_cast<PageServer*>(server);
  if (*state == nullptr) {
    auto owner = std::make_unique<Request>();
    const Verdict refusal = Check(self->guard_, connection, path, method, &owner->method);
    *state = owner.release();
    if (refusal.code == MHD_HTTP_OK) return MHD_YES;
    return Refuse(connection, refusal.code, refusal.status);
  }
  auto* const request = static_cast<Request*>(*state);
  if (*body_bytes != 0) {
    if (request->body.size() + *body_bytes > kBodyBytesMax) return MHD_NO;
    request->body.append(body, std::exchange(*body_bytes, 0));
    return MHD_YES;
  }
  if (request->method.empty()) {
    const PageFile* const file = FindPageFile(path);
    return Answer(connection, MHD_HTTP_OK, std::string(file->type).c_str(),
                  std::string(file->text));
  }
  if (std::strcmp(method, MHD_HTTP_METHOD_POST) == 0)
    return AnswerCall(connection, &self->gateway_, request);
  return AnswerWithFeed(connection, self->guard_.RoleOf(CertificateOf(connection)), &self->feed_,
                        request);
}

void PageRequests::OnCompleted(void* server, MHD_Connection*, void** state,
                               MHD_RequestTerminationCode) {
  const std::unique_ptr<Request> request(static_cast<Request*>(std::exchange(*state, nullptr)));
  if (request && request->reader)
    static_cast<PageServer*>(server)->feed_.Remove(request->reader.get());
}

}  // namespace percs
