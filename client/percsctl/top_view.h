// What `percsctl top` shows: a fabric between two looks at it, as lines for a
// screen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/percsctl/screen.h"
#include "percs/v1/control.pb.h"

namespace percs {

// One look.
struct TopSample {
  v1::StatusReply status;
  std::optional<v1::ListLinksReply> links;  // nothing while there is no run
  std::optional<v1::GetCountersReply> counters;
};

struct TopHub {
  std::size_t number = 0;  // as the fabric lists them
  std::string name;
  double load = 0, busiest = 0;  // of its link directions out, since the last
                                 // look: mean and most
  double delivered = 0;          // bytes per virtual second
  std::uint64_t dropped = 0, dropped_now = 0, resent = 0;
};
struct TopLink {
  std::size_t number = 0;
  std::string name, ends, link_class;
  bool up = true;
  double forward = 0,
         backward = 0;  // share of the virtual time since the last look
  double load() const { return forward > backward ? forward : backward; }
};
struct TopState {
  v1::StatusReply status;
  std::vector<TopHub> hubs;
  std::vector<TopLink> links;
  std::uint64_t dropped = 0, dropped_now = 0, delivered = 0, resent = 0;
  std::size_t down = 0;
};
// Loads and rates between two looks at one run; of a first look, since the run
// began.
TopState CompareTop(const TopSample *before, const TopSample &now);

enum class TopSort { kLoad, kDrops, kName };
inline constexpr int kTopSorts = 3;
void SortTop(TopSort sort, TopState *state);

struct TopLine {
  std::string text;
  Style style = Style::kNone;
  bool selected = false;
  // Columns of another list to the left of it, which have a style of their own.
  std::size_t left = 0;
  Style left_style = Style::kNone;
};
struct TopScreen {
  std::size_t width = 80, height = 24;
  std::string fabric;
  TopSort sort = TopSort::kLoad;
  std::size_t selected = 0;  // of the links as sorted
  std::string message;       // below, in place of the keys
};
// Exactly `height` lines of at most `width` columns.
std::vector<TopLine> TopLines(const TopState &state, const TopScreen &screen);

}  // namespace percs
