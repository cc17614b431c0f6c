// One other process that we share links with: the session of batches with it. The process with the
// lower index dials, and dials again whenever the connection breaks.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/link/codec.h"
#include "daemon/link/link_transport.h"
#include "daemon/stream/endpoint.h"
#include "percs/v1/link.pb.h"
#include "percs/v1/sync.pb.h"
#include "proto/security/credentials.h"

namespace percs {

using LinkListener = SessionListener<v1::LinkMessage, v1::LinkMessage>;

// This process in the run that the links belong to.
struct LinkIdentity {
  std::uint64_t fabric = 0, run = 0, incarnation = 0;
  std::uint32_t process = 0;
  Credentials credentials = {};
};

struct LinkPeerSpec {
  std::uint32_t process = 0;
  std::string address;
  std::uint64_t incarnation = 0;
  std::size_t open_packets_max = 0;  // VCs of the links with it
  std::string name = {};             // for people
};

// Events for the owner of the peers.
struct LinkEvents {
  std::function<void()> progress;                    // a batch arrived, or a peer was reached
  std::function<void(const absl::Status&)> failure;  // the run cannot continue
  // Whether a peer, as gRPC names it, may open another stream. THREAD: any.
  std::function<absl::Status(const std::string& peer)> admit;
  // Which peers cannot be reached has changed, or that there are some is to be said again.
  std::function<void(const std::vector<v1::UnreachablePeer>& peers)> unreachable = nullptr;
};

class LinkPeer final : public Endpoint<v1::LinkMessage, v1::LinkMessage> {
 public:
  // The transport lives as long as this.
  LinkPeer(ProcessLock* lock, LinkTransport* transport, const LinkIdentity& self,
           const LinkPeerSpec& spec, const LinkEvents& events);

  bool dials() const { return self_.process < spec_.process; }
  void Dial();
  // From now on, until there is a stream, attempts to open one end when they fail, with the reason.
  void FailFast();
  // Why the last attempt failed; "" if that is not known.
  const std::string& why_apart() const { return why_apart_; }
  bool reached() const { return reached_; }
  const LinkPeerSpec& spec() const { return spec_; }

  // An error names what is wrong with the outbox.
  using TakeOutbox = std::function<absl::Status(Outbox&&)>;

  // The number of the batch that is sent next.
  std::uint64_t next_batch() const { return session().sent() + 1; }
  // Of an outbox.
  void Send(std::string batch);
  // One goes another way.
  void CountCarried() { ++carried_sent_; }
  bool Arrived(std::uint64_t number) const { return session().received() >= number; }
  // Hands over batches up to `number` that were not taken yet, in order.
  absl::Status Take(std::uint64_t number, const TakeOutbox& take);
  // Hands over a batch that has not come on the stream. After the one before it, as a packet may be
  // in several.
  absl::Status TakeCarried(std::string batch, const TakeOutbox& take);

  // FAILED_PRECONDITION that names what was expected and what came.
  absl::Status CheckHello(const v1::LinkHello& hello) const override;

 private:
  // A batch is decoded when it comes, unless one has not come that was carried.
  struct Received {
    std::string batch = {};
    Outbox outbox = {};
    bool decoded = false;
  };

  absl::Status HandOver(Received received, const TakeOutbox& take);
  void FillHello(v1::LinkHello* hello) const override;
  absl::Status OnMessage(v1::LinkMessage& message) override;
  void OnReached() override;
  void OnLost(const absl::Status& status) override;

  ProcessLock* lock_;
  LinkTransport* transport_;
  const LinkIdentity self_;
  const LinkPeerSpec spec_;
  const LinkEvents events_;
  std::unique_ptr<LinkLine> line_;  // since it was dialled first
  Timer redial_;
  OutboxDecoder decoder_;
  std::deque<Received> arrived_;  // not taken yet
  std::uint64_t taken_ = 0, carried_sent_ = 0, carried_taken_ = 0;
  bool reached_ = false, fail_fast_ = false, dialled_fast_ = false;
  std::string why_apart_;
};

}  // namespace percs
