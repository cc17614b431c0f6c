// Where `percsctl fault --controller` reaches the fabric of a running MPI program: the fault
// methods of the Control service (proto/percs/v1/control.proto), at a Unix socket. They are carried
// out by the job of this process, or by whoever has the machine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/mpi/job.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace percs::mpi {

class JobControl {
 public:
  // Carries out a method of the service. THREAD: any.
  using Act = std::function<absl::Status(const google::protobuf::MethodDescriptor& method,
                                         const google::protobuf::Message& request,
                                         google::protobuf::Message* reply)>;
  // On a job that outlives what it returns.
  static Act On(Job& job);
  // `address` is unix:PATH. INVALID_ARGUMENT for another, ALREADY_EXISTS if someone listens there.
  static absl::StatusOr<std::unique_ptr<JobControl>> Start(const std::string& address, Act act);
  ~JobControl();
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;

 private:
  class Service;
  JobControl();
  std::unique_ptr<Service> service_;
};

}  // namespace percs::mpi
