// Roadrunner with real contents: triblades whose blades run programs on their SPEs, joined by DaCS,
// MPI and the InfiniBand tree. Blades are made when a rank runs on them. One process, one thread;
// blades are partitions of virtual time, and the Opteron side is one more.
//
//   auto cluster = Cluster::Create(DefaultParameters(), {.triblades = 2});
//   (*cluster)->Launch({0, 40}, FullImage(64 * 1024), Program);
//   ClusterResult result = (*cluster)->Run();
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/base/digest.h"
#include "emulator/roadrunner/cml.h"
#include "emulator/roadrunner/cml_ppe.h"
#include "emulator/roadrunner/host_path.h"

namespace percs::roadrunner {

using RankProgram = std::function<Task<>(Cml&)>;

struct ClusterOptions {
  int triblades = 1;
  int ranks = 0;  // of MPI_COMM_WORLD; 0: every SPE
  Protocol protocol = Protocol::kReceiverInitiated;
  // Set: the triblades are joined by another network, and this process runs one of them. Takes a
  // message for another one at the time at which the Opteron core has given it to the adapter.
  std::function<void(Message, Time)> send_out = nullptr;
};

struct ClusterResult {
  Digest digest;
  Time time = 0;  // of the last program's end
  absl::Status
      status;  // of the first rank that failed; MPI_Abort; a deadlock with who waits for what
  std::vector<std::string> blocked;
  CmlStats cml;
  HostStats host;
  IbStats network;
  Files files;  // of all Opterons, `triblade0/file1`
};

class Cluster : private HostLink {
 public:
  // INVALID_ARGUMENT for parameters or sizes the machine cannot be built with.
  static absl::StatusOr<std::unique_ptr<Cluster>> Create(const RoadrunnerParameters& parameters,
                                                         const ClusterOptions& options);
  ~Cluster() override = default;

  int ranks() const { return options_.ranks; }
  HostPath& host() { return host_; }
  RpcRegistry& registry() { return registry_; }
  const cell::Blade* blade(int number) const;
  // To break parts of it; made if no program runs on it yet.
  cell::Blade& BladeAt(int number) { return *NodeAt(number).blade; }
  // Keeps what SPEs do by DMA from now on, at most so many commands of each blade.
  void KeepDma(std::size_t slices_max);
  // Runs a program on these ranks, from `starts[i]` on (from 0 if empty). Errors of Link, or
  // INVALID_ARGUMENT for a rank that does not exist or runs already.
  absl::Status Launch(const std::vector<Rank>& ranks, const SpeProgramImage& image,
                      RankProgram program, const std::vector<Time>& starts = {},
                      PmpiHooks hooks = {});
  // On all of them.
  absl::Status LaunchAll(const SpeProgramImage& image, RankProgram program, PmpiHooks hooks = {});
  ClusterResult Run();

  // --- In windows, for who runs it as part of something larger.
  Time next_time() const;
  // Runs every event before `end`.
  void RunUntil(Time end);
  // No program is left that has not ended; or MPI_Abort was called.
  bool finished() const;
  // A message from another triblade reaches the adapter, not before what has been run.
  void Deliver(Message message, Time at) { Schedule(at, Step::kArrived, Keep(std::move(message))); }
  ClusterResult Result();

 private:
  struct Node {  // one blade
    std::unique_ptr<cell::Blade> blade;
    std::unique_ptr<CmlDomain> domain;
    std::array<std::unique_ptr<CmlPpe>, cell::kCells> ppes;
  };
  struct Job {
    RankProgram program;
    PmpiHooks hooks;
  };
  enum class Step : std::uint8_t { kForward, kArrived, kCall, kAccess };

  Cluster(const RoadrunnerParameters& parameters, const ClusterOptions& options, IbTree tree);
  Node& NodeAt(int blade);
  void Schedule(Time at, Step step, std::uint64_t number);
  void RunHost(Time end);
  void Forward(std::uint64_t number);
  void HandDown(std::uint64_t number);
  void ServeCall(std::uint64_t number);
  void ServeAccess(std::uint64_t number);
  Time SendUp(int cell, Message message, Time now) override;
  void CallUp(int cell, PendingCall call, Time now) override;
  void Access(int cell, PendingCall call, Time now) override;
  Message TakeMessage(std::uint64_t number) override;
  PendingCall TakeCall(std::uint64_t number) override;
  std::uint64_t Keep(Message message);
  const CmlDomain* Aborted() const;

  const RoadrunnerParameters parameters_;
  ClusterOptions options_;
  HostPath host_;
  RpcRegistry registry_ = DefaultRegistry();
  std::map<int, Node> nodes_;  // by blade
  std::size_t dma_slices_max_ = 0;
  std::map<Rank, std::unique_ptr<Cml>> ranks_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::map<int, Files> files_;    // by triblade
  std::map<int, Bytes> regions_;  // of Opteron cores that DaCS put and get reach, by Cell
  std::vector<Message> messages_;
  std::vector<std::uint64_t> free_messages_;
  std::vector<std::pair<int, PendingCall>> calls_;  // by Cell
  EventNodes nodes_of_queue_;
  EventQueue queue_{&nodes_of_queue_};
  Time now_ = 0;
  DigestStream digest_;
};

}  // namespace percs::roadrunner
