// Fabrics of processes on this machine: a controller and its daemons, started, found again,
// stopped.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/lib/fabric_record.h"

namespace percs {

struct StartOptions {
  std::string name = "default";
  int daemons = 32;
  bool tcp = false;
  bool tls = false;      // identities are made for it, and every process uses one
  int port = 0;          // of the controller, with tcp; 0: any
  std::string metrics;   // HOST:PORT of the controller's metrics; "": none are served
  std::string page;      // HOST:PORT of the page for browsers; "": none
  std::string scenario;  // noted in the record only
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds loss_deadline{0};  // of percs-controller; 0: its default
  std::function<bool()> cancelled;
};

// Starts it and returns once every daemon has joined. ALREADY_EXISTS if one of that name runs. On
// any error everything that was started is stopped again, and the message has the end of the log.
absl::StatusOr<FabricRecord> StartFabric(const FabricStore& store, const StartOptions& options);

struct StopReport {
  int stopped = 0, killed = 0;  // processes
  int gone = 0;                 // had ended before
};
// Stops the processes of the record and no others, and clears record and sockets.
absl::StatusOr<StopReport> StopFabric(const FabricStore& store, const std::string& name,
                                      std::chrono::milliseconds grace);

}  // namespace percs
