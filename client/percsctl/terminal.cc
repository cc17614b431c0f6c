// A source of its own, also in units of many: ncurses defines common words as
// macros.
#include "client/percsctl/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#define NCURSES_NOMACROS
#include <ncurses.h>

namespace percs {
namespace {

constexpr short kBadPair = 1, kWarningPair = 2;

attr_t AttributesOf(const TopLine &line) {
  attr_t attributes = line.selected ? A_REVERSE : A_NORMAL;
  if (line.style == Style::kHeader) attributes |= A_BOLD;
  if (!has_colors()) return attributes;
  if (line.style == Style::kBad) attributes |= static_cast<attr_t>(COLOR_PAIR(kBadPair));
  if (line.style == Style::kWarning) attributes |= static_cast<attr_t>(COLOR_PAIR(kWarningPair));
  return attributes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Terminal>> Terminal::Open() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) {
    return absl::UnavailableError(
        "needs a terminal; `percsctl status`, "
        "`links` and `counters` print the same once");
  }
  // initscr() would end the process.
  SCREEN *screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char *name = std::getenv("TERM");
    return absl::UnavailableError(std::string("there is no terminal of the kind TERM=") +
                                  (name == nullptr ? "" : name));
  }
  set_term(screen);
  const char *none = std::getenv("NO_COLOR");
  if ((none == nullptr || *none == '\0') && has_colors()) {
    start_color();
    use_default_colors();
    init_pair(kBadPair, COLOR_RED, -1);
    init_pair(kWarningPair, COLOR_YELLOW, -1);
  }
  cbreak();
  noecho();
  keypad(stdscr, true);
  curs_set(0);
  return std::unique_ptr<Terminal>(new Terminal());
}

Terminal::~Terminal() { endwin(); }

std::size_t Terminal::width() const { return static_cast<std::size_t>(getmaxx(stdscr)); }
std::size_t Terminal::height() const { return static_cast<std::size_t>(getmaxy(stdscr)); }

void Terminal::Draw(const std::vector<TopLine> &lines) {
  werase(stdscr);
  for (std::size_t y = 0; y < lines.size(); ++y) {
    const TopLine &line = lines[y];
    const std::size_t size = std::min(line.text.size(), width());
    const std::size_t left = std::min(line.left, size);
    wmove(stdscr, static_cast<int>(y), 0);
    wattrset(stdscr, static_cast<int>(AttributesOf({"", line.left_style})));
    waddnstr(stdscr, line.text.c_str(), static_cast<int>(left));
    wattrset(stdscr, static_cast<int>(AttributesOf(line)));
    waddnstr(stdscr, line.text.c_str() + left, static_cast<int>(size - left));
  }
  wattrset(stdscr, A_NORMAL);
  wrefresh(stdscr);
}

KeyPress Terminal::Wait(int milliseconds) {
  wtimeout(stdscr, milliseconds);
  const int got = wgetch(stdscr);
  if (got == ERR) return {};
  if (got == KEY_UP) return {Key::kUp, 0};
  if (got == KEY_DOWN) return {Key::kDown, 0};
  if (got == KEY_RESIZE) return {Key::kResized, 0};
  return {Key::kOther, got > 0 && got < 128 ? static_cast<char>(got) : '\0'};
}

}  // namespace percs
