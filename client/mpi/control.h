// Where `percsctl fault --controller` reaches the fabric of a running MPI program: the fault
// methods of the Control service (proto/percs/v1/control.proto), at a Unix socket.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/mpi/job.h"

namespace percs::mpi {

class JobControl {
 public:
  // `address` is unix:PATH. INVALID_ARGUMENT for another, ALREADY_EXISTS if someone listens there.
  // The job outlives this.
  static absl::StatusOr<std::unique_ptr<JobControl>> Start(const std::string& address, Job& job);
  ~JobControl();
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;

 private:
  class Service;
  JobControl();
  std::unique_ptr<Service> service_;
};

}  // namespace percs::mpi
