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

class ControlService final : public ControlFront {
 public:
  explicit ControlService(Controller* controller);
  ~ControlService() override;
  grpc::Service* service() override;

  // With the lock held.
  void OnRunEnded(std::uint64_t number) override;
  void Leave() override;
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

// A controller with its Control service. Errors as those of Controller::Start.
absl::StatusOr<std::unique_ptr<Controller>> StartController(ControllerOptions options);

}  // namespace percs
