// Questions to daemons about the nodes that they have: snapshots of counters and traces of packets.
// A question goes to every daemon that has one of its nodes and is answered when all have answered.
//
// THREAD: guarded by the process's lock; answers are given from within these calls.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "daemon/controller/run/daemon_port.h"
#include "daemon/metrics/node_state.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/traced_packet.h"
#include "emulator/topology/topology.h"

namespace percs {

class NodeQueries {
 public:
  using SnapshotDone = std::function<void(absl::StatusOr<std::vector<NodeState>>)>;
  using TraceDone = std::function<void(absl::StatusOr<std::vector<TracedPacket>>)>;
  using IsLost = absl::FunctionRef<bool(std::uint32_t process)>;
  struct Query {
    std::vector<NodeId> nodes;  // empty: all
    SnapshotDone snapshot;      // or
    TraceDone trace;
    // Virtual time waits for the answers. Else the next window may begin as soon as the question is
    // sent: daemons answer before they run it, so that the answers are of one virtual time anyway.
    bool holds_time = true;
    std::function<void()> sent = {};  // it is; virtual time is that of the answers
    bool asks_daemons = true;         // else there is no node: it is answered when it is sent
    void Refuse(const absl::Status& why) { trace ? trace(why) : snapshot(why); }
  };

  // All of these live as long as this.
  NodeQueries(const Topology& topology, const P7ihParameters& parameters,
              const Placement& placement, DaemonPort* port)
      : topology_(topology), parameters_(parameters), placement_(placement), port_(port) {}

  bool Concerns(const Query& query, std::uint32_t process) const;
  void Add(Query query) { waiting_.push_back({++number_, std::move(query), {}, {}, {}, false}); }
  bool empty() const { return waiting_.empty(); }
  // Sends those that were added since.
  void Send(IsLost is_lost);
  // Daemons have to answer before virtual time continues.
  bool awaits_any() const { return answers_awaited_ > 0; }
  bool Awaits(std::uint32_t process) const;

  // An error says what is wrong with the message.
  absl::Status OnSnapshot(std::uint32_t process, const v1::Snapshot& snapshot);
  absl::Status OnTrace(std::uint32_t process, const v1::TraceEvents& trace);
  // It is lost and will not answer.
  void Lose(std::uint32_t process);
  void RefuseAll(const absl::Status& why);
  // Hubs cannot be asked any more; the first reason stays.
  void RefuseFromNowOn(const absl::Status& why);
  const absl::Status& refused() const { return refused_; }
  // Answers to questions of earlier controllers, of which there were this many, are not heard.
  void ContinueAfter(std::uint64_t controllers) { number_ = controllers << 32; }

 private:
  struct Waiting {
    std::uint64_t number = 0;
    Query query;
    std::vector<NodeState> states;
    std::vector<TraceEvent> events;
    std::set<std::uint32_t> awaited;  // processes
    bool sent = false;
  };
  using Place = std::list<Waiting>::iterator;
  Place Find(std::uint64_t number);
  void Answered(Place place, std::uint32_t process);
  void Finish(Place place);

  const Topology& topology_;
  const P7ihParameters& parameters_;
  const Placement& placement_;
  DaemonPort* port_;
  std::list<Waiting> waiting_;
  std::uint64_t number_ = 0;
  int answers_awaited_ = 0;  // of all that hold virtual time
  absl::Status refused_;     // why hubs cannot be asked any more
};

}  // namespace percs
