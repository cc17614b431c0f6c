// A percsd that has some of the hubs of a program's ranks.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "percs/v1/ranks.grpc.pb.h"

namespace percs {

struct RankDaemon {
  std::vector<std::string> hubs;  // of the program's ranks
  std::unique_ptr<v1::Ranks::Stub> stub;
  bool begun = false;  // it has the program's ranks
  v1::WatchRanksReply last;

  // For people.
  std::string HubsText() const {
    constexpr std::size_t kNamedMax = 4;
    const std::size_t named = std::min(hubs.size(), kNamedMax), more = hubs.size() - named;
    return fmt::format("{}{}",
                       fmt::join(hubs.begin(), hubs.begin() + static_cast<long>(named), ", "),
                       more > 0 ? fmt::format(" and {} more hubs", more) : "");
  }
};

}  // namespace percs
