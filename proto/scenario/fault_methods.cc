#include "proto/scenario/fault_methods.h"

#include "proto/scenario/faults.h"

namespace percs {

absl::Status SetFault(FaultService& faults, FaultCommand command, const FaultSpec& spec,
                      const Topology& topology, Time at, v1::FaultReply* reply) {
  const auto fault = (faults.*command)(spec, at);
  if (!fault.ok()) return fault.status();
  reply->set_at(at);
  FaultToProto(*fault, topology, reply->mutable_fault());
  return absl::OkStatus();
}

absl::Status DeleteFault(FaultService& faults, const std::string& id, const Topology& topology,
                         Time at, v1::FaultReply* reply) {
  const auto fault = faults.Get(id);
  if (!fault.ok()) return fault.status();
  reply->set_at(at);
  FaultToProto(*fault, topology, reply->mutable_fault());
  return faults.Delete(id, at);
}

absl::Status ResetFaults(FaultService& faults, Time at, v1::ResetFaultsReply* reply) {
  reply->set_at(at);
  reply->set_deleted(faults.Reset(at));
  return absl::OkStatus();
}

absl::Status ListFaults(const FaultService& faults, const v1::ListFaultsRequest& request,
                        const Topology& topology, Time now, v1::ListFaultsReply* reply) {
  reply->set_virtual_time(now);
  if (request.id().empty()) {
    for (const FaultStatus& fault : faults.List())
      FaultToProto(fault, topology, reply->add_faults());
    return absl::OkStatus();
  }
  const auto fault = faults.Get(request.id());
  if (fault.ok()) FaultToProto(*fault, topology, reply->add_faults());
  return fault.status();
}

}  // namespace percs
