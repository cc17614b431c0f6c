#include "emulator/roadrunner/cluster.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"

namespace percs::roadrunner {

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Create(const RoadrunnerParameters& parameters,
                                                         const ClusterOptions& options) {
  if (absl::Status s = CheckParameters(parameters); !s.ok()) return s;
  auto tree = IbTree::WithTriblades(options.triblades);
  if (!tree.ok()) return tree.status();
  ClusterOptions checked = options;
  const int all = options.triblades * kSpesPerTriblade;
  if (checked.ranks == 0) checked.ranks = all;
  if (checked.ranks < 1 || checked.ranks > all) {
    return absl::InvalidArgumentError(fmt::format("{} ranks; {} triblades have 1 to {} SPEs",
                                                  checked.ranks, options.triblades, all));
  }
  return std::unique_ptr<Cluster>(new Cluster(parameters, checked, *std::move(tree)));
}

Cluster::Cluster(const RoadrunnerParameters& parameters, const ClusterOptions& options, IbTree tree)
    : parameters_(parameters), options_(options), host_(parameters, std::move(tree)) {}

const cell::Blade* Cluster::blade(int number) const {
  const auto node = nodes_.find(number);
  return node == nodes_.end() ? nullptr : node->second.blade.get();
}

void Cluster::KeepDma(std::size_t slices_max) {
  dma_slices_max_ = slices_max;
  for (auto& [number, node] : nodes_) node.blade->dma().Keep(slices_max);
}

Cluster::Node& Cluster::NodeAt(int number) {
  Node& node = nodes_[number];
  if (node.blade) return node;
  node.blade = *cell::Blade::Create(parameters_.blade);  // checked with all parameters
  node.blade->dma().Keep(dma_slices_max_);
  node.domain =
      std::make_unique<CmlDomain>(parameters_, *node.blade, options_.ranks, options_.protocol);
  for (int c = 0; c < cell::kCells; ++c) {
    auto& process = node.ppes[static_cast<std::size_t>(c)];
    process = std::make_unique<CmlPpe>(*node.domain, number * cell::kCells + c,
                                       static_cast<HostLink&>(*this), registry_);
    CmlPpe* const running = process.get();
    const absl::Status status =
        node.blade->RunPpe(c, [running](cell::Ppe& ppe) { return running->Run(ppe); });
    PERCS_CHECK(status.ok());
  }
  return node;
}

absl::Status Cluster::Launch(const std::vector<Rank>& ranks, const SpeProgramImage& image,
                             RankProgram program, const std::vector<Time>& starts,
                             PmpiHooks hooks) {
  const auto linked = Link(image);
  if (!linked.ok()) return linked.status();
  jobs_.push_back(std::make_unique<Job>(Job{std::move(program), std::move(hooks)}));
  Job* const job = jobs_.back().get();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Rank rank = ranks[i];
    if (rank < 0 || rank >= options_.ranks) {
      return absl::InvalidArgumentError(
          fmt::format("rank {} does not exist; there are 0 to {}", rank, options_.ranks - 1));
    }
    Node& node = NodeAt(BladeOf(rank));
    cell::Spe& spe = node.blade->spe(SpeOf(rank));
    std::fill_n(spe.local_store().at(kControl), kControlBytes, std::uint8_t{0});
    auto cml = std::make_unique<Cml>(rank, spe, *node.domain, *linked, &job->hooks);
    Cml* const running = cml.get();
    const absl::Status status = node.blade->RunSpe(
        SpeOf(rank), [running, job](cell::Spe&) { return running->Run(&job->program); },
        i < starts.size() ? starts[i] : 0);
    if (!status.ok()) return status;
    ranks_[rank] = std::move(cml);
  }
  return absl::OkStatus();
}

absl::Status Cluster::LaunchAll(const SpeProgramImage& image, RankProgram program,
                                PmpiHooks hooks) {
  std::vector<Rank> all(static_cast<std::size_t>(options_.ranks));
  std::iota(all.begin(), all.end(), 0);
  return Launch(all, image, std::move(program), {}, std::move(hooks));
}

// --- Virtual time --------------------------------------------------------------------------------

const CmlDomain* Cluster::Aborted() const {
  for (const auto& [number, node] : nodes_) {
    if (node.domain->aborted) return node.domain.get();
  }
  return nullptr;
}

Time Cluster::next_time() const {
  Time next = queue_.next_time();
  for (const auto& [number, node] : nodes_) next = std::min(next, node.blade->next_time());
  return next;
}

bool Cluster::finished() const {
  return Aborted() || std::none_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
           return rank.second->spe().unfinished();
         });
}

// What crosses between blades and Opterons takes at least the flight of DaCS, so everything before
// the earliest event plus that may run blade by blade.
void Cluster::RunUntil(Time end) {
  const Time lookahead =
      std::max<Time>(1, parameters_.dacs.latency - 2 * parameters_.dacs.overhead);
  for (Time next = next_time(); next < end; next = next_time()) {
    const Time window = std::min(end, next + lookahead);
    for (auto& [number, node] : nodes_) node.blade->Run(window);
    RunHost(window);
  }
}

ClusterResult Cluster::Run() {
  constexpr Time kStep = kMillisecond;  // an abort ends the run about here
  for (Time next = next_time(); next != kNever && !Aborted(); next = next_time())
    RunUntil(next + kStep);
  return Result();
}

void Cluster::Schedule(Time at, Step step, std::uint64_t number) {
  queue_.Push(at, EventKey(EventClass::kHfi, static_cast<int>(step), 0, number), number);
}

void Cluster::RunHost(Time end) {
  while (queue_.next_time() < end) {
    const Event event = queue_.Pop();
    now_ = event.time;
    digest_.Add(static_cast<std::uint64_t>(now_));
    digest_.Add(event.key.value);
    switch (static_cast<Step>(event.key.port())) {
      case Step::kForward:
        Forward(event.data);
        break;
      case Step::kArrived:
        HandDown(event.data);
        break;
      case Step::kCall:
        ServeCall(event.data);
        break;
      case Step::kAccess:
        ServeAccess(event.data);
        break;
    }
  }
}

std::uint64_t Cluster::Keep(Message message) {
  if (free_messages_.empty()) {
    free_messages_.push_back(messages_.size());
    messages_.emplace_back();
  }
  const std::uint64_t number = free_messages_.back();
  free_messages_.pop_back();
  messages_[number] = std::move(message);
  return number;
}

Message Cluster::TakeMessage(std::uint64_t number) {
  free_messages_.push_back(number);
  return std::move(messages_[number]);
}

Time Cluster::SendUp(int cell, Message message, Time now) {
  const Time there = host_.DacsUp(cell, message.data.size(), now);
  Schedule(there, Step::kForward, Keep(std::move(message)));
  return there;
}

// An Opteron core has a message: to the core of its destination. The sender of a message that
// cannot arrive is notified.
void Cluster::Forward(std::uint64_t number) {
  Message& message = messages_[number];
  if (options_.send_out && NodeOf(message.origin()) != NodeOf(message.destination())) {
    const Time given = host_.GiveToAdapter(CellOf(message.origin()), now_);
    options_.send_out(TakeMessage(number), given);
    return;
  }
  const absl::StatusOr<Time> there =
      host_.Mpi(CellOf(message.origin()), CellOf(message.destination()), message.data.size(), now_);
  if (there.ok()) return Schedule(*there, Step::kArrived, number);
  if (message.kind != Message::Kind::kData) return;  // and its sender is not notified
  message.kind = Message::Kind::kFailed;
  message.data.clear();
  Schedule(now_, Step::kArrived, number);
}

void Cluster::HandDown(std::uint64_t number) {
  const Message& message = messages_[number];
  const int cell = CellOf(message.destination());
  digest_.Add(HashBytes(message.data.data(), message.data.size()));
  const Time there = host_.DacsDown(CellOf(message.origin()), cell, message.data.size(), now_);
  NodeAt(cell / cell::kCells).domain->Tell(cell % cell::kCells, PpeEvent::kArrived, number, there);
}

void Cluster::CallUp(int cell, PendingCall call, Time now) {
  calls_.emplace_back(cell, std::move(call));
  const Time there = host_.DacsUp(cell, calls_.back().second.bytes.size(), now);
  Schedule(there, Step::kCall, calls_.size() - 1);
}

void Cluster::ServeCall(std::uint64_t number) {
  const int cell = calls_[number].first;
  PendingCall& call = calls_[number].second;
  const auto function = registry_.Opteron(call.number, call.bytes.size());
  Time cost = 0;
  call.status = function.status();
  if (!function.ok()) {
    call.bytes.clear();
  } else {
    cost = (*function)->cost;
    absl::StatusOr<Bytes> result = (*function)->body(files_[cell / kCellsPerTriblade], call.bytes);
    if (result.ok() && result->size() != (*function)->result_bytes) {
      result = absl::InternalError(fmt::format("Opteron function {} gave {} bytes instead of {}",
                                               (*function)->name, result->size(),
                                               (*function)->result_bytes));
    }
    call.status = result.status();
    call.bytes = result.ok() ? *std::move(result) : Bytes();
  }
  const Time there = host_.Call(cell, cost, call.bytes.size(), now_);
  NodeAt(cell / cell::kCells).domain->Tell(cell % cell::kCells, PpeEvent::kRpcBack, number, there);
}

void Cluster::Access(int cell, PendingCall call, Time now) {
  const DacsAccess& access = *call.access;
  const Time there =
      access.put ? host_.DacsPut(cell, access.data.size(), now) : now + host_.DacsFlight();
  calls_.emplace_back(cell, std::move(call));
  Schedule(there, Step::kAccess, calls_.size() - 1);
}

// The bytes of a put are there, or the request of a get.
void Cluster::ServeAccess(std::uint64_t number) {
  const int cell = calls_[number].first;
  PendingCall& call = calls_[number].second;
  const DacsAccess& access = *call.access;
  Bytes& region = regions_[cell];
  const std::size_t offset = access.offset, bytes = access.put ? access.data.size() : access.bytes;
  if (region.size() < offset + bytes) region.resize(offset + bytes);
  const auto at = region.begin() + static_cast<std::ptrdiff_t>(offset);
  if (access.put) {
    std::copy(access.data.begin(), access.data.end(), at);
  } else {
    call.bytes.assign(at, at + static_cast<std::ptrdiff_t>(bytes));
  }
  const Time there = access.put ? now_ + host_.DacsFlight() : host_.DacsGet(cell, bytes, now_);
  NodeAt(cell / cell::kCells).domain->Tell(cell % cell::kCells, PpeEvent::kRpcBack, number, there);
}

PendingCall Cluster::TakeCall(std::uint64_t number) { return std::move(calls_[number].second); }

// --- Results -------------------------------------------------------------------------------------

ClusterResult Cluster::Result() {
  ClusterResult result;
  DigestStream digest = digest_;
  for (const auto& [rank, cml] : ranks_) {
    const cell::Spe& spe = cml->spe();
    result.time = std::max(result.time, spe.time());
    if (result.status.ok() && !spe.status().ok()) {
      result.status =
          absl::Status(spe.status().code(),
                       fmt::format("rank {}: {}", rank, std::string(spe.status().message())));
    }
    if (spe.unfinished()) {
      result.blocked.push_back(fmt::format("rank {} waits for {}", rank, spe.WaitsFor()));
    }
  }
  for (auto& [number, node] : nodes_) {
    digest.Add(static_cast<std::uint64_t>(number));
    digest.Add(node.blade->Result().digest);
    std::array<std::uint64_t*, 9> into = {
        &result.cml.near_sends,    &result.cml.far_sends,  &result.cml.bytes,
        &result.cml.copied_by_ppe, &result.cml.got_by_spe, &result.cml.slot_stalls,
        &result.cml.unexpected,    &result.cml.rpcs,       &result.cml.opteron_calls};
    std::size_t i = 0;
    node.domain->stats.Visit([&](const char*, std::uint64_t value) { *into[i++] += value; });
  }
  result.cml.Visit([&](const char*, std::uint64_t value) { digest.Add(value); });
  for (const auto& [triblade, files] : files_) {
    for (const auto& [name, bytes] : files) {
      result.files[fmt::format("triblade{}/{}", triblade, name)] = bytes;
      digest.Add(HashBytes(bytes.data(), bytes.size()));
    }
  }
  if (const CmlDomain* domain = Aborted()) {
    result.status = absl::AbortedError(
        fmt::format("rank {} called MPI_Abort({})", domain->aborted_by, domain->abort_code));
  } else if (result.status.ok() && !result.blocked.empty()) {
    result.status =
        absl::FailedPreconditionError(fmt::format("deadlock: {}", fmt::join(result.blocked, "; ")));
  }
  result.host = host_.stats();
  result.network = host_.network().stats();
  result.digest = digest.Finish();
  return result;
}

}  // namespace percs::roadrunner
