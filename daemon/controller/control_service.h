// The Control service: reads requests, asks the controller, writes answers. Every error becomes a
// gRPC status in ToGrpc and nowhere else.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "daemon/controller/controller.h"
#include "percs/v1/control.grpc.pb.h"

namespace percs {

class EventWatch;
class RunWatch;

void FillRunStatus(const FabricRun& run, v1::StatusReply* reply);

class ControlService {
 public:
  explicit ControlService(Controller* controller);
  ~ControlService();
  grpc::Service* service();

  // With the lock held.
  void OnRunEnded(std::uint64_t number);
  void Leave();
  void AddWatch(RunWatch* watch) { watches_.insert(watch); }
  void RemoveWatch(RunWatch* watch) { watches_.erase(watch); }
  void AddEventWatch(EventWatch* watch) { event_watches_.insert(watch); }
  void RemoveEventWatch(EventWatch* watch) { event_watches_.erase(watch); }
  bool leaving() const { return leaving_; }
  std::size_t watches() const { return watches_.size() + event_watches_.size(); }

 private:
  class Handlers;
  Controller* controller_;
  std::unique_ptr<Handlers> handlers_;
  std::set<RunWatch*> watches_;
  std::set<EventWatch*> event_watches_;
  bool leaving_ = false;
};

}  // namespace percs
