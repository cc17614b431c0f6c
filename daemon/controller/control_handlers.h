// The methods of the Control service, for the files that implement them.
#pragma once

#include <chrono>
#include <mutex>

#include "daemon/config/status_translation.h"
#include "daemon/config/version.h"
#include "daemon/controller/control_service.h"
#include "emulator/management/fault_service.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace percs {

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

class ControlService::Handlers final : public v1::Control::CallbackService {
 public:
  Handlers(ControlService* service, Controller* controller)
      : service_(service), controller_(controller) {}

  Reactor* Version(Context* context, const v1::VersionRequest*, v1::VersionReply* reply) override {
    if (Reactor* refused = Refused(context)) return refused;
    *reply->mutable_versions() = OurVersions();
    return Answer(context, absl::OkStatus());
  }
  Reactor* Status(Context* context, const v1::StatusRequest*, v1::StatusReply* reply) override {
    if (Reactor* refused = Refused(context)) return refused;
    const LockGuard guard(mutex());
    controller_->FillStatus(reply);
    return Answer(context, absl::OkStatus());
  }
  Reactor* Apply(Context* context, const v1::ApplyRequest* request,
                 v1::ApplyReply* reply) override {
    if (Reactor* refused = Refused(context)) return refused;
    Reactor* reactor = context->DefaultReactor();
    const LockGuard guard(mutex());
    controller_->Apply(*request, [reactor, reply](absl::StatusOr<v1::ApplyReply> answer) {
      if (answer.ok()) *reply = *std::move(answer);
      reactor->Finish(ToGrpc(answer.status()));
    });
    return reactor;
  }
  grpc::ServerWriteReactor<v1::RunEvent>* WatchRun(Context* context,
                                                   const v1::WatchRunRequest* request) override;
  Reactor* GetResult(Context* context, const v1::GetResultRequest* request,
                     v1::GetResultReply* reply) override {
    if (Reactor* refused = Refused(context)) return refused;
    const LockGuard guard(mutex());
    auto result = controller_->Result(request->run());
    if (result.ok()) *reply = *std::move(result);
    return Answer(context, result.status());
  }
  Reactor* Stop(Context* context, const v1::StopRequest*, v1::StopReply* reply) override;
  Reactor* Reset(Context* context, const v1::ResetRequest*, v1::ResetReply*) override {
    if (Reactor* refused = Refused(context)) return refused;
    const LockGuard guard(mutex());
    return Answer(context, controller_->Reset());
  }
  Reactor* Observe(Context* context, const v1::ObserveRequest* request,
                   v1::ObserveReply*) override {
    if (Reactor* refused = Refused(context)) return refused;
    const LockGuard guard(mutex());
    return Answer(context, controller_->Observe(*request));
  }
  Reactor* FindHub(Context* context, const v1::FindHubRequest* request,
                   v1::FindHubReply* reply) override {
    if (Reactor* refused = Refused(context)) return refused;
    const LockGuard guard(mutex());
    auto found = controller_->FindHub(request->hub());
    if (found.ok()) *reply = *std::move(found);
    return Answer(context, found.status());
  }
  Reactor* Shutdown(Context* context, const v1::ShutdownRequest*, v1::ShutdownReply*) override {
    if (Reactor* refused = Refused(context)) return refused;
    const LockGuard guard(mutex());
    spdlog::info("shutdown was requested");
    controller_->Shutdown();
    return Answer(context, absl::OkStatus());
  }
  Reactor* ListLinks(Context* context, const v1::ListLinksRequest* request,
                     v1::ListLinksReply* reply) override;
  Reactor* GetRoutes(Context* context, const v1::GetRoutesRequest* request,
                     v1::GetRoutesReply* reply) override;
  Reactor* DumpRoutes(Context* context, const v1::DumpRoutesRequest* request,
                      v1::DumpRoutesReply* reply) override;
  Reactor* LoadRoutes(Context* context, const v1::LoadRoutesRequest* request,
                      v1::LoadRoutesReply* reply) override;
  Reactor* GetCounters(Context* context, const v1::GetCountersRequest* request,
                       v1::GetCountersReply* reply) override;
  Reactor* InjectLinkFault(Context* context, const v1::InjectLinkFaultRequest* request,
                           v1::InjectLinkFaultReply* reply) override;
  Reactor* InjectFault(Context* context, const v1::InjectFaultRequest* request,
                       v1::InjectFaultReply* reply) override;
  // control_faults.cc
  Reactor* CreateFault(Context* context, const v1::CreateFaultRequest* request,
                       v1::FaultReply* reply) override;
  Reactor* UpdateFault(Context* context, const v1::UpdateFaultRequest* request,
                       v1::FaultReply* reply) override;
  Reactor* DeleteFault(Context* context, const v1::DeleteFaultRequest* request,
                       v1::FaultReply* reply) override;
  Reactor* ListFaults(Context* context, const v1::ListFaultsRequest* request,
                      v1::ListFaultsReply* reply) override;
  Reactor* ResetFaults(Context* context, const v1::ResetFaultsRequest* request,
                       v1::ResetFaultsReply* reply) override;
  Reactor* ResetArbiters(Context* context, const v1::ResetArbitersRequest* request,
                         v1::ResetArbitersReply* reply) override;
  Reactor* HoldFault(Context* context, const v1::HoldFaultRequest* request,
                     v1::HoldFaultReply* reply) override;
  Reactor* RepeatWorkload(Context* context, const v1::RepeatWorkloadRequest* request,
                          v1::RepeatWorkloadReply* reply) override;
  Reactor* BreakStreams(Context* context, const v1::BreakStreamsRequest* request,
                        v1::BreakStreamsReply* reply) override;
  // control_health.cc
  Reactor* Pause(Context* context, const v1::PauseRequest*, v1::PauseReply* reply) override;
  Reactor* Resume(Context* context, const v1::ResumeRequest*, v1::PauseReply* reply) override;
  Reactor* StepTime(Context* context, const v1::StepTimeRequest* request,
                    v1::PauseReply* reply) override;
  grpc::ServerWriteReactor<v1::EventBatch>* WatchEvents(
      Context* context, const v1::WatchEventsRequest* request) override;
  Reactor* GetHealth(Context* context, const v1::GetHealthRequest*,
                     v1::HealthReply* reply) override;
  Reactor* PreviewFault(Context* context, const v1::PreviewFaultRequest* request,
                        v1::PreviewFaultReply* reply) override;
  Reactor* Trace(Context* context, const v1::TraceRequest* request, v1::TraceReply* reply) override;
  Reactor* GetTrace(Context* context, const v1::GetTraceRequest* request,
                    v1::GetTraceReply* reply) override;
  Reactor* CreateTree(Context* context, const v1::CreateTreeRequest* request,
                      v1::CreateTreeReply* reply) override;
  Reactor* DeleteTree(Context* context, const v1::DeleteTreeRequest* request,
                      v1::DeleteTreeReply* reply) override;
  Reactor* ListTrees(Context* context, const v1::ListTreesRequest* request,
                     v1::ListTreesReply* reply) override;

 private:
  ProcessMutex& mutex() { return controller_->lock().mutex(); }
  static Reactor* Answer(Context* context, const absl::Status& status) {
    Reactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  // Null, or the answer to a caller who asks too often.
  Reactor* Refused(Context* context) {
    const absl::Status status = controller_->limit().Admit(context->peer());
    return status.ok() ? nullptr : Answer(context, status);
  }
  // Whether one more client may watch. With the lock held.
  absl::Status MayWatch(Context* context);
  absl::StatusOr<FabricRun*> ActiveRun(bool going_on) {
    auto run = controller_->ActiveRun();
    if (!run.ok() || !going_on) return run;
    // A command would wait for virtual time, which waits for room on the disk.
    if (!controller_->storage().ok()) return controller_->storage();
    if (!(*run)->ended()) return run;
    return absl::FailedPreconditionError(
        fmt::format("run {} ended at {} of virtual time; apply a scenario, with hold to keep the "
                    "run alive when it has no work left",
                    (*run)->number(), FormatTime((*run)->virtual_time())));
  }

  using FaultCommand = absl::StatusOr<FaultStatus> (FaultService::*)(const FaultSpec&, Time);
  Reactor* SetFault(Context* context, const v1::Fault& fault, const char* what,
                    FaultCommand command, v1::JournalRecord record, std::chrono::milliseconds lease,
                    v1::FaultReply* reply);
  template <typename Reply, typename Act, typename Told>
  Reactor* OnFaults(Context* context, v1::JournalRecord record, Reply* reply, Act act, Told told);

  ControlService* service_;
  Controller* controller_;
};

}  // namespace percs
