// The hubs of one process and their windows of virtual time: applies batches of peers, runs, sends
// batches, reports.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/endpoint/programs.h"
#include "daemon/link/link_mesh.h"
#include "daemon/metrics/node_state.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/sync.pb.h"

namespace percs {

class Host {
 public:
  using Clock = std::chrono::steady_clock;
  // A window is computed in slices of about this wall time. Between two slices the process answers
  // pings, scrapes and signals.
  static constexpr std::chrono::milliseconds kSlice{100};
  struct Events {
    // A message to fill; goes to the controller when given to `send`.
    std::function<std::unique_ptr<v1::DaemonMessage>()> prepare;
    std::function<void(std::unique_ptr<v1::DaemonMessage>)> send;
    // Calls back soon, after others have had the lock.
    std::function<void(std::function<void()>)> later = nullptr;
    std::function<Clock::time_point()> now = Clock::now;
    std::size_t carried_bytes_max = kCarriedBytesMax;  // batches that go with the report
  };
  // Sees, and may change, every outbox before it leaves: tests tamper here.
  using Tap = std::function<void(std::uint32_t process, Outbox* outbox)>;

  Host(LinkMesh* mesh, Programs* programs, Events events, Tap tap)
      : mesh_(mesh), programs_(programs), events_(std::move(events)), tap_(std::move(tap)) {}

  // Builds the hubs and starts the links; Ready is sent when every peer was reached. Errors are
  // sent as a Failure of the run.
  void Configure(const v1::Configure& message, LinkIdentity self);
  void Grant(v1::WindowGrant* grant);
  void Collect(const v1::Collect& message);
  // Continues without another process.
  void PeerLost(const v1::PeerLost& message);
  // Another one takes the place of that.
  void PeerBack(const v1::PeerBack& message);
  void Drop() { Drop(absl::FailedPreconditionError("no scenario is applied now")); }
  void Drop(const absl::Status& why);  // the status for programs at windows of its hubs
  // Tells the controller to which peers there is no stream.
  void TellUnreachable(const std::vector<v1::UnreachablePeer>& peers);
  // For scrapes; changes nothing.
  HostState State() const;

  // A batch arrived or a peer was reached: continue if that was missing.
  void Progress();
  // Ranks have written records: likewise.
  void OnRanks();
  void Fail(const absl::Status& status);

 private:
  absl::Status Build(const v1::Configure& message, const LinkIdentity& self);
  absl::Status InstallTables(const v1::Configure& message);
  absl::Status TakeArrivals();
  absl::Status TakeCommands();
  absl::Status TakeLosses();
  absl::Status TakeRejoin(const v1::RejoinCommand& message);
  absl::Status JoinPeers(const v1::Configure& message, const LinkIdentity& self);
  LinkPeerSpec SpecOf(const v1::Peer& peer) const;
  // There is a stream to it, so what is for it is sent.
  void AddPeer(std::uint32_t process);
  // Number i of the grant's.
  absl::Status TakeBatch(int i);
  LinkPeer::TakeOutbox Accept();
  absl::StatusOr<std::uint64_t> TakeLast(std::uint32_t process, std::uint64_t limit);
  absl::Status RunGranted();
  // Sends the next slice of an answer; virtual time does not pass until all of it is sent.
  void SendSnapshot();
  // Computes the window, slice by slice, and reports.
  void Compute();
  // True if the window is over; otherwise other threads get the lock before the next slice.
  bool ComputeSlice();
  void Report();
  // `report` is in the message.
  void SendReport(std::unique_ptr<v1::DaemonMessage> message, v1::WindowReport* report);
  // Into the report, or into batches that it names, which are returned.
  std::vector<std::pair<LinkPeer*, std::string>> EmptyOutboxes(v1::WindowReport* report);
  void FillReport(v1::WindowReport* report);

  LinkMesh* mesh_;
  Programs* programs_;
  Events events_;
  Tap tap_;
  std::uint64_t run_ = 0;
  std::unique_ptr<Fabric> fabric_;
  std::vector<NodeId> places_, nodes_;  // of this process; those of them that are not lost
  std::vector<std::uint32_t> peers_;    // processes we share links with, or a swapped cable
  std::map<std::uint32_t, std::size_t> channels_;  // VCs of the links with each of them
  std::size_t swappable_channels_ = 0;             // of cables that may lead to any of them
  std::uint64_t attempt_ = 0;
  std::map<std::uint32_t, std::uint64_t> lost_peers_;  // the last batch of theirs that was there
  std::uint32_t manager_ = 0;
  bool ready_ = false;      // Ready was sent
  bool granted_ = false;    // grant_ waits for batches
  bool computing_ = false;  // ... has begun, and its report is to come
  bool ranks_run_ = false;  // ... and waits for ranks
  struct Answer {
    v1::Collect request;
    std::size_t next = 0;  // in nodes_
  };
  std::optional<Answer> answer_;  // of which there is more to send
  std::uint64_t computed_ = 0;    // windows and runs so far, to tell one from the next
  Time stretch_ = 0;              // of virtual time, that took less than a slice to compute
  std::vector<std::function<void()>> after_window_;  // messages that have to wait
  v1::WindowGrant grant_;
};

}  // namespace percs
