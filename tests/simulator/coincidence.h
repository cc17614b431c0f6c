// What breaks together. Some bugs need two or three events within a second, in one order; events
// that are drawn one by one hardly ever meet so. Every fifth history also has one of these.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/simulator/fabric.h"

namespace percs::sim {

class Coincidence {
 public:
  enum class Kind : std::uint32_t {
    kNone,
    kPauseWhileWaiting,  // the controller is paused while a daemon waits for the batch of another
    kPauseBeforeLoss,    // ... just before a daemon that cannot be reached would be lost
    kBreakOnFullDisk,    // streams break while the disk is full, and the controller is killed
    kSpare,              // a spare daemon has the place of one that comes back
    kDeathAfterLoss,     // the controller dies soon after a daemon is lost
    kFullDiskAtRejoin,   // the disk is full as soon as a daemon begins to rejoin
    kPowerAfterRestart,  // a controller that has just continued a run loses power
  };
  // What it needs of the history.
  struct Port {
    std::function<void(std::uint32_t daemon, Wall until)> impair;  // it cannot answer until then
    std::function<void(Wall until)> trouble;                       // something is broken until then
    std::function<void()> lose_power;
  };

  // Draws from numbers of its own, so that the other four of five histories stay what they were.
  explicit Coincidence(std::uint64_t seed);

  bool any() const { return kind_ != Kind::kNone; }
  // Nothing else breaks.
  bool alone() const { return any() && alone_; }
  FabricSettings Adapt(FabricSettings settings) const;
  // Virtual microseconds by which the run is longer, so that there is a run when it happens.
  std::uint32_t longer() const;
  // REQUIRES: any().
  void Plan(SimulatedFabric* fabric, Port port);
  void OnLoss();
  // A controller's message leaves.
  void OnToDaemon(const v1::ControllerMessage& message);

 private:
  void PauseWhileWaiting();
  void PauseBeforeLoss();
  void BreakOnFullDisk();
  void CutOff(std::uint32_t daemon, Wall span);
  void KillDaemon(std::uint32_t daemon, Wall away);
  void KillController(Wall away);
  void PauseController(Wall span);
  Wall Span(Wall least, Wall most) { return Drawn(random_, least, most); }
  Wall Deadline() const { return *fabric_->settings().loss_deadline; }
  World& world() { return fabric_->world(); }

  RandomStream random_;
  Kind kind_ = Kind::kNone;
  bool alone_ = false, done_ = false;
  milliseconds deadline_{0};
  SimulatedFabric* fabric_ = nullptr;
  Port port_;
};

}  // namespace percs::sim
