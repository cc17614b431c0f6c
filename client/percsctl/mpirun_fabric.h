// What percsctl mpirun makes for one program, and what goes with it: a folder, a fabric of daemons.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/lib/fabric_record.h"

namespace percs {

// A fabric of this machine that was started for one program.
class OwnFabric {
 public:
  // INVALID_ARGUMENT for more daemons than hubs; else as StartFabric.
  static absl::StatusOr<std::unique_ptr<OwnFabric>> Start(int daemons, std::uint32_t hubs);
  ~OwnFabric();
  OwnFabric(const OwnFabric&) = delete;
  OwnFabric& operator=(const OwnFabric&) = delete;
  const std::string& name() const { return name_; }

 private:
  OwnFabric(FabricStore store, std::string name)
      : store_(std::move(store)), name_(std::move(name)) {}
  const FabricStore store_;
  const std::string name_;
};

}  // namespace percs
