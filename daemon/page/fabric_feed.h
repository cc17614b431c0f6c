// What browsers are told of a fabric, some times a second (feed_writer.h). Its numbers are those of
// percsctl: of one snapshot of all hubs (fabric_sight.h), and of the Control service. It asks only
// while somebody reads, and a fabric that takes long to answer less often.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/page/fabric_sight.h"
#include "daemon/page/feed_reader.h"
#include "daemon/page/feed_writer.h"
#include "grpcpp/channel.h"
#include "percs/v1/control.grpc.pb.h"

namespace percs {

class FabricFeed {
 public:
  static constexpr std::size_t kReadersMax = 16;

  FabricFeed(const std::shared_ptr<grpc::Channel>& channel, LookAtFabric look);
  ~FabricFeed() { Stop(); }

  // RESOURCE_EXHAUSTED if kReadersMax are there.
  absl::Status Add(std::shared_ptr<FeedReader> reader);
  void Remove(const FeedReader* reader);
  // Ends all readers.
  void Stop();

 private:
  // One snapshot that was asked for; whoever answers may do so when nobody waits any more.
  struct Answer {
    bool there = false;
    absl::StatusOr<FabricSight> sight = absl::UnavailableError("");
  };

  void Run();
  void LookAgain();
  // Null if it takes too long, or there is nothing to be seen.
  std::shared_ptr<Answer> AskForSight();
  // Whether there were any.
  bool TakeEvents();
  void Distribute();
  // A call of at most kCallLimit that Stop ends.
  template <typename Call>
  bool Ask(const Call& call);

  // What an answer may still need when the feed has gone.
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
  };

  const std::unique_ptr<v1::Control::Stub> control_;
  const LookAtFabric look_;

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::mutex& mutex_ = gate_->mutex;
  std::condition_variable& changed_ = gate_->changed;
  std::vector<std::shared_ptr<FeedReader>> readers_;
  grpc::ClientContext* under_way_ = nullptr;
  bool stopped_ = false;

  // Of the thread.
  FeedWriter writer_;
  std::shared_ptr<Answer> asked_;       // none has been taken yet
  std::chrono::nanoseconds waited_{0};  // of the last look
  std::thread thread_;                  // last
};

}  // namespace percs
