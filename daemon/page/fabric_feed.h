// What browsers are told of a fabric, as messages of Server-Sent Events: one `snapshot` of all
// links, counters and recent events, then a `delta` of what changed, some times a second. It asks
// the Control service, so that its numbers are those of percsctl; only while somebody reads. A
// fabric that takes long to answer is asked less often.
//
// docs/page.md has the format.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/page/feed_reader.h"
#include "grpcpp/channel.h"
#include "percs/v1/control.grpc.pb.h"

namespace percs {

class FabricFeed {
 public:
  static constexpr std::size_t kReadersMax = 16;

  explicit FabricFeed(const std::shared_ptr<grpc::Channel>& channel);
  ~FabricFeed() { Stop(); }

  // RESOURCE_EXHAUSTED if kReadersMax are there.
  absl::Status Add(std::shared_ptr<FeedReader> reader);
  void Remove(const FeedReader* reader);
  // Ends all readers.
  void Stop();

 private:
  struct Link {
    std::string fixed;                               // both ends and the class
    std::string row;                                 // as sent last
    double busy_forward = 0, busy_backward = 0;      // of all virtual time so far, picoseconds
    double recent_forward = 0, recent_backward = 0;  // utilisation since the last look
  };
  // Parts of a message of JSON; "" if nothing changed.
  struct Parts {
    std::string status, links, counters, events;
  };

  void Run();
  Parts LookAgain();
  void BeginRun(std::uint64_t run);
  std::string StatusChange(const v1::StatusReply& status);
  std::string LinksChange();
  std::string CountersChange();
  std::string EventsChange();
  std::string RowOf(const v1::LinkStatus& status, double now, Link* link) const;
  std::string Snapshot() const;
  void Distribute(const std::string& delta);
  // A call of at most kCallLimit that Stop ends.
  template <typename Call>
  bool Ask(const Call& call);

  const std::unique_ptr<v1::Control::Stub> control_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<FeedReader>> readers_;
  grpc::ClientContext* under_way_ = nullptr;
  bool stopped_ = false;

  // Of the thread.
  std::uint64_t run_ = 0, last_event_ = 0;
  std::int64_t links_at_ = -1;
  std::string status_, counters_;  // as sent last
  std::map<std::string, Link> links_;
  std::deque<std::string> events_;  // the last kEventsKept
  std::thread thread_;              // last
};

}  // namespace percs
