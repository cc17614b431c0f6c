#include "emulator/collectives/smartmap_collective.h"

#include <algorithm>
#include <cstring>

#include "fmt/format.h"

namespace percs {

SmartmapCollective::SmartmapCollective(Rank& rank, const TaskGroup& group, Operation operation,
                                       std::uint8_t channel, SmartmapReduce reduce,
                                       SmartmapSource source)
    : rank_(rank),
      size_(group.size),
      me_(group.IndexOf(rank.number())),
      operation_(operation),
      reduce_(reduce),
      source_(source),
      area_(rank.node().memory().smartmap(channel, group.size)),
      base_(group.size) {}

void SmartmapCollective::Reset(const CollectiveCall& call) {
  PERCS_CHECK(!running_);
  call_ = call;
  step_ = 0;
  seen_ = 0;
  if (operation_ == Operation::kBroadcast) {
    kind_ = Kind::kBroadcast;
    steps_ = at_root() ? 2 : 1;
  } else if (operation_ == Operation::kAlltoall) {
    kind_ = Kind::kAlltoall;
    steps_ = 3;
  } else {
    // Who works out a part has not got the value itself, so the place would be wrong.
    const bool may = reduce_ == SmartmapReduce::kAuto && !IsOfPairs(call.op) &&
                     call.bytes >= kParallelReduceFrom;
    const bool parallel = may || reduce_ == SmartmapReduce::kParallel;
    kind_ = parallel ? Kind::kParallelReduce : Kind::kSerialReduce;
    steps_ = parallel || at_root() ? 3 : 1;
  }
}

void SmartmapCollective::Start() {
  running_ = true;
  rank_.Do<&SmartmapCollective::Begin>(rank_.node().host().shared_entry, this);
}

bool SmartmapCollective::AtLeast(SharedLine& line, std::uint64_t wanted, Time* ready_at) {
  line.Read(rank_, ready_at);
  if (line.counter() >= wanted) return true;
  line.Watch(rank_);
  return false;
}

Time SmartmapCollective::PassPart(Pass pass, std::uint32_t from, CoreCaches::Role role,
                                  std::uint32_t from_number, std::uint32_t to,
                                  std::uint32_t to_number, std::uint64_t bytes) {
  const HostParameters& host = rank_.node().host();
  CoreCaches& caches = rank_.node().caches();
  const bool read = caches.Read(rank_.core(), {from, role, from_number}, bytes);
  const bool written =
      caches.Write(rank_.core(), {to, CoreCaches::Role::kReceived, to_number}, bytes);
  const Time miss = host.copy_per_kib - host.own_per_kib;
  const Time own =
      pass == Pass::kCombine ? std::max(host.own_per_kib, host.combine_per_kib) : host.own_per_kib;
  const Time per_kib = own + (read ? 0 : miss) + (written ? 0 : miss);
  return static_cast<Time>(bytes) * per_kib / 1024;
}

Time SmartmapCollective::PassAll(Pass pass, std::uint32_t from, CoreCaches::Role role,
                                 std::uint32_t to) {
  const HostParameters& host = rank_.node().host();
  if (!caches_kept()) {
    const Time combine = pass == Pass::kCombine ? host.CombineTime(call_.bytes) : 0;
    return host.CopyTime(call_.bytes) + combine;
  }
  Time time = 0;
  for (std::uint32_t i = 0; i < size_; ++i) {
    const std::uint64_t end = i + 1 < size_ ? ChunkFrom(i + 1) : call_.bytes;
    time += PassPart(pass, from, role, i, to, i, end - ChunkFrom(i));
  }
  return time;
}

Time SmartmapCollective::PassOfEach(std::uint64_t bytes, std::uint32_t to) {
  const HostParameters& host = rank_.node().host();
  const bool copies = kind_ == Kind::kAlltoall;
  if (!caches_kept()) {
    const Time combine = copies ? 0 : host.CombineTime((size_ - 1) * bytes);
    return host.CopyTime(size_ * bytes) + combine;
  }
  Time time = 0;
  for (std::uint32_t i = 0; i < size_; ++i) {
    const Pass pass = copies || i == 0 ? Pass::kCopy : Pass::kCombine;
    time += PassPart(pass, i, CoreCaches::Role::kSent, me_, to, copies ? i : me_, bytes);
  }
  return time;
}

Time SmartmapCollective::ClaimFinishedOfAll() {
  Time time = 0;
  for (std::uint32_t i = 0; i < size_; ++i) time += info(i).finished.ClaimTime(rank_);
  return time;
}

bool SmartmapCollective::Check(Rank&, Time* ready_at) {
  switch (kind_) {
    case Kind::kBroadcast:
      return CheckBroadcast(ready_at);
    case Kind::kSerialReduce:
      return CheckSerial(ready_at);
    case Kind::kParallelReduce:
      return CheckParallel(ready_at);
    case Kind::kAlltoall:
      return CheckAlltoall(ready_at);
  }
  return false;
}

void SmartmapCollective::Run(Rank&) {
  switch (kind_) {
    case Kind::kBroadcast:
      RunBroadcast();
      break;
    case Kind::kSerialReduce:
      RunSerial();
      break;
    case Kind::kParallelReduce:
      RunParallel();
      break;
    case Kind::kAlltoall:
      RunAlltoall();
      break;
  }
  seen_ = 0;
  if (++step_ < steps_) return rank_.Post(this);
  // What this operation adds to the counters of all.
  for (std::uint32_t i = 0; i < size_; ++i) {
    const bool every = kind_ == Kind::kParallelReduce || kind_ == Kind::kAlltoall;
    if (every || i == call_.root) ++base_[i].entered;
    if (every) base_[i].finished += size_;
  }
  if (kind_ == Kind::kBroadcast) base_[call_.root].finished += size_ - 1;
  if (kind_ == Kind::kSerialReduce || kind_ == Kind::kParallelReduce)
    base_[call_.root].turn += size_;
  running_ = false;
  call_.done(call_.client);
}

void SmartmapCollective::Publish() {
  info(me_).send = call_.input;
  info(me_).receive = call_.output;
  info(me_).entered.Advance(rank_);
}

// --- Broadcast: all but the root copy out of its buffer
// -------------------------------------------

bool SmartmapCollective::CheckBroadcast(Time* ready_at) {
  const Base& base = base_[call_.root];
  if (at_root()) return step_ == 0 || AtLeast(root().finished, base.finished + size_ - 1, ready_at);
  if (!AtLeast(root().entered, base.entered + 1, ready_at)) return false;
  const bool kept = source_ == SmartmapSource::kKept;
  const Time copy = PassAll(Pass::kCopy, call_.root,
                            kept ? CoreCaches::Role::kSent : CoreCaches::Role::kReceived, me_);
  Spend(rank_, copy + root().finished.ClaimTime(rank_), ready_at);
  return true;
}

void SmartmapCollective::RunBroadcast() {
  if (at_root()) {
    if (step_ == 0) Publish();
    return;
  }
  if (call_.output) std::memcpy(call_.output, root().receive, call_.bytes);
  root().finished.Advance(rank_);
}

// --- Serial reduce: in turn, into the root's buffer
// -----------------------------------------------

bool SmartmapCollective::CheckSerial(Time* ready_at) {
  const Base& base = base_[call_.root];
  if (!at_root()) {
    if (!AtLeast(root().entered, base.entered + 1, ready_at)) return false;
    if (!AtLeast(root().turn, base.turn + me_, ready_at)) return false;
    Spend(rank_,
          PassAll(Pass::kCombine, me_, CoreCaches::Role::kSent, call_.root) +
              root().turn.ClaimTime(rank_),
          ready_at);
    return true;
  }
  if (step_ == 0) {
    Spend(rank_, PassAll(Pass::kCopy, me_, CoreCaches::Role::kSent, me_), ready_at);
    return true;
  }
  if (!AtLeast(root().turn, base.turn + (step_ == 1 ? me_ : size_), ready_at)) return false;
  if (step_ == 1) Spend(rank_, root().turn.ClaimTime(rank_), ready_at);
  return true;
}

void SmartmapCollective::RunSerial() {
  if (!at_root()) {
    CombineFrom(me_, 0, call_.bytes, false);
    root().turn.Advance(rank_);
  } else if (step_ == 0) {
    if (call_.input) std::memcpy(call_.output, call_.input, call_.bytes);
    Publish();
  } else if (step_ == 1) {
    root().turn.Advance(rank_);
  }
}

// --- Parallel reduce: each works out its part for all
// ---------------------------------------------

std::uint64_t SmartmapCollective::ChunkFrom(std::uint32_t index) const {
  const std::uint64_t width = OperandBytes(call_.type);
  return call_.bytes / width * index / size_ * width;
}

bool SmartmapCollective::CheckParallel(Time* ready_at) {
  if (step_ == 0) {
    Spend(rank_, root().turn.ClaimTime(rank_), ready_at);
    return true;
  }
  if (step_ == 2) return AtLeast(info(me_).finished, base_[me_].finished + size_, ready_at);
  if (!AtLeast(root().turn, base_[call_.root].turn + size_, ready_at)) return false;
  for (; seen_ < size_; ++seen_) {
    if (!AtLeast(info(seen_).entered, base_[seen_].entered + 1, ready_at)) return false;
  }
  Spend(rank_, PassOfEach(ChunkFrom(me_ + 1) - ChunkFrom(me_), call_.root) + ClaimFinishedOfAll(),
        ready_at);
  return true;
}

void SmartmapCollective::CombineFrom(std::uint32_t from, std::uint64_t offset, std::uint64_t bytes,
                                     bool first) {
  const std::uint8_t* operands = from == me_ ? call_.input : info(from).send;
  if (!operands) return;
  std::uint8_t* into = root().receive + offset;
  if (first) {
    std::memcpy(into, operands + offset, bytes);
  } else {
    Combine(call_.op, call_.type, bytes / OperandBytes(call_.type), operands + offset, into);
  }
}

void SmartmapCollective::RunParallel() {
  if (step_ == 0) {
    Publish();
    root().turn.Advance(rank_);
  } else if (step_ == 1) {
    const std::uint64_t from = ChunkFrom(me_), to = ChunkFrom(me_ + 1);
    for (std::uint32_t i = 0; i < size_; ++i) CombineFrom(i, from, to - from, i == 0);
    for (std::uint32_t i = 0; i < size_; ++i) info(i).finished.Advance(rank_);
  }
}

// --- All-to-all: each copies what is for it out of every buffer
// -----------------------------------

bool SmartmapCollective::CheckAlltoall(Time* ready_at) {
  if (step_ == 0) return true;
  if (step_ == 2) return AtLeast(info(me_).finished, base_[me_].finished + size_, ready_at);
  for (; seen_ < size_; ++seen_) {
    if (!AtLeast(info(seen_).entered, base_[seen_].entered + 1, ready_at)) return false;
  }
  Spend(rank_, PassOfEach(call_.bytes, me_) + ClaimFinishedOfAll(), ready_at);
  return true;
}

void SmartmapCollective::RunAlltoall() {
  if (step_ == 0) return Publish();
  if (step_ == 2) return;
  for (std::uint32_t i = 0; i < size_; ++i) {
    if (call_.output) {
      std::memcpy(call_.output + i * call_.bytes, info(i).send + me_ * call_.bytes, call_.bytes);
    }
    info(i).finished.Advance(rank_);
  }
}

std::string SmartmapCollective::Waits() const {
  if (!running_) return "";
  return fmt::format("task {} waits in step {} of a SMARTMAP {}", rank_.number(), step_,
                     OperationName(operation_));
}

}  // namespace percs
