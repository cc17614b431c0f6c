// All programs outside that have windows of the hubs of this process: the Endpoint service, who may
// attach, and the way of operations to the controller and back into the hubs (docs/endpoint.md).
//
//   program -> Program::Take -> Submit -> controller (journals) -> grant -> Issue -> hub
//   hub -> OnWindowEvent -> Program::OnEvent -> report to the controller -> TellAll -> program
//
// THREAD: guarded by the process's lock, but for the service's own methods, which take it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/endpoint/program.h"
#include "daemon/endpoint/rank_jobs.h"
#include "daemon/stream/locked_service.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/sync.pb.h"

namespace percs {

using ProgramListener = SessionListener<v1::FromHub, v1::FromProgram>;

class Programs final : public HelloDesk<v1::FromHub, v1::FromProgram>, public WindowListener {
 public:
  struct Events {
    // A message to the controller can be sent now; otherwise pending input waits for the next one.
    std::function<bool()> room;
    std::function<std::unique_ptr<v1::DaemonMessage>()> prepare;
    std::function<void(std::unique_ptr<v1::DaemonMessage>)> send;
    // Whether a peer, as gRPC names it, may make another request. THREAD: any.
    std::function<absl::Status(const std::string& peer)> admit;
    // Ranks of MPI programs have said something.
    std::function<void()> ranks = [] {};
  };
  Programs(ProcessLock* lock, Events events);

  v1::Endpoint::CallbackService* service() { return &service_; }
  RankJobs& ranks() { return ranks_; }

  // --- Of the host.
  // Hubs are there, and virtual time is about to begin. REQUIRES: `fabric` outlives this until End.
  void Begin(std::uint64_t run, Fabric* fabric);
  bool has_hubs() const { return fabric_ != nullptr; }
  // The hubs are gone, or the run is over: programs get `why`.
  void End(const absl::Status& why);
  // A submission takes effect. DATA_LOSS if it is not here and not in the grant.
  absl::Status Issue(const v1::EndpointGrant& grant);
  // A submission never takes effect.
  void Refuse(const v1::EndpointRefused& message);
  // News for the controller, if there are any; goes into a message that is about to be sent.
  void FillReport(v1::DaemonMessage* message);
  // Sends programs the events of the windows so far.
  void TellAll();
  // The same to the controller at once, unless a window was granted and its report will say it;
  // when there is room.
  void Submit();
  void SetInWindow(bool in_window) { in_window_ = in_window; }

  void OnWindowEvent(const WindowEvent& event) override;

  // --- Of its programs.
  EndpointStats& stats() { return stats_; }
  void OnOpen(const Program& program, v1::EndpointAttached* attached);
  void OnClosed(const Program& program);
  // One that waited for its window does not any more.
  void OnGivenUp();
  void Remove(std::uint64_t number);

  EndpointStats Stats() const;
  // The process ends.
  void Leave();

  absl::Status OnHello(ProgramListener* listener, const v1::EndpointHello& hello) override;
  void OnGone(ProgramListener*) override {}

 private:
  class Service final : public LockedService<v1::Endpoint::CallbackService, Programs> {
   public:
    using LockedService::LockedService;
    grpc::ServerBidiReactor<v1::FromProgram, v1::FromHub>* Attach(
        grpc::CallbackServerContext* context) override;
    grpc::ServerUnaryReactor* ListWindows(grpc::CallbackServerContext* context,
                                          const v1::ListWindowsRequest* request,
                                          v1::ListWindowsReply* reply) override;
    grpc::ServerUnaryReactor* Detach(grpc::CallbackServerContext* context,
                                     const v1::DetachRequest* request,
                                     v1::DetachReply* reply) override;
    grpc::ServerUnaryReactor* FindNodes(grpc::CallbackServerContext* context,
                                        const v1::FindNodesRequest* request,
                                        v1::FindNodesReply* reply) override;
  };
  struct Kept {
    NodeId node = 0;
    std::vector<WindowOperation> operations;
  };

  // False if there is nothing that the controller does not know.
  bool MakeReport(v1::EndpointReport* report);
  void AskForWindow(v1::EndpointReport* report);
  void OnRanks();
  absl::StatusOr<ProgramIdentity> Admit(const v1::EndpointHello& hello) const;
  absl::Status CheckRunning() const;
  Program* Find(std::uint64_t number) const;
  Program* FindToken(const std::string& token) const;
  std::vector<std::string> HubNames() const;
  absl::Status List(v1::ListWindowsReply* reply) const;
  absl::Status DetachByToken(const std::string& token);
  absl::Status FindNodes(const v1::FindNodesRequest& request, v1::FindNodesReply* reply) const;

  ProcessLock* lock_;
  Events events_;
  Service service_{lock_, events_.admit, this};
  RankJobs ranks_;
  Fabric* fabric_ = nullptr;  // null: no hubs
  std::uint64_t run_ = 0;
  absl::Status ended_;                                           // why there are no hubs
  std::map<std::uint64_t, std::shared_ptr<Program>> programs_;   // by number
  std::map<std::pair<NodeId, WindowId>, std::uint64_t> owners_;  // numbers of programs
  std::map<std::uint64_t, Kept> kept_;  // submissions, until they take effect
  std::uint64_t last_program_ = 0, last_submission_ = 0;
  std::uint64_t window_asked_ = 0;  // the submission by which ranks get a window; 0: none
  std::uint64_t arrived_ = 0;
  std::uint64_t told_attached_ = 0, told_owing_ = 0,
                told_arrived_ = 0;  // that the controller knows
  bool in_window_ = false, leaving_ = false;
  Timer again_;  // while there is no room
  EndpointStats stats_;
};

}  // namespace percs
