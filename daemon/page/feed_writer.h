// The messages of the feed, from views of a fabric: one `snapshot` of all links, counters and
// recent events, then a `delta` of what changed since the message before. The controller (for
// browsers) or percsctl (for a run in process) fills it from time to time.
//
// docs/page.md has the format.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/page/fabric_sight.h"
#include "percs/v1/control.pb.h"

namespace percs {

class FeedWriter {
 public:
  std::uint64_t run() const { return run_; }
  Time seen_at() const { return links_at_; }  // below 0: links have not been seen
  std::uint64_t last_event() const { return last_event_; }

  // A status of another run begins that run: nothing of the one before is kept.
  void TakeStatus(const v1::StatusReply& status);
  void TakeSight(FabricSight sight);
  void TakeEvent(const v1::FabricEvent& event);
  // Links have not been read for a while: the traffic since then is no recent utilisation.
  void ForgetRecent();

  // A message with what was taken since the last one.
  std::string Delta();
  // A message that stands for all that were made so far.
  std::string Snapshot() const;

 private:
  struct Link {
    LinkSight seen;
    double recent_forward = 0, recent_backward = 0;  // utilisation since the last look
  };
  // Of the links that leave one supernode.
  struct Row {
    Time at = -1;  // below 0: not looked at for a while
    std::vector<double> busy_ps;
    std::string told;  // as JSON, "" before the first look
  };
  // Parts of a delta, as JSON; "" if nothing changed.
  struct Parts {
    std::string status, links, counters, events;
    std::string ranks, spots, hubs, in_flight;
    std::string rows;      // of the matrix
    bool outputs = false;  // likewise, with the first of them
    Time rows_at = 0;
  };

  void BeginRun(std::uint64_t run);
  void TakeLinks(FabricSight sight);
  void TakeRows(const FabricSight& sight);
  void TakeRanks(FabricSight* sight);
  void TakeHubs(FabricSight* sight);
  void TakeInFlight(FabricSight* sight);
  // Whether its part of a message changed.
  bool Update(const LinkSight& sight, double passed, Link* link) const;
  void AddRow(std::size_t link, std::string* rows) const;
  std::string OutputsOfMatrix() const;

  std::uint64_t run_ = 0, last_event_ = 0;
  Time links_at_ = -1;
  std::string status_, counters_;  // as sent last
  std::shared_ptr<const std::vector<LinkPlace>> places_;
  std::vector<Link> links_;  // as places_
  std::shared_ptr<const std::vector<int>> outputs_;
  std::vector<Row> rows_;  // by supernode, of a large machine
  std::vector<HubRanks> ranks_;
  std::vector<NodeInFlight> in_flight_;
  std::shared_ptr<const std::vector<std::string>> hub_names_;
  std::vector<HubSight> hubs_;      // as hub_names_
  std::string spots_;               // likewise, as JSON; "" if the page lays them out itself
  std::deque<std::string> events_;  // the last kEventsKept
  Parts changed_;
};

// A Server-Sent Event.
std::string FeedMessage(std::string_view event, std::string_view data);

}  // namespace percs
