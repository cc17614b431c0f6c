#include "client/percsctl/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace percs {
namespace {

constexpr std::size_t kNarrowest = 20;  // for text beside an indent

Screen Look(int file) {
  Screen screen;
  if (isatty(file) == 0) return screen;
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) == 0) screen.width = size.ws_col;
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  screen.colour = (none == nullptr || *none == '\0') && terminal != nullptr &&
                  std::string_view(terminal) != "dumb";
  return screen;
}

void WrapLine(std::string_view line, std::size_t width, std::vector<std::string>& lines) {
  while (width > 0 && line.size() > width) {
    std::size_t cut = line.rfind(' ', width);
    // Lines are not broken in the indent of the text itself.
    if (cut == std::string_view::npos || line.find_first_not_of(' ') > cut) {
      cut = line.find(' ', std::max(width, line.find_first_not_of(' ')));
    }
    if (cut == std::string_view::npos) break;
    lines.emplace_back(line.substr(0, cut));
    line.remove_prefix(std::min(line.find_first_not_of(' ', cut), line.size()));
  }
  lines.emplace_back(line);
}

}  // namespace

const Screen& Screen::OfOutput() {
  static const Screen screen = Look(STDOUT_FILENO);
  return screen;
}

const Screen& Screen::OfErrors() {
  static const Screen screen = Look(STDERR_FILENO);
  return screen;
}

std::string Styled(const std::string& text, Style style, const Screen& screen) {
  if (!screen.colour || style == Style::kNone) return text;
  const char* code = style == Style::kHeader ? "1" : style == Style::kBad ? "31" : "33";
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::vector<std::string> WrapWords(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    WrapLine(std::string_view(text).substr(start, end - start), width, lines);
    start = end + 1;
  }
  return lines;
}

std::string Hanging(const std::string& text, std::size_t indent, const Screen& screen) {
  if (screen.width == 0 || screen.width < indent + kNarrowest) return text;
  const std::vector<std::string> lines = WrapWords(text, screen.width - indent);
  return fmt::format("{}", fmt::join(lines, "\n" + std::string(indent, ' ')));
}

}  // namespace percs
