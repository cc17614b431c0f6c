// Characters to words and numbers for the GOAL parser, with positions for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace percs::goal {

// Every reading function returns false once something was wrong; the first error is kept.
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  // Comments count as blanks; one of several lines does not end a statement.
  void SkipBlanks() { Skip(false); }
  void SkipLines() { Skip(true); }
  bool at_end() const { return at_ >= text_.size(); }
  std::size_t at() const { return at_; }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  void Advance() { ++at_; }

  // A letter or underscore, then letters, digits and underscores; empty where none stands.
  std::string_view Word();
  // Blanks, then a number in 0..max. `what` names it in messages.
  bool Number(const char* what, std::uint64_t max, std::uint64_t* number);
  // Blanks, then the word `expected`; `right` shows the whole statement as it should be.
  bool Expect(std::string_view expected, std::string_view right);
  // Nothing but blanks before the end of the line or the closing brace.
  bool EndOfStatement();

  bool Fail(std::size_t at, std::string_view what);
  // What stands at `at`, fit to print.
  std::string Found(std::size_t at) const;
  std::size_t LineOf(std::size_t at) const;
  const absl::Status& status() const { return status_; }

 private:
  void Skip(bool lines);
  bool SkipComment();

  std::string_view text_, name_;
  std::size_t at_ = 0;
  absl::Status status_;
};

}  // namespace percs::goal
