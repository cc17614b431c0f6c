// A whole terminal to draw on and take keys from, by way of ncurses.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/percsctl/top_view.h"

namespace percs {

enum class Key { kNone, kUp, kDown, kResized, kOther };
struct KeyPress {
  Key key = Key::kNone;
  char letter = 0;  // kOther: what it writes, 0 if it writes nothing
};

class Terminal {
 public:
  // UNAVAILABLE where standard input or output is no terminal, or TERM is
  // unknown.
  static absl::StatusOr<std::unique_ptr<Terminal>> Open();
  ~Terminal();  // the terminal is as it was before
  Terminal(const Terminal &) = delete;
  Terminal &operator=(const Terminal &) = delete;

  std::size_t width() const;
  std::size_t height() const;
  void Draw(const std::vector<TopLine> &lines);
  // Waits for a key for at most this time.
  KeyPress Wait(int milliseconds);

 private:
  Terminal() = default;
};

}  // namespace percs
