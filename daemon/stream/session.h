// A conversation between two processes that outlives the streams that carry it: messages are
// numbered, acknowledged cumulatively and sent again after a reconnect, so that each arrives
// exactly once and in order. Both Link and Sync are made of these.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {

// Messages of a session that a peer may leave without acknowledgement.
inline constexpr std::size_t kUnacknowledgedMax = 4096;

// The stream that carries a session at the moment.
template <class Out>
class StreamPort {
 public:
  virtual ~StreamPort() = default;
  // REQUIRES: the completion of the previous write was delivered; `message` stays until its own is.
  virtual void Write(const Out& message) = 0;
  // Ends the stream early; its end is reported like any other.
  virtual void Cancel() = 0;
};

template <class Out, class In>
class Session {
 public:
  // More unacknowledged messages than this are a bug: emulated credits allow fewer.
  explicit Session(std::size_t unacknowledged_max) : unacknowledged_max_(unacknowledged_max) {}

  // A cleared message to fill and to give to Send.
  std::unique_ptr<Out> Prepare() {
    if (free_.empty()) return std::make_unique<Out>();
    std::unique_ptr<Out> message = std::move(free_.back());
    free_.pop_back();
    message->Clear();
    return message;
  }
  void Send(std::unique_ptr<Out> message) {
    message->set_sequence(++sent_);
    queue_.push_back(std::move(message));
    PERCS_CHECK(queue_.size() <= unacknowledged_max_);
    Pump();
  }

  // From now on nothing is sent or acknowledged before Release: decisions have to be saved first,
  // so that no peer ever knows more than a process finds again after it was killed.
  void HoldBack() { held_back_ = true; }
  void Release() {
    released_ = sent_;
    durable_ = received_;
    Pump();
  }
  // Messages since the last Release, in either direction.
  std::uint64_t sent_since() const { return sent_ - released_; }
  std::uint64_t received_since() const { return received_ - durable_; }
  bool changed() const { return sent_since() > 0 || received_since() > 0; }
  bool sends_held_back() const { return held_back_ && sent_since() > 0; }
  // State of the session, to continue it in another process: messages queue from `sent` -
  // queue.size() + 1 on, and up to `left` a stream may have taken them once they are released.
  template <class Each>
  void VisitUnacknowledged(Each each) const {
    for (const auto& message : queue_) each(*message);
  }
  std::uint64_t left() const { return port_ != nullptr ? sent_ : left_; }
  void Restore(std::uint64_t received, std::uint64_t sent, std::uint64_t left,
               std::vector<std::unique_ptr<Out>> unacknowledged) {
    PERCS_CHECK(sent_ == 0 && received_ == 0);
    PERCS_CHECK(left <= sent && unacknowledged.size() <= sent);
    received_ = durable_ = received;
    sent_ = released_ = sent;
    left_ = left;
    for (auto& message : unacknowledged) queue_.push_back(std::move(message));
  }

  // In the process before this one, a stream may have taken all that were sent.
  void LeftBefore() { left_ = sent_; }

  bool attached() const { return port_ != nullptr; }
  StreamPort<Out>* port() const { return port_; }
  std::uint64_t received() const { return received_; }
  // Number up to which the other side may drop its messages.
  std::uint64_t keepable() const { return held_back_ ? durable_ : received_; }
  std::uint64_t sent() const { return sent_; }
  bool all_acknowledged() const { return queue_.empty(); }
  std::size_t unacknowledged() const { return queue_.size(); }

  // From now on `port` carries the session; the other side has `peer_received` of our messages.
  // DATA_LOSS if the other side knows less or more than this one has told or heard.
  // REQUIRES: an earlier stream was reported Closed.
  absl::Status Attach(StreamPort<Out>* port, std::uint64_t peer_received) {
    PERCS_CHECK(port_ == nullptr && writing_ == nullptr);
    // Its state was lost, and what it had acknowledged cannot be sent again.
    if (const std::uint64_t had = sent_ - queue_.size(); peer_received < had) {
      return absl::DataLossError(
          fmt::format("the peer has {} messages, but it had acknowledged {}", peer_received, had));
    }
    if (absl::Status status = Acknowledge(peer_received); !status.ok()) return status;
    port_ = port;
    unsent_ = 0;
    // What no stream took before: from now on one may, which has to be saved first.
    if (held_back_) released_ = std::min(released_, left_);
    Pump();
    return absl::OkStatus();
  }
  // The stream takes no more writes; one may still be under way until Closed.
  void Broken() { port_ = nullptr; }
  void Closed() {
    port_ = nullptr;
    Written();
  }
  // The completion of a write was delivered.
  void Written() {
    writing_ = nullptr;
    if (held_) Recycle(std::move(held_));
    Pump();
  }

  // True if `message` is new and is to be acted upon; false for a repetition or a bare
  // acknowledgement. DATA_LOSS if one before it is missing.
  absl::StatusOr<bool> Receive(const In& message) {
    if (absl::Status status = Acknowledge(message.acknowledged()); !status.ok()) return status;
    if (message.sequence() == 0 || message.sequence() <= received_) return false;
    if (message.sequence() != received_ + 1) {
      return absl::DataLossError(
          fmt::format("message {} follows message {}: the messages between them are lost",
                      message.sequence(), received_));
    }
    ++received_;
    return true;
  }
  // Sends a bare acknowledgement if many messages arrived and none was sent back.
  void AcknowledgeIfDue() { Pump(); }

 private:
  static constexpr std::uint64_t kAcknowledgeEvery = 16;
  static constexpr std::size_t kFreeMax = 4;
  static constexpr std::size_t kKeepBytesMax = 16 * 1024;

  void Pump() {
    if (port_ == nullptr || writing_ != nullptr) return;
    Out* next = nullptr;
    if (unsent_ < queue_.size() && (!held_back_ || queue_[unsent_]->sequence() <= released_)) {
      next = queue_[unsent_++].get();
    } else if (keepable() - acknowledged_ >= kAcknowledgeEvery) {
      bare_.Clear();
      next = &bare_;
    } else {
      return;
    }
    left_ = std::max(left_, next->sequence());
    acknowledged_ = keepable();
    next->set_acknowledged(acknowledged_);
    writing_ = next;
    port_->Write(*next);
  }
  absl::Status Acknowledge(std::uint64_t number) {
    if (number > left_) {
      return absl::DataLossError(
          fmt::format("the peer acknowledges message {}, but only {} were sent", number, left_));
    }
    while (!queue_.empty() && queue_.front()->sequence() <= number) {
      if (unsent_ > 0) --unsent_;
      if (queue_.front().get() == writing_) {
        held_ = std::move(queue_.front());
      } else {
        Recycle(std::move(queue_.front()));
      }
      queue_.pop_front();
    }
    return absl::OkStatus();
  }
  void Recycle(std::unique_ptr<Out> message) {
    if (free_.size() < kFreeMax && message->ByteSizeLong() < kKeepBytesMax) {
      free_.push_back(std::move(message));
    }
  }

  const std::size_t unacknowledged_max_;
  StreamPort<Out>* port_ = nullptr;
  const Out* writing_ = nullptr;            // its completion is outstanding
  std::unique_ptr<Out> held_;               // acknowledged while still being written
  std::deque<std::unique_ptr<Out>> queue_;  // sent, but not acknowledged
  std::size_t unsent_ = 0;                  // index in queue_ of the next to send on this stream
  std::vector<std::unique_ptr<Out>> free_;
  Out bare_;
  std::uint64_t sent_ = 0, received_ = 0, acknowledged_ = 0;
  // The last that a stream took, here or before a Restore. A peer that has more heard it from a
  // process whose state was lost, and knows another message under that number.
  std::uint64_t left_ = 0;
  bool held_back_ = false;
  std::uint64_t released_ = 0, durable_ = 0;  // of `sent_` and `received_`, if held back
};

}  // namespace percs
