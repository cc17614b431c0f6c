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

// One client of a stream.
class AnyWatch {
 public:
  virtual ~AnyWatch() = default;
  // Sends what is new, if nothing is under way.
  virtual void Look() PERCS_LOCKED = 0;
  // Ends the stream.
  virtual void Refuse(const absl::Status& status) PERCS_LOCKED = 0;
  // The run has ended.
  virtual void OnRunEnded(std::uint64_t) PERCS_LOCKED {}
};

class ControlService final : public ControlFront {
 public:
  explicit ControlService(Controller* controller);
  ~ControlService() override;
  grpc::Service* service() override;

  void OnRunEnded(std::uint64_t number) PERCS_LOCKED override;
  void Leave() PERCS_LOCKED override;
  void AddWatch(AnyWatch* watch) PERCS_LOCKED { watches_.insert(watch); }
  void RemoveWatch(AnyWatch* watch) PERCS_LOCKED { watches_.erase(watch); }
  bool leaving() const PERCS_LOCKED { return leaving_; }
  std::size_t watches() const PERCS_LOCKED { return watches_.size(); }

 private:
  class Handlers;
  Controller* controller_;
  std::unique_ptr<Handlers> handlers_;
  std::set<AnyWatch*> watches_ PERCS_GUARDED;
  bool leaving_ PERCS_GUARDED = false;
};

// A controller with its Control service. Errors as those of Controller::Start.
absl::StatusOr<std::unique_ptr<Controller>> StartController(ControllerOptions options);

}  // namespace percs
