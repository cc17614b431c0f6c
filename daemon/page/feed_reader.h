// The unread part of the feed of one browser. It gets every message in order, or, if it reads too
// slowly, a snapshot that stands for those it has missed.
//
// THREAD: the feed pushes from its thread, the HTTP server takes from its own.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "proto/process/mutex.h"

namespace percs {

class FeedReader {
 public:
  using Text = std::shared_ptr<const std::string>;
  static constexpr std::size_t kMessagesMax = 8;

  // Both are called with the reader's lock held: `sleep` from within Take, `wake` when there is
  // something again.
  FeedReader(Text first, std::function<void()> sleep, std::function<void()> wake)
      : sleep_(std::move(sleep)), wake_(std::move(wake)), queue_{std::move(first)} {}

  bool WantsSnapshot() const;
  void Push(Text delta);
  void PushSnapshot(Text snapshot);
  // Nothing more comes.
  void End();

  // Copies up to `room` bytes; 0: it sleeps until something comes. None: the end.
  std::optional<std::size_t> Take(char* into, std::size_t room);

 private:
  void Add(Text text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void()> sleep_, wake_;
  mutable Mutex mutex_;
  std::deque<Text> queue_ ABSL_GUARDED_BY(mutex_);
  std::size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes of the first one
  bool wants_snapshot_ ABSL_GUARDED_BY(mutex_) = true;
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace percs
