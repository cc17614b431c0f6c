// Who takes part: gives daemons their places, keeps a session with each, and notices when one is
// lost.
//
// THREAD: everything is called with the process's lock held.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/stream/endpoint.h"
#include "percs/v1/state.pb.h"
#include "percs/v1/sync.grpc.pb.h"

namespace percs {

class Member;
class Membership;
using SyncListener = SessionListener<v1::ControllerMessage, v1::DaemonMessage>;

// One daemon in its place.
class Member final : public Endpoint<v1::ControllerMessage, v1::DaemonMessage> {
 public:
  Member(Membership* membership, ProcessLock* lock, std::uint32_t place, v1::JoinRequest joined);

  std::uint32_t place() const { return place_; }
  const std::string& name() const { return joined_.name(); }
  std::uint32_t pid() const { return joined_.pid(); }
  const std::string& link_address() const { return joined_.link_address(); }
  const std::string& metrics_address() const { return joined_.metrics_address(); }
  std::uint64_t incarnation() const { return joined_.incarnation(); }
  std::string Describe() const;  // `percsd 3 (pid 1234)`
  bool ever_connected() const { return ever_connected_; }

  void Save(v1::SavedMember* saved) const;
  void Restore(const v1::SavedMember& saved);
  // Counts as lost unless it connects within the grace time.
  void ExpectConnection();
  absl::Status CheckHello(const v1::SessionHello& hello) const override;

 private:
  void FillHello(v1::SessionHello* hello) const override;
  absl::Status OnMessage(v1::DaemonMessage& message) override;
  void OnReached() override;
  void OnLost(const absl::Status& status) override { ExpectConnection(); }
  void CheckAlive(std::chrono::milliseconds waited);

  Membership* membership_;
  const std::uint32_t place_;
  const v1::JoinRequest joined_;
  Timer lost_;
  bool ever_connected_ = false;
};

class Membership final : public HelloDesk<v1::ControllerMessage, v1::DaemonMessage> {
 public:
  struct Events {
    std::function<absl::Status(std::uint32_t place, v1::DaemonMessage&)> message;
    std::function<void()> reached;  // a daemon's session is there
    std::function<void(const Member& member, const std::string& why)> lost;
    // How long a daemon may be without a connection now; none: as long as it is alive.
    std::function<std::optional<std::chrono::milliseconds>()> patience;
    std::function<void(std::uint32_t place)> changed;  // who is there; for what is kept of it
    // Whether a peer, as gRPC names it, may ask once more. THREAD: any.
    std::function<absl::Status(const std::string& peer)> admit;
  };
  Membership(ProcessLock* lock, std::uint32_t places, std::uint64_t fabric, Events events);

  v1::Sync::CallbackService* service() { return &service_; }
  std::uint64_t fabric() const { return fabric_; }
  // Daemons are told nothing before Release, from now on and those that were there before.
  void HoldBack() { hold_back_ = true; }
  void Release();
  // REQUIRES: nobody has joined. The fabric of an earlier controller, and who was in it.
  absl::Status Restore(std::uint64_t fabric,
                       const std::vector<std::pair<std::uint32_t, v1::SavedMember>>& members);
  // From now on those that were in it are given the usual time to come back, and those that have
  // ended are lost.
  void ExpectRestored();
  std::uint32_t places() const { return static_cast<std::uint32_t>(members_.size()); }
  // Null while the place is free.
  Member* member(std::uint32_t place) { return members_[place].get(); }
  const Member* member(std::uint32_t place) const { return members_[place].get(); }
  std::uint32_t ready() const;  // daemons with a session
  bool complete() const { return ready() == places(); }
  // Nobody in this place is listened to any more; it is free.
  void Lose(std::uint32_t place, const std::string& why);
  // Every daemon is told to end.
  void Goodbye();
  void Leave();
  bool farewells_delivered() const;

  absl::Status OnHello(SyncListener* listener, const v1::SessionHello& hello) override;
  void OnGone(SyncListener*) override {}

 private:
  friend class Member;
  class Service final : public v1::Sync::CallbackService {
   public:
    explicit Service(Membership* membership) : membership_(membership) {}
    grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                   const v1::JoinRequest* request, v1::JoinReply* reply) override;
    grpc::ServerBidiReactor<v1::DaemonMessage, v1::ControllerMessage>* Session(
        grpc::CallbackServerContext* context) override;

   private:
    // A daemon that is told so tries again.
    absl::Status Admit(const std::string& peer) const;

    Membership* membership_;
  };
  absl::StatusOr<std::uint32_t> Join(const v1::JoinRequest& request);
  void Replace(const v1::JoinRequest& request);
  absl::StatusOr<std::uint32_t> FindPlace(const v1::JoinRequest& request) const;

  ProcessLock* lock_;
  std::uint64_t fabric_;
  bool hold_back_ = false;
  Events events_;
  Service service_{this};
  std::vector<std::shared_ptr<Member>> members_;  // by place
  bool leaving_ = false;
};

}  // namespace percs
