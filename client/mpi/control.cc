#include "client/mpi/control.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstring>

#include "fmt/format.h"
#include "percs/v1/control.grpc.pb.h"
#include "proto/process/grpc_status.h"
#include "proto/process/unix_socket.h"
#include "proto/scenario/fault_methods.h"
#include "proto/scenario/faults.h"

namespace percs::mpi {
namespace {

constexpr char kUnix[] = "unix:";

}  // namespace

class JobControl::Service final : public v1::Control::Service {
 public:
  explicit Service(Job& job) : job_(job) {}
  ~Service() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
  }
  bool Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    return server_ != nullptr;
  }

  grpc::Status CreateFault(grpc::ServerContext*, const v1::CreateFaultRequest* request,
                           v1::FaultReply* reply) override {
    v1::JournalRecord record;
    *record.mutable_create_fault() = request->fault();
    if (request->lease_wall_ms() == 0)
      return Set(request->fault(), &FaultService::Create, record, reply);
    return ToGrpc(absl::UnimplementedError(
        "the fabric of an MPI program has no leases; give the fault a duration"));
  }
  grpc::Status UpdateFault(grpc::ServerContext*, const v1::UpdateFaultRequest* request,
                           v1::FaultReply* reply) override {
    v1::JournalRecord record;
    *record.mutable_update_fault() = request->fault();
    return Set(request->fault(), &FaultService::Update, record, reply);
  }
  grpc::Status DeleteFault(grpc::ServerContext*, const v1::DeleteFaultRequest* request,
                           v1::FaultReply* reply) override {
    v1::JournalRecord record;
    record.set_delete_fault(request->id());
    return OnFaults(
        [&](FaultService& faults, Time now) {
          return percs::DeleteFault(faults, request->id(), job_.topology(), now, reply);
        },
        &record);
  }
  grpc::Status ListFaults(grpc::ServerContext*, const v1::ListFaultsRequest* request,
                          v1::ListFaultsReply* reply) override {
    return OnFaults([&](FaultService& faults, Time now) {
      return percs::ListFaults(faults, *request, job_.topology(), now, reply);
    });
  }
  grpc::Status ResetFaults(grpc::ServerContext*, const v1::ResetFaultsRequest*,
                           v1::ResetFaultsReply* reply) override {
    v1::JournalRecord record;
    record.set_reset_faults(true);
    return OnFaults(
        [&](FaultService& faults, Time now) { return percs::ResetFaults(faults, now, reply); },
        &record);
  }

 private:
  // `command` is what the journal gets; null for what changes nothing.
  grpc::Status OnFaults(const std::function<absl::Status(FaultService&, Time)>& act,
                        const v1::JournalRecord* command = nullptr) {
    return ToGrpc(job_.Manage(
        [&act](Fabric& fabric, Time now) { return act(*fabric.faults(), now); }, command));
  }
  grpc::Status Set(const v1::Fault& fault, FaultCommand command, const v1::JournalRecord& record,
                   v1::FaultReply* reply) {
    const auto spec = BuildFaultSpec(fault, job_.topology());
    if (!spec.ok()) return ToGrpc(spec.status());
    return OnFaults(
        [&](FaultService& faults, Time now) {
          return percs::SetFault(faults, command, *spec, job_.topology(), now, reply);
        },
        &record);
  }

  Job& job_;
  std::unique_ptr<grpc::Server> server_;
};

JobControl::JobControl() = default;
JobControl::~JobControl() = default;

absl::StatusOr<std::unique_ptr<JobControl>> JobControl::Start(const std::string& address,
                                                              Job& job) {
  if (!address.starts_with(kUnix))
    return absl::InvalidArgumentError(
        fmt::format("--control {}: expected unix:PATH, a socket of this machine", address));
  // The server would take the place of what is there.
  if (absl::Status free = CheckUnixFree(address.substr(std::strlen(kUnix))); !free.ok())
    return Reworded(free, fmt::format("--control: {}", std::string(free.message())));
  std::unique_ptr<JobControl> control(new JobControl());
  control->service_ = std::make_unique<Service>(job);
  if (control->service_->Listen(address)) return control;
  return absl::InvalidArgumentError(fmt::format(
      "--control {}: cannot listen there; is it in a folder that exists and can be written?",
      address));
}

}  // namespace percs::mpi
