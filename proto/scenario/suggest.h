// "did you mean": the nearest of some names.
#pragma once

#include <string>
#include <vector>

namespace percs {

// Insertions, deletions, substitutions and swaps of neighbours between two texts, case ignored.
int EditDistance(const std::string& a, const std::string& b);
// The nearest name, or "" if none is near enough to be what was meant.
std::string Nearest(const std::string& wrong, const std::vector<std::string>& names);
// `; did you mean "name"?`, or "" if no name is near.
std::string DidYouMean(const std::string& wrong, const std::vector<std::string>& names);
// `; did you mean "name"? Units: a, b, name`, or `; units: a, b, name`, of "units".
std::string Suggest(const std::string& wrong, const std::vector<std::string>& names,
                    std::string what);

}  // namespace percs
