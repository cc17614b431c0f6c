#include "client/percsctl/gnuplot.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace percs {

absl::Status CheckGnuplot(const std::string& what) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") == 0) return absl::OkStatus();
  return absl::UnavailableError(what + " needs gnuplot, which is not there; install gnuplot-nox");
}

std::string PlotText(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    // A line break would end the command.
    quoted += c == '\'' ? "''" : c == '\n' || c == '\r' ? " " : std::string(1, c);
  }
  return quoted + "'";
}

absl::StatusOr<std::string> PlotTerminal(const std::string& path, std::size_t width,
                                         std::size_t height) {
  const char* terminal = path.ends_with(".svg") ? "svg" : "pngcairo";
  if (!path.ends_with(".svg") && !path.ends_with(".png")) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the name of a picture ends with .svg or .png", path));
  }
  return fmt::format(
      "set terminal {} noenhanced size {},{} font 'sans-serif,11' background 'white'\n"
      "set output {}\n",
      terminal, width, height, PlotText(path));
}

absl::Status RunGnuplot(const std::string& script) {
  std::FILE* gnuplot = popen("gnuplot", "w");
  if (gnuplot == nullptr) return absl::UnavailableError("cannot start gnuplot");
  std::fwrite(script.data(), 1, script.size(), gnuplot);
  if (pclose(gnuplot) == 0) return absl::OkStatus();
  return absl::UnavailableError("gnuplot failed; its message is above");
}

}  // namespace percs
