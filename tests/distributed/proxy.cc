#include "tests/distributed/proxy.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs::test {
namespace {

constexpr int kPollMs = 1;
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kPendingChunksMax = 64;

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  PERCS_CHECK(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int NewSocket() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  PERCS_CHECK(fd >= 0);
  return fd;
}

void MakeNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

Proxy::Proxy(ProxyOptions options)
    : options_(options),
      folder_(*percs::TemporaryFolder::MakeForSockets("percs-")),
      random_(options.seed, "proxy"),
      thread_([this] { Loop(); }) {}

Proxy::~Proxy() {
  stop_ = true;
  thread_.join();
  for (Connection& connection : connections_) Close(&connection);
  for (const Listener& listener : listeners_) close(listener.fd);
}

std::string Proxy::AddressFor(const std::string& target) {
  PERCS_CHECK(target.rfind("unix:", 0) == 0);
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string path = fmt::format("{}/p{}", folder_.path(), listeners_.size());
  const int fd = NewSocket();
  const sockaddr_un address = UnixAddress(path);
  PERCS_CHECK(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  PERCS_CHECK(listen(fd, 64) == 0);
  MakeNonBlocking(fd);
  listeners_.push_back({fd, target.substr(5)});
  return "unix:" + path;
}

void Proxy::Accept(const Listener& listener) {
  const int near = accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC);
  if (near < 0) return;
  const int far = NewSocket();
  const sockaddr_un address = UnixAddress(listener.target_path);
  if (connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(near);
    close(far);
    return;
  }
  MakeNonBlocking(near);
  MakeNonBlocking(far);
  Connection& connection = connections_.emplace_back();
  connection.ways[0].from = connection.ways[1].to = near;
  connection.ways[0].to = connection.ways[1].from = far;
  if (options_.reset_within_bytes > 0) {
    connection.bytes_left = 1 + random_.Below(options_.reset_within_bytes);
  }
}

void Proxy::Close(Connection* connection) {
  if (connection->dead) return;
  connection->dead = true;
  close(connection->ways[0].from);
  close(connection->ways[0].to);
}

void Proxy::Read(Connection* connection, Direction* way) {
  std::string bytes(kReadBytes, '\0');
  const ssize_t n = read(way->from, bytes.data(), bytes.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return Close(connection);
  bytes.resize(static_cast<std::size_t>(n));
  const auto size = static_cast<std::uint64_t>(n);
  if (size >= connection->bytes_left && resets_ < options_.resets_max) {
    ++resets_;
    return Close(connection);
  }
  connection->bytes_left -= std::min(size, connection->bytes_left);
  Clock::time_point due = Clock::now();
  if (options_.delay_max.count() > 0) {
    due += std::chrono::microseconds(
        random_.Below(static_cast<std::uint32_t>(options_.delay_max.count())));
  }
  if (options_.stall_one_in > 0 && random_.Below(options_.stall_one_in) == 0) {
    ++stalls_;
    due += options_.stall;
  }
  way->quiet_until = std::max(way->quiet_until, due);  // bytes stay in order
  way->chunks.push_back({way->quiet_until, std::move(bytes)});
}

void Proxy::Write(Connection* connection, Direction* way, Clock::time_point now) {
  while (!connection->dead && !way->chunks.empty() && way->chunks.front().due <= now) {
    std::string& bytes = way->chunks.front().bytes;
    const ssize_t n = send(way->to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return Close(connection);
    bytes.erase(0, static_cast<std::size_t>(n));
    if (!bytes.empty()) return;
    way->chunks.pop_front();
  }
}

void Proxy::Loop() {
  while (!stop_) {
    std::vector<Listener> listeners;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      listeners = listeners_;
    }
    std::vector<pollfd> fds;
    for (const Listener& listener : listeners) fds.push_back({listener.fd, POLLIN, 0});
    std::vector<std::pair<Connection*, Direction*>> readers;
    for (Connection& connection : connections_) {
      for (Direction& way : connection.ways) {
        if (way.chunks.size() >= kPendingChunksMax) continue;
        fds.push_back({way.from, POLLIN, 0});
        readers.emplace_back(&connection, &way);
      }
    }
    poll(fds.data(), fds.size(), kPollMs);
    for (std::size_t i = 0; i < readers.size(); ++i) {
      const auto& [connection, way] = readers[i];
      if (fds[listeners.size() + i].revents != 0 && !connection->dead) Read(connection, way);
    }
    for (std::size_t i = 0; i < listeners.size(); ++i) {
      if (fds[i].revents != 0) Accept(listeners[i]);
    }
    const Clock::time_point now = Clock::now();
    for (Connection& connection : connections_) {
      for (Direction& way : connection.ways) Write(&connection, &way, now);
    }
    connections_.remove_if([](const Connection& c) { return c.dead; });
  }
}

}  // namespace percs::test
