// Client of a fabric's control plane: one blocking call per method of percs.v1.Control.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "percs/v1/control.grpc.pb.h"
#include "proto/security/credentials.h"

namespace percs {

// THREAD: any number of threads may call at the same time.
// WIDE: one method for each call of the Control service, and each is one line.
class FabricClient {
 public:
  using Duration = std::chrono::milliseconds;
  // `address` as gRPC takes it: `unix:/path`, `127.0.0.1:18515`. Connects with the first call.
  explicit FabricClient(std::string address, const Credentials& credentials = {});

  const std::string& address() const { return address_; }
  // Deadline of a call that only asks; calls that build or drain the fabric have their own.
  void set_deadline(Duration deadline) { deadline_ = deadline; }

  // A method of the service by its descriptor; the messages are of its types.
  absl::Status CallMethod(const google::protobuf::MethodDescriptor& method,
                          const google::protobuf::Message& request,
                          google::protobuf::Message* reply);
  absl::StatusOr<v1::VersionReply> Version();
  absl::StatusOr<v1::StatusReply> Status();
  absl::StatusOr<v1::ApplyReply> Apply(const v1::ApplyRequest& request, Duration deadline);
  // Blocks until run `run` (0: the current or last one) has ended. `progress` may return false to
  // stop watching, which is CANCELLED here and leaves the run alone.
  absl::StatusOr<v1::GetResultReply> WatchRun(
      std::uint64_t run, const std::function<bool(const v1::RunProgress&)>& progress);
  absl::StatusOr<v1::GetResultReply> GetResult(std::uint64_t run);
  absl::StatusOr<v1::StopReply> Stop();
  absl::StatusOr<v1::ResetReply> Reset();
  absl::StatusOr<v1::ObserveReply> Observe(const v1::ObserveRequest& request);
  absl::StatusOr<v1::ShutdownReply> Shutdown();
  absl::StatusOr<v1::FindHubReply> FindHub(const std::string& hub);
  absl::StatusOr<v1::ListLinksReply> ListLinks(const std::string& node);
  absl::StatusOr<v1::GetRoutesReply> GetRoutes(const v1::GetRoutesRequest& request);
  absl::StatusOr<v1::DumpRoutesReply> DumpRoutes(const std::string& node);
  absl::StatusOr<v1::LoadRoutesReply> LoadRoutes(const v1::LoadRoutesRequest& request);
  absl::StatusOr<v1::GetCountersReply> GetCounters(const std::string& node, bool per_node);
  // `at`: virtual picoseconds, or a negative number for now.
  absl::StatusOr<v1::InjectLinkFaultReply> InjectLinkFault(const std::string& link, bool up,
                                                           std::int64_t at);
  absl::StatusOr<v1::InjectFaultReply> InjectFault(const v1::InjectFaultRequest& request);
  // `lease`: 0, or the wall time after which it is deleted if its lease is not renewed.
  absl::StatusOr<v1::FaultReply> CreateFault(const v1::Fault& fault, Duration lease = Duration(0));
  absl::StatusOr<v1::HoldFaultReply> HoldFault(const std::string& id);
  absl::StatusOr<v1::PauseReply> Pause();
  absl::StatusOr<v1::PauseReply> Resume();
  absl::StatusOr<v1::PauseReply> StepTime(std::int64_t by);
  // `pace` in virtual picoseconds per wall second; 0: no limit.
  absl::StatusOr<v1::PauseReply> SetPace(std::int64_t pace);
  absl::StatusOr<v1::FaultReply> UpdateFault(const v1::Fault& fault);
  absl::StatusOr<v1::FaultReply> DeleteFault(const std::string& id);
  // "": all.
  absl::StatusOr<v1::ListFaultsReply> ListFaults(const std::string& id);
  absl::StatusOr<v1::ResetFaultsReply> ResetFaults();
  absl::StatusOr<v1::BreakStreamsReply> BreakStreams(const std::string& process);
  // Calls `batch` with the events kept after number `after`, and with `follow` with later ones; it
  // may return false to stop, which is CANCELLED here.
  absl::Status WatchEvents(std::uint64_t after, bool follow,
                           const std::function<bool(const v1::EventBatch&)>& batch);
  absl::StatusOr<v1::HealthReply> GetHealth();
  absl::StatusOr<v1::PreviewFaultReply> PreviewFault(const v1::Fault& fault);
  absl::StatusOr<v1::TraceReply> Trace(const v1::TraceSelection& selection);
  absl::StatusOr<v1::GetTraceReply> GetTrace();
  absl::StatusOr<v1::CreateTreeReply> CreateTree(const v1::CreateTreeRequest& request);
  absl::StatusOr<v1::DeleteTreeReply> DeleteTree(const std::string& name);
  absl::StatusOr<v1::ListTreesReply> ListTrees(const std::string& name);

 private:
  template <typename Reply, typename Request>
  absl::StatusOr<Reply> Call(grpc::Status (v1::Control::Stub::*call)(grpc::ClientContext*,
                                                                     const Request&, Reply*),
                             const Request& request, Duration deadline);

  std::string address_;
  Duration deadline_{10'000};
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Control::Stub> stub_;
};

}  // namespace percs
