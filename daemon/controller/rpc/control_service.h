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

// One client of a stream. With the lock held.
class AnyWatch {
 public:
  virtual ~AnyWatch() = default;
  // Sends what is new, if nothing is under way.
  virtual void Look() = 0;
  // Ends the stream.
  virtual void Refuse(const absl::Status& status) = 0;
  // The run has ended.
  virtual void OnRunEnded(std::uint64_t) {}
};

class ControlService final : public ControlFront {
 public:
  explicit ControlService(Controller* controller);
  ~ControlService() override;
  grpc::Service* service() override;

  // With the lock held.
  void OnRunEnded(std::uint64_t number) override;
  void Leave() override;
  void AddWatch(AnyWatch* watch) { watches_.insert(watch); }
  void RemoveWatch(AnyWatch* watch) { watches_.erase(watch); }
  bool leaving() const { return leaving_; }
  std::size_t watches() const { return watches_.size(); }

 private:
  class Handlers;
  Controller* controller_;
  std::unique_ptr<Handlers> handlers_;
  std::set<AnyWatch*> watches_;
  bool leaving_ = false;
};

// A controller with its Control service. Errors as those of Controller::Start.
absl::StatusOr<std::unique_ptr<Controller>> StartController(ControllerOptions options);

}  // namespace percs
