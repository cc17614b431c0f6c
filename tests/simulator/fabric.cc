#include "tests/simulator/fabric.h"

#include <utility>

#include "fmt/format.h"

namespace percs::sim {
namespace {

constexpr Wall kTryAgain = milliseconds(500);

// Nobody asks over gRPC.
class NoFront final : public ControlFront {
 public:
  grpc::Service* service() override { return nullptr; }
  void OnRunEnded(std::uint64_t) override {}
  void Leave() override {}
};

}  // namespace

SimulatedFabric::SimulatedFabric(World* world, const FabricSettings& settings)
    : world_(world),
      settings_(settings),
      network_(world),
      disk_(world),
      daemons_(settings.daemons + settings.spares) {}

SimulatedFabric::~SimulatedFabric() {
  if (controller_process_) controller_process_->Kill();
  for (Daemon& daemon : daemons_) {
    if (daemon.process) daemon.process->Kill();
  }
  controller_.reset();
  if (controller_process_) network_.Forget(*controller_process_);
  for (Daemon& daemon : daemons_) End(daemon);
}

std::optional<std::uint32_t> SimulatedFabric::Find(std::uint64_t incarnation) const {
  for (std::uint32_t i = 0; i < daemons_.size(); ++i) {
    if (daemons_[i].process && daemons_[i].incarnation == incarnation) return i;
  }
  return std::nullopt;
}

void SimulatedFabric::StartController() {
  auto process = std::make_shared<Process>(world_, kController);
  disk_.Mount(process);
  ControllerOptions options;
  options.daemons = settings_.daemons;
  options.state_dir = kFolder;
  options.lost_after = settings_.lost_after;
  options.loss_deadline = settings_.loss_deadline;
  options.clock = process.get();
  options.disk = &disk_;
  options.fabrics = [this] { return Mix64(++numbers_); };
  const auto make_front = [](Controller*) -> std::unique_ptr<ControlFront> {
    return std::make_unique<NoFront>();
  };
  auto controller = Controller::Start(std::move(options), make_front);
  controller_process_ = process;
  if (!controller.ok()) {
    const std::string why(controller.status().message());
    if (std::exchange(told_, why) != why) world_->Log("the controller does not start: " + why);
    if (process->alive() && !disk_.troubled() && refusal_.empty()) refusal_ = why;
    process->Die();
    controller_process_ = nullptr;
    world_->After(kTryAgain, [this] { StartController(); });
    return;
  }
  world_->Log("the controller has started");
  told_.clear();
  controller_ = *std::move(controller);
  process->Guard(&controller_->lock());
  network_.Attach(kController, {process, &controller_->membership(), nullptr});
}

void SimulatedFabric::StartDaemon(std::uint32_t index) {
  Daemon& daemon = daemons_[index];
  auto process = daemon.process = std::make_shared<Process>(world_, NameOf(index));
  daemon.lock = std::make_unique<ProcessLock>(process.get());
  process->Guard(daemon.lock.get());
  daemon.links = network_.LinksOf(process);
  DaemonCore::Around around;
  around.controller = [this, process] { return network_.SyncTo(kController, process); };
  around.links = daemon.links.get();
  around.incarnations = [this, &daemon] { return daemon.incarnation = Mix64(++numbers_); };
  around.admit = [](const std::string&) { return absl::OkStatus(); };
  around.reached = [](bool) {};
  around.carried_bytes_max = settings_.carried_bytes_max;
  around.end = [this, process](const absl::Status& why) {
    world_->Log(fmt::format("{} ends: {}", process->name(), why.ToString()));
    // Only a loss of power takes what was told or heard.
    const bool lost = absl::IsDataLoss(why) && !lost_power_;
    if ((absl::IsFailedPrecondition(why) || lost) && stray_.empty())
      stray_ = fmt::format("{} ends: {}", process->name(), std::string(why.message()));
    process->Kill();
  };
  daemon.core = std::make_unique<DaemonCore>(daemon.lock.get(), std::move(around));
  SyncClientOptions sync;
  sync.controller = kController;
  sync.name = NameOf(index);
  sync.link_address = fmt::format("sim:{}-{}", index, settings_.same_address ? 0 : ++daemon.lives);
  sync.pid = index + 1;
  sync.spare = true;
  if (settings_.keeps_place) sync.place = index;
  sync.timeout = std::chrono::minutes(10);
  network_.Attach(sync.link_address, {process, nullptr, &daemon.core->mesh()});
  world_->Log(NameOf(index) + " has started");
  process->Run([core = daemon.core.get(), sync] { core->Start(sync); });
}

void SimulatedFabric::End(Daemon& daemon) {
  if (!daemon.process) return;
  {
    const LockGuard guard(daemon.lock->mutex());
    daemon.core->Stop();
    daemon.core->Forget();
  }
  network_.Forget(*daemon.process);
  daemon.core.reset();
  daemon.process = nullptr;
}

void SimulatedFabric::StopController() {
  if (!controller_) return;
  world_->Log("the controller is stopped in good order");
  controller_.reset();  // hands over
  controller_process_->Kill();
}

void SimulatedFabric::LosePower() {
  lost_power_ = true;
  if (controller_process_) controller_process_->Kill();
  disk_.LosePower();
}

void SimulatedFabric::PauseController(Wall until) {
  world_->Log(fmt::format("the controller is paused until {:.3f} s", until.count() / 1e9));
  controller_process_->PauseUntil(until);
}

void SimulatedFabric::CutOff(std::uint32_t daemon, Wall until) {
  world_->Log(fmt::format("nothing passes between {} and the controller until {:.3f} s",
                          NameOf(daemon), until.count() / 1e9));
  network_.StallUntil(NameOf(daemon), kController, until);
}

void SimulatedFabric::FillDisk(Wall until) {
  world_->Log(fmt::format("the disk is full until {:.3f} s", until.count() / 1e9));
  disk_.FullUntil(until);
}

void SimulatedFabric::Reap() {
  if (controller_process_ && !controller_process_->alive()) {
    ++crashes_;
    controller_.reset();
    network_.Forget(*controller_process_);
    controller_process_ = nullptr;
    world_->After(controller_delay_, [this] { StartController(); });
  }
  for (std::uint32_t i = 0; i < daemons_.size(); ++i) {
    if (!daemons_[i].process || daemons_[i].process->alive()) continue;
    ++crashes_;
    End(daemons_[i]);
    world_->After(daemon_delay_, [this, i] { StartDaemon(i); });
  }
}

}  // namespace percs::sim
