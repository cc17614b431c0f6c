// Collectives through the shared memory of a node (paper 003 section 3.4, figures 5 and 6).
// Counters that only grow say what is there and what has been read; a step is tried, with a bounded
// spin, until all it depends on is there.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "emulator/collectives/collective.h"
#include "emulator/runtime/node_runtime.h"

namespace percs {

// What shared-memory collectives have in common: one operation is `steps` runs of a function on the
// work queue, one for each piece of the data.
class ShmCollective : public Collective, protected Work {
 public:
  // `group` lives on one node. `blocking`: the thread does nothing else while it waits (figure 5).
  ShmCollective(Rank& rank, const TaskGroup& group, std::uint8_t channel, bool blocking);

  void Reset(const CollectiveCall& call) override;
  void Start() override;
  std::string Waits() const override;

 protected:
  // Bytes that one step moves at most.
  virtual std::uint64_t StepBytes() const = 0;
  virtual void Prepare() {}
  virtual const char* name() const = 0;
  // A step's effect, once Check was true.
  virtual void Step() = 0;

  std::uint64_t step_bytes() const;  // of the step at hand
  // Of a record: whole operands, of pairs too, and one at least.
  std::uint64_t RecordBytes() const {
    return std::max<std::uint64_t>(rank_.node().host().shared_record / 16, 1) * 16;
  }
  std::uint64_t offset() const { return step_ * StepBytes(); }
  bool at_root() const { return me_ == call_.root; }
  SharedArea::Slot& slot(std::uint32_t index) { return area_.slots[index]; }
  // Reads the line; true if its counter is at least `wanted`, else the rank watches it.
  bool AtLeast(SharedLine& line, std::uint64_t wanted, Time* ready_at);

  Rank& rank_;
  const std::uint32_t size_, me_;
  SharedArea& area_;
  CollectiveCall call_;
  std::uint64_t step_ = 0;

 private:
  void Run(Rank& rank) override;
  void Begin(std::uint64_t) { rank_.Post(this, blocking_); }

  const bool blocking_;
  bool running_ = false;
  std::uint64_t steps_ = 0, operations_ = 0;
};

// Figures 5 and 6: a heap of `degree` children; a task combines its children's values with its own
// in fixed order and posts the result, once its parent has read the one before.
class ShmReduce final : public ShmCollective {
 public:
  ShmReduce(Rank& rank, const TaskGroup& group, std::uint8_t channel, bool blocking,
            std::uint32_t degree = 2)
      : ShmCollective(rank, group, channel, blocking), degree_(degree) {}

 private:
  std::uint64_t StepBytes() const override { return RecordBytes(); }
  void Prepare() override;
  const char* name() const override { return "shared-memory reduce"; }
  bool Check(Rank& rank, Time* ready_at) override;
  void Step() override;

  const std::uint32_t degree_;
  std::vector<std::uint32_t> children_;
  std::int64_t parent_ = -1, last_parent_ = -1;  // of this operation, of the step before
  std::size_t seen_ = 0;                         // children whose value is there
  std::vector<std::uint8_t> value_;
};

// Short broadcast: the same heap downwards, through the records.
class ShmTreeBroadcast final : public ShmCollective {
 public:
  ShmTreeBroadcast(Rank& rank, const TaskGroup& group, std::uint8_t channel,
                   std::uint32_t degree = 2)
      : ShmCollective(rank, group, channel, false), degree_(degree) {}

 private:
  std::uint64_t StepBytes() const override { return RecordBytes(); }
  void Prepare() override;
  const char* name() const override { return "shared-memory tree broadcast"; }
  bool Check(Rank& rank, Time* ready_at) override;
  void Step() override;

  const std::uint32_t degree_;
  std::int64_t parent_ = -1;
  std::vector<std::uint32_t> children_, last_children_;
  std::size_t seen_ = 0;  // of last_children_, those that have read the value before
};

// Flat broadcast: the root fills a buffer that all others copy from; with two buffers it fills one
// while they read the other. Data of up to a record lies beside the counter.
class ShmFlatBroadcast final : public ShmCollective {
 public:
  ShmFlatBroadcast(Rank& rank, const TaskGroup& group, std::uint8_t channel, int buffers)
      : ShmCollective(rank, group, channel, false), buffers_(static_cast<std::uint64_t>(buffers)) {}

 private:
  std::uint64_t StepBytes() const override {
    const HostParameters& host = rank_.node().host();
    return buffers_ == 1 ? host.shared_chunk : host.shared_piece;
  }
  const char* name() const override { return "shared-memory flat broadcast"; }
  void Prepare() override { unread_.clear(); }
  bool Check(Rank& rank, Time* ready_at) override;
  void Step() override;
  Copies copies(const Rank& rank) const override;
  bool AllHaveRead(Time* ready_at);
  SharedArea::Buffer& buffer() { return area_.buffers[done_ % buffers_]; }

  const std::uint64_t buffers_;
  std::uint64_t done_ = 0;             // steps of all operations
  bool asking_ = false;                // root: about the counters of those below
  std::vector<std::uint32_t> unread_;  // tasks that have not read yet what the buffer held
};

}  // namespace percs
