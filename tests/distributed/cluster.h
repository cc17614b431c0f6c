// A controller and its daemons inside the test's process, talking over real gRPC streams on Unix
// sockets: every byte that processes would exchange is exchanged, and a test can tamper with it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/controller/rpc/control_service.h"
#include "daemon/node/daemon.h"
#include "emulator/sim/run.h"
#include "percs/v1/control.grpc.pb.h"
#include "proto/process/temporary_folder.h"

namespace percs::test {

// For what has to happen on a busy machine. What a sanitizer watches is several times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::seconds kPatience(300);
#else
inline constexpr std::chrono::seconds kPatience(60);
#endif

struct ClusterOptions {
  std::uint32_t daemons = 2;
  bool tcp = false;
  // Address to dial instead of a daemon's or the controller's own, for a proxy in between.
  std::function<std::string(const std::string& real)> proxy = {};
  std::function<void(std::uint32_t from, std::uint32_t to, Outbox* outbox)> tap = {};
  std::chrono::milliseconds lost_after{5000};
  std::optional<std::chrono::milliseconds> loss_deadline = {};
  std::string state_dir = {};  // of the controller; "": no journal
  std::string tls = {};        // folder with one of each role's identity; "": plaintext
  std::uint64_t journal_limit = std::uint64_t{1} << 30;
  double requests_per_second = SecurityOptions().requests_per_second;
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options);
  ~Cluster();

  // Where its daemon number `index` listens for peers.
  const std::string& daemon_address(std::size_t index) const { return daemons_[index]->address(); }
  v1::Control::Stub& control() { return *control_; }
  const std::string& controller_address() const { return controller_->address(); }
  // One method of Control, within kPatience.
  template <typename Request, typename Reply>
  grpc::Status Call(grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    return (control_.get()->*method)(&context, request, reply);
  }
  void KillDaemon(std::size_t index) { daemons_[index].reset(); }
  // Starts one more, in the lowest free place.
  absl::Status AddDaemon();
  // Until all have joined; false after twice kPatience.
  bool WaitUntilJoined();
  v1::StatusReply Status();
  // Of virtual time, in a run that goes on.
  void PassTime(Time by);

  // Applies and waits for the result.
  absl::StatusOr<v1::GetResultReply> Run(const v1::ApplyRequest& request);
  absl::StatusOr<v1::ApplyReply> Apply(const v1::ApplyRequest& request);
  absl::StatusOr<v1::GetResultReply> WaitForResult();

 private:
  std::string IdentityOf(Role role) const;

  ClusterOptions options_;
  std::optional<percs::TemporaryFolder> folder_;
  std::unique_ptr<Controller> controller_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::unique_ptr<v1::Control::Stub> control_;
};

// Between two questions of a loop that waits: an address may ask only so often
// (requests_per_second).
void WaitABit();
// A scenario file below the source tree as a request, with its files inlined.
v1::ApplyRequest RequestFromFile(const std::string& path);
// Uniform traffic until it is stopped, in one supernode; held, so that it goes on being there.
v1::ApplyRequest Traffic(std::uint32_t drawers, std::uint32_t hubs, double load = 0.1);
// The same scenario run in this process by one thread.
RunResult RunHere(const v1::Scenario& scenario);
// The digest, the times and the counts of the same scenario, over daemons and in this process, and
// no violation in either.
void ExpectSame(const v1::RunResult& there, const RunResult& here);

}  // namespace percs::test
