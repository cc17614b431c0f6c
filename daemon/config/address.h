// Addresses as users write them: `unix:PATH` or `HOST:PORT`, port 0 for any free one.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace percs {

inline constexpr int kControllerPort = 18515;

struct Address {
  std::string unix_path;  // set: a Unix socket
  std::string host;
  int port = 0;
  bool is_unix() const { return !unix_path.empty(); }
  std::string ToString() const;  // as gRPC takes it
};

// `tcp` alone is every interface with `default_port`. INVALID_ARGUMENT says what would be right.
absl::StatusOr<Address> ParseAddress(const std::string& text, int default_port);

// Binds and starts. ALREADY_EXISTS names the process that has the address now; INVALID_ARGUMENT or
// UNAVAILABLE why it cannot be bound. `address.port` becomes the one bound.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(grpc::ServerBuilder* builder,
                                                          Address* address);

// A folder of our own for sockets, below $TMPDIR or /tmp; removed with everything in it on
// destruction.
class SocketFolder {
 public:
  static absl::StatusOr<SocketFolder> Create();
  SocketFolder(SocketFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();
  const std::string& path() const { return path_; }

 private:
  explicit SocketFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace percs
