// One thread for all that gRPC's callback API reports to a process.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "grpcpp/channel.h"

namespace percs {

// gRPC polls with half as many threads as there are processors, but 2 to 16, and for each message
// they wake each other: in a process whose reactions take turns under one lock that costs more than
// the message (docs/benchmarks.md). This holds all of them but one back, in callbacks that return
// when it is destroyed. Until then, a callback that waits for another one waits forever.
//
// A poller that has had nothing to do for a second sleeps for 100 ms, whatever comes. So this gives
// it something to do in time.
//
// Make it before the first channel and server, and destroy it after the last. It holds nobody back
// if gRPC's threads cannot be told from others, or were there before.
class SinglePoller {
 public:
  SinglePoller();
  ~SinglePoller();
  SinglePoller(const SinglePoller&) = delete;
  SinglePoller& operator=(const SinglePoller&) = delete;

  int held() const;  // threads

 private:
  struct State;
  struct FailingCall;

  void HoldOthers();
  bool Call(bool hold);
  void KeepAwake();

  const std::shared_ptr<State> state_;
  // Fails each call at once. The last share in a channel ends gRPC's threads, and one of them could
  // not wait for itself: so no call, which has a share, is destroyed on one of them.
  const std::shared_ptr<grpc::Channel> channel_;
  std::vector<std::unique_ptr<FailingCall>> held_calls_;
  std::thread keeps_awake_;
};

}  // namespace percs
