#include "emulator/workload/goal_scanner.h"

#include <algorithm>

#include "fmt/format.h"

namespace percs::goal {
namespace {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool IsWord(char c) { return IsWordStart(c) || IsDigit(c); }
constexpr std::size_t kShownMax = 24;  // characters of the input quoted in a message

}  // namespace

void Scanner::Skip(bool lines) {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
      ++at_;
    } else if (c != '/' || !SkipComment()) {
      return;
    }
  }
}

bool Scanner::SkipComment() {
  const std::string_view rest = text_.substr(at_);
  if (rest.starts_with("//")) {
    at_ = std::min(text_.find('\n', at_), text_.size());
    return true;
  }
  if (!rest.starts_with("/*")) return false;
  const std::size_t end = text_.find("*/", at_ + 2);
  if (end == std::string_view::npos) {
    Fail(at_, "this comment never ends; close it with */");
    at_ = text_.size();
    return true;
  }
  at_ = end + 2;
  return true;
}

std::string_view Scanner::Word() {
  const std::size_t begin = at_;
  if (at_ < text_.size() && IsWordStart(text_[at_])) {
    do ++at_;
    while (at_ < text_.size() && IsWord(text_[at_]));
  }
  return text_.substr(begin, at_ - begin);
}

bool Scanner::Number(const char* what, std::uint64_t max, std::uint64_t* number) {
  SkipBlanks();
  const std::size_t begin = at_;
  if (peek() == '-') {
    return Fail(begin, fmt::format("{} is negative (a wildcard is not supported); expected a "
                                   "number from 0 to {}",
                                   what, max));
  }
  std::uint64_t value = 0;
  bool fits = true;
  for (; at_ < text_.size() && IsDigit(text_[at_]); ++at_) {
    const std::uint64_t digit = static_cast<std::uint64_t>(text_[at_] - '0');
    fits = fits && value <= (UINT64_MAX - digit) / 10;
    value = value * 10 + digit;
  }
  if (at_ == begin) {
    return Fail(begin, fmt::format("{} is missing, found {}; expected a number from 0 to {}", what,
                                   Found(begin), max));
  }
  if (!fits || value > max) {
    const std::string_view digits = text_.substr(begin, std::min(at_ - begin, kShownMax));
    return Fail(begin, fmt::format("{} {}{} is too large; expected at most {}", what, digits,
                                   at_ - begin > kShownMax ? "..." : "", max));
  }
  *number = value;
  return true;
}

bool Scanner::Expect(std::string_view expected, std::string_view right) {
  SkipBlanks();
  const std::size_t begin = at_;
  if (Word() == expected) return true;
  return Fail(begin, fmt::format("found {} where '{}' belongs; expected `{}`", Found(begin),
                                 expected, right));
}

bool Scanner::EndOfStatement() {
  SkipBlanks();
  if (at_end() || peek() == '\n' || peek() == '}') return status_.ok();
  return Fail(at_,
              fmt::format("found {} after a complete statement; expected a new line", Found(at_)));
}

bool Scanner::Fail(std::size_t at, std::string_view what) {
  if (!status_.ok()) return false;
  at = std::min(at, text_.size());
  const std::size_t newline = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
  const std::size_t column = newline == std::string_view::npos ? at + 1 : at - newline;
  status_ =
      absl::InvalidArgumentError(fmt::format("{}:{}:{}: {}", name_, LineOf(at), column, what));
  return false;
}

std::string Scanner::Found(std::size_t at) const {
  if (at >= text_.size()) return "the end of the file";
  const char c = text_[at];
  if (c == '\n' || c == '\r') return "the end of the line";
  if (c < ' ' || c > '~') return fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
  std::size_t end = at + 1;
  while (IsWord(c) && end < text_.size() && IsWord(text_[end])) ++end;
  if (end - at > kShownMax) return fmt::format("'{}...'", text_.substr(at, kShownMax));
  return fmt::format("'{}'", text_.substr(at, end - at));
}

std::size_t Scanner::LineOf(std::size_t at) const {
  return 1 + static_cast<std::size_t>(std::count(text_.begin(), text_.begin() + at, '\n'));
}

}  // namespace percs::goal
