// All Link streams of a process: the service that peers dial and the peers that we dial.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "daemon/link/link_peer.h"
#include "daemon/stream/locked_service.h"
#include "percs/v1/link.grpc.pb.h"

namespace percs {

class LinkMesh final : public HelloDesk<v1::LinkMessage, v1::LinkMessage> {
 public:
  // The transport lives as long as this.
  LinkMesh(ProcessLock* lock, LinkEvents events, LinkTransport* transport = &LinkTransport::Real())
      : lock_(lock), transport_(transport), events_(std::move(events)), look_(lock) {}

  // Service that a server registers; it lives as long as this.
  v1::Link::CallbackService* service() { return &service_; }

  // Starts the links of a run; those of an earlier one end.
  void Join(const LinkIdentity& self, const std::vector<LinkPeerSpec>& peers);
  void Leave();

  // All streams end as if the network had failed; they are opened again.
  void Break();
  // Another one with that number is, or will be, there.
  void Add(const LinkPeerSpec& spec);
  // That process is gone for good.
  void Remove(std::uint32_t process);

  bool all_reached() const;
  std::uint64_t reconnects() const;
  // Null if there is no stream to it, nor is to be.
  LinkPeer* peer(std::uint32_t process);

  absl::Status OnHello(LinkListener* listener, const v1::LinkHello& hello) override;
  void OnGone(LinkListener* listener) override;

 private:
  class Service final : public LockedService<v1::Link::CallbackService, LinkMesh> {
   public:
    using LockedService::LockedService;
    grpc::ServerBidiReactor<v1::LinkMessage, v1::LinkMessage>* Exchange(
        grpc::CallbackServerContext* context) override;
  };
  struct Waiting {
    LinkListener* listener;
    v1::LinkHello hello;
  };
  // Admits it, or makes it wait until this process expects the peer.
  absl::Status Place(LinkListener* listener, const v1::LinkHello& hello);
  absl::Status Admit(LinkListener* listener, const v1::LinkHello& hello);
  void PlaceWaiting();
  // Finds peers that cannot be reached, again and again.
  void Look();
  void Tell(const std::vector<v1::UnreachablePeer>& unreachable);

  ProcessLock* lock_;
  LinkTransport* transport_;
  LinkEvents events_;
  Service service_{lock_, events_.admit, this};
  LinkIdentity self_;
  std::map<std::uint32_t, std::shared_ptr<LinkPeer>> peers_;
  std::vector<Waiting> waiting_;  // peers that this process does not expect yet
  std::uint64_t reconnects_before_ = 0;
  Timer look_;
  std::map<std::uint32_t, WallClock::Point> apart_;  // peers that we dial: without a stream since
  std::set<std::uint32_t> unreachable_;              // of these, those that were reported
  WallClock::Point told_at_;
};

}  // namespace percs
