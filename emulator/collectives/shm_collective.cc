#include "emulator/collectives/shm_collective.h"

#include <algorithm>
#include <cstring>

#include "fmt/format.h"

namespace percs {
namespace {

// Heap of tasks, numbered from the root.
std::int64_t Parent(std::uint32_t me, std::uint32_t root, std::uint32_t size,
                    std::uint32_t degree) {
  const std::uint32_t k = (me + size - root) % size;
  return k == 0 ? -1 : static_cast<std::int64_t>(((k - 1) / degree + root) % size);
}

std::vector<std::uint32_t> Children(std::uint32_t me, std::uint32_t root, std::uint32_t size,
                                    std::uint32_t degree) {
  const std::uint32_t k = (me + size - root) % size;
  std::vector<std::uint32_t> children;
  for (std::uint64_t c = std::uint64_t{degree} * k + 1; c <= std::uint64_t{degree} * k + degree;
       ++c) {
    if (c < size) children.push_back(static_cast<std::uint32_t>((c + root) % size));
  }
  return children;
}

}  // namespace

ShmCollective::ShmCollective(Rank& rank, const TaskGroup& group, std::uint8_t channel,
                             bool blocking)
    : rank_(rank),
      size_(group.size),
      me_(group.IndexOf(rank.number())),
      area_(rank.node().memory().area(channel, group.size)),
      blocking_(blocking) {}

void ShmCollective::Reset(const CollectiveCall& call) {
  PERCS_CHECK(!running_);
  call_ = call;
  step_ = 0;
  steps_ = std::max<std::uint64_t>(1, (call.bytes + StepBytes() - 1) / StepBytes());
  Prepare();
}

void ShmCollective::Start() {
  running_ = true;
  rank_.Do<&ShmCollective::Begin>(rank_.node().host().shared_entry, this);
}

std::uint64_t ShmCollective::step_bytes() const {
  return std::min(StepBytes(), call_.bytes - offset());
}

bool ShmCollective::AtLeast(SharedLine& line, std::uint64_t wanted, Time* ready_at) {
  line.Read(rank_, ready_at);
  if (line.counter() >= wanted) return true;
  line.Watch(rank_);
  return false;
}

void ShmCollective::Run(Rank&) {
  Step();
  if (++step_ < steps_) return rank_.Post(this, blocking_);
  running_ = false;
  ++operations_;
  call_.done(call_.client);
}

std::string ShmCollective::Waits() const {
  if (!running_) return "";
  return fmt::format("task {} waits in step {} of {} number {}", rank_.number(), step_, name(),
                     operations_);
}

// --- Reduce --------------------------------------------------------------------------------------

void ShmReduce::Prepare() {
  children_ = Children(me_, call_.root, size_, degree_);
  parent_ = Parent(me_, call_.root, size_, degree_);
  seen_ = 0;
}

bool ShmReduce::Check(Rank&, Time* ready_at) {
  const std::uint64_t mine = slot(me_).line.counter();
  for (; seen_ < children_.size(); ++seen_) {
    if (!AtLeast(slot(children_[seen_]).line, mine + 1, ready_at)) return false;
  }
  return last_parent_ < 0 ||
         AtLeast(slot(static_cast<std::uint32_t>(last_parent_)).line, mine, ready_at);
}

void ShmReduce::Step() {
  const std::uint64_t bytes = step_bytes();
  if (call_.input) {
    value_.assign(call_.input + offset(), call_.input + offset() + bytes);
    for (std::uint32_t child : children_) {
      Combine(call_.op, call_.type, bytes / OperandBytes(call_.type), slot(child).record.data(),
              value_.data());
    }
    if (at_root()) std::memcpy(call_.output + offset(), value_.data(), bytes);
    slot(me_).record = value_;
  }
  seen_ = 0;
  last_parent_ = parent_;
  slot(me_).line.Advance(rank_);
}

// --- Tree broadcast ------------------------------------------------------------------------------

void ShmTreeBroadcast::Prepare() {
  children_ = Children(me_, call_.root, size_, degree_);
  parent_ = Parent(me_, call_.root, size_, degree_);
  seen_ = 0;
}

bool ShmTreeBroadcast::Check(Rank&, Time* ready_at) {
  const std::uint64_t mine = slot(me_).line.counter();
  if (parent_ >= 0 &&
      !AtLeast(slot(static_cast<std::uint32_t>(parent_)).line, mine + 1, ready_at)) {
    return false;
  }
  for (; seen_ < last_children_.size(); ++seen_) {
    if (!AtLeast(slot(last_children_[seen_]).line, mine, ready_at)) return false;
  }
  return true;
}

void ShmTreeBroadcast::Step() {
  const std::uint64_t bytes = step_bytes();
  SharedArea::Slot& mine = slot(me_);
  if (call_.output) {
    if (at_root()) {
      mine.record.assign(call_.output + offset(), call_.output + offset() + bytes);
    } else {
      mine.record = slot(static_cast<std::uint32_t>(parent_)).record;
      std::memcpy(call_.output + offset(), mine.record.data(), bytes);
    }
  }
  seen_ = 0;
  last_children_ = children_;
  mine.line.Advance(rank_);
}

// --- Flat broadcast ------------------------------------------------------------------------------

// What the buffer holds is the step `buffers_` before this one. The counters of all tasks are read
// at once: the misses of a thread overlap, but for `line_repeat`.
bool ShmFlatBroadcast::AllHaveRead(Time* ready_at) {
  if (done_ < buffers_) return true;
  if (!asking_) {
    asking_ = true;
    for (std::uint32_t i = 0; i < size_; ++i) {
      if (i != me_) unread_.push_back(i);
    }
  }
  std::erase_if(unread_, [&](std::uint32_t i) {
    return AtLeast(slot(i).line, done_ - buffers_ + 1, ready_at);
  });
  return unread_.empty();
}

bool ShmFlatBroadcast::Check(Rank&, Time* ready_at) {
  if (at_root()) {
    if (!AllHaveRead(ready_at)) return false;
    buffer().line.Read(rank_, ready_at);  // to own it
  } else if (!AtLeast(buffer().line, done_ / buffers_ + 1, ready_at)) {
    return false;
  }
  return true;
}

Work::Copies ShmFlatBroadcast::copies(const Rank& rank) const {
  const HostParameters& host = rank_.node().host();
  const std::uint64_t bytes = step_bytes();
  if (call_.bytes <= host.shared_record) return {};
  // What the siblings read, too, comes into their cache once.
  const auto readers = static_cast<std::uint64_t>(at_root() ? 1 : 1 + rank.siblings());
  return {host.SharedCopyTime(offset(), bytes), bytes / readers};
}

void ShmFlatBroadcast::Step() {
  const std::uint64_t bytes = step_bytes();
  if (call_.output && at_root()) {
    buffer().bytes.assign(call_.output + offset(), call_.output + offset() + bytes);
  } else if (call_.output) {
    std::memcpy(call_.output + offset(), buffer().bytes.data(), bytes);
  }
  if (at_root()) buffer().line.Advance(rank_);
  ++done_;
  asking_ = false;
  slot(me_).line.Advance(rank_);
}

}  // namespace percs
