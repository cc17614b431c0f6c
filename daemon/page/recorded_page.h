// The page with messages of the feed in it: one HTML file that opens without a server and without
// network.
#pragma once

#include <string>

namespace percs {

// `messages`: one after another, as of GET /api/events.
std::string RecordedPage(const std::string& messages);

}  // namespace percs
