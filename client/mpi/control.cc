#include "client/mpi/control.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "fmt/format.h"
#include "percs/v1/control.grpc.pb.h"
#include "proto/process/grpc_status.h"
#include "proto/scenario/faults.h"

namespace percs::mpi {
namespace {

constexpr char kUnix[] = "unix:";

// The server would take the place of what is there.
absl::Status CheckFree(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(fmt::format("--control unix:{}: a path of 1 to {} bytes",
                                                  path, sizeof(address.sun_path) - 1));
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode))
    return absl::AlreadyExistsError(
        fmt::format("--control unix:{}: a file exists there that is not a socket", path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool answers =
      file >= 0 && connect(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  if (file >= 0) close(file);
  if (!answers) return absl::OkStatus();
  return absl::AlreadyExistsError(
      fmt::format("--control unix:{}: another process listens there", path));
}

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
    if (request->lease_wall_ms() == 0) return Set(request->fault(), &FaultService::Create, reply);
    return ToGrpc(absl::UnimplementedError(
        "the fabric of an MPI program has no leases; give the fault a duration"));
  }
  grpc::Status UpdateFault(grpc::ServerContext*, const v1::UpdateFaultRequest* request,
                           v1::FaultReply* reply) override {
    return Set(request->fault(), &FaultService::Update, reply);
  }
  grpc::Status DeleteFault(grpc::ServerContext*, const v1::DeleteFaultRequest* request,
                           v1::FaultReply* reply) override {
    return OnFaults([&](FaultService& faults, Time now) {
      const auto fault = faults.Get(request->id());
      if (!fault.ok()) return fault.status();
      reply->set_at(now);
      FaultToProto(*fault, job_.topology(), reply->mutable_fault());
      return faults.Delete(request->id(), now);
    });
  }
  grpc::Status ListFaults(grpc::ServerContext*, const v1::ListFaultsRequest* request,
                          v1::ListFaultsReply* reply) override {
    return OnFaults([&](FaultService& faults, Time now) {
      reply->set_virtual_time(now);
      if (!request->id().empty()) {
        const auto fault = faults.Get(request->id());
        if (fault.ok()) FaultToProto(*fault, job_.topology(), reply->add_faults());
        return fault.status();
      }
      for (const FaultStatus& fault : faults.List())
        FaultToProto(fault, job_.topology(), reply->add_faults());
      return absl::OkStatus();
    });
  }
  grpc::Status ResetFaults(grpc::ServerContext*, const v1::ResetFaultsRequest*,
                           v1::ResetFaultsReply* reply) override {
    return OnFaults([&](FaultService& faults, Time now) {
      reply->set_at(now);
      reply->set_deleted(faults.Reset(now));
      return absl::OkStatus();
    });
  }

 private:
  using Command = absl::StatusOr<FaultStatus> (FaultService::*)(const FaultSpec&, Time);

  grpc::Status OnFaults(const std::function<absl::Status(FaultService&, Time)>& act) {
    return ToGrpc(
        job_.Manage([&act](Fabric& fabric, Time now) { return act(*fabric.faults(), now); }));
  }
  grpc::Status Set(const v1::Fault& fault, Command command, v1::FaultReply* reply) {
    const auto spec = BuildFaultSpec(fault, job_.topology());
    if (!spec.ok()) return ToGrpc(spec.status());
    return OnFaults([&](FaultService& faults, Time now) {
      const auto status = (faults.*command)(*spec, now);
      if (!status.ok()) return status.status();
      reply->set_at(now);
      FaultToProto(*status, job_.topology(), reply->mutable_fault());
      return absl::OkStatus();
    });
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
  if (absl::Status status = CheckFree(address.substr(std::strlen(kUnix))); !status.ok())
    return status;
  std::unique_ptr<JobControl> control(new JobControl());
  control->service_ = std::make_unique<Service>(job);
  if (control->service_->Listen(address)) return control;
  return absl::InvalidArgumentError(fmt::format(
      "--control {}: cannot listen there; is it in a folder that exists and can be written?",
      address));
}

}  // namespace percs::mpi
