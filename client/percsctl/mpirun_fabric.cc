#include "client/percsctl/mpirun_fabric.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "client/lib/interrupt.h"
#include "client/lib/local_fabric.h"
#include "client/percsctl/command.h"

namespace percs {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kStopGrace(10'000);

}  // namespace

absl::StatusOr<std::unique_ptr<OwnFabric>> OwnFabric::Start(int daemons, std::uint32_t hubs) {
  if (static_cast<std::uint32_t>(daemons) > hubs) {
    return absl::InvalidArgumentError(
        fmt::format("--daemons {}: the machine has only {} hubs; every daemon needs at least one",
                    daemons, hubs));
  }
  const auto store = FabricStore::Open();
  if (!store.ok()) return store.status();
  StartOptions options;
  options.name = fmt::format("mpirun-{}", getpid());
  options.daemons = daemons;
  options.cancelled = [] { return InterruptGuard::raised(); };
  const InterruptGuard interrupt;
  const auto record = StartFabric(*store, options);
  if (!record.ok()) return record.status();
  return std::unique_ptr<OwnFabric>(new OwnFabric(*store, options.name));
}

OwnFabric::~OwnFabric() {
  const auto stopped = StopFabric(store_, name_, kStopGrace);
  const std::string folder = store_.FolderOf(name_);
  if (!stopped.ok()) {
    fmt::print(stderr, "percsctl: {}\n", Text(stopped.status()));
  } else if (stopped->killed + stopped->gone > 0) {
    fmt::print(stderr, "percsctl: not every process of the fabric ended in order; logs are in {}\n",
               folder);
  } else {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
}

}  // namespace percs
