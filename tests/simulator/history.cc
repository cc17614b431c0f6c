#include "tests/simulator/history.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "client/lib/journalled_run.h"
#include "emulator/sim/run.h"
#include "fmt/format.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/convert/run_result.h"
#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/reader.h"
#include "spdlog/spdlog.h"
#include "tests/simulator/client.h"
#include "tests/simulator/coincidence.h"

namespace percs::sim {
namespace {

using std::chrono::seconds;

// Nothing new breaks after the first; at the second everything is whole; the run ends by the last.
constexpr Wall kBreaksUntil = seconds(12), kWholeAt = seconds(40), kEndsBy = seconds(400);
// A second run begins by then.
constexpr Wall kSecondBy = seconds(20);
// After something kept a daemon from answering it may take so long until it is heard.
constexpr Wall kRecovers = seconds(2);
// A daemon rejoins within so long, if nothing breaks meanwhile.
constexpr Wall kRejoins = seconds(10);

// Live, so that there is time to break things, or as fast as messages cross.
v1::ApplyRequest DrawRun(RandomStream& random, std::uint32_t daemons, std::uint32_t longer) {
  const std::uint32_t hubs = std::max(daemons, 2 + random.Below(3));
  const bool live = random.Below(4) > 0 || longer > 0;
  const std::string text = fmt::format(
      "name: simulated\n"
      "seed: {}\n"
      "topology: {{supernodes: 1, drawers: 1, hubs: {}}}\n"
      "parameters: {{ll: {{wire: {}ns}}, management_latency: 600ns, detect: 600ns,\n"
      "             plan: 500ns, install: 2us, retransmit_timeout: 5us, retransmit_tries: 3}}\n"
      "workload:\n"
      "  pattern: {{pattern: uniform, load: {}, message_bytes: 2KiB, reliable: true,\n"
      "            payload: verified, measure: {}us}}\n"
      "run: {{clock: {}}}\n",
      random.Below(1000), hubs, live ? 100 + 100 * random.Below(4) : 100,
      random.Below(2) ? "0.02" : "0.1", longer + (live ? 2 + random.Below(8) : 8 + random.Below(8)),
      live ? "live, pace: 1us/s" : "batch");
  const auto scenario = ReadScenarioText(text, "simulated", ScenarioFormat::kYaml);
  PERCS_CHECK(scenario.ok());
  v1::ApplyRequest request;
  *request.mutable_scenario() = *scenario;
  return request;
}

FabricSettings DrawSettings(RandomStream& random, std::uint64_t seed) {
  FabricSettings settings;
  // All batches between daemons, some, or none.
  constexpr std::array<std::size_t, 3> kCarriedBytes{0, 40, kCarriedBytesMax};
  settings.carried_bytes_max = kCarriedBytes[RandomStream(seed, "carried").Below(3)];
  settings.daemons = 2 + random.Below(3);
  if (random.Below(4) > 0) settings.loss_deadline = milliseconds(2500 + random.Below(4) * 1000);
  settings.same_address = random.Below(2) == 0 || !settings.loss_deadline;
  settings.keeps_place = random.Below(2) == 0;
  return settings;
}

class History final : public Observer {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed, "history"),
        world_(seed),
        coincidence_(seed),
        settings_(coincidence_.Adapt(DrawSettings(random_, seed))),
        request_(DrawRun(random_, settings_.daemons, coincidence_.longer())),
        fabric_(&world_, settings_),
        all_commands_(seed % 10 == 6),
        impaired_(settings_.daemons + settings_.spares, Wall(0)),
        lost_since_(settings_.daemons, Wall(0)) {
    fabric_.network().Watch(this);
    clients_.push_back(std::make_unique<Client>(&fabric_, request_, random_.Below(12),
                                                all_commands_, /*after=*/0));
  }

  Outcome Run();
  void OnToDaemon(std::uint32_t place, std::uint64_t incarnation,
                  const v1::ControllerMessage& message) override;
  void OnAtDaemon(std::uint64_t incarnation, const v1::ControllerMessage& message) override;
  void OnFromDaemon(std::uint64_t incarnation, const v1::DaemonMessage& message) override;

 private:
  void Plan();
  void BreakSomething();
  void BreakDaemon(std::uint32_t daemon);
  void BreakController();
  void BreakDisk();
  void LosePower();
  // It cannot answer until then.
  void Impair(std::uint32_t daemon, Wall until) {
    impaired_[daemon] = std::max(impaired_[daemon], until);
    Trouble(until);
  }
  // Something is broken until then.
  void Trouble(Wall until) { whole_since_ = std::max(whole_since_, until); }
  void Fail(const std::string& why) {
    if (outcome_.failure.empty()) outcome_.failure = why;
  }
  void Look();
  void LookAtPlaces(Controller& controller);
  void LookAtTime(Controller& controller);
  void LookAtRejoins(const Controller& controller);
  bool Continue();
  void CheckEnd(const Client& client);
  void CheckJournalledEnd(const std::vector<v1::JournalRecord>& records,
                          const absl::StatusOr<v1::GetResultReply>& result);
  void CheckDigest(const JournalledRun& run, const v1::RunResult& result);
  Wall Span(Wall least, Wall most) { return Drawn(random_, least, most); }

  RandomStream random_;
  World world_;
  Coincidence coincidence_;
  const FabricSettings settings_;
  const v1::ApplyRequest request_;
  SimulatedFabric fabric_;
  const bool all_commands_;
  std::vector<std::unique_ptr<Client>> clients_;  // each has a run, one after the other
  std::vector<Wall> impaired_;                    // by daemon: when it could not answer last
  bool broken_ = false;
  Wall whole_since_{0};
  std::vector<Wall> lost_since_;  // by place, if another daemon could rejoin there
  // Of the controller that there was at the last look: who has which place.
  const Controller* looked_at_ = nullptr;
  std::vector<std::uint64_t> owners_;
  std::map<std::uint64_t, Time> times_;  // by run, the latest that was seen
  // By run, place and end of the window: who was granted it.
  std::map<std::tuple<std::uint64_t, std::uint32_t, Time>, std::uint64_t> grants_;
  // What a daemon has received and sent: the numbers of its last messages, the end of its last
  // grant, and how far it has run.
  struct Heard {
    std::uint64_t message = 0, said = 0;
    Time end = 0, reached = 0;
  };
  std::map<std::uint64_t, Heard> heard_;  // by incarnation
  Outcome outcome_;
};

void History::OnToDaemon(std::uint32_t place, std::uint64_t incarnation,
                         const v1::ControllerMessage& message) {
  coincidence_.OnToDaemon(message);
  if (!message.has_grant() || fabric_.controller() == nullptr ||
      fabric_.controller()->run() == nullptr)
    return;
  const std::uint64_t run = fabric_.controller()->run()->number();
  const Time end = message.grant().end();
  const auto [it, fresh] = grants_.try_emplace({run, place, end}, incarnation);
  if (!fresh && it->second != incarnation)
    Fail(fmt::format("the window of place {} up to {} was granted to two daemons", place,
                     FormatTime(end)));
}

void History::OnAtDaemon(std::uint64_t incarnation, const v1::ControllerMessage& message) {
  Heard& heard = heard_[incarnation];
  if (message.sequence() <= heard.message) return;  // sent again
  heard.message = message.sequence();
  if (message.has_configure()) heard.end = heard.reached = 0;
  if (!message.has_grant()) return;
  heard.end = message.grant().end();
  if (heard.end < heard.reached)
    Fail(fmt::format("a daemon that has run up to {} received a window up to {}",
                     FormatTime(heard.reached), FormatTime(heard.end)));
}

void History::OnFromDaemon(std::uint64_t incarnation, const v1::DaemonMessage& message) {
  Heard& heard = heard_[incarnation];
  if (message.sequence() <= heard.said || !message.has_report()) return;
  heard.said = message.sequence();
  const Time reached = message.report().has_reached() ? message.report().reached() : heard.end;
  if (reached < heard.reached || reached > heard.end)
    Fail(
        fmt::format("a daemon reports that it has run up to {}, after {} and with a window up to "
                    "{}",
                    FormatTime(reached), FormatTime(heard.reached), FormatTime(heard.end)));
  heard.reached = reached;
}

// Windows that it granted last, and that nobody received, may be forgotten.
void History::LosePower() {
  grants_.clear();
  fabric_.LosePower();
}

void History::BreakDaemon(std::uint32_t daemon) {
  const auto& process = fabric_.daemon(daemon);
  if (!process) return;
  const std::string name = SimulatedFabric::NameOf(daemon);
  switch (random_.Below(5)) {
    case 0: {
      const Wall away = Span(milliseconds(100), seconds(7));
      fabric_.RestartDaemonsAfter(away);
      Impair(daemon, world_.now() + away);
      return process->Kill();
    }
    case 1: {
      const Wall until = world_.now() + Span(milliseconds(100), seconds(9));
      world_.Log(fmt::format("{} is paused until {:.3f} s", name, until.count() / 1e9));
      Impair(daemon, until);
      return process->PauseUntil(until);
    }
    case 2: {
      const Wall until = world_.now() + Span(milliseconds(100), seconds(9));
      Impair(daemon, until);
      return fabric_.CutOff(daemon, until);
    }
    case 3: {
      world_.Log(fmt::format("streams between {} and the controller break", name));
      return fabric_.network().Break(name, SimulatedFabric::kController);
    }
    default: {
      // Not an impairment: it answers between slices.
      const Wall look = Span(milliseconds(20), milliseconds(250));
      const Wall until = world_.now() + Span(seconds(4), seconds(25));
      world_.Log(fmt::format("{} computes slowly until {:.3f} s", name, until.count() / 1e9));
      Trouble(until);
      return process->SlowUntil(until, look);
    }
  }
}

void History::BreakController() {
  const auto& process = fabric_.controller_process();
  if (!process) return;
  fabric_.RestartControllerAfter(Span(milliseconds(50), seconds(3)));
  switch (random_.Below(8)) {
    case 0:
      return process->Kill();
    case 1: {
      const Wall until = world_.now() + Span(milliseconds(100), seconds(9));
      Trouble(until);
      return fabric_.PauseController(until);
    }
    case 2:
      return fabric_.StopController();
    case 3:
      if (random_.Below(3) > 0) return process->Kill();
      return LosePower();
    default:
      return process->DieAfter(1 + random_.Below(60));
  }
}

void History::BreakDisk() {
  const Wall until = world_.now() + Span(milliseconds(100), seconds(16));
  Trouble(until);
  if (random_.Below(3) > 0) return fabric_.FillDisk(until);
  world_.Log(fmt::format("syncs fail until {:.3f} s", until.count() / 1e9));
  fabric_.disk().FailSyncsUntil(until);
}

void History::BreakSomething() {
  broken_ = true;
  const std::uint32_t what = random_.Below(10);
  const std::uint32_t daemon = random_.Below(settings_.daemons);
  if (what < 4) return BreakDaemon(daemon);
  if (what < 7) return BreakController();
  if (what < 8) return BreakDisk();
  const std::uint32_t other = random_.Below(settings_.daemons);
  if (daemon == other) return;
  const std::string a = SimulatedFabric::NameOf(daemon), b = SimulatedFabric::NameOf(other);
  if (what == 8) {
    world_.Log(fmt::format("streams between {} and {} break", a, b));
    return fabric_.network().Break(a, b);
  }
  const Wall until = world_.now() + Span(milliseconds(100), seconds(9));
  world_.Log(
      fmt::format("nothing passes between {} and {} until {:.3f} s", a, b, until.count() / 1e9));
  Trouble(until);
  // A window waits for batches, and who waits has nothing to say but that it is there.
  fabric_.network().StallUntil(a, b, until);
}

void History::Plan() {
  fabric_.StartController();
  for (std::uint32_t i = 0; i < settings_.daemons + settings_.spares; ++i)
    world_.After(Span(Wall(0), milliseconds(300)), [this, i] { fabric_.StartDaemon(i); });
  clients_.back()->Start();
  const std::uint32_t drawn = random_.Below(8), count = coincidence_.alone() ? 0 : drawn;
  for (std::uint32_t i = 0; i < count; ++i)
    world_.After(Span(Wall(0), kBreaksUntil), [this] { BreakSomething(); });
  world_.After(kWholeAt, [this] { clients_.back()->Finish(); });
  if (!coincidence_.any()) return;
  broken_ = true;
  coincidence_.Plan(&fabric_, {[this](std::uint32_t daemon, Wall until) { Impair(daemon, until); },
                               [this](Wall until) { Trouble(until); }, [this] { LosePower(); }});
}

void History::LookAtPlaces(Controller& controller) {
  const bool same = looked_at_ == &controller && owners_.size() == settings_.daemons;
  looked_at_ = &controller;
  owners_.resize(settings_.daemons);
  for (std::uint32_t place = 0; place < settings_.daemons; ++place) {
    const Member* member = controller.membership().member(place);
    const std::uint64_t owner = member ? member->incarnation() : 0;
    const std::uint64_t before = std::exchange(owners_[place], owner);
    const auto daemon = fabric_.Find(before);
    // To connect takes several steps of a computation.
    if (member && daemon && !member->connected() && fabric_.daemon(*daemon)->slow())
      impaired_[*daemon] = std::max(impaired_[*daemon], world_.now());
    if (!same || before == 0 || before == owner) continue;
    ++outcome_.losses;
    world_.Log(fmt::format("the daemon in place {} is lost", place));
    coincidence_.OnLoss();
    // A session that has heard what a loss of power took from the state cannot continue.
    if (!daemon || fabric_.lost_power()) continue;
    if (impaired_[*daemon] + kRecovers >= world_.now()) continue;
    Fail(fmt::format("{} was declared lost, though it could have answered since {:.3f} s",
                     SimulatedFabric::NameOf(*daemon), impaired_[*daemon].count() / 1e9));
  }
}

void History::LookAtTime(Controller& controller) {
  const FabricRun* run = controller.run();
  if (run == nullptr || !controller.storage().ok()) return;  // what is not saved may not be
  const Time now = run->master().now();
  Time& latest = times_[run->number()];
  if (now < latest && !fabric_.lost_power())
    Fail(fmt::format("virtual time went back from {} to {}", FormatTime(latest), FormatTime(now)));
  latest = std::max(latest, now);
}

// A daemon in the place of a lost one gets its hubs, unless the run is about to end.
void History::LookAtRejoins(const Controller& controller) {
  const FabricRun* run = controller.run();
  for (std::uint32_t place = 0; place < settings_.daemons; ++place) {
    const Member* member = controller.membership().member(place);
    const bool waits = run != nullptr && !run->ended() && run->master().IsLost(place) &&
                       member != nullptr && member->connected() &&
                       run->state() != v1::FABRIC_STATE_CONFIGURING && controller.storage().ok();
    if (!waits) lost_since_[place] = world_.now();
    if (std::max(lost_since_[place], whole_since_) + kRejoins < world_.now())
      Fail(
          fmt::format("a daemon has had place {} since {:.3f} s, and nothing is broken, but it has "
                      "not rejoined",
                      place, lost_since_[place].count() / 1e9));
  }
}

void History::Look() {
  if (!fabric_.refusal().empty()) {
    Fail("the controller does not start: " + fabric_.refusal());
    return;
  }
  if (!clients_.back()->failure().empty()) Fail(clients_.back()->failure());
  if (!fabric_.stray().empty()) Fail(fabric_.stray());
  Controller* controller = fabric_.controller();
  if (controller == nullptr) {
    looked_at_ = nullptr;
    Trouble(world_.now());
    return;
  }
  LookAtPlaces(*controller);
  LookAtTime(*controller);
  LookAtRejoins(*controller);
}

// What two results differ in, for people: both are of the same scenario.
std::string Differences(const RunResult& replay, const v1::RunResult& result,
                        const v1::Scenario& scenario) {
  const auto built = BuildScenario(scenario, "");
  PERCS_CHECK(built.ok());
  v1::RunResult other;
  RunResultToProto(replay, *Topology::Create(built->topology), &other);
  other.set_windows(result.windows());
  std::string text;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&text);
  differencer.Compare(result, other);
  return text;
}

void History::CheckDigest(const JournalledRun& run, const v1::RunResult& result) {
  const std::string& digest = result.digest();
  if (run.end && run.end->digest() != digest && !run.end->digest().empty())
    return Fail("the journal has another digest than the result");
  const auto scenario = BuildScenario(run.scenario, "");
  PERCS_CHECK(scenario.ok());
  RunOptions options;
  for (const v1::JournalRecord& record : run.commands) {
    options.commands.push_back({record.at(), [&record](Fabric& fabric, Time at) {
                                  return ActOnFabric(record, fabric, at);
                                }});
  }
  const auto replay = RunScenario(*scenario, options);
  if (!replay.ok()) return Fail("the replay fails: " + std::string(replay.status().message()));
  if (replay->digest.ToString() != digest)
    Fail(fmt::format("the digest is {}, and that of the replay {}; result -> replay:\n{}", digest,
                     replay->digest.ToString(), Differences(*replay, result, run.scenario)));
}

// It may be missing: a client can see the result before the record.
void History::CheckJournalledEnd(const std::vector<v1::JournalRecord>& records,
                                 const absl::StatusOr<v1::GetResultReply>& result) {
  for (const v1::JournalRecord& record : records) {
    if (!record.has_end()) continue;
    const std::string digest = result.ok() ? result->result().digest() : "";
    const std::string error(result.status().message());
    if (&record != &records.back() || record.end().digest() != digest ||
        record.end().error() != error)
      Fail(
          fmt::format("the journal says that the run ended with \"{}{}\", but it ended with "
                      "\"{}{}\"",
                      record.end().digest(), record.end().error(), digest, error));
  }
}

// Whether there is another run to wait for.
bool History::Continue() {
  const Client& client = *clients_.back();
  if (!client.done()) return true;
  if (!all_commands_ || clients_.size() > 1 || world_.now() > kSecondBy) return false;
  world_.Log("a second run is to begin");
  clients_.push_back(
      std::make_unique<Client>(&fabric_, request_, random_.Below(12), all_commands_, client.run()));
  clients_.back()->Start();
  for (std::uint32_t i = random_.Below(4); i > 0; --i)
    world_.After(Span(Wall(0), seconds(5)), [this] { BreakSomething(); });
  return true;
}

void History::CheckEnd(const Client& client) {
  if (!client.done()) {
    const Controller* controller = fabric_.controller();
    return Fail(fmt::format("the run has not ended {:.0f} s after everything was whole again: {}",
                            (world_.now() - kWholeAt).count() / 1e9,
                            controller == nullptr || controller->run() == nullptr
                                ? "there is none"
                                : fmt::format("{} at {}", v1::FabricState_Name(controller->state()),
                                              FormatTime(controller->run()->master().now()))));
  }
  const auto contents = ReadJournal(SimulatedFabric::kFolder, fabric_.disk());
  if (!contents.ok()) return Fail(std::string(contents.status().message()));
  std::vector<v1::JournalRecord> records;
  for (const v1::JournalRecord& record : contents->records) {
    if (record.run() == client.run()) records.push_back(record);
  }
  if (const std::string why = client.CheckJournal(records); !why.empty()) return Fail(why);
  for (const v1::JournalRecord& record : records) outcome_.rejoins += record.has_rejoin();
  const auto& result = client.result();
  CheckJournalledEnd(records, result);
  if (!result.ok()) {
    const std::string why(result.status().message());
    const bool named = why.find("lost ") != std::string::npos ||
                       why.find("waits for streams between daemons") != std::string::npos;
    if (!fabric_.lost_power() && !(broken_ && named)) Fail("the run failed: " + why);
    return;
  }
  const auto run = ReadJournalledRun(SimulatedFabric::kFolder, client.run(), fabric_.disk());
  if (!run.ok()) return Fail(std::string(run.status().message()));
  outcome_.finished = true;
  CheckDigest(*run, result->result());
}

Outcome History::Run() {
  Plan();
  while (outcome_.failure.empty() && Continue() && world_.now() < kEndsBy && world_.Step()) {
    ++outcome_.events;
    fabric_.Reap();
    Look();
  }
  for (const auto& client : clients_) {
    if (outcome_.failure.empty()) CheckEnd(*client);
    outcome_.commands += client->acknowledged();
  }
  outcome_.trace = world_.trace();
  outcome_.log = world_.log();
  outcome_.crashes = fabric_.crashes();
  return std::move(outcome_);
}

}  // namespace

Outcome RunHistory(std::uint64_t seed) {
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);
  Outcome outcome = History(seed).Run();
  spdlog::set_level(level);
  return outcome;
}

}  // namespace percs::sim
