#include "emulator/node/blade_programs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "emulator/base/check.h"
#include "emulator/packet/payload_pattern.h"
#include "fmt/format.h"

namespace percs {
namespace {

using cell::EffectiveAddress;
using cell::LsAddress;
using cell::Ppe;
using cell::Spe;

constexpr EffectiveAddress kOutbox = 0;
constexpr EffectiveAddress kInboxes =
    cell::kSpes * cell::kDmaBytesMax;   // behind the largest message
constexpr LsAddress kBuffer = 0x10000;  // of the data in every local store
constexpr int kDataTag = 0;

absl::StatusOr<cell::CollectiveLoop> LoopOf(const CollectiveProgram& program) {
  cell::CollectiveLoop loop;
  loop.collective = static_cast<cell::Collective>(program.operation);
  const auto spec = cell::AlgorithmNamed(loop.collective, program.algorithm);
  if (!spec.ok()) return spec.status();
  loop.spec = *spec;
  loop.spes = program.spes;
  loop.bytes = program.bytes;
  loop.elements = program.bytes / 4;
  loop.iterations = program.iterations;
  return loop;
}

std::uint64_t MessageBytes(const ExchangeProgram& program) {
  return static_cast<std::uint64_t>(program.spes) * program.bytes;
}

}  // namespace

// One call on a blade of its own breaks every rule that the program would.
absl::Status CheckCollective(const CollectiveProgram& program) {
  auto loop = LoopOf(program);
  if (!loop.ok()) return loop.status();
  if (program.operation == CollectiveOperation::kReduce && program.bytes % 4 != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes are not a whole number of 4-byte elements", program.bytes));
  }
  loop->iterations = 1;
  return cell::MeasureCollective(cell::BladeParameters(), *loop).status();
}

BladePrograms::BladePrograms(NodeId node, const std::vector<BladeProgram>& programs,
                             const Topology& topology, cell::Blade& blade, BladePort& port,
                             NodeContext& network, std::function<void()> over)
    : node_(node),
      programs_(programs),
      topology_(topology),
      blade_(blade),
      port_(port),
      network_(network),
      over_(std::move(over)) {
  PlaceInboxes();
}

// Two slots for every peer: it sends a message only after it has ours of the round before, so at
// most one arrives while another is in use.
void BladePrograms::PlaceInboxes() {
  std::map<NodeId, std::uint64_t> slots;
  for (const BladeProgram& program : programs_) {
    const auto* exchange = std::get_if<ExchangeProgram>(&program);
    if (!exchange) continue;
    std::uint64_t& slot = slots[exchange->peer];
    slot = std::max(slot, MessageBytes(*exchange));
  }
  EffectiveAddress next = kInboxes;
  for (const auto& [peer, bytes] : slots) {
    port_.Receive(peer, next, bytes);
    next += 2 * bytes;
  }
}

std::string BladePrograms::Describe(const BladeProgram& program) const {
  if (const auto* exchange = std::get_if<ExchangeProgram>(&program)) {
    return fmt::format("exchange of {} x {} bytes with {}", exchange->spes, exchange->bytes,
                       topology_.NodeName(exchange->peer));
  }
  const auto& collective = std::get<CollectiveProgram>(program);
  constexpr const char* kNames[] = {"barrier", "broadcast", "reduce"};
  const auto loop = LoopOf(collective);
  std::string text =
      fmt::format("{} {} on {} SPEs", kNames[static_cast<int>(collective.operation)],
                  loop.ok() ? cell::NameOf(loop->collective, loop->spec) : collective.algorithm,
                  collective.spes);
  if (collective.operation != CollectiveOperation::kBarrier) {
    text += fmt::format(", {} bytes", collective.bytes);
  }
  return text;
}

void BladePrograms::Start() {
  const absl::Status status = blade_.RunPpe(0, [this](Ppe& ppe) { return RunAll(ppe); });
  PERCS_CHECK(status.ok());
}

Task<> BladePrograms::RunAll(Ppe& ppe) {
  for (const BladeProgram& program : programs_) {
    co_await ppe.Sync();
    BladeProgramResult& result = results_.emplace_back();
    result.node = node_;
    result.program = Describe(program);
    result.started = ppe.time();
    if (const auto* exchange = std::get_if<ExchangeProgram>(&program)) {
      co_await Run(ppe, *exchange);
    } else {
      co_await Run(ppe, std::get<CollectiveProgram>(program));
    }
    co_await ppe.Sync();
    if (!results_.back().problem.empty()) break;
    results_.back().finished = ppe.time();
  }
  End();
}

void BladePrograms::End() {
  if (std::exchange(over_called_, true)) return;
  over_();
}

// --- Exchange ------------------------------------------------------------------------------------

Task<> BladePrograms::Run(Ppe& ppe, const ExchangeProgram& program) {
  const NodeId peer = program.peer;
  const P7ihParameters& network = *network_.parameters;
  for (std::uint64_t round = 0; round < program.rounds; ++round) {
    const std::uint64_t message = port_.sent(peer);
    co_await OnAllParts(ppe, program,
                        {kOutbox, program.bytes, PatternSeed(node_, peer, message), 0},
                        /*fill=*/true);
    co_await ppe.Compute(network.send_overhead);
    co_await ppe.Sync();
    port_.Send(peer, kOutbox, MessageBytes(program));
    while (port_.arrived(peer) <= message && !port_.failed(peer)) co_await ppe.WaitEvent();
    if (port_.failed(peer)) {
      results_.back().problem = fmt::format("message {} to {} failed after its last retransmission",
                                            message, topology_.NodeName(peer));
      co_return;
    }
    co_await ppe.Compute(network.receive_overhead);
    const Part whole{port_.Slot(peer, message), program.bytes, PatternSeed(peer, node_, message),
                     0};
    co_await OnAllParts(ppe, program, whole, /*fill=*/false);
    ++results_.back().iterations;
  }
}

BladePrograms::Part BladePrograms::PartOf(const Part& whole, int spe) {
  const std::uint64_t offset = static_cast<std::uint64_t>(spe) * whole.bytes;
  return Part{whole.ea + offset, whole.bytes, whole.seed, offset / 8};
}

cell::SpeProgram BladePrograms::ProgramOf(const Part& part, bool fill) {
  return [this, part, fill](Spe& spe) { return fill ? Fill(spe, part) : Check(spe, part); };
}

Task<> BladePrograms::OnAllParts(Ppe& ppe, const ExchangeProgram& program, Part whole, bool fill) {
  std::uint32_t started = 0;
  for (int s = 0; s < program.spes; ++s) {
    if (!Up(s)) continue;
    started |= 1u << s;
    co_await ppe.StartSpe(s, ProgramOf(PartOf(whole, s), fill));
  }
  for (int s = 0; s < program.spes; ++s) {
    bool done = false;
    if (started & (1u << s)) done = co_await ppe.JoinSpe(s);
    if (done) continue;
    co_await ppe.Compute(Handling(whole.bytes));
    co_await ppe.Sync();
    if (fill) {
      FillByPpe(PartOf(whole, s));
    } else {
      CheckByPpe(PartOf(whole, s));
    }
  }
}

// The SIMD unit makes or compares 16 bytes at a time.
Time BladePrograms::Handling(std::uint32_t bytes) const {
  return static_cast<Time>(bytes / 16) * blade_.parameters().combine_vector;
}

Task<> BladePrograms::Fill(Spe& spe, Part part) {
  for (std::uint32_t at = 0; at < part.bytes; at += 8) {
    spe.local_store().Store(kBuffer + at, PatternWord(part.seed, part.first_word + at / 8));
  }
  co_await spe.Compute(Handling(part.bytes));
  co_await spe.Put(kBuffer, part.ea, part.bytes, kDataTag);
  co_await spe.WaitTagAll(1u << kDataTag);
}

Task<> BladePrograms::Check(Spe& spe, Part part) {
  co_await spe.Get(kBuffer, part.ea, part.bytes, kDataTag);
  co_await spe.WaitTagAll(1u << kDataTag);
  co_await spe.Compute(Handling(part.bytes));
  bool right = true;
  for (std::uint32_t at = 0; at < part.bytes; at += 8) {
    right &= spe.local_store().Load<std::uint64_t>(kBuffer + at) ==
             PatternWord(part.seed, part.first_word + at / 8);
  }
  if (!right) ++network_.stats.payload_errors;
}

void BladePrograms::FillByPpe(const Part& part) {
  for (std::uint32_t at = 0; at < part.bytes; at += 8) {
    const std::uint64_t word = PatternWord(part.seed, part.first_word + at / 8);
    blade_.memory().Write(part.ea + at, &word, 8);
  }
}

void BladePrograms::CheckByPpe(const Part& part) {
  bool right = true;
  for (std::uint32_t at = 0; at < part.bytes; at += 8) {
    std::uint64_t word = 0;
    blade_.memory().Read(part.ea + at, &word, 8);
    right &= word == PatternWord(part.seed, part.first_word + at / 8);
  }
  if (!right) ++network_.stats.payload_errors;
}

// --- Collectives ---------------------------------------------------------------------------------

cell::SpeProgram BladePrograms::LoopProgram() {
  return [this](Spe& spe) { return cell::RunLoop(spe, &*running_); };
}

Task<> BladePrograms::Run(Ppe& ppe, const CollectiveProgram& program) {
  const auto loop = LoopOf(program);
  const auto group = cell::CollectiveGroup::Create(program.spes);
  PERCS_CHECK(loop.ok() && group.ok());  // CheckCollective was content
  BladeProgramResult& result = results_.back();
  for (int s = 0; s < program.spes; ++s) {
    if (!Up(s)) result.problem = fmt::format("SPE {} is down", s);
  }
  if (!result.problem.empty()) co_return;
  spes_calling_ = program.spes;
  spes_started_ = 0;
  running_ = {&*loop, *group, std::vector<std::uint64_t>(static_cast<std::size_t>(program.spes))};
  for (int s = 0; s < program.spes; ++s) {
    if (!result.problem.empty()) co_return;  // one went down meanwhile
    ++spes_started_;
    co_await ppe.StartSpe(s, LoopProgram());
  }
  for (int s = 0; s < program.spes; ++s) co_await ppe.JoinSpe(s);
  spes_calling_ = 0;
  result.iterations = program.iterations;
  network_.stats.payload_errors += running_->wrong;
}

void BladePrograms::OnSpeDown(int spe) {
  if (spe >= spes_calling_) return;
  if (spe < spes_started_ && blade_.spe(spe).status().ok()) return;  // it had completed its part
  BladeProgramResult& result = results_.back();
  result.problem = fmt::format("SPE {} went down; the other SPEs would wait for it for ever", spe);
  result.iterations = *std::min_element(running_->calls.begin(), running_->calls.end());
  if (result.iterations > 0) --result.iterations;  // entered, not left by all
  spes_calling_ = 0;
  End();
}

}  // namespace percs
