// The processes of a history, their lives and deaths.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/controller/controller.h"
#include "daemon/node/daemon_core.h"
#include "tests/simulator/disk.h"
#include "tests/simulator/network.h"
#include "tests/simulator/world.h"

namespace percs::sim {

struct FabricSettings {
  std::uint32_t daemons = 2;
  std::uint32_t spares = 0;  // daemons without a place, while all others have one
  milliseconds lost_after{3'000};
  std::optional<milliseconds> loss_deadline;
  bool same_address = false;  // a daemon that starts again has the address that it had
  bool keeps_place = false;   // it asks for its place
  std::size_t carried_bytes_max = kCarriedBytesMax;  // batches that need no stream between daemons
};

class SimulatedFabric {
 public:
  static constexpr char kController[] = "controller";
  static constexpr char kFolder[] = "/state";

  SimulatedFabric(World* world, const FabricSettings& settings);
  ~SimulatedFabric();

  World& world() { return *world_; }
  Network& network() { return network_; }
  SimulatedDisk& disk() { return disk_; }
  const FabricSettings& settings() const { return settings_; }
  // Null while there is none.
  Controller* controller() { return controller_.get(); }
  const std::shared_ptr<Process>& controller_process() { return controller_process_; }
  static std::string NameOf(std::uint32_t daemon) { return "daemon " + std::to_string(daemon); }
  const std::shared_ptr<Process>& daemon(std::uint32_t index) { return daemons_[index].process; }
  // The daemon of this incarnation; none if it has ended.
  std::optional<std::uint32_t> Find(std::uint64_t incarnation) const;

  void StartController();
  void StartDaemon(std::uint32_t index);
  // In good order, as by SIGTERM.
  void StopController();
  // The machine of the controller fails, with its disk.
  void LosePower();
  bool lost_power() const { return lost_power_; }
  // These say so in the log. REQUIRES of the first: there is a controller.
  void PauseController(Wall until);
  void CutOff(std::uint32_t daemon, Wall until);  // from the controller
  void FillDisk(Wall until);
  // Takes away what is dead; it starts again later. To be called after each event.
  void Reap();
  // Wall time until it starts again.
  void RestartControllerAfter(Wall delay) { controller_delay_ = delay; }
  void RestartDaemonsAfter(Wall delay) { daemon_delay_ = delay; }
  std::uint64_t crashes() const { return crashes_; }
  // Why a controller did not start although nothing was wrong; empty if it always did.
  const std::string& refusal() const { return refusal_; }
  // A daemon had a place that the controller does not know, or its session had lost messages; "":
  // none.
  const std::string& stray() const { return stray_; }

 private:
  struct Daemon {
    std::shared_ptr<Process> process;
    std::unique_ptr<ProcessLock> lock;
    std::unique_ptr<LinkTransport> links;
    std::unique_ptr<DaemonCore> core;
    std::uint64_t lives = 0, incarnation = 0;
  };
  void End(Daemon& daemon);

  World* const world_;
  const FabricSettings settings_;
  Network network_;
  SimulatedDisk disk_;
  std::shared_ptr<Process> controller_process_;
  std::unique_ptr<Controller> controller_;
  std::vector<Daemon> daemons_;
  std::uint64_t numbers_ = 0, crashes_ = 0;
  Wall controller_delay_ = milliseconds(300), daemon_delay_ = milliseconds(500);
  bool lost_power_ = false;
  std::string refusal_, told_, stray_;
};

}  // namespace percs::sim
