#include "proto/scenario/status.h"

#include "proto/scenario/faults.h"

namespace percs {
namespace {

constexpr int kFaultsListed = 16;

}  // namespace

void ActiveFaultsToProto(const std::vector<FaultStatus>& faults, const Topology& topology,
                         v1::StatusReply* reply) {
  for (const FaultStatus& fault : faults) {
    if (fault.phase == FaultPhase::kRecovered) continue;
    reply->set_faults_active(reply->faults_active() + 1);
    if (reply->faults_size() < kFaultsListed) FaultToProto(fault, topology, reply->add_faults());
  }
}

void EventToProto(const FabricEvent& event, v1::FabricEvent* message) {
  message->set_sequence(event.sequence);
  message->set_at(event.at);
  message->set_kind(event.kind);
  message->set_subject(event.subject);
  message->set_text(event.text);
}

}  // namespace percs
