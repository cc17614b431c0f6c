#include "daemon/controller/store/window_log.h"

#include <cstring>
#include <utility>

#include "fmt/format.h"
#include "proto/scenario/record_frame.h"

namespace percs {
namespace {

// A controller that takes over repeats some thousands of windows in less time than it takes to
// start.
constexpr std::uint64_t kSizeMax = 1 << 20;

}  // namespace

absl::Status WindowLog::Open(const std::string& folder, std::uint32_t opened) {
  path_ = folder + "/windows";
  first_ = std::uint64_t{opened} << 32;
  states_ = next_ = state_ = size_ = 0;
  auto file = disk_->Open(path_, /*empty=*/false);
  if (!file.ok()) {
    return absl::UnavailableError(
        fmt::format("cannot write to {}: {}", path_, std::strerror(file.error)));
  }
  file_ = std::move(file.file);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::SavedSteps>> WindowLog::Read(std::uint64_t state) {
  std::vector<v1::SavedSteps> windows;
  if (state == 0) return windows;
  const auto bytes = disk_->Read(path_);
  if (!bytes.ok()) return bytes.status();
  std::size_t at = 0;
  for (v1::SavedSteps steps; ReadFrame(*bytes, &at, &steps) && steps.after() == state;)
    windows.push_back(std::move(steps));
  return windows;
}

void WindowLog::Committed(bool ok) {
  const std::uint64_t state = std::exchange(next_, 0);
  if (!ok) return;
  state_ = state;
  size_ = 0;
}

bool WindowLog::Append(v1::SavedSteps* steps) {
  if (state_ == 0) return false;
  steps->set_after(state_);
  bytes_.clear();
  AddFrame(*steps, &bytes_);
  if (size_ + bytes_.size() > kSizeMax || file_->Write(bytes_, size_) != 0) return false;
  size_ += bytes_.size();
  return true;
}

}  // namespace percs
