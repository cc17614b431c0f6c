// percs-controller: its server, the daemons that joined, the run they are on and the results of
// earlier ones.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/address.h"
#include "daemon/controller/fabric_run.h"
#include "daemon/controller/membership.h"
#include "daemon/metrics/metrics_server.h"
#include "proto/scenario/journal_file.h"

namespace percs {

class ControlService;

struct ControllerOptions {
  std::string listen;
  std::uint32_t daemons = 1;
  std::string metrics;                          // HOST:PORT for Prometheus; "": none
  std::string state_dir;                        // "": no journal
  std::uint64_t journal_limit = std::uint64_t{1} << 30;  // bytes; then commands are accepted no longer
  std::chrono::milliseconds lost_after{5'000};  // a daemon without a connection for so long is lost
};

class Controller final : private DaemonPort {
 public:
  static absl::StatusOr<std::unique_ptr<Controller>> Start(ControllerOptions options);
  ~Controller() override;

  const std::string& address() const { return address_; }
  // Null if it serves none.
  const MetricsServer* metrics() const { return metrics_.get(); }
  // Blocks until Shutdown was asked for or Stop was called.
  void Wait();
  void Stop();

  // For the Control service, with the lock held.
  ProcessLock& lock() { return lock_; }
  using ApplyDone = std::function<void(absl::StatusOr<v1::ApplyReply>)>;
  void Apply(const v1::ApplyRequest& request, ApplyDone done);
  void FillStatus(v1::StatusReply* reply) const;
  // FAILED_PRECONDITION unless a scenario is applied and its hubs are there.
  absl::StatusOr<FabricRun*> ActiveRun();
  FabricRun* run() { return run_.get(); }
  // By number; 0: the last one that ended.
  absl::StatusOr<v1::GetResultReply> Result(std::uint64_t number) const;
  absl::Status Reset();
  void End();
  // Keeps a table set that is to be loaded, so that the journal can name it.
  absl::Status KeepRoutes(const v1::LoadRoutesRequest& request, v1::JournalRecord* record);

 private:
  struct Finished {
    std::uint64_t number;
    absl::StatusOr<v1::GetResultReply> reply;
  };
  explicit Controller(ControllerOptions options);
  absl::Status Listen();
  absl::Status ServeMetrics();
  absl::Status CheckIdle() const;
  void OnRunEnded();
  void KeepResult();
  absl::Status OpenJournal();
  absl::Status RecordApply(const v1::ApplyRequest& request);
  v1::FabricState State() const;
  std::string Transport() const;

  std::unique_ptr<v1::ControllerMessage> Prepare(std::uint32_t process) override;
  void Send(std::uint32_t process, std::unique_ptr<v1::ControllerMessage> message) override;
  v1::Peer Describe(std::uint32_t process) const override;

  ControllerOptions options_;
  std::string address_;
  ProcessLock lock_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  JournalFile journal_;
  Membership membership_;
  std::unique_ptr<ControlService> control_;
  std::unique_ptr<FabricRun> run_;
  ApplyDone apply_done_;
  std::chrono::steady_clock::time_point applied_at_;
  std::uint64_t runs_ = 0;
  std::string last_error_;
  std::deque<Finished> finished_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<MetricsServer> metrics_;
};

}  // namespace percs
