#include "client/lib/run_page.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/metrics/node_state.h"
#include "daemon/page/link_status.h"
#include "daemon/page/local_sight.h"
#include "daemon/page/page_server.h"
#include "daemon/page/processor_time.h"
#include "percs/v1/control.grpc.pb.h"
#include "proto/convert/counters.h"
#include "proto/process/grpc_status.h"
#include "proto/scenario/status.h"
#include "proto/scenario/trees.h"

namespace percs {
namespace {

constexpr std::size_t kEventsKept = 4096;
constexpr std::chrono::milliseconds kPatience(100);  // before it looks whether the caller has gone
constexpr std::chrono::seconds kOpen(1);  // after its last question a page counts as open

using Clock = std::chrono::steady_clock;

}  // namespace

// Answers from the run's thread, at the end of a window, except for what was known at the last
// look.
class RunPage::Service final : public v1::Control::Service {
 public:
  using Visit = std::function<absl::Status(const Fabric&)>;

  explicit Service(const Topology& topology) : sight_(topology, /*number=*/1) {}

  // Of the run's thread.
  bool Watch(const Fabric& fabric, std::uint64_t windows, bool ended) {
    virtual_time_.store(fabric.now(), std::memory_order_relaxed);
    windows_.store(windows, std::memory_order_relaxed);
    if (windows == 0 || ended || wanted_.load(std::memory_order_relaxed))
      Answer(fabric, windows, ended);
    const Clock::time_point asked = asked_at_.load(std::memory_order_relaxed);
    return asked != Clock::time_point() && Clock::now() - asked < kOpen;
  }

  void Look(SightDone done) {
    const std::lock_guard guard(mutex_);
    if (closed_) return done(absl::UnavailableError("the run is over"));
    asked_.push_back(std::move(done));
    Want();
  }

  // The run answers no more questions.
  void Close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    const std::vector<SightDone> asked = std::exchange(asked_, {});
    visits_.clear();
    lock.unlock();
    for (const SightDone& done : asked) done(absl::UnavailableError("the run is over"));
  }

  grpc::Status Status(grpc::ServerContext*, const v1::StatusRequest*,
                      v1::StatusReply* reply) override {
    const std::lock_guard guard(mutex_);
    *reply = status_;
    reply->set_virtual_time(virtual_time_.load(std::memory_order_relaxed));
    reply->set_windows(windows_.load(std::memory_order_relaxed));
    // Since the run began.
    const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    if (known_ && seconds > 0) {
      reply->set_pace_reached(static_cast<double>(reply->virtual_time()) / seconds);
      reply->set_windows_per_second(static_cast<double>(reply->windows()) / seconds);
    }
    return grpc::Status::OK;
  }

  grpc::Status WatchEvents(grpc::ServerContext*, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::EventBatch>* writer) override {
    if (request->follow()) {
      return ToGrpc(
          absl::UnimplementedError("follow: events of a run in one process are not "
                                   "followed; ask again with `after`"));
    }
    v1::EventBatch batch;
    {
      const std::lock_guard guard(mutex_);
      for (const v1::FabricEvent& event : events_)
        if (event.sequence() > request->after()) *batch.add_events() = event;
    }
    writer->Write(batch);
    return grpc::Status::OK;
  }

  grpc::Status ListLinks(grpc::ServerContext* context, const v1::ListLinksRequest* request,
                         v1::ListLinksReply* reply) override {
    return Ask(context, [&](const Fabric& fabric) -> absl::Status {
      const Topology& topology = fabric.topology();
      const auto links = LinksAt(topology, request->node());
      if (!links.ok()) return links.status();
      std::vector<NodeState> states;
      for (const NodeId node : EndsOfAll(topology, *links)) states.push_back(StateOf(fabric, node));
      percs::ListLinks(
          topology, fabric.scenario().parameters, fabric.now(), *links,
          [&](NodeId node) { return FindState(states, node); }, reply);
      return absl::OkStatus();
    });
  }

  grpc::Status GetCounters(grpc::ServerContext* context, const v1::GetCountersRequest* request,
                           v1::GetCountersReply* reply) override {
    return Ask(context, [&](const Fabric& fabric) -> absl::Status {
      const auto node = fabric.topology().ParseNode(request->node());
      if (!node.ok()) return node.status();
      reply->set_virtual_time(fabric.now());
      v1::NodeCounters* const of = reply->add_nodes();
      of->set_node(request->node());
      CountersToProto(fabric.stats(*node), of->mutable_counters());
      return absl::OkStatus();
    });
  }

  grpc::Status ListTrees(grpc::ServerContext* context, const v1::ListTreesRequest* request,
                         v1::ListTreesReply* reply) override {
    return Ask(context, [&](const Fabric& fabric) {
      reply->set_virtual_time(fabric.now());
      return percs::ListTrees(fabric.trees(), fabric.topology(), request->name(),
                              reply->mutable_trees());
    });
  }

 private:
  // Whoever waits for the end of a window.
  void Answer(const Fabric& fabric, std::uint64_t windows, bool ended) {
    std::unique_lock lock(mutex_);
    wanted_ = false;
    windows_seen_ = windows;
    if (!known_) {
      begun_ = Clock::now();
      Know(fabric, 0, ended);
    }
    for (const auto& visit : std::exchange(visits_, {})) {
      lock.unlock();
      visit(fabric);
      lock.lock();
    }
    for (const SightDone& done : std::exchange(asked_, {})) {
      const auto begin = ProcessorTime();
      FabricSight sight = sight_.LookOn(fabric, ended);
      Know(fabric, sight.counted ? sight.total.packets_delivered : status_.packets_delivered(),
           ended);
      sight.cost = ProcessorTime() - begin;
      done(std::move(sight));
    }
  }

  // With the lock held: the run's thread has something to answer.
  void Want() {
    wanted_ = true;
    asked_at_.store(Clock::now(), std::memory_order_relaxed);
  }

  // With the lock held.
  void Know(const Fabric& fabric, std::uint64_t delivered, bool ended) {
    known_ = true;
    status_ = sight_.Status(fabric, windows_seen_, delivered);
    if (ended) status_.set_state(v1::FABRIC_STATE_FINISHED);
    std::uint64_t lost = 0;
    const std::uint64_t last = events_.empty() ? 0 : events_.back().sequence();
    for (const FabricEvent& event : fabric.events().After(last, kEventsKept, &lost)) {
      EventToProto(event, &events_.emplace_back());
      if (events_.size() > kEventsKept) events_.pop_front();
    }
  }

  // Waits until the end of a window, but not for longer than the call.
  grpc::Status Ask(grpc::ServerContext* context, const Visit& visit) {
    struct Answer {
      std::mutex mutex;
      bool there = false;  // with the service's lock
      bool left = false;
      absl::Status status = absl::UnavailableError("the run is over");
    };
    const auto answer = std::make_shared<Answer>();
    std::unique_lock lock(mutex_);
    if (closed_) return ToGrpc(absl::UnavailableError("the run is over"));
    visits_.push_back([this, answer, &visit](const Fabric& fabric) {
      const std::lock_guard guard(answer->mutex);
      if (answer->left) return;  // the caller has gone
      answer->status = visit(fabric);
      const std::lock_guard notify(mutex_);
      answer->there = true;
      changed_.notify_all();
    });
    Want();
    while (!answer->there && !closed_ && !context->IsCancelled())
      changed_.wait_for(lock, kPatience);
    lock.unlock();
    const std::lock_guard guard(answer->mutex);
    answer->left = true;
    return ToGrpc(answer->status);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false, known_ = false;
  std::vector<std::function<void(const Fabric&)>> visits_;
  std::vector<SightDone> asked_;
  v1::StatusReply status_;
  std::uint64_t windows_seen_ = 0;
  Clock::time_point begun_;
  std::deque<v1::FabricEvent> events_;

  LocalSight sight_;  // of the run's thread
  std::atomic<bool> wanted_ = false;
  std::atomic<Clock::time_point> asked_at_{};
  std::atomic<Time> virtual_time_ = 0;
  std::atomic<std::uint64_t> windows_ = 0;
};

struct RunPage::Parts {
  explicit Parts(const Topology& topology) : service(topology) {}

  Service service;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<PageServer> page;  // before the others go
};

RunPage::RunPage(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<RunPage>> RunPage::Start(const std::string& address,
                                                        const Topology& topology) {
  auto parts = std::make_unique<Parts>(topology);
  grpc::ServerBuilder builder;
  builder.RegisterService(&parts->service);
  parts->server = builder.BuildAndStart();
  if (!parts->server) return absl::InternalError("gRPC did not start");
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // answers of this process to itself
  PageOptions options{address, ""};
  options.anybody = Role::kViewer;
  Service* const service = &parts->service;
  auto page = PageServer::Start(options, parts->server->InProcessChannel(arguments),
                                [service](SightDone done) { service->Look(std::move(done)); });
  if (!page.ok()) return page.status();
  parts->page = *std::move(page);
  return std::unique_ptr<RunPage>(new RunPage(std::move(parts)));
}

RunPage::~RunPage() {
  parts_->service.Close();
  parts_->page.reset();
  parts_->server->Shutdown(std::chrono::system_clock::now());
}

std::string RunPage::link() const { return parts_->page->link(); }

bool RunPage::Watch(const Fabric& fabric, std::uint64_t windows, bool ended) {
  return parts_->service.Watch(fabric, windows, ended);
}

}  // namespace percs
