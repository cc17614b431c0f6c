// The members of a fabric: gives daemons their places, keeps a session with each, and detects when
// one is lost.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/stream/endpoint.h"
#include "daemon/stream/locked_service.h"
#include "percs/v1/state.pb.h"
#include "percs/v1/sync.grpc.pb.h"

namespace percs {

class Member;
class Membership;
using SyncListener = SessionListener<v1::ControllerMessage, v1::DaemonMessage>;

// One daemon in its place.
class Member final : public Endpoint<v1::ControllerMessage, v1::DaemonMessage> {
 public:
  Member(Membership* membership, std::uint32_t place, v1::JoinRequest joined);

  std::uint32_t place() const { return place_; }
  const std::string& name() const { return joined_.name(); }
  std::uint32_t pid() const { return joined_.pid(); }
  const std::string& link_address() const { return joined_.link_address(); }
  const std::string& metrics_address() const { return joined_.metrics_address(); }
  std::uint64_t incarnation() const { return joined_.incarnation(); }
  std::string Describe() const;  // `percsd 3 (pid 1234)`
  bool ever_connected() const { return ever_connected_; }
  // Its place is saved, if anything is; until then it does not learn of it.
  bool kept() const { return kept_; }
  void set_kept() { kept_ = true; }

  void Save(v1::SavedMember* saved) const;
  void Restore(const v1::SavedMember& saved);
  // Whether its process has ended, as far as can be seen: only that of a process of this host.
  bool process_gone() const;
  absl::Status CheckHello(const v1::SessionHello& hello) const override;

 private:
  void FillHello(v1::SessionHello* hello) const override;
  absl::Status OnMessage(v1::DaemonMessage& message) override;
  void OnReached() override;
  void OnLost(const absl::Status&) override {}

  Membership* membership_;
  const std::uint32_t place_;
  const v1::JoinRequest joined_;
  bool ever_connected_ = false, kept_ = false;
};

class Membership final : public HelloDesk<v1::ControllerMessage, v1::DaemonMessage> {
 public:
  struct Events {
    std::function<absl::Status(std::uint32_t place, v1::DaemonMessage&)> message;
    std::function<void()> reached;  // a daemon's session is there
    std::function<void(const Member& member, const std::string& why)> lost;
    std::function<void(std::uint32_t place)> changed;  // members changed; for the saved state
    // Whether a peer, as gRPC names it, may make another request. THREAD: any.
    std::function<absl::Status(const std::string& peer)> admit;
  };
  Membership(ProcessLock* lock, std::uint32_t places, std::uint64_t fabric, Events events);

  v1::Sync::CallbackService* service() { return &service_; }
  std::uint64_t fabric() const { return fabric_; }
  // The place of a daemon that joins, or why it has none. `done` is called once: with a place only
  // when that is saved, so perhaps from Release.
  using Joined = std::function<void(const absl::StatusOr<std::uint32_t>& place)>;
  void Join(const v1::JoinRequest& request, Joined done);
  // No message goes to daemons, new or old, before Release.
  void HoldBack() { hold_back_ = true; }
  void Release();
  // REQUIRES: no daemon has joined. The fabric of an earlier controller, and its members.
  absl::Status Restore(std::uint64_t fabric,
                       const std::vector<std::pair<std::uint32_t, v1::SavedMember>>& members);
  std::uint32_t places() const { return static_cast<std::uint32_t>(members_.size()); }
  // Null while the place is free.
  Member* member(std::uint32_t place) { return members_[place].get(); }
  const Member* member(std::uint32_t place) const { return members_[place].get(); }
  std::uint32_t ready() const;  // daemons with a session
  bool complete() const { return ready() == places(); }
  // Messages from this place are refused from now on; the place is free.
  void Lose(std::uint32_t place, const std::string& why);
  // Sends every daemon the request to end.
  void Goodbye();
  void Leave();
  // Likewise, but daemons are to try again, with the next controller.
  void HandOver();
  bool farewells_delivered() const;

  absl::Status OnHello(SyncListener* listener, const v1::SessionHello& hello) override;
  void OnGone(SyncListener*) override {}

 private:
  friend class Member;
  class Service final : public LockedService<v1::Sync::CallbackService, Membership> {
   public:
    Service(ProcessLock* lock, const Events& events, Membership* membership);
    grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                   const v1::JoinRequest* request, v1::JoinReply* reply) override;
    grpc::ServerBidiReactor<v1::DaemonMessage, v1::ControllerMessage>* Session(
        grpc::CallbackServerContext* context) override;
  };
  absl::Status CheckStays() const;
  void Replace(const v1::JoinRequest& request);
  absl::StatusOr<std::uint32_t> FindPlace(const v1::JoinRequest& request) const;
  absl::StatusOr<std::uint32_t> GivePlace(const v1::JoinRequest& request);
  void AnswerWaiting(std::uint32_t place, const absl::Status& status);

  // For a daemon that asks repeatedly: logged once, and again when the reason changes.
  void LogRefusal(const v1::JoinRequest& request, const absl::Status& why);

  ProcessLock* lock_;
  std::uint64_t fabric_;
  bool hold_back_ = false;
  Events events_;
  Service service_{lock_, events_, this};
  std::vector<std::shared_ptr<Member>> members_;  // by place
  std::multimap<std::uint32_t, Joined> waiting_;  // for their places to be saved
  std::map<std::uint64_t, std::string> refused_;  // why, by incarnation
  bool leaving_ = false, handing_over_ = false;
};

}  // namespace percs
