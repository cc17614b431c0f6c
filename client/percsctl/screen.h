// The screen: its width, and whether it shows colours.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace percs {

struct Screen {
  std::size_t width = 0;  // columns; 0: no limit, as for a file or a pipe
  bool colour = false;

  // Of standard output: limits and colours only on a terminal. No colours with NO_COLOR set to
  // anything (https://no-color.org) or TERM=dumb.
  static const Screen& OfOutput();
  static const Screen& OfErrors();  // of standard error
};

enum class Style { kNone, kHeader, kBad, kWarning };
// `text` as it is where there are no colours.
std::string Styled(const std::string& text, Style style, const Screen& screen);

// Lines of at most `width` columns, broken at spaces; a longer word has a line of its own. Breaks
// of the text stay. A width of 0 breaks nothing.
std::vector<std::string> WrapWords(const std::string& text, std::size_t width);
// WrapWords for text that begins in column `indent` of a screen; further lines are indented.
std::string Hanging(const std::string& text, std::size_t indent,
                    const Screen& screen = Screen::OfOutput());

}  // namespace percs
