#include "proto/scenario/suggest.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace percs {
namespace {
char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// The whole of `wrong` begins `name`: the rest was left off.
bool Begins(const std::string& wrong, const std::string& name) {
  return wrong.size() >= 2 && wrong.size() <= name.size() &&
         std::equal(wrong.begin(), wrong.end(), name.begin(),
                    [](char a, char b) { return Lower(a) == Lower(b); });
}
}  // namespace

int EditDistance(const std::string& a, const std::string& b) {
  const std::size_t n = a.size(), m = b.size();
  std::vector<std::vector<int>> d(n + 1, std::vector<int>(m + 1));
  for (std::size_t i = 0; i <= n; ++i) d[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= m; ++j) d[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t j = 1; j <= m; ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[n][m];
}

std::string Nearest(const std::string& wrong, const std::vector<std::string>& names) {
  std::string best;
  if (wrong.size() > 64) return best;  // not a slip of the finger
  int least = 1 + static_cast<int>(wrong.size()) / 3;
  for (const std::string& name : names) {
    const int distance = Begins(wrong, name) ? 0 : EditDistance(wrong, name);
    const bool closer = distance < least || (best.empty() && distance == least);
    if (!closer || distance >= static_cast<int>(name.size())) continue;
    best = name;
    least = distance;
  }
  return best;
}

std::string DidYouMean(const std::string& wrong, const std::vector<std::string>& names) {
  const std::string nearest = Nearest(wrong, names);
  return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

std::string Suggest(const std::string& wrong, const std::vector<std::string>& names,
                    std::string what) {
  std::string text = DidYouMean(wrong, names);
  if (!text.empty()) what[0] = absl::ascii_toupper(static_cast<unsigned char>(what[0]));
  text += text.empty() ? "; " : " ";
  return text + fmt::format("{}: {}", what, fmt::join(names, ", "));
}

}  // namespace percs
