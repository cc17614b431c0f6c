#include "proto/process/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "fmt/format.h"
#include "proto/process/unix_socket.h"

namespace percs {
namespace {

constexpr std::size_t kSocketNameMax = 16;  // with its slash
constexpr const char* kDefault = "/tmp";

std::string Template(const char* parent, absl::string_view prefix) {
  return fmt::format("{}/{}XXXXXX", parent, std::string(prefix));
}

std::string TemplateHere(absl::string_view prefix) {
  const char* base = std::getenv("TMPDIR");
  return Template(base != nullptr && *base ? base : kDefault, prefix);
}

}  // namespace

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make(absl::string_view prefix) {
  return MakeAt(TemplateHere(prefix));
}

absl::StatusOr<TemporaryFolder> TemporaryFolder::MakeForSockets(absl::string_view prefix) {
  std::string path = TemplateHere(prefix);
  if (path.size() > UnixPathMax() - kSocketNameMax) path = Template(kDefault, prefix);
  return MakeAt(std::move(path));
}

absl::StatusOr<TemporaryFolder> TemporaryFolder::MakeAt(std::string path) {
  if (mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(
        fmt::format("cannot create a temporary folder, {}: {}; set TMPDIR to a folder where files "
                    "can be made",
                    path, std::strerror(errno)));
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  // gRPC removes its socket at an unknown time, which can be in the middle of this.
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    if (!error) return;
  }
}

}  // namespace percs
