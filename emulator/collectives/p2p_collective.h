// The state machine of a collective made of active messages (paper 003 section 3.3): one per
// instance and task. Each phase sends and receives at most one message; when both are done the next
// begins, unless the schedule has them all open at once. Nothing blocks: every step is a callback
// of the task's thread.
#pragma once

#include <string>
#include <vector>

#include "emulator/collectives/collective.h"
#include "emulator/collectives/schedule.h"
#include "emulator/runtime/message_port.h"

namespace percs {

class P2pCollective final : public Collective, public Endpoint {
 public:
  // `channel` tells instances on one task apart; all tasks of the group make theirs with the same.
  // Messages of more than `eager_limit` bytes go by rendezvous.
  P2pCollective(Rank& rank, const TaskGroup& group, const P2pAlgorithm& algorithm,
                std::uint8_t channel, std::uint64_t eager_limit);
  // With the limit of channels among all tasks.
  P2pCollective(Rank& rank, const TaskGroup& group, const P2pAlgorithm& algorithm,
                std::uint8_t channel);
  ~P2pCollective() override;

  void Reset(const CollectiveCall& call) override;
  void Start() override;
  std::string Waits() const override;

  void OnMessage(const Incoming& message) override;
  void OnSent(const Envelope& envelope) override;

 private:
  enum class State : std::uint8_t { kIdle, kReset, kRunning };
  void Begin(std::uint64_t);
  void Enter();  // the next phases, as long as those that are open are done
  void Open(std::size_t phase);
  bool Receiving(const Incoming& message) const;  // what it is waits for
  void TakeEarly(const Envelope& envelope);       // what has come before its phase, if it has
  void PostNext();                                // the next receive, if that is to be early
  bool IsOf(const Incoming& message) const;       // of the operation that is running
  void Take(const Incoming& message);
  void Combined(std::uint64_t phase);
  void Received(std::size_t phase);
  Envelope EnvelopeOf(std::size_t phase) const;
  void Finish(std::uint64_t);
  void Refuse(const Incoming& message, const std::string& why);

  bool HasData() const { return call_.input || call_.output; }
  std::uint8_t* At(Buffer buffer);
  Content Pack(const Piece& piece);
  void Unpack(const Piece& piece, const std::vector<std::uint8_t>& bytes, Phase::Take take);
  Time Move(const std::vector<LocalCopy>& copies);

  Rank& rank_;
  const TaskGroup group_;
  const P2pAlgorithm& algorithm_;
  const std::uint8_t channel_;
  const std::uint64_t eager_limit_;
  State state_ = State::kIdle;
  CollectiveCall call_;
  PhaseSchedule schedule_;
  std::vector<std::uint8_t> scratch_;
  std::uint32_t sequence_ = 0;
  std::size_t opened_ = 0;       // phases that have begun
  std::size_t waiting_ = 0;      // messages, out and in, that they wait for
  std::size_t posted_ = 0;       // a later phase whose rendezvous may begin, if it is one
  std::vector<bool> receiving_;  // by phase: its message is not here yet
  std::vector<Incoming> early_;  // of later phases and operations
};

}  // namespace percs
