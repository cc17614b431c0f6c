// The page of a run in this process: browsers look at it between its windows, and change nothing.
// What they may ask is what the controller of a fabric answers (percs.v1.Control), as far as it
// only looks at a run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "emulator/sim/fabric.h"

namespace percs {

class RunPage {
 public:
  // `address` is HOST:PORT, port 0 for any free one; on loopback or private networks only. Errors
  // as those of PageServer::Start.
  static absl::StatusOr<std::unique_ptr<RunPage>> Start(const std::string& address,
                                                        const Topology& topology);
  ~RunPage();

  std::string link() const;
  // RunOptions::watch: true while a page is open. It costs next to nothing while none is.
  bool Watch(const Fabric& fabric, std::uint64_t windows, bool ended);

 private:
  class Service;
  struct Parts;
  explicit RunPage(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace percs
