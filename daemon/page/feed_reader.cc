#include "daemon/page/feed_reader.h"

#include <utility>

namespace percs {

bool FeedReader::WantsSnapshot() const {
  const MutexLock guard(mutex_);
  return wants_snapshot_;
}

void FeedReader::Push(Text delta) {
  const MutexLock guard(mutex_);
  if (wants_snapshot_) return;
  if (queue_.size() < kMessagesMax) return Add(std::move(delta));
  queue_.resize(sent_ > 0 ? 1 : 0);  // the one that is on its way has to be completed
  wants_snapshot_ = true;
}

void FeedReader::PushSnapshot(Text snapshot) {
  const MutexLock guard(mutex_);
  if (queue_.size() >= kMessagesMax) return;
  wants_snapshot_ = false;
  Add(std::move(snapshot));
}

void FeedReader::End() {
  const MutexLock guard(mutex_);
  ended_ = true;
  Wake();
}

void FeedReader::Add(Text text) {
  queue_.push_back(std::move(text));
  Wake();
}

void FeedReader::Wake() {
  if (std::exchange(asleep_, false)) wake_();
}

std::optional<std::size_t> FeedReader::Take(char* into, std::size_t room) {
  const MutexLock guard(mutex_);
  if (ended_) return std::nullopt;
  if (queue_.empty()) {
    asleep_ = true;
    sleep_();
    return 0;
  }
  const std::string& text = *queue_.front();
  const std::size_t bytes = text.copy(into, room, sent_);
  sent_ += bytes;
  if (sent_ == text.size()) {
    queue_.pop_front();
    sent_ = 0;
  }
  return bytes;
}

}  // namespace percs
