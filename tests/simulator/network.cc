#include "tests/simulator/network.h"

#include <algorithm>
#include <type_traits>

#include "proto/process/grpc_status.h"

namespace percs::sim {
namespace {

constexpr Wall kJoinDeadline = std::chrono::seconds(5);
constexpr Wall kLeastDelay = std::chrono::microseconds(50), kMostDelay = milliseconds(12),
               kRareDelay = milliseconds(250);
constexpr double kRare = 0.01;
constexpr Wall kLookAgain = milliseconds(100);

// One end of a stream of these messages.
template <class Out, class In>
class End final : public AnyEnd, public DialledStream<Out, In> {
 public:
  End(Network* network, std::shared_ptr<Process> process, bool dials)
      : AnyEnd(network, std::move(process)), dials_(dials) {}

  void Start(std::unique_ptr<StreamListener<In>> listener) override {
    listener_ = std::move(listener);
  }
  void Write(const Out& message) override {
    if constexpr (std::is_same_v<Out, v1::ControllerMessage>) {
      if (message.has_hello()) {
        place_ = message.hello().process();
        incarnation_ = message.hello().incarnation();
      } else if (process_->alive() && network_->observer() != nullptr) {
        network_->observer()->OnToDaemon(place_, incarnation_, message);
      }
    }
    if constexpr (std::is_same_v<Out, v1::DaemonMessage>) {
      if (process_->alive() && network_->observer() != nullptr)
        network_->observer()->OnFromDaemon(incarnation_, message);
    }
    Send(message.SerializeAsString());
  }
  void Cancel() override { BreakBoth(Network::NoConnection(), Network::NoConnection()); }
  void Discard() override {
    AnyEnd::Discard();
    listener_.reset();
  }

 private:
  void OnBytes(const std::string& bytes) override {
    In message;
    PERCS_CHECK(message.ParseFromString(bytes));
    if (!error_.ok()) return;
    if constexpr (std::is_same_v<In, v1::ControllerMessage>) {
      if (message.has_hello()) incarnation_ = message.hello().incarnation();
      if (network_->observer() != nullptr) network_->observer()->OnAtDaemon(incarnation_, message);
    }
    BreakIf(listener_->OnMessage(message));
  }
  void OnSent() override {
    if (error_.ok()) BreakIf(listener_->OnWritten());
  }
  void BreakIf(const absl::Status& error) {
    error_ = error;
    if (error_.ok()) return;
    // A client hears what it has said itself; a server's client hears what the server says.
    BreakBoth(dials_ ? error_ : absl::OkStatus(), dials_ ? Network::NoConnection() : error_);
  }
  void OnBroken() override { listener_->OnBroken(); }
  void OnClosed(const absl::Status& why) override {
    listener_->OnClosed(dials_ ? why : absl::OkStatus());
    listener_.reset();
  }

  const bool dials_;
  std::unique_ptr<StreamListener<In>> listener_;
  absl::Status error_;
  std::uint32_t place_ = 0;
  std::uint64_t incarnation_ = 0;
};

// A server's end for whoever dials.
template <class Out, class In>
std::shared_ptr<AnyEnd> Accept(Network* network, const std::shared_ptr<Process>& process,
                               HelloDesk<Out, In>* desk) {
  auto end = std::make_shared<End<Out, In>>(network, process, /*dials=*/false);
  end->Start(std::make_unique<SessionListener<Out, In>>(end.get(), desk));
  network->Keep(end);
  return end;
}

class SimulatedSync final : public SyncTransport {
 public:
  SimulatedSync(Network* network, std::string address, std::shared_ptr<Process> process)
      : network_(network), address_(std::move(address)), process_(std::move(process)) {}

  void Join(const v1::JoinRequest& request, Joined done) override {
    if (!process_->Affects()) return;
    auto answer = std::make_shared<Joined>(std::move(done));
    const auto waits = std::make_shared<bool>(true);
    const auto reply = [process = process_, answer, waits](const absl::Status& status,
                                                           const v1::JoinReply& message) {
      *waits = false;
      process->Run([answer, status, message] {
        if (auto once = std::exchange(*answer, nullptr)) once(status, message);
      });
    };
    World& world = network_->world();
    world.After(kJoinDeadline, [reply] {
      reply(FromGrpc(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no answer")), {});
    });
    const Network::Node* there = network_->At(address_);
    if (there == nullptr || network_->Stalled(*process_, *there->process)) {
      return world.After(world.Between(milliseconds(1), milliseconds(200)),
                         [reply] { reply(Network::NoConnection(), {}); });
    }
    world.After(network_->Delay(*process_, *there->process),
                [node = *there, request, reply, network = network_, from = process_] {
                  node.process->Run([=] { Answer(node, request, network, from, reply); });
                });
    // A connection ends with the process at its other end, and with it the calls that it carries.
    network_->AwaitAnswer(waits, *there, [reply] { reply(Network::NoConnection(), {}); });
  }

  Stream* Open() override {
    auto end = std::make_shared<End<v1::DaemonMessage, v1::ControllerMessage>>(network_, process_,
                                                                               /*dials=*/true);
    network_->Keep(end);
    network_->Connect(end, address_, /*wait=*/true,
                      [network = network_](const Network::Node& node) {
                        return Accept<v1::ControllerMessage, v1::DaemonMessage>(
                            network, node.process, node.membership);
                      });
    return end.get();
  }

 private:
  // As the service does.
  template <typename Reply>
  static void Answer(const Network::Node& node, const v1::JoinRequest& request, Network* network,
                     const std::shared_ptr<Process>& to, const Reply& reply) {
    node.membership->Join(request, [=](const absl::StatusOr<std::uint32_t>& place) {
      v1::JoinReply message;
      if (place.ok()) {
        message.set_process(*place);
        message.set_fabric(node.membership->fabric());
        message.set_processes(node.membership->places());
      }
      if (!node.process->Affects()) return;
      network->world().After(network->Delay(*node.process, *to),
                             [reply, status = place.status(), message] { reply(status, message); });
    });
  }

  Network* const network_;
  const std::string address_;
  const std::shared_ptr<Process> process_;
};

class SimulatedLine final : public LinkLine {
 public:
  SimulatedLine(Network* network, std::string address, std::shared_ptr<Process> process)
      : network_(network), address_(std::move(address)), process_(std::move(process)) {}
  Stream* Open(bool wait) override {
    auto end =
        std::make_shared<End<v1::LinkMessage, v1::LinkMessage>>(network_, process_, /*dials=*/true);
    network_->Keep(end);
    network_->Connect(end, address_, wait, [network = network_](const Network::Node& node) {
      return Accept<v1::LinkMessage, v1::LinkMessage>(network, node.process, node.mesh);
    });
    return end.get();
  }

 private:
  Network* const network_;
  const std::string address_;
  const std::shared_ptr<Process> process_;
};

class SimulatedLinks final : public LinkTransport {
 public:
  SimulatedLinks(Network* network, std::shared_ptr<Process> process)
      : network_(network), process_(std::move(process)) {}
  std::unique_ptr<LinkLine> LineTo(ProcessLock*, const std::string& address,
                                   const Credentials&) override {
    return std::make_unique<SimulatedLine>(network_, address, process_);
  }

 private:
  Network* const network_;
  const std::shared_ptr<Process> process_;
};

std::pair<std::string, std::string> Pair(const std::string& a, const std::string& b) {
  return {std::min(a, b), std::max(a, b)};
}

}  // namespace

void AnyEnd::Send(std::string bytes) {
  if (!process_->Affects() || ended_) return;
  if (!connected_) return held_.push_back(std::move(bytes));
  Transmit(std::move(bytes));
}

void AnyEnd::Connected() {
  connected_ = true;
  for (std::string& bytes : std::exchange(held_, {})) Transmit(std::move(bytes));
}

void AnyEnd::Transmit(std::string bytes) {
  if (const auto other = peer()) other->Expect(std::move(bytes));
  World& world = network_->world();
  world.After(world.Between(Wall(0), milliseconds(2)), [self = shared_from_this()] {
    self->process_->Run([self] {
      if (!self->ended_) self->OnSent();
    });
  });
}

void AnyEnd::Expect(std::string bytes) {
  if (ended_) return;
  World& world = network_->world();
  const auto from = peer();
  world.Trace(bytes.size());
  last_arrival_ = std::max(
      last_arrival_, world.now() + network_->Delay(from ? *from->process_ : *process_, *process_));
  inbox_.push_back(std::move(bytes));
  world.After(last_arrival_ - world.now(),
              [self = shared_from_this()] { self->process_->Run([self] { self->Read(); }); });
}

void AnyEnd::Read() {
  if (ended_ || inbox_.empty()) return;
  const std::string bytes = std::move(inbox_.front());
  inbox_.pop_front();
  OnBytes(bytes);
}

void AnyEnd::EndSoon(Wall delay, const absl::Status& why) {
  if (std::exchange(ending_, true)) return;
  why_ = why;
  network_->world().After(
      delay, [self = shared_from_this()] { self->process_->Run([self] { self->EndNow(); }); });
}

void AnyEnd::EndNow() {
  if (std::exchange(ended_, true)) return;
  OnBroken();
  World& world = network_->world();
  world.After(world.Between(Wall(0), milliseconds(5)), [self = shared_from_this()] {
    self->process_->Run([self] {
      self->OnClosed(self->why_);
      self->network_->Drop(*self);
    });
  });
}

void AnyEnd::BreakBoth(const absl::Status& here, const absl::Status& there) {
  if (!process_->alive()) return;  // Network::Forget tells the other end
  World& world = network_->world();
  EndSoon(world.Between(Wall(0), milliseconds(5)), here);
  if (const auto other = peer())
    other->EndSoon(network_->Delay(*process_, other->process()), there);
}

const Network::Node* Network::At(const std::string& address) const {
  const auto it = nodes_.find(address);
  return it == nodes_.end() || !it->second.process->alive() ? nullptr : &it->second;
}

absl::Status Network::NoConnection() {
  return FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no connection"));
}

Wall Network::Delay(const Process& from, const Process& to) {
  const Wall delay = world_->Chance(kRare) ? world_->Between(kMostDelay, kRareDelay)
                                           : world_->Between(kLeastDelay, kMostDelay);
  const auto stall = stalls_.find(Pair(from.name(), to.name()));
  return stall == stalls_.end() ? delay : std::max(delay, stall->second - world_->now() + delay);
}

bool Network::Stalled(const Process& a, const Process& b) const {
  const auto stall = stalls_.find(Pair(a.name(), b.name()));
  return stall != stalls_.end() && stall->second > world_->now();
}

void Network::StallUntil(const std::string& a, const std::string& b, Wall until) {
  Wall& stall = stalls_[Pair(a, b)];
  stall = std::max(stall, until);
}

void Network::Break(const std::string& a, const std::string& b) {
  for (const auto& end : std::vector(ends_)) {
    const auto other = end->peer();
    if (!other || end->process().name() != a || other->process().name() != b) continue;
    // Either may notice long before the other.
    end->EndSoon(world_->Between(Wall(0), milliseconds(400)), NoConnection());
    other->EndSoon(world_->Between(Wall(0), milliseconds(400)), NoConnection());
  }
}

void Network::Forget(const Process& process) {
  for (const auto& end : std::vector(ends_)) {
    if (&end->process() != &process) continue;
    if (const auto other = end->peer())
      other->EndSoon(Delay(process, other->process()), NoConnection());
    end->Discard();
    Drop(*end);
  }
}

void Network::Connect(const std::shared_ptr<AnyEnd>& client, const std::string& address, bool wait,
                      std::function<std::shared_ptr<AnyEnd>(const Node&)> accept) {
  const Node* there = At(address);
  if (there == nullptr || Stalled(client->process(), *there->process)) {
    if (!wait) return client->EndSoon(world_->Between(Wall(0), milliseconds(20)), NoConnection());
    world_->After(world_->Between(milliseconds(20), milliseconds(200)), [=, this] {
      if (!client->ended() && client->process().alive()) Connect(client, address, wait, accept);
    });
    return;
  }
  world_->After(Delay(client->process(), *there->process), [=, this, node = *there] {
    const auto waits = std::make_shared<bool>(true);
    node.process->Run([=, this] {
      *waits = false;
      if (client->ended() || !client->process().alive()) return;
      const auto server = accept(node);
      server->Join(client);
      client->Join(server);
      server->Connected();
      client->Connected();
    });
    AwaitAnswer(waits, node, [=, this] { Connect(client, address, wait, accept); });
  });
}

void Network::AwaitAnswer(const std::shared_ptr<bool>& waits, const Node& node,
                          const std::function<void()>& dead) {
  if (!*waits) return;
  if (!node.process->alive()) return dead();
  world_->After(kLookAgain, [=, this] { AwaitAnswer(waits, node, dead); });
}

std::unique_ptr<SyncTransport> Network::SyncTo(const std::string& address,
                                               std::shared_ptr<Process> process) {
  return std::make_unique<SimulatedSync>(this, address, std::move(process));
}

std::unique_ptr<LinkTransport> Network::LinksOf(std::shared_ptr<Process> process) {
  return std::make_unique<SimulatedLinks>(this, std::move(process));
}

}  // namespace percs::sim
