#include "emulator/node/triblade_node.h"

#include <cstring>
#include <numeric>

#include "emulator/base/check.h"
#include "emulator/base/random.h"
#include "fmt/format.h"

namespace percs {
namespace {

using roadrunner::Bytes;
using roadrunner::Cml;
using roadrunner::kSpesPerTriblade;

constexpr std::size_t kHeaderBytes = 24;
constexpr const char* kNames[] = {"barrier", "broadcast", "reduce"};

Bytes Pack(const roadrunner::Message& m) {
  Bytes bytes;
  for (const std::uint64_t word :
       {static_cast<std::uint64_t>(m.kind), std::uint64_t{static_cast<std::uint32_t>(m.from)},
        std::uint64_t{static_cast<std::uint32_t>(m.to)},
        std::uint64_t{static_cast<std::uint32_t>(m.tag)}, std::uint64_t{m.sequence},
        std::uint64_t{0}}) {
    roadrunner::AppendLittle(&bytes, word, 4);
  }
  bytes.insert(bytes.end(), m.data.begin(), m.data.end());
  return bytes;
}

roadrunner::Message Unpack(const Bytes& bytes) {
  const auto word = [&](int i) {
    return static_cast<std::uint32_t>(roadrunner::LoadLittle(bytes.data() + 4 * i, 4));
  };
  roadrunner::Message m;
  m.kind = static_cast<roadrunner::Message::Kind>(word(0));
  m.from = static_cast<roadrunner::Rank>(word(1));
  m.to = static_cast<roadrunner::Rank>(word(2));
  m.tag = static_cast<int>(word(3));
  m.sequence = word(4);
  m.data.assign(bytes.begin() + kHeaderBytes, bytes.end());
  return m;
}

std::vector<NodeId> TribladesOf(const Scenario& scenario, const Topology& topology) {
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < scenario.blades.size(); ++i) {
    if (scenario.blades[i].type == kTribladeType) {
      nodes.push_back(topology.hubs() + static_cast<NodeId>(i));
    }
  }
  return nodes;
}

std::uint64_t WordAt(std::uint64_t iteration, std::uint64_t word) {
  return Mix64(iteration << 32 | word);
}

const std::vector<BladeProgram>& ProgramsOf(const Scenario& scenario, const Topology& topology,
                                            NodeId blade) {
  return scenario.blades[blade - topology.hubs()].programs;
}

}  // namespace

absl::Status CheckTribladeProgram(const CollectiveProgram& p) {
  if (p.algorithm != "auto" || p.spes != cell::kSpes) {
    return absl::InvalidArgumentError(
        "triblades run the collectives of CML on all their SPEs; leave out `algorithm` and `spes`");
  }
  if (p.bytes % 16 != 0 || p.bytes < 16 || p.bytes > 64 * 1024) {
    return absl::InvalidArgumentError(fmt::format(
        "{} bytes; a triblade's collectives move 16 to 65536 of them, a multiple of 16", p.bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckTriblades(const Scenario& scenario, const Topology& topology) {
  const std::vector<NodeId> triblades = TribladesOf(scenario, topology);
  if (triblades.empty()) return absl::OkStatus();
  const std::vector<BladeProgram>& first = ProgramsOf(scenario, topology, triblades[0]);
  for (const BladeProgram& program : first) {
    const auto* collective = std::get_if<CollectiveProgram>(&program);
    if (!collective) return absl::InvalidArgumentError("triblades run only collectives of CML");
    if (absl::Status s = CheckTribladeProgram(*collective); !s.ok()) return s;
  }
  const auto same = [](const BladeProgram& a, const BladeProgram& b) {
    const auto *p = std::get_if<CollectiveProgram>(&a), *q = std::get_if<CollectiveProgram>(&b);
    return p && q && p->operation == q->operation && p->bytes == q->bytes &&
           p->iterations == q->iterations && p->algorithm == q->algorithm && p->spes == q->spes;
  };
  for (const NodeId other : triblades) {
    const std::vector<BladeProgram>& theirs = ProgramsOf(scenario, topology, other);
    if (std::equal(first.begin(), first.end(), theirs.begin(), theirs.end(), same)) continue;
    return absl::InvalidArgumentError(fmt::format(
        "{} and {} have different programs; the SPEs of all triblades must run the same one",
        topology.NodeName(triblades[0]), topology.NodeName(other)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TribladeNode>> TribladeNode::Create(
    NodeId node, const Scenario& scenario, const Topology& topology, WorkCounters* work,
    const DeliveryObserver* on_delivery) {
  auto made = std::unique_ptr<TribladeNode>(new TribladeNode(
      node, scenario, topology, work, on_delivery, TribladesOf(scenario, topology)));
  for (const BladeProgram& program : ProgramsOf(scenario, topology, node))
    made->programs_.push_back(std::get<CollectiveProgram>(program));
  if (absl::Status s = made->Launch(); !s.ok()) return s;
  return made;
}

// A hub owns its workload, but this one belongs to the node.
class TribladeNode::Port : public HubWorkload {
 public:
  explicit Port(TribladeNode* node) : node_(node) {}
  void OnTimer(std::uint64_t token) override { node_->OnTimer(token); }
  bool takes_payload() const override { return true; }
  bool checks_payload() const override { return true; }
  void OnPayload(const PacketHeader& header) override { node_->OnPayload(header); }
  void OnMessage(const DeliveredMessage& message) override { node_->OnMessage(message); }
  void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) override {
    node_->OnMessageDone(destination, message, delivered);
  }

 private:
  TribladeNode* const node_;
};

TribladeNode::TribladeNode(NodeId node, const Scenario& scenario, const Topology& topology,
                           WorkCounters* work, const DeliveryObserver* on_delivery,
                           std::vector<NodeId> triblades)
    : triblades_(std::move(triblades)),
      number_(static_cast<int>(std::find(triblades_.begin(), triblades_.end(), node) -
                               triblades_.begin())),
      network_(node, scenario, topology, work, on_delivery) {
  network_.SetWorkload(std::make_unique<Port>(this));
  if (!topology.in_tree(node)) return;
  adapter_send_ = network_.context().parameters->send_overhead;
  adapter_receive_ = network_.context().parameters->receive_overhead;
}

absl::Status TribladeNode::Launch() {
  roadrunner::ClusterOptions options;
  options.triblades = static_cast<int>(triblades_.size());
  options.send_out = [this](Message message, Time at) { SendOut(std::move(message), at); };
  auto cluster = roadrunner::Cluster::Create(roadrunner::DefaultParameters(), options);
  if (!cluster.ok()) return cluster.status();
  cluster_ = *std::move(cluster);
  std::vector<roadrunner::Rank> ranks(kSpesPerTriblade);
  std::iota(ranks.begin(), ranks.end(), number_ * kSpesPerTriblade);
  ranks_through_.resize(programs_.size());
  for (const CollectiveProgram& p : programs_) {
    BladeProgramResult& result = results_.emplace_back();
    result.node = network_.context().node;
    result.program =
        fmt::format("{} of CML on {} ranks, {} bytes", kNames[static_cast<int>(p.operation)],
                    options.triblades * kSpesPerTriblade, p.bytes);
  }
  if (programs_.empty()) return absl::OkStatus();
  return cluster_->Launch(ranks, roadrunner::FullImage(2 * 64 * 1024),
                          [this](Cml& mpi) { return RunAll(mpi); });
}

void TribladeNode::Start() {
  network_.Start();
  over_ = programs_.empty();
  if (!over_) ++network_.context().work->unfinished;
}

void TribladeNode::Run(Time end) {
  NodeContext& context = network_.context();
  for (Time now = next_time(); now < end; now = next_time()) {
    if (cluster_->next_time() == now) {
      context.now = now;  // what it sends, it sends now or later
      cluster_->RunUntil(now + 1);
      if (!over_ && cluster_->finished()) Finish();
    }
    if (network_.next_time() == now) network_.Run(now + 1);
  }
  CountBlades();
}

void TribladeNode::CountBlades() {
  auto& counters = network_.context().stats.blade;
  counters.fill(0);
  for (int i = 0; i < roadrunner::kBladesPerTriblade; ++i) {
    const cell::Blade* const blade = cluster_->blade(number_ * roadrunner::kBladesPerTriblade + i);
    if (blade == nullptr) continue;  // nothing runs on it
    std::size_t next = 0;
    blade->stats().Visit([&](const char*, std::uint64_t value) { counters[next++] += value; });
    PERCS_CHECK(next == counters.size());
  }
}

void TribladeNode::Finish() {
  over_ = true;
  NodeContext& context = network_.context();
  --context.work->unfinished;
  const roadrunner::ClusterResult result = cluster_->Result();
  context.last_event = std::max(context.last_event, result.time);
  context.stats.payload_errors += wrong_;
  if (!result.status.ok() && !results_.empty()) {
    results_.back().problem = std::string(result.status.message());
  }
}

// SPEs and Cells of a triblade are numbered through its two blades.
absl::Status TribladeNode::Inject(const BladeFault& fault) {
  const bool spe = fault.kind == BladeFault::Kind::kSpeDown,
             ring = fault.kind == BladeFault::Kind::kRingLost;
  const int per_blade = spe ? cell::kSpes : ring ? cell::kCells : 1;
  const int units = per_blade * roadrunner::kBladesPerTriblade;
  if (fault.unit < 0 || fault.unit >= units) {
    return absl::InvalidArgumentError(fmt::format(
        "{} {} of {} does not exist; a triblade has 0 to {}",
        spe    ? "SPE"
        : ring ? "Cell"
               : "blade",
        fault.unit, network_.context().topology->NodeName(network_.context().node), units - 1));
  }
  const int unit = fault.unit % per_blade;
  cell::Blade& blade =
      cluster_->BladeAt(number_ * roadrunner::kBladesPerTriblade + fault.unit / per_blade);
  const absl::Status status = spe    ? blade.FailSpe(unit, fault.at)
                              : ring ? blade.LoseRing(unit, fault.ring, fault.at)
                                     : blade.DegradeChipLink(fault.share, fault.at);
  if (!status.ok()) return status;
  ++network_.context().work->unfinished;  // a command to come
  blade.At(fault.at, [this, at = fault.at] {
    NodeContext& context = network_.context();
    --context.work->unfinished;
    context.last_event = std::max(context.last_event, at);
  });
  return absl::OkStatus();
}

NodeResult TribladeNode::Result() {
  NodeResult result = network_.Result();
  const roadrunner::ClusterResult cluster = cluster_->Result();
  result.programs = results_;
  result.last_event = std::max(result.last_event, cluster.time);
  DigestStream digest;
  digest.Add(result.digest);
  digest.Add(cluster.digest);
  digest.Add(static_cast<std::uint64_t>(cluster.time));
  result.digest = digest.Finish();
  return result;
}

// Others wait because of a rank that failed; a few of them are enough.
std::vector<cell::SpeInFlight> TribladeNode::DmaInFlight() const {
  std::array<cell::SpeInFlight, cell::kSpes> sums;
  for (int i = 0; i < roadrunner::kBladesPerTriblade; ++i) {
    const cell::Blade* const blade = cluster_->blade(number_ * roadrunner::kBladesPerTriblade + i);
    if (blade == nullptr) continue;  // nothing runs on it
    for (const cell::SpeInFlight& of : blade->InFlight()) {
      cell::SpeInFlight& sum = sums[of.spe];
      sum.queued += of.queued;
      sum.moves.insert(sum.moves.end(), of.moves.begin(), of.moves.end());
    }
  }
  std::vector<cell::SpeInFlight> all;
  for (std::size_t spe = 0; spe < sums.size(); ++spe) {
    if (sums[spe].queued == 0 && sums[spe].moves.empty()) continue;
    sums[spe].spe = static_cast<std::uint8_t>(spe);
    all.push_back(std::move(sums[spe]));
  }
  return all;
}

std::vector<cell::DmaSlice> TribladeNode::DmaSlices() const {
  std::vector<cell::DmaSlice> all;
  for (int i = 0; i < roadrunner::kBladesPerTriblade; ++i) {
    const cell::Blade* const blade = cluster_->blade(number_ * roadrunner::kBladesPerTriblade + i);
    if (blade == nullptr) continue;  // nothing runs on it
    for (cell::DmaSlice slice : blade->dma().slices()) {
      slice.spe = static_cast<std::uint8_t>(slice.spe + i * cell::kSpes);
      all.push_back(slice);
    }
  }
  return all;
}

std::vector<std::string> TribladeNode::Blocked() {
  constexpr std::size_t kShown = 4;
  const roadrunner::ClusterResult result = cluster_->Result();
  std::vector<std::string> blocked = result.blocked;
  if (blocked.size() > kShown) {
    const std::size_t more = blocked.size() - kShown;
    blocked.resize(kShown);
    blocked.push_back(fmt::format("{} more ranks are waiting", more));
  }
  if (!result.status.ok() && result.status.code() != absl::StatusCode::kFailedPrecondition) {
    blocked.insert(blocked.begin(), std::string(result.status.message()));
  }
  blocked.insert(blocked.begin(), lost_answers_.begin(), lost_answers_.end());
  const NodeContext& context = network_.context();
  for (std::string& text : blocked) text = context.topology->NodeName(context.node) + ": " + text;
  return blocked;
}

// --- Programs ------------------------------------------------------------------------------------

Task<> TribladeNode::RunAll(Cml& mpi) {
  co_await mpi.Init();
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    co_await RunOne(mpi, programs_[i]);
    BladeProgramResult& result = results_[i];
    result.finished = std::max(result.finished, mpi.spe().time());
    if (++ranks_through_[i] == kSpesPerTriblade) {
      result.iterations = programs_[i].iterations;
      if (i + 1 < results_.size()) results_[i + 1].started = result.finished;
    }
  }
  co_await mpi.Finalize();
}

// The root moves on by one rank every time; data are checked in every call.
Task<> TribladeNode::RunOne(Cml& mpi, const CollectiveProgram& program) {
  const roadrunner::LsAddress from = mpi.heap(), to = from + 64 * 1024;
  const int ranks = mpi.CommSize();
  const std::uint32_t words = program.bytes / 8;
  for (std::uint64_t n = 0; n < program.iterations; ++n) {
    const auto root = static_cast<roadrunner::Rank>(n % static_cast<std::uint64_t>(ranks));
    const bool reduce = program.operation == CollectiveOperation::kReduce;
    if (program.operation == CollectiveOperation::kBarrier) {
      co_await mpi.Barrier();
      continue;
    }
    for (std::uint32_t w = 0; w < words; ++w) {
      const std::uint64_t word = reduce || mpi.rank() == root ? WordAt(n, w) : 0;
      std::memcpy(mpi.at(from + 8 * w), &word, 8);
    }
    if (reduce) {
      co_await mpi.Reduce(from, to, words, OperandType::kUint64, ReduceOp::kSum, root);
    } else {
      co_await mpi.Bcast(from, program.bytes, root);
    }
    for (std::uint32_t w = 0; w < words && (!reduce || mpi.rank() == root); ++w) {
      std::uint64_t word = 0;
      std::memcpy(&word, mpi.at((reduce ? to : from) + 8 * w), 8);
      wrong_ += word != WordAt(n, w) * (reduce ? static_cast<std::uint64_t>(ranks) : 1);
    }
  }
}

// --- Network -------------------------------------------------------------------------------------

void TribladeNode::SendOut(Message message, Time at) {
  const std::uint64_t token = next_token_++;
  outgoing_.emplace(token, std::move(message));
  network_.SetTimer(std::max(at + adapter_send_, network_.context().now), token);
}

void TribladeNode::OnTimer(std::uint64_t token) {
  auto out = outgoing_.extract(token);
  Transmit(std::move(out.mapped()));
}

void TribladeNode::Transmit(Message message) {
  const NodeId peer =
      triblades_[static_cast<std::size_t>(roadrunner::NodeOf(message.destination()))];
  Flow& flow = flows_[peer];
  const std::uint64_t number = flow.sent++;
  MessageRequest request;
  request.destination = peer;
  request.source_window = request.destination_window =
      SpreadWindow(number, *network_.context().parameters);
  request.content = std::make_shared<const Bytes>(Pack(message));
  request.bytes = request.content->size();
  message.data.clear();
  flow.in_flight.emplace(static_cast<std::uint32_t>(number), std::move(message));
  network_.SendMessage(request);
}

void TribladeNode::OnPayload(const PacketHeader& header) {
  Flow& flow = flows_[header.source];
  Coming& coming = flow.coming[header.message];
  const std::size_t end = header.offset + header.bytes;
  if (coming.bytes.size() < end) coming.bytes.resize(end);
  std::memcpy(coming.bytes.data() + header.offset, header.payload.bytes(), header.bytes);
  coming.received += header.bytes;
  TakeIfWhole(flow, header.message);
}

void TribladeNode::OnMessage(const DeliveredMessage& message) {
  Flow& flow = flows_[message.source];
  Coming& coming = flow.coming[message.number];
  coming.announced = true;
  coming.bytes.resize(message.bytes);
  TakeIfWhole(flow, message.number);
}

void TribladeNode::TakeIfWhole(Flow& flow, std::uint32_t number) {
  const Coming& coming = flow.coming[number];
  if (!coming.announced || coming.received < coming.bytes.size()) return;
  cluster_->Deliver(Unpack(coming.bytes), network_.context().now + adapter_receive_);
  flow.coming.erase(number);
}

// A message that the network gave up. The sender of data is notified; a rank that waits for an
// answer cannot be.
void TribladeNode::OnMessageDone(NodeId destination, std::uint32_t number, bool delivered) {
  auto sent = flows_[destination].in_flight.extract(number);
  if (delivered || sent.empty()) return;
  Message failed = std::move(sent.mapped());
  if (failed.kind != Message::Kind::kData) {
    lost_answers_.push_back(
        fmt::format("rank {} never receives the acknowledgement of its message: the network has no "
                    "route to triblade {}",
                    failed.from, roadrunner::NodeOf(failed.from)));
    return;
  }
  failed.kind = Message::Kind::kFailed;
  cluster_->Deliver(std::move(failed), network_.context().now);
}

}  // namespace percs
