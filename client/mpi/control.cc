#include "client/mpi/control.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "fmt/format.h"
#include "percs/v1/control.grpc.pb.h"
#include "proto/process/grpc_status.h"
#include "proto/process/unix_socket.h"
#include "proto/scenario/command_methods.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/fault_methods.h"

namespace percs::mpi {
namespace {

constexpr char kUnix[] = "unix:";

}  // namespace

class JobControl::Service final : public v1::Control::Service {
 public:
  explicit Service(Act act) : act_(std::move(act)) {}
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
    if (request->lease_wall_ms() == 0) return Call("CreateFault", *request, reply);
    return ToGrpc(absl::UnimplementedError(
        "the fabric of an MPI program has no leases; give the fault a duration"));
  }
  grpc::Status UpdateFault(grpc::ServerContext*, const v1::UpdateFaultRequest* request,
                           v1::FaultReply* reply) override {
    return Call("UpdateFault", *request, reply);
  }
  grpc::Status DeleteFault(grpc::ServerContext*, const v1::DeleteFaultRequest* request,
                           v1::FaultReply* reply) override {
    return Call("DeleteFault", *request, reply);
  }
  grpc::Status ListFaults(grpc::ServerContext*, const v1::ListFaultsRequest* request,
                          v1::ListFaultsReply* reply) override {
    return Call("ListFaults", *request, reply);
  }
  grpc::Status ResetFaults(grpc::ServerContext*, const v1::ResetFaultsRequest* request,
                           v1::ResetFaultsReply* reply) override {
    return Call("ResetFaults", *request, reply);
  }

 private:
  grpc::Status Call(const char* method, const google::protobuf::Message& request,
                    google::protobuf::Message* reply) {
    const auto* service = v1::JournalRecord::descriptor()->file()->FindServiceByName("Control");
    return ToGrpc(act_(*service->FindMethodByName(method), request, reply));
  }

  const Act act_;
  std::unique_ptr<grpc::Server> server_;
};

JobControl::JobControl() = default;
JobControl::~JobControl() = default;

JobControl::Act JobControl::On(Job& job) {
  using google::protobuf::Message;
  return [&job](const google::protobuf::MethodDescriptor& method, const Message& request,
                Message* reply) {
    if (method.output_type() == v1::ListFaultsReply::descriptor()) {
      return job.Manage([&](Fabric& fabric, Time now) {
        return ListFaults(*fabric.faults(), static_cast<const v1::ListFaultsRequest&>(request),
                          job.topology(), now, static_cast<v1::ListFaultsReply*>(reply));
      });
    }
    const v1::JournalRecord record = CommandRecord(method, request);
    return job.Manage(
        [&](Fabric& fabric, Time now) -> absl::Status {
          if (absl::Status status = CheckCommand(record, fabric); !status.ok()) return status;
          reply->GetReflection()->SetInt64(reply, reply->GetDescriptor()->FindFieldByName("at"),
                                           now);
          return ActOnFabric(record, fabric, now, reply);
        },
        &record);
  };
}

absl::StatusOr<std::unique_ptr<JobControl>> JobControl::Start(const std::string& address, Act act) {
  if (!address.starts_with(kUnix))
    return absl::InvalidArgumentError(
        fmt::format("--control {}: expected unix:PATH, a socket of this machine", address));
  // The server would take the place of what is there.
  if (absl::Status free = CheckUnixFree(address.substr(std::strlen(kUnix))); !free.ok())
    return Reworded(free, fmt::format("--control: {}", std::string(free.message())));
  std::unique_ptr<JobControl> control(new JobControl());
  control->service_ = std::make_unique<Service>(std::move(act));
  if (control->service_->Listen(address)) return control;
  return absl::InvalidArgumentError(fmt::format(
      "--control {}: cannot listen there; is it in a folder that exists and can be written?",
      address));
}

}  // namespace percs::mpi
