#include "proto/process/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "fmt/format.h"

namespace percs {

std::size_t UnixPathMax() { return sizeof(sockaddr_un::sun_path) - 1; }

absl::Status CheckUnixPath(const std::string& path) {
  if (!path.empty() && path.size() <= UnixPathMax()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("address \"unix:{}\": the path of a Unix socket has 1 to {} bytes, this one {}",
                  path, UnixPathMax(), path.size()));
}

absl::Status CheckUnixFree(const std::string& path) {
  if (absl::Status status = CheckUnixPath(path); !status.ok()) return status;
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, path.data(), path.size());
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        fmt::format("cannot listen on unix:{}: a file exists there that is not a socket", path));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::UnavailableError(fmt::format("socket: {}", std::strerror(errno)));
  absl::Status status;
  if (connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof(where)) == 0) {
    ucred holder{};
    socklen_t size = sizeof(holder);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &size);
    status = absl::AlreadyExistsError(fmt::format(
        "cannot listen on unix:{}: {} listens there already", path, DescribeProcess(holder.pid)));
  }
  close(fd);
  return status;
}

std::string DescribeProcess(int pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return fmt::format("{} (pid {})", name.empty() ? "a process" : name, pid);
}

}  // namespace percs
