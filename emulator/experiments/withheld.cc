#include "emulator/experiments/withheld.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

using FigureWords = std::set<std::string>;

// One record of a table; `rest` then begins behind it. Quoted fields may hold commas and quotes.
std::vector<std::string> TakeCsvRecord(std::string_view& rest, int& lines) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  std::size_t i = 0;
  for (; i < rest.size(); ++i) {
    const char c = rest[i];
    lines += c == '\n';
    if (c == '"') {
      const bool doubled = quoted && i + 1 < rest.size() && rest[i + 1] == '"';
      if (doubled) {
        fields.back() += c;
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c == '\n' && !quoted) {
      ++i;
      break;
    } else if (c != '\r' || quoted) {
      fields.back() += c;
    }
  }
  rest.remove_prefix(i);
  return fields;
}

bool ReadWholeNumber(std::string_view text, double& value) {
  const std::string copy(text);
  char* end = nullptr;
  value = std::strtod(copy.c_str(), &end);
  return !copy.empty() && *end == '\0';
}

bool ReadPublishedFigure(std::string_view text, PublishedFigure& figure) {
  double low = 0, high = 0;
  if (ReadWholeNumber(text, low)) {
    figure = PublishedFigure::At(low);
    return true;
  }
  if (text.empty()) return false;
  if (text[0] == '<' || text[0] == '>') {
    const std::size_t sign = text.size() > 1 && text[1] == '=' ? 2 : 1;
    if (!ReadWholeNumber(text.substr(sign), low)) return false;
    figure = text[0] == '<' ? PublishedFigure::AtMost(low) : PublishedFigure::AtLeast(low);
    return true;
  }
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string_view::npos || !ReadWholeNumber(text.substr(0, dash), low) ||
      !ReadWholeNumber(text.substr(dash + 1), high) || low > high) {
    return false;
  }
  figure = PublishedFigure::Between(low, high);
  return true;
}

// Words of a text in lower case, with one word for synonyms that papers use. A number and the unit
// behind it are one word, `4096cores`, `64kb`.
FigureWords FigureWordsOf(std::string_view text) {
  static const auto& same = *new std::map<std::string, std::string>{
      {"bcast", "broadcast"}, {"shmem", "shm"}, {"65kb", "64kb"},
      {"ptp", "p2p"},         {"b", "bytes"},   {"byte", "bytes"}};
  std::string plain;
  for (const char c : text) {
    plain += static_cast<char>(std::isalnum(static_cast<unsigned char>(c)) ? std::tolower(c) : ' ');
  }
  for (const auto& [from, to] : std::array<std::pair<const char*, const char*>, 2>{
           {{"shared memory", "shm"}, {"point to point", "p2p"}}}) {
    for (std::size_t at; (at = plain.find(from)) != std::string::npos;) {
      plain.replace(at, std::string_view(from).size(), to);
    }
  }
  FigureWords words;
  std::string word, number;
  for (const char c : plain + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    if (word.empty()) continue;
    if (const auto it = same.find(word); it != same.end()) word = it->second;
    if (word.find_first_not_of("0123456789") == std::string::npos) {
      if (!number.empty()) words.insert(number);
      number = std::move(word);
    } else {
      word = std::exchange(number, "") + word;
      if (const auto it = same.find(word); it != same.end()) word = it->second;
      words.insert(word);
    }
    word.clear();
  }
  if (!number.empty()) words.insert(number);
  return words;
}

bool IsNumberWord(const std::string& word) {
  return std::isdigit(static_cast<unsigned char>(word[0])) != 0;
}

// Whether every number of the row is also among the figure's words.
bool HasNumbersOf(const FigureWords& row, const FigureWords& figure) {
  return std::all_of(row.begin(), row.end(), [&](const std::string& word) {
    return !IsNumberWord(word) || figure.count(word) != 0;
  });
}

bool HasRowId(const ValidationRow& row, const std::string& id) {
  return row.id == id ||
         std::find(row.other_ids.begin(), row.other_ids.end(), id) != row.other_ids.end();
}

// The row that a figure belongs to, or nullptr and why.
const ValidationRow* FindRowOf(const std::vector<ValidationRow>& rows, const WithheldFigure& figure,
                               std::string& why) {
  const FigureWords words = FigureWordsOf(figure.conditions);
  const bool numbers = std::any_of(words.begin(), words.end(), IsNumberWord);
  for (const ValidationRow& row : rows) {
    if (!HasRowId(row, figure.id)) continue;
    if (!numbers || row.id == figure.id || HasNumbersOf(FigureWordsOf(row.quantity), words))
      return &row;
    why = fmt::format("row {} is \"{}\", which its conditions contradict", row.id, row.quantity);
    return nullptr;
  }
  const ValidationRow* best = nullptr;
  std::size_t most = 1;  // one common word proves nothing
  bool tie = false;
  for (const ValidationRow& row : rows) {
    if (!row.published.text.empty()) continue;
    const FigureWords own = FigureWordsOf(row.quantity);
    if (!numbers || !HasNumbersOf(own, words)) continue;
    const auto common = static_cast<std::size_t>(std::count_if(
        own.begin(), own.end(), [&](const std::string& word) { return words.count(word) != 0; }));
    tie = common == most && best != nullptr ? true : common > most ? false : tie;
    if (common > most) {
      most = common;
      best = &row;
    }
  }
  if (best == nullptr || tie) {
    why = tie ? "its conditions fit several rows" : "no row has this id or fits its conditions";
    return nullptr;
  }
  return best;
}

}  // namespace

absl::StatusOr<std::vector<WithheldFigure>> ReadWithheld(std::string_view csv) {
  const auto bad = [](int line, std::string what) {
    return absl::InvalidArgumentError(fmt::format("line {}: {}", line, what));
  };
  int lines = 0;
  const std::vector<std::string> header = TakeCsvRecord(csv, lines);
  const auto column = [&header](const char* name) {
    return std::find(header.begin(), header.end(), name) - header.begin();
  };
  const auto missing = static_cast<std::ptrdiff_t>(header.size());
  if (column("id") == missing || column("value") == missing) {
    return bad(1, "the first line names the columns; it must name `id` and `value`");
  }
  std::vector<WithheldFigure> figures;
  while (!csv.empty()) {
    const int line = lines + 1;
    const std::vector<std::string> fields = TakeCsvRecord(csv, lines);
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (fields.size() != header.size()) {
      return bad(line, fmt::format("{} fields; the first line names {} columns", fields.size(),
                                   header.size()));
    }
    const auto field = [&](const char* name) {
      const std::ptrdiff_t at = column(name);
      return at == missing ? std::string() : fields[static_cast<std::size_t>(at)];
    };
    WithheldFigure figure{line, field("id"), field("quantity"), field("unit"), {}};
    if (const std::string more = field("conditions"); !more.empty()) {
      figure.conditions += (figure.conditions.empty() ? "" : ", ") + more;
    }
    if (figure.id.empty()) return bad(line, "the id is empty");
    if (!ReadPublishedFigure(field("value"), figure.value)) {
      return bad(line, fmt::format("value \"{}\"; write a number, a range such as 5-20, or a bound "
                                   "such as >1",
                                   field("value")));
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

WithheldMatch MatchWithheld(const std::vector<ValidationRow>& rows,
                            const std::vector<WithheldFigure>& figures) {
  WithheldMatch match;
  for (const WithheldFigure& figure : figures) {
    std::string why;
    const ValidationRow* row = FindRowOf(rows, figure, why);
    if (row == nullptr) {
      match.unmatched.push_back(fmt::format("line {}, {}: {}", figure.line, figure.id, why));
      continue;
    }
    if (!figure.unit.empty() && figure.unit != row->unit) {
      match.unmatched.push_back(fmt::format("line {}, {}: its unit is {}; row {} is in {}",
                                            figure.line, figure.id, figure.unit, row->id,
                                            row->unit));
      continue;
    }
    ValidationRow judged = *row;
    judged.published = figure.value;
    judged.kind = RowKind::kPredicted;
    judged.other_ids = {figure.id};
    match.rows.push_back(std::move(judged));
  }
  return match;
}

}  // namespace percs
