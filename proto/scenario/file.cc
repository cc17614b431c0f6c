#include "proto/scenario/file.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {
namespace {
constexpr std::size_t kTextMax = std::size_t{2} << 30;
constexpr int kGzipWindow = 15 + 16;  // zlib: largest window, gzip header
}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(fmt::format("{}: is a directory; name a file", path));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  std::ostringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (file.bad() || text.fail())
    return absl::DataLossError(fmt::format("{}: cannot be read", path));
  return std::move(text).str();
}

bool IsGzip(const std::string& bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

absl::StatusOr<std::string> Gunzip(const std::string& bytes) {
  z_stream stream{};
  PERCS_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::string block(1 << 16, '\0');
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    result = inflate(&stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) break;
    text.append(block.data(), block.size() - stream.avail_out);
    if (text.size() > kTextMax) break;
    // Concatenated members are one file to gzip, and to us.
    if (result == Z_STREAM_END && stream.avail_in > 0) result = inflateReset(&stream);
  }
  const std::string reason = stream.msg != nullptr ? stream.msg : "it ends too early";
  inflateEnd(&stream);
  if (text.size() > kTextMax)
    return absl::ResourceExhaustedError("more than 2 GiB when uncompressed");
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
