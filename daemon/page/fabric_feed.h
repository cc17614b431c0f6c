// The messages for browsers about a fabric, some times a second (feed_writer.h). Its numbers are
// those of percsctl: of one snapshot of all hubs (fabric_sight.h), and of the Control service. It
// asks only while a browser reads, and less often if answers of the fabric cost much.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/page/fabric_sight.h"
#include "daemon/page/feed_reader.h"
#include "daemon/page/feed_writer.h"
#include "grpcpp/channel.h"
#include "percs/v1/control.grpc.pb.h"
#include "proto/process/mutex.h"

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
  // What an answer may still need when the feed has gone.
  struct Gate {
    Mutex mutex;
    std::condition_variable_any changed;
  };
  // One snapshot that was asked for. Written once, with the gate's mutex held; when it is there,
  // only the feed's thread has it.
  struct Answer {
    bool there = false;
    absl::StatusOr<FabricSight> sight = absl::UnavailableError("");
  };

  void Run();
  void LookAgain();
  // Null if it takes too long, or there is no run.
  std::shared_ptr<Answer> AskForSight();
  // Whether there were any.
  bool TakeEvents();
  void Distribute();
  // A call of at most kCallLimit that Stop ends.
  template <typename Call>
  bool Ask(const Call& call);

  const std::unique_ptr<v1::Control::Stub> control_;
  const LookAtFabric look_;

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::vector<std::shared_ptr<FeedReader>> readers_ ABSL_GUARDED_BY(gate_->mutex);
  grpc::ClientContext* under_way_ ABSL_GUARDED_BY(gate_->mutex) = nullptr;
  bool stopped_ ABSL_GUARDED_BY(gate_->mutex) = false;

  // Of the thread.
  FeedWriter writer_;
  std::shared_ptr<Answer> asked_;     // none has been taken yet
  std::chrono::nanoseconds cost_{0};  // of the last sight
  std::thread thread_;                // last
};

}  // namespace percs
