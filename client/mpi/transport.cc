#include "client/mpi/transport.h"

#include <algorithm>
#include <utility>

#include "client/mpi/packet.h"
#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs::mpi {
namespace {

// Where a rank's memory is in its context: the FIFOs, and regions for long messages.
constexpr Address kFifos = Address{1} << 46, kRegions = Address{1} << 40;
constexpr std::size_t kSendingMax = 48;  // less than the slots of a send FIFO

}  // namespace

Transport::Transport(Fabric& fabric, std::vector<RankPlace> places, JobKey job,
                     const TransportParameters& parameters, Time reaction, TransportUser& user)
    : fabric_(fabric),
      parameters_(parameters),
      job_(job),
      reaction_(reaction),
      user_(user),
      ranks_(places.size()) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].place = places[r];
    ranks_[r].next_address = kRegions;
    ranks_[r].flows.resize(ranks_.size());
    PERCS_CHECK(rank_at_.emplace(PeerOf(places[r].hub, places[r].window), r).second);
  }
  // Windows of an HFI share its buffers for immediate sends.
  const P7ihParameters& machine = fabric_.scenario().parameters;
  const auto hfi_of = [&](const Rank& r) {
    return PeerOf(r.place.hub, static_cast<WindowId>(r.place.window / machine.windows_per_hfi));
  };
  absl::flat_hash_map<std::uint64_t, std::size_t> sharing;
  for (const Rank& rank : ranks_) ++sharing[hfi_of(rank)];
  for (Rank& rank : ranks_) {
    const auto buffers = static_cast<std::size_t>(machine.windows.immediate_buffers);
    rank.sending_max = std::clamp<std::size_t>(buffers / sharing[hfi_of(rank)], 1, kSendingMax);
  }
}

Transport::~Transport() = default;

void Transport::Act(std::uint32_t rank, Time at, std::function<void(Time now)> act) {
  agenda_.push({at, rank, ranks_[rank].actions++, std::move(act)});
}

void Transport::Run(Time now) {
  while (!agenda_.empty() && agenda_.top().at <= now) {
    // The queue gives read-only access to its top; its order does not depend on `act`.
    const std::function<void(Time)> act = std::move(const_cast<Action&>(agenda_.top()).act);
    agenda_.pop();
    act(now);
  }
}

WindowOperation Transport::Operation(const Rank& rank, WindowOp op) const {
  WindowOperation operation;
  operation.op = op;
  operation.window = rank.place.window;
  operation.context = rank.place.window;
  operation.job = job_;
  operation.id = OperationId(OperationUse::kOther, 0);
  return operation;
}

void Transport::Issue(std::uint32_t rank, Time now, WindowOperation operation) {
  const absl::Status status =
      fabric_.Issue(ranks_[rank].place.hub, now, std::move(operation), this);
  if (!status.ok()) Fail(std::string(status.message()));
}

void Transport::Open(std::uint32_t r, Time at) {
  const Rank& rank = ranks_[r];
  Issue(r, at, Operation(rank, WindowOp::kReserve));
  WindowOperation memory = Operation(rank, WindowOp::kRegister);
  memory.address = kFifos;
  memory.bytes =
      std::uint64_t{parameters_.send_slots + parameters_.receive_slots} * kPacketBytesMax;
  Issue(r, at, memory);
  WindowOperation fifos = Operation(rank, WindowOp::kConfigure);
  fifos.send_fifo = {kFifos, parameters_.send_slots};
  fifos.receive_fifo = {kFifos + std::uint64_t{parameters_.send_slots} * kPacketBytesMax,
                        parameters_.receive_slots};
  Issue(r, at, fifos);
}

void Transport::Close(std::uint32_t rank, Time at) {
  Issue(rank, at, Operation(ranks_[rank], WindowOp::kRelease));
}

void Transport::Leave(std::uint32_t rank) {
  ranks_[rank].gone = true;
  ranks_[rank].posted.clear();
}

Transport::Flow& Transport::FlowOf(std::uint32_t rank, std::uint32_t other) {
  std::unique_ptr<Flow>& flow = ranks_[rank].flows[other];
  if (!flow) flow = std::make_unique<Flow>();
  return *flow;
}

std::string Transport::Name(std::uint32_t rank) const {
  return fmt::format("rank {} (window {} of {})", rank, ranks_[rank].place.window,
                     fabric_.topology().NodeName(ranks_[rank].place.hub));
}

void Transport::Fail(const std::string& reason) {
  if (!std::exchange(failed_, true)) user_.OnFailure(reason);
}

const TrafficCounts& Transport::counts(std::uint32_t rank) const { return ranks_[rank].counts; }

std::size_t Transport::posted(std::uint32_t rank) const { return ranks_[rank].posted.size(); }

std::size_t Transport::unexpected(std::uint32_t rank) const {
  return ranks_[rank].unexpected.size();
}

void Transport::OnWindowEvent(const WindowEvent& event) {
  const auto found = rank_at_.find(PeerOf(event.node, event.window));
  PERCS_CHECK(found != rank_at_.end());
  const std::uint32_t rank = found->second;
  if (event.kind == WindowEvent::Kind::kReceived) return OnPacket(rank, event);
  switch (UseOf(event.id)) {
    case OperationUse::kPacket:
      // Packets that did not leave are sent again by the flow's timer.
      --ranks_[rank].sending;
      return PumpAt(rank, event.at + reaction_);
    case OperationUse::kRead:
      return OnReadDone(rank, event);
    case OperationUse::kReadBytes:
      return OnReadBytes(rank, event);
    case OperationUse::kOther:
      return CheckCompletion(rank, event);
  }
}

// Fails only if the machine is too small or the hub is lost.
void Transport::CheckCompletion(std::uint32_t rank, const WindowEvent& event) {
  if (event.status == WindowStatus::kOk) return;
  const char* const hint =
      event.status == WindowStatus::kNoMemory
          ? "; raise parameters.windows.registered_bytes, or use fewer ranks on a hub"
      : event.status == WindowStatus::kNoSuchWindow
          ? "; raise parameters.windows_per_hfi, or use fewer ranks on a hub"
          : "";
  Fail(fmt::format("{}: {} ended as {}{}", Name(rank), WindowOpName(event.op),
                   WindowStatusName(event.status), hint));
}

}  // namespace percs::mpi
