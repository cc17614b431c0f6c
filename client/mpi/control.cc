#include "client/mpi/control.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstring>

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
    if (request->lease_wall_ms() == 0) return Command("CreateFault", *request, reply);
    return ToGrpc(absl::UnimplementedError(
        "the fabric of an MPI program has no leases; give the fault a duration"));
  }
  grpc::Status UpdateFault(grpc::ServerContext*, const v1::UpdateFaultRequest* request,
                           v1::FaultReply* reply) override {
    return Command("UpdateFault", *request, reply);
  }
  grpc::Status DeleteFault(grpc::ServerContext*, const v1::DeleteFaultRequest* request,
                           v1::FaultReply* reply) override {
    return Command("DeleteFault", *request, reply);
  }
  grpc::Status ListFaults(grpc::ServerContext*, const v1::ListFaultsRequest* request,
                          v1::ListFaultsReply* reply) override {
    return ToGrpc(job_.Manage([&](Fabric& fabric, Time now) {
      return percs::ListFaults(*fabric.faults(), *request, job_.topology(), now, reply);
    }));
  }
  grpc::Status ResetFaults(grpc::ServerContext*, const v1::ResetFaultsRequest* request,
                           v1::ResetFaultsReply* reply) override {
    return Command("ResetFaults", *request, reply);
  }

 private:
  // A method of the service that is a command, which the journal gets.
  template <typename Reply>
  grpc::Status Command(const char* method, const google::protobuf::Message& request, Reply* reply) {
    const auto* service = v1::JournalRecord::descriptor()->file()->FindServiceByName("Control");
    const v1::JournalRecord record = CommandRecord(*service->FindMethodByName(method), request);
    return ToGrpc(job_.Manage(
        [&](Fabric& fabric, Time now) -> absl::Status {
          if (absl::Status status = CheckCommand(record, fabric); !status.ok()) return status;
          reply->set_at(now);
          return ActOnFabric(record, fabric, now, reply);
        },
        &record));
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
