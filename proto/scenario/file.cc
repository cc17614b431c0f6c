#include "proto/scenario/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "emulator/base/check.h"
#include "fmt/format.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {
constexpr int kGzipWindow = 15 + 16;  // zlib: largest window, gzip header
constexpr std::size_t kBlock = 1 << 16;

struct Closer {
  int fd;
  ~Closer() { close(fd); }
};

// Null if it is a regular file.
const char* Special(const struct stat& file) {
  if (S_ISREG(file.st_mode)) return nullptr;
  if (S_ISDIR(file.st_mode)) return "a directory";
  if (S_ISCHR(file.st_mode) || S_ISBLK(file.st_mode)) return "a device";
  return S_ISFIFO(file.st_mode) ? "a pipe" : "a socket";
}

std::string Size(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1 << 20;
  return bytes % kMiB == 0 ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} bytes", bytes);
}

}  // namespace

std::string NearestPath(const std::string& path,
                        const std::function<bool(const std::string&)>& fits) {
  constexpr int kEntriesMax = 10'000;  // of a folder: more would take longer than reading
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path found;
  for (const fs::path& part : fs::path(path)) {
    if (fs::exists(found / part, error)) {
      found /= part;
      continue;
    }
    std::vector<std::string> names;
    for (fs::directory_iterator entry(found.empty() ? "." : found, error), end;
         !error && entry != end && names.size() < kEntriesMax; entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    std::sort(names.begin(), names.end());  // the order of a folder is not always the same
    const std::string nearest = Nearest(part.string(), names);
    if (nearest.empty()) return "";
    found /= nearest;
  }
  return fits(found.string()) ? found.string() : "";
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::uint64_t bytes_max) {
  const auto no_file = [&](const char* what) {
    return absl::InvalidArgumentError(fmt::format("{}: is {}; name a file", path, what));
  };
  struct stat file {};
  // Before it is opened, because opening may block, or affect a device.
  if (stat(path.c_str(), &file) == 0 && Special(file)) return no_file(Special(file));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int why = errno;
    const auto is_file = [](const std::string& name) {
      std::error_code error;
      return std::filesystem::is_regular_file(name, error);
    };
    const std::string nearest = why == ENOENT ? NearestPath(path, is_file) : "";
    return absl::NotFoundError(
        fmt::format("{}: cannot be opened: {}{}", path, std::strerror(why),
                    nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
  }
  const Closer closer{fd};
  if (fstat(fd, &file) == 0 && Special(file)) return no_file(Special(file));
  std::string text;
  std::string block(kBlock, '\0');
  while (true) {
    const ssize_t read_now = read(fd, block.data(), block.size());
    if (read_now < 0 && errno == EINTR) continue;
    if (read_now < 0)
      return absl::DataLossError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (read_now == 0) return text;
    if (text.size() + static_cast<std::size_t>(read_now) > bytes_max) {
      return absl::ResourceExhaustedError(
          fmt::format("{}: has more than {}, which is the limit", path, Size(bytes_max)));
    }
    text.append(block, 0, static_cast<std::size_t>(read_now));
  }
}

bool IsGzip(const std::string& bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

absl::StatusOr<std::string> Gunzip(const std::string& bytes, std::uint64_t bytes_max) {
  z_stream stream{};
  PERCS_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::string block(kBlock, '\0');
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    result = inflate(&stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) break;
    const std::size_t more = block.size() - stream.avail_out;
    if (text.size() + more > bytes_max) {
      inflateEnd(&stream);
      return absl::ResourceExhaustedError(
          fmt::format("has more than {} when uncompressed, which is the limit", Size(bytes_max)));
    }
    text.append(block.data(), more);
    // Concatenated members are one file to gzip, and to us.
    if (result == Z_STREAM_END && stream.avail_in > 0) result = inflateReset(&stream);
  }
  const std::string reason = stream.msg != nullptr ? stream.msg : "it ends too early";
  inflateEnd(&stream);
  if (result != Z_STREAM_END) {
    return absl::InvalidArgumentError(fmt::format("not a whole gzip file: {}", reason));
  }
  return text;
}

std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  PERCS_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                           Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  PERCS_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace percs
