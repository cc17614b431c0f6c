#include "proto/scenario/errors.h"

#include <algorithm>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {
namespace {
constexpr std::size_t kErrorsShown = 20;

// Whether `path` is `outer` or inside it.
bool Within(const std::string& path, const std::string& outer) {
  const char next = path.size() > outer.size() ? path[outer.size()] : '.';
  return path.starts_with(outer) && (next == '.' || next == '[');
}
}  // namespace

Mark SourceMarks::Find(std::string path) const {
  while (true) {
    if (const auto it = marks_.find(path); it != marks_.end()) return it->second;
    if (path.empty()) return {};
    const std::size_t cut = path.find_last_of(".[");
    path = cut == std::string::npos ? "" : path.substr(0, cut);
  }
}

std::string SourceMarks::Origin(const std::string& path, Mark mark) const {
  const std::string file =
      mark.line > 0 ? fmt::format("{}:{}:{}", name_, mark.line, mark.column) : name_;
  std::string inside;  // settings of the group that is wrong
  for (const auto& [set, setting] : settings_) {
    if (Within(path, set)) return setting;
    if (!path.empty() && Within(set, path)) inside += (inside.empty() ? "" : ", ") + setting;
  }
  if (inside.empty()) return file;
  return marks_.contains(path) ? fmt::format("{}, with {}", file, inside) : inside;
}

void ErrorList::Add(Mark mark, const std::string& path, std::string what) {
  errors_.push_back({mark, path, std::move(what)});
}

void ErrorList::AddNamed(const std::string& message) {
  constexpr std::string_view kBetween = ": ";
  const std::size_t end = message.find(kBetween);
  PERCS_CHECK(end != std::string::npos);
  Add(message.substr(0, end), message.substr(end + kBetween.size()));
}

bool ErrorList::Has(const std::string& path) const {
  return std::any_of(errors_.begin(), errors_.end(),
                     [&](const Error& e) { return Within(e.path, path); });
}

bool ErrorList::HasExactly(const std::string& path) const {
  return std::any_of(errors_.begin(), errors_.end(),
                     [&](const Error& e) { return e.path == path; });
}

absl::Status ErrorList::ToStatus() const {
  if (errors_.empty()) return absl::OkStatus();
  std::vector<Error> sorted = errors_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Error& a, const Error& b) {
    return std::pair(a.mark.line, a.mark.column) < std::pair(b.mark.line, b.mark.column);
  });
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < kErrorsShown; ++i) {
    const Error& e = sorted[i];
    if (i > 0) text += '\n';
    text += marks_->Origin(e.path, e.mark);
    if (!e.path.empty()) text += ": " + e.path;
    text += ": " + e.what;
  }
  if (sorted.size() > kErrorsShown) {
    text += fmt::format("\n{}: {} more errors", marks_->name(), sorted.size() - kErrorsShown);
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace percs
