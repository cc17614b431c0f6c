// The network between simulated processes: streams as gRPC's, with every message delayed by itself,
// in order within a stream and in any order across streams. Streams break, and each end notices at
// its own time; what was under way is lost. Between two processes nothing may pass for a while.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/controller/members/membership.h"
#include "daemon/link/link_mesh.h"
#include "daemon/sync/sync_transport.h"
#include "tests/simulator/world.h"

namespace percs::sim {

class Network;

// One end of a stream, whatever it carries.
class AnyEnd : public std::enable_shared_from_this<AnyEnd> {
 public:
  AnyEnd(Network* network, std::shared_ptr<Process> process)
      : network_(network), process_(std::move(process)) {}
  virtual ~AnyEnd() = default;

  Process& process() { return *process_; }
  const std::shared_ptr<AnyEnd> peer() const { return peer_.lock(); }
  void Join(const std::shared_ptr<AnyEnd>& peer) { peer_ = peer; }
  bool ended() const { return ended_; }
  // It hears of its end after a while; the first reason counts.
  void EndSoon(Wall delay, const absl::Status& why);
  // The other end is told, too, or finds out.
  void BreakBoth(const absl::Status& here, const absl::Status& there);
  // What the other end wrote arrives.
  void Expect(std::string bytes);
  // There is another end now.
  void Connected();
  // Its process has died, and everything in it is gone.
  virtual void Discard() { ended_ = true; }

 protected:
  void Send(std::string bytes);
  virtual void OnBytes(const std::string& bytes) = 0;
  virtual void OnSent() = 0;
  virtual void OnBroken() = 0;
  virtual void OnClosed(const absl::Status& why) = 0;

  Network* const network_;
  const std::shared_ptr<Process> process_;

 private:
  void Transmit(std::string bytes);
  void Read();
  void EndNow();

  std::weak_ptr<AnyEnd> peer_;
  std::deque<std::string> inbox_, held_;  // held: until there is another end
  Wall last_arrival_{0};
  bool connected_ = false, ending_ = false, ended_ = false;
  absl::Status why_;
};

// What a test looks at.
struct Observer {
  virtual ~Observer() = default;
  // A controller's message leaves for a daemon.
  virtual void OnToDaemon(std::uint32_t place, std::uint64_t incarnation,
                          const v1::ControllerMessage& message) = 0;
  // One has arrived at a daemon.
  virtual void OnAtDaemon(std::uint64_t incarnation, const v1::ControllerMessage& message) = 0;
  // A daemon's message leaves.
  virtual void OnFromDaemon(std::uint64_t incarnation, const v1::DaemonMessage& message) = 0;
};

class Network {
 public:
  // Where a process is reached; what it is reached for.
  struct Node {
    std::shared_ptr<Process> process;
    Membership* membership = nullptr;  // of a controller
    LinkMesh* mesh = nullptr;          // of a daemon
  };
  explicit Network(World* world) : world_(world) {}

  World& world() { return *world_; }
  void Attach(const std::string& address, Node node) { nodes_[address] = std::move(node); }
  // Null if nobody is there.
  const Node* At(const std::string& address) const;
  void Watch(Observer* observer) { observer_ = observer; }
  Observer* observer() const { return observer_; }

  // Nothing passes between the two, by their names, until then.
  void StallUntil(const std::string& a, const std::string& b, Wall until);
  // All streams between the two break.
  void Break(const std::string& a, const std::string& b);
  // The process has died, and its objects are gone: others notice.
  void Forget(const Process& process);

  // Of one message.
  Wall Delay(const Process& from, const Process& to);
  bool Stalled(const Process& a, const Process& b) const;
  void Keep(std::shared_ptr<AnyEnd> end) { ends_.push_back(std::move(end)); }
  void Drop(const AnyEnd& end) {
    std::erase_if(ends_, [&](const auto& other) { return other.get() == &end; });
  }
  // Until there is a connection, or once.
  void Connect(const std::shared_ptr<AnyEnd>& client, const std::string& address, bool wait,
               std::function<std::shared_ptr<AnyEnd>(const Node&)> accept);

  std::unique_ptr<SyncTransport> SyncTo(const std::string& address,
                                        std::shared_ptr<Process> process);
  std::unique_ptr<LinkTransport> LinksOf(std::shared_ptr<Process> process);

  static absl::Status NoConnection();

  // Calls `dead` if the process at `node` dies while `waits`, for example after a pause.
  void AwaitAnswer(const std::shared_ptr<bool>& waits, const Node& node,
                   const std::function<void()>& dead);

 private:
  World* const world_;
  std::map<std::string, Node> nodes_;
  std::vector<std::shared_ptr<AnyEnd>> ends_;  // in the order of their making
  std::map<std::pair<std::string, std::string>, Wall> stalls_;
  Observer* observer_ = nullptr;
};

}  // namespace percs::sim
