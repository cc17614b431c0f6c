// The methods of the Control service, for the files that implement them. Those with the option
// `command` (percs/v1/options.proto) have one handler together.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "daemon/controller/rpc/control_service.h"
#include "daemon/controller/status_reply.h"
#include "emulator/base/status.h"
#include "fmt/format.h"
#include "proto/process/grpc_status.h"
#include "proto/process/out_of_memory.h"
#include "proto/process/version.h"
#include "spdlog/spdlog.h"

namespace percs {

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

// A unary call on its way to its one answer.
class Call : public std::enable_shared_from_this<Call> {
 public:
  explicit Call(Reactor* reactor) : reactor_(reactor) {}
  // No answer will come, for example because there was no memory to keep the request.
  ~Call() { Finish(given_up_); }

  void Finish(const absl::Status& status) {
    if (reactor_ != nullptr) std::exchange(reactor_, nullptr)->Finish(ToGrpc(status));
  }
  // Takes the result when it is there: `fill` puts it in the reply, which stays until then.
  template <typename Result, typename Fill>
  auto Then(Fill fill) {
    later_ = true;
    return [call = shared_from_this(), fill = std::move(fill)](absl::StatusOr<Result> result) {
      if (!result.ok()) return call->Finish(result.status());
      call->Finish(WithinMemory("the answer", [&] {
        fill(*std::move(result));
        return absl::OkStatus();
      }));
    };
  }
  // The method goes on when what this returns is called: `act` gives the answer then, if the status
  // is OK, as a method does.
  template <typename Act>
  auto Continue(Act act) {
    later_ = true;
    return [call = shared_from_this(), act = std::move(act)](const absl::Status& may) {
      call->later_ = false;
      call->Return(may.ok() ? WithinMemory("the answer", [&] { return act(call); }) : may);
    };
  }
  // The method has returned `status`: that is the answer, unless one comes later. An error after
  // Then is the answer if what Then returned was not kept.
  void Return(const absl::Status& status) {
    if (!later_) return Finish(status);
    if (!status.ok()) given_up_ = status;
  }

 private:
  Reactor* reactor_;
  bool later_ = false;
  absl::Status given_up_ = absl::InternalError("the controller gave up this request");
};
using CallPtr = std::shared_ptr<Call>;

// WIDE: one method for each call of the Control service; gRPC wants them in one class.
class ControlService::Handlers final : public v1::Control::CallbackService {
 public:
  Handlers(ControlService* service, Controller* controller);

  Reactor* Version(Context* context, const v1::VersionRequest*, v1::VersionReply* reply) override {
    return Serve(context, [&]() -> absl::Status {
      *reply->mutable_versions() = OurVersions();
      return absl::OkStatus();
    });
  }
  Reactor* Status(Context* context, const v1::StatusRequest*, v1::StatusReply* reply) override {
    return Serve(context, [&]() PERCS_LOCKED -> absl::Status {
      FillStatus(*controller_, reply);
      return absl::OkStatus();
    });
  }
  Reactor* Apply(Context* context, const v1::ApplyRequest* request,
                 v1::ApplyReply* reply) override {
    return Serve(context, [&](const CallPtr& call) PERCS_LOCKED -> absl::Status {
      controller_->Apply(*request, call->Then<v1::ApplyReply>([reply](v1::ApplyReply answer) {
        *reply = std::move(answer);
      }));
      return absl::OkStatus();
    });
  }
  grpc::ServerWriteReactor<v1::RunEvent>* WatchRun(Context* context,
                                                   const v1::WatchRunRequest* request) override;
  Reactor* GetResult(Context* context, const v1::GetResultRequest* request,
                     v1::GetResultReply* reply) override {
    return Serve(context, [&]() PERCS_LOCKED {
      return MoveValue(controller_->Result(request->run()), reply);
    });
  }
  Reactor* Reset(Context* context, const v1::ResetRequest*, v1::ResetReply*) override {
    return Serve(context, [&]() PERCS_LOCKED { return controller_->Reset(); });
  }
  Reactor* Observe(Context* context, const v1::ObserveRequest* request,
                   v1::ObserveReply*) override {
    return Serve(context, [&]() PERCS_LOCKED { return controller_->Observe(*request); });
  }
  Reactor* FindHub(Context* context, const v1::FindHubRequest* request,
                   v1::FindHubReply* reply) override {
    return Serve(context, [&]() PERCS_LOCKED {
      return MoveValue(controller_->FindHub(request->hub()), reply);
    });
  }
  Reactor* Shutdown(Context* context, const v1::ShutdownRequest*, v1::ShutdownReply*) override {
    return Serve(context, [&]() PERCS_LOCKED -> absl::Status {
      spdlog::info("shutdown was requested");
      controller_->Shutdown();
      return absl::OkStatus();
    });
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
  Reactor* ListFaults(Context* context, const v1::ListFaultsRequest* request,
                      v1::ListFaultsReply* reply) override;
  Reactor* HoldFault(Context* context, const v1::HoldFaultRequest* request,
                     v1::HoldFaultReply* reply) override;
  Reactor* BreakStreams(Context* context, const v1::BreakStreamsRequest* request,
                        v1::BreakStreamsReply* reply) override;
  // control_health.cc
  Reactor* Pause(Context* context, const v1::PauseRequest*, v1::PauseReply* reply) override;
  Reactor* Resume(Context* context, const v1::ResumeRequest*, v1::PauseReply* reply) override;
  Reactor* SetPace(Context* context, const v1::SetPaceRequest* request,
                   v1::PauseReply* reply) override;
  Reactor* StepTime(Context* context, const v1::StepTimeRequest* request,
                    v1::PauseReply* reply) override;
  grpc::ServerWriteReactor<v1::EventBatch>* WatchEvents(
      Context* context, const v1::WatchEventsRequest* request) override;
  Reactor* GetHealth(Context* context, const v1::GetHealthRequest*,
                     v1::HealthReply* reply) override;
  Reactor* PreviewFault(Context* context, const v1::PreviewFaultRequest* request,
                        v1::PreviewFaultReply* reply) override;
  Reactor* GetTrace(Context* context, const v1::GetTraceRequest* request,
                    v1::GetTraceReply* reply) override;
  Reactor* ListTrees(Context* context, const v1::ListTreesRequest* request,
                     v1::ListTreesReply* reply) override;

 private:
  ProcessMutex& mutex() { return controller_->lock().mutex(); }
  // The beginning of every unary method: refuses a caller with too many requests, calls `act` with
  // the lock held, and answers with the status it returns. An `act` that takes the call and has
  // called Then on it is answered later. What does not fit in memory is an error of this call
  // alone.
  template <typename Act>
  Reactor* Serve(Context* context, Act act) {
    Reactor* const reactor = context->DefaultReactor();
    const auto call = std::make_shared<Call>(reactor);
    if (const absl::Status status = controller_->limit().Admit(context->peer()); !status.ok()) {
      call->Finish(status);
      return reactor;
    }
    const LockGuard guard(mutex());
    const absl::Status status = WithinMemory("the request", [&]() PERCS_LOCKED -> absl::Status {
      if constexpr (std::is_invocable_v<Act>) {
        return act();
      } else {
        return act(call);
      }
    });
    call->Return(status);
    return reactor;
  }
  // The same for methods that ask about a run, which may have ended: `act` takes it and the call.
  // FAILED_PRECONDITION without one.
  template <typename Act>
  Reactor* ServeRun(Context* context, Act act) {
    return Serve(context, [&](const CallPtr& call) PERCS_LOCKED -> absl::Status {
      const auto run = controller_->ActiveRun();
      return run.ok() ? act(*run, call) : run.status();
    });
  }
  // The same for questions about what network management knows, which includes every command that
  // was acknowledged, by an earlier controller too. `act` may be called when the method has
  // returned; request and reply are still there. Errors also as WhenRetaken.
  template <typename Act>
  Reactor* ServeKnown(Context* context, Act act) {
    return ServeRun(context, [&](FabricRun* run, const CallPtr& call) -> absl::Status {
      run->WhenRetaken(call->Continue(
          [run, act = std::move(act)](const CallPtr& known) { return act(run, known); }));
      return absl::OkStatus();
    });
  }
  // The same as ServeRun for commands, which need a run in progress. Errors as MayCommand.
  template <typename Act>
  Reactor* ServeActive(Context* context, Act act) {
    return ServeRun(context, [&](FabricRun* run, const CallPtr& call) PERCS_LOCKED -> absl::Status {
      const absl::Status may = MayCommand(*run);
      return may.ok() ? act(run, call) : may;
    });
  }
  absl::Status MayCommand(const FabricRun& run) PERCS_LOCKED {
    // A command would wait for virtual time, which waits for room on the disk.
    if (!controller_->storage().ok()) return controller_->storage();
    if (!run.ended()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("run {} ended at {} of virtual time; apply a scenario, with hold to keep the "
                    "run alive when it has no work left",
                    run.number(), FormatTime(run.virtual_time())));
  }

  // Whether one more client may watch.
  absl::Status MayWatch(Context* context) PERCS_LOCKED;

  // Serves a method that is a command; request and reply are bytes.
  Reactor* Command(Context* context, const google::protobuf::MethodDescriptor& method,
                   const grpc::ByteBuffer& request, grpc::ByteBuffer* reply);
  // Creates the fault that is set, and returns the virtual time at which it begins.
  absl::Status Set(FabricRun* run, const CallPtr& call, const v1::Fault& fault,
                   std::function<void(Time)> told);
  ControlService* service_;
  Controller* controller_;
};

}  // namespace percs
