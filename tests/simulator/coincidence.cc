#include "tests/simulator/coincidence.h"

#include <string>
#include <utility>

#include "fmt/format.h"

namespace percs::sim {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kEvery = 5;
constexpr std::uint32_t kKinds = 7;
// By then the run has begun.
constexpr Wall kEarliest = milliseconds(2500), kLatest = seconds(6);

}  // namespace

Coincidence::Coincidence(std::uint64_t seed) : random_(seed, "coincidence") {
  if (seed % kEvery != 0) return;
  kind_ = static_cast<Kind>(1 + random_.Below(kKinds));
  alone_ = random_.Below(3) > 0;
  deadline_ = milliseconds(2500 + random_.Below(2) * 1000);
}

FabricSettings Coincidence::Adapt(FabricSettings settings) const {
  if (!any()) return settings;
  settings.loss_deadline = deadline_;
  if (kind_ == Kind::kSpare) {
    settings.spares = 1;
    settings.same_address = settings.keeps_place = false;
  }
  return settings;
}

std::uint32_t Coincidence::longer() const {
  return !any() ? 0 : kind_ == Kind::kFullDiskAtRejoin ? 30 : 10;
}

void Coincidence::Plan(SimulatedFabric* fabric, Port port) {
  fabric_ = fabric;
  port_ = std::move(port);
  const FabricSettings& settings = fabric_->settings();
  world().After(Span(kEarliest, kLatest), [this, &settings] {
    const std::uint32_t daemon = random_.Below(settings.daemons + settings.spares);
    switch (kind_) {
      case Kind::kNone:
        return;
      case Kind::kPauseWhileWaiting:
        return PauseWhileWaiting();
      case Kind::kPauseBeforeLoss:
        return PauseBeforeLoss();
      case Kind::kBreakOnFullDisk:
        return BreakOnFullDisk();
      case Kind::kSpare:
        return CutOff(daemon, Deadline() + Span(milliseconds(500), seconds(4)));
      case Kind::kDeathAfterLoss:
      case Kind::kFullDiskAtRejoin:
        return KillDaemon(daemon, Span(milliseconds(100), Deadline() + seconds(1)));
      case Kind::kPowerAfterRestart:
        KillController(Span(milliseconds(50), seconds(1)));
        return world().After(Span(seconds(1), seconds(4)), [this] {
          fabric_->RestartControllerAfter(Span(milliseconds(50), seconds(1)));
          port_.trouble(world().now());
          port_.lose_power();
        });
    }
  });
}

void Coincidence::PauseWhileWaiting() {
  const std::uint32_t daemons = fabric_->settings().daemons;
  const Wall before = Span(milliseconds(300), seconds(2));
  const Wall pause = Deadline() + Span(milliseconds(300), seconds(2));
  const Wall until = world().now() + before + pause + Span(milliseconds(500), seconds(2));
  world().Log(fmt::format("nothing passes between daemons until {:.3f} s", until.count() / 1e9));
  for (std::uint32_t a = 0; a < daemons; ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      fabric_->network().StallUntil(SimulatedFabric::NameOf(a), SimulatedFabric::NameOf(b), until);
    }
  }
  port_.trouble(until);
  world().After(before, [this, pause] { PauseController(pause); });
}

// It is back more than kRecovers before the controller is.
void Coincidence::PauseBeforeLoss() {
  const Wall away = Deadline() + Span(milliseconds(700), milliseconds(1000));
  const double early = 0.95 + 0.1 * random_.Unit();
  const Wall begin(static_cast<Wall::rep>(static_cast<double>(Deadline().count()) * early));
  const Wall until = away + Span(milliseconds(2100), seconds(4));
  CutOff(random_.Below(fabric_->settings().daemons), away);
  const Wall pause_at = begin + Span(Wall(0), milliseconds(400));
  world().After(pause_at, [this, span = until - pause_at] { PauseController(span); });
}

void Coincidence::BreakOnFullDisk() {
  const Wall full = Span(seconds(3), seconds(6));
  const Wall until = world().now() + full;
  fabric_->FillDisk(until);
  port_.trouble(until);
  world().After(Span(milliseconds(300), milliseconds(1500)), [this] {
    world().Log("all streams of the controller break");
    for (std::uint32_t i = 0; i < fabric_->settings().daemons; ++i) {
      fabric_->network().Break(SimulatedFabric::NameOf(i), SimulatedFabric::kController);
    }
  });
  const Wall away = Span(milliseconds(50), seconds(3));
  world().After(Span(milliseconds(2200), full), [this, away] { KillController(away); });
}

void Coincidence::OnLoss() {
  if (kind_ != Kind::kDeathAfterLoss || !fabric_->controller_process() ||
      std::exchange(done_, true))
    return;
  fabric_->RestartControllerAfter(Span(milliseconds(50), seconds(2)));
  fabric_->controller_process()->DieAfter(1 + random_.Below(60));
}

void Coincidence::OnToDaemon(const v1::ControllerMessage& message) {
  if (kind_ != Kind::kFullDiskAtRejoin || !message.has_configure() ||
      message.configure().attempt() == 0 || std::exchange(done_, true))
    return;
  const Wall until = world().now() + Span(milliseconds(300), seconds(4));
  world().Log("a daemon begins to rejoin");
  fabric_->FillDisk(until);
  port_.trouble(until);
}

void Coincidence::CutOff(std::uint32_t daemon, Wall span) {
  const Wall until = world().now() + span;
  port_.impair(daemon, until);
  fabric_->CutOff(daemon, until);
}

void Coincidence::KillDaemon(std::uint32_t daemon, Wall away) {
  const auto& process = fabric_->daemon(daemon);
  if (!process) return;
  fabric_->RestartDaemonsAfter(away);
  port_.impair(daemon, world().now() + away);
  process->Kill();
}

void Coincidence::KillController(Wall away) {
  const auto& process = fabric_->controller_process();
  if (!process) return;
  fabric_->RestartControllerAfter(away);
  port_.trouble(world().now() + away);
  process->Kill();
}

void Coincidence::PauseController(Wall span) {
  if (!fabric_->controller_process()) return;
  const Wall until = world().now() + span;
  port_.trouble(until);
  fabric_->PauseController(until);
}

}  // namespace percs::sim
