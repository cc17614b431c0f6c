// A percsd without its server and its files: its session with the controller, its links and its
// hubs. The simulator runs it on a simulated network and clock.
//
// THREAD: guarded by the process's lock, but for the services' own methods, which take it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/config/random_number.h"
#include "daemon/endpoint/programs.h"
#include "daemon/link/link_mesh.h"
#include "daemon/metrics/hub_metrics.h"
#include "daemon/node/host.h"
#include "daemon/sync/sync_client.h"

namespace percs {

class DaemonCore {
 public:
  // Its environment.
  struct Around {
    // A connection to the controller, a new one for each incarnation.
    std::function<std::unique_ptr<SyncTransport>()> controller;
    LinkTransport* links = &LinkTransport::Real();  // lives as long as this
    NumberSource incarnations = RandomNumber;
    // Whether a peer, as gRPC names it, may make another request. THREAD: any.
    std::function<absl::Status(const std::string& peer)> admit;
    std::function<void(bool)> reached;  // whether there is a session, whenever that changes
    // OK after the controller's goodbye, or why it cannot continue.
    std::function<void(const absl::Status&)> end;
    Host::Tap tap;
    std::size_t carried_bytes_max = kCarriedBytesMax;
  };
  DaemonCore(ProcessLock* lock, Around around);

  // `sync`: how it joins; its incarnation is set here.
  void Start(SyncClientOptions sync);
  // From now on it neither sends nor receives messages.
  void Stop();
  // After Stop and when nothing is under way any more.
  void Forget();

  LinkMesh& mesh() { return mesh_; }
  Programs& programs() { return programs_; }
  const Host& host() const { return host_; }
  DetailOfHubs& metrics_detail() { return metrics_detail_; }

 private:
  void Join();
  void OnGone(const absl::Status& status);
  void Observe(const v1::Observe& observe);
  absl::Status OnControllerMessage(v1::ControllerMessage& message);

  const Around around_;
  SyncClientOptions options_;
  LinkMesh mesh_;
  Programs programs_;
  Host host_;
  ProcessLock* lock_;
  DetailOfHubs metrics_detail_;
  std::shared_ptr<SyncClient> sync_;
  std::vector<std::shared_ptr<SyncClient>> before_;  // of incarnations that were declared lost
  Timer anew_;
  Timer slice_;
  bool stopped_ = false;
};

}  // namespace percs
