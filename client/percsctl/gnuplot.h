// Drawing with gnuplot, as a program of its own.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace percs {

// UNAVAILABLE, with what to install. `what` needs it.
absl::Status CheckGnuplot(const std::string& what);
// A text in a script, quoted.
std::string PlotText(const std::string& text);
// `set terminal` and `set output` for a file that ends with .svg or .png. INVALID_ARGUMENT for any
// other.
absl::StatusOr<std::string> PlotTerminal(const std::string& path, std::size_t width,
                                         std::size_t height);
// UNAVAILABLE if it fails; it then said why on standard error.
absl::Status RunGnuplot(const std::string& script);

}  // namespace percs
