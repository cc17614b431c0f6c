#include "emulator/roadrunner/cml.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

using cell::DmaOrder;
using cell::LocalStoreAddress;

constexpr double kTimebaseHz = 26.664e6;  // of Wtime: the decrementer of a QS22, choice
constexpr std::uint32_t kTagMask = 1u << kCmlTag;

std::string Name(MpiFunction f) { return std::string(kMpiNames[static_cast<std::size_t>(f)]); }

}  // namespace

Cml::Cml(Rank rank, cell::Spe& spe, CmlDomain& domain, const LinkedImage& image,
         const PmpiHooks* hooks)
    : rank_(rank),
      spe_(spe),
      domain_(domain),
      image_(image),
      hooks_(hooks),
      layout_(domain.parameters, CellOnBlade(rank)) {}

Task<> Cml::Run(std::function<Task<>(Cml&)>* program) {
  co_await (*program)(*this);
  if (initialised_ && !finalised_) {
    co_await Break(
        absl::FailedPreconditionError(fmt::format("rank {} ended without MPI_Finalize", rank_)));
  }
}

// --- Calls ---------------------------------------------------------------------------------------

absl::Status Cml::CheckCall(MpiFunction f) const {
  if (!image_.linked[static_cast<std::size_t>(f)]) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is not linked into the program of rank {}; name it among the image's functions",
        Name(f), rank_));
  }
  if (f == MpiFunction::kInit ? initialised_ : !initialised_) {
    return absl::FailedPreconditionError(
        fmt::format("{} {} MPI_Init", Name(f), initialised_ ? "after" : "before"));
  }
  if (finalised_)
    return absl::FailedPreconditionError(fmt::format("{} after MPI_Finalize", Name(f)));
  return absl::OkStatus();
}

absl::Status Cml::CheckTransfer(MpiFunction f, LsAddress buffer, std::uint64_t bytes, Rank peer,
                                int tag, Comm comm) const {
  if (absl::Status s = CheckCall(f); !s.ok()) return s;
  if (f == MpiFunction::kRecv && peer == kAnySource) {
    return absl::UnimplementedError(
        "MPI_Recv from MPI_ANY_SOURCE: CML does not support it; name the source");
  }
  const int size = GroupOf(comm).size;
  if (peer < 0 || peer >= size) {
    return absl::InvalidArgumentError(
        fmt::format("{}: rank {}; the communicator has ranks 0 to {}", Name(f), peer, size - 1));
  }
  if (tag < 0 || tag >= domain_.parameters.cml.tags) {
    return absl::InvalidArgumentError(
        fmt::format("{}: tag {} is out of range; this CML was built with tags 0 to {}", Name(f),
                    tag, domain_.parameters.cml.tags - 1));
  }
  if (buffer % 16 != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{}: buffer {:#x} must be a multiple of 16", Name(f), buffer));
  }
  if (bytes > kControl || buffer > kControl - bytes) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} bytes at {:#x} end beyond {:#x}, where CML's control block begins",
                    Name(f), bytes, buffer, kControl));
  }
  return absl::OkStatus();
}

void Cml::Enter(MpiFunction f) {
  if (hooks_ && hooks_->enter) hooks_->enter(rank_, f, spe_.time());
}
void Cml::Leave(MpiFunction f) {
  if (hooks_ && hooks_->leave) hooks_->leave(rank_, f, spe_.time());
}

Task<> Cml::Init() {
  Enter(MpiFunction::kInit);
  if (absl::Status s = CheckCall(MpiFunction::kInit); !s.ok()) co_await Break(s);
  initialised_ = true;
  co_await spe_.Compute(domain_.parameters.cml.call);
  Leave(MpiFunction::kInit);
}

Task<> Cml::Finalize() {
  Enter(MpiFunction::kFinalize);
  if (absl::Status s = CheckCall(MpiFunction::kFinalize); !s.ok()) co_await Break(s);
  co_await spe_.Compute(domain_.parameters.cml.call);
  finalised_ = true;
  Leave(MpiFunction::kFinalize);
}

Task<> Cml::Abort(int code) {
  Enter(MpiFunction::kAbort);
  if (absl::Status s = CheckCall(MpiFunction::kAbort); !s.ok()) co_await Break(s);
  if (!domain_.aborted) {
    domain_.aborted = true;
    domain_.abort_code = code;
    domain_.aborted_by = rank_;
  }
  co_await spe_.Sync();
  co_await Break(absl::AbortedError(fmt::format("rank {} called MPI_Abort({})", rank_, code)));
}

Rank Cml::CommRank(Comm comm) {
  Enter(MpiFunction::kCommRank);
  Leave(MpiFunction::kCommRank);
  return rank_ - GroupOf(comm).first;
}

int Cml::CommSize(Comm comm) {
  Enter(MpiFunction::kCommSize);
  Leave(MpiFunction::kCommSize);
  return GroupOf(comm).size;
}

std::optional<int> Cml::CommGetAttr(Attribute attribute) {
  Enter(MpiFunction::kCommGetAttr);
  Leave(MpiFunction::kCommGetAttr);
  switch (attribute) {
    case Attribute::kTagUpperBound:
      return domain_.parameters.cml.tags - 1;
    case Attribute::kMemDomainSize:
      return GroupOf(Comm::kMemDomain).size;
    case Attribute::kWtimeIsGlobal:
      return 1;  // virtual time is
  }
  return std::nullopt;
}

double Cml::Wtime() {
  Enter(MpiFunction::kWtime);
  const double ticks = static_cast<double>(spe_.time()) * 1e-12 * kTimebaseHz;
  Leave(MpiFunction::kWtime);
  return static_cast<double>(static_cast<std::int64_t>(ticks)) / kTimebaseHz;
}

double Cml::Wtick() {
  Enter(MpiFunction::kWtick);
  Leave(MpiFunction::kWtick);
  return 1 / kTimebaseHz;
}

Task<> Cml::Send(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag, Comm comm) {
  Enter(MpiFunction::kSend);
  if (absl::Status s = CheckTransfer(MpiFunction::kSend, buffer, bytes, destination, tag, comm);
      !s.ok()) {
    co_await Break(s);
  }
  co_await PmpiSend(buffer, bytes, GroupOf(comm).first + destination, tag);
  Leave(MpiFunction::kSend);
}

Task<ReceiveStatus> Cml::Recv(LsAddress buffer, std::uint32_t bytes, Rank source, int tag,
                              Comm comm) {
  Enter(MpiFunction::kRecv);
  if (absl::Status s = CheckTransfer(MpiFunction::kRecv, buffer, bytes, source, tag, comm);
      !s.ok()) {
    co_await Break(s);
  }
  ReceiveStatus status = co_await PmpiRecv(buffer, bytes, GroupOf(comm).first + source, tag);
  status.source -= GroupOf(comm).first;
  Leave(MpiFunction::kRecv);
  co_return status;
}

Task<> Cml::PmpiSend(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag) {
  if (destination == rank_) {
    co_await Break(absl::InvalidArgumentError(fmt::format(
        "MPI_Send: rank {} sends to itself; Send is synchronous and would never return", rank_)));
  }
  co_await SendTo(buffer, bytes, destination, tag);
}

Task<ReceiveStatus> Cml::PmpiRecv(LsAddress buffer, std::uint32_t bytes, Rank source, int tag) {
  if (source == rank_) {
    co_await Break(absl::InvalidArgumentError(
        fmt::format("MPI_Recv: rank {} receives from itself; it cannot send meanwhile", rank_)));
  }
  co_return co_await ReceiveFrom(buffer, bytes, source, tag);
}

// --- Point to point ------------------------------------------------------------------------------

Task<> Cml::SendTo(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag) {
  co_await spe_.Compute(domain_.parameters.cml.call);
  domain_.stats.bytes += bytes;
  if (Local(destination)) {
    ++domain_.stats.near_sends;
    co_await SendNear(buffer, bytes, destination, tag);
  } else {
    ++domain_.stats.far_sends;
    co_await SendFar(buffer, bytes, destination, tag);
  }
}

Task<ReceiveStatus> Cml::ReceiveFrom(LsAddress buffer, std::uint32_t bytes, Rank source, int tag) {
  co_await spe_.Compute(domain_.parameters.cml.call);
  const Completion done = Local(source) ? co_await ReceiveNear(buffer, bytes, source, tag)
                                        : co_await ReceiveFar(buffer, bytes, source, tag);
  if (done.status == Completion::kTruncated) {
    co_await Break(absl::OutOfRangeError(fmt::format(
        "MPI_Recv: a message of {} bytes from rank {}, tag {}, does not fit into {} bytes",
        done.bytes, source, tag, bytes)));
  }
  co_return ReceiveStatus{source, tag, done.bytes};
}

// A descriptor of this tag at `at`.
Task<> Cml::AwaitDescriptor(LsAddress at, int tag) {
  co_await spe_.Sync();
  while (true) {
    const auto d = spe_.local_store().Load<Descriptor>(at);
    if (d.sequence != 0 && d.tag == tag) break;
    co_await spe_.WaitStore(&waits_for_);
  }
  co_await spe_.Compute(domain_.parameters.cml.spin + domain_.parameters.cml.match);
}

Task<> Cml::AwaitCompletion(LsAddress at, std::uint32_t sequence) {
  co_await spe_.Sync();
  while (spe_.local_store().Load<Completion>(at).sequence != sequence) {
    co_await spe_.WaitStore(&waits_for_);
  }
  co_await spe_.Compute(domain_.parameters.cml.spin);
}

Task<> Cml::SendNear(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag) {
  const int me = SpeOf(rank_), there = SpeOf(destination);
  cell::LocalStore& store = spe_.local_store();
  if (domain_.protocol == Protocol::kSenderInitiated) {
    store.Store(kStagedDescriptor, Descriptor{0, bytes, tag, rank_, destination, ++sequence_});
    co_await spe_.Put(kStagedDescriptor,
                      LocalStoreAddress(there, kRequests + 64u * static_cast<unsigned>(me)), 64,
                      kCmlTag);
  }
  const LsAddress slot = kInbound + 64u * static_cast<unsigned>(there);
  waits_for_ = fmt::format("MPI_Send to rank {}, tag {}: its receive", destination, tag);
  co_await AwaitDescriptor(slot, tag);
  const auto d = store.Load<Descriptor>(slot);
  store.Store(slot, Descriptor{});
  Completion done{d.sequence, bytes, tag, Completion::kDone, 0};
  if (bytes > d.bytes) {
    done.status = Completion::kTruncated;
  } else {
    co_await PutAll(buffer, d.target, bytes);
  }
  store.Store(kStagedCompletion, done);
  co_await spe_.Put(kStagedCompletion,
                    LocalStoreAddress(there, kCompletions + 16u * static_cast<unsigned>(me)), 16,
                    kCmlTag, DmaOrder::kFence);
  co_await spe_.WaitTagAll(kTagMask);
}

Task<Completion> Cml::ReceiveNear(LsAddress buffer, std::uint32_t bytes, Rank source, int tag) {
  const int me = SpeOf(rank_), there = SpeOf(source);
  cell::LocalStore& store = spe_.local_store();
  waits_for_ = fmt::format("MPI_Recv from rank {}, tag {}", source, tag);
  if (domain_.protocol == Protocol::kSenderInitiated) {
    const LsAddress request = kRequests + 64u * static_cast<unsigned>(there);
    co_await AwaitDescriptor(request, tag);
    store.Store(request, Descriptor{});
  }
  const std::uint32_t sequence = ++sequence_;
  store.Store(kStagedDescriptor,
              Descriptor{LocalStoreAddress(me, buffer), bytes, tag, source, rank_, sequence});
  co_await spe_.Put(kStagedDescriptor,
                    LocalStoreAddress(there, kInbound + 64u * static_cast<unsigned>(me)), 64,
                    kCmlTag);
  const LsAddress flag = kCompletions + 16u * static_cast<unsigned>(there);
  co_await AwaitCompletion(flag, sequence);
  co_return store.Load<Completion>(flag);
}

// Takes a slot of a queue of the own PPE: its own first, then any that was free; waits while there
// is none.
Task<std::uint32_t> Cml::TakeSlot(int queue) {
  const auto& cml = domain_.parameters.cml;
  const auto slots =
      static_cast<std::uint32_t>(queue == kSendQueue ? cml.send_slots : cml.receive_slots);
  const std::uint32_t all = slots == kSlotsMax ? ~0u : (1u << slots) - 1;
  const auto me = static_cast<std::size_t>(SpeOf(rank_));
  std::uint32_t slot = static_cast<std::uint32_t>(me) % cell::kSpesPerCell % slots;
  domain_.polls[me] = true;
  bool waited = false;
  while (true) {
    domain_.nudged[me] = false;
    const std::uint32_t bit = 1u << slot;
    const std::uint32_t taken =
        co_await spe_.Atomic(cell::AtomicOp::kOr, layout_.Taken(queue), bit);
    if ((taken & bit) == 0) break;
    if (taken != all) {
      slot = static_cast<std::uint32_t>(std::countr_one(taken));
      continue;
    }
    if (!waited) {
      ++domain_.stats.slot_stalls;
      waits_for_ += ": a slot of its PPE";
    }
    waited = true;
    co_await spe_.Sync();
    while (!domain_.nudged[me]) co_await spe_.WaitStore(&waits_for_);
  }
  domain_.polls[me] = false;
  co_return slot;
}

Task<> Cml::SendFar(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag) {
  if (bytes > domain_.parameters.cml.slot_bytes) {
    co_await Break(absl::InvalidArgumentError(
        fmt::format("MPI_Send: {} bytes; a slot of the PPE's queue holds {}", bytes,
                    domain_.parameters.cml.slot_bytes)));
  }
  cell::LocalStore& store = spe_.local_store();
  waits_for_ = fmt::format("MPI_Send to rank {}, tag {}", destination, tag);
  const std::uint32_t slot = co_await TakeSlot(kSendQueue);
  const std::uint32_t sequence = ++sequence_;
  co_await PutAll(buffer, layout_.SendData(slot), bytes);
  store.Store(kStagedDescriptor, Descriptor{0, bytes, tag, rank_, destination, sequence});
  co_await spe_.Put(kStagedDescriptor, layout_.Send(slot), 64, kCmlTag, DmaOrder::kFence);
  co_await spe_.WaitTagAll(kTagMask);
  domain_.Tell(CellOnBlade(rank_), PpeEvent::kSendReady, slot, spe_.time());
  waits_for_ = fmt::format("MPI_Send to rank {}, tag {}: its receive", destination, tag);
  co_await AwaitCompletion(kFarSend, sequence);
  if (store.Load<Completion>(kFarSend).status == Completion::kFailed) {
    co_await Break(absl::UnavailableError(
        fmt::format("MPI_Send to rank {}: the network has no route to triblade {}", destination,
                    NodeOf(destination))));
  }
}

Task<Completion> Cml::ReceiveFar(LsAddress buffer, std::uint32_t bytes, Rank source, int tag) {
  cell::LocalStore& store = spe_.local_store();
  waits_for_ = fmt::format("MPI_Recv from rank {}, tag {}", source, tag);
  const std::uint32_t slot = co_await TakeSlot(kReceiveQueue);
  const std::uint32_t sequence = ++sequence_;
  store.Store(kStagedDescriptor, Descriptor{buffer, bytes, tag, source, rank_, sequence});
  co_await spe_.Put(kStagedDescriptor, layout_.Receive(slot), 64, kCmlTag);
  co_await spe_.WaitTagAll(kTagMask);
  domain_.Tell(CellOnBlade(rank_), PpeEvent::kDescriptor, slot, spe_.time());
  waits_for_ = fmt::format("MPI_Recv from rank {}, tag {}", source, tag);
  co_await AwaitCompletion(kFarReceive, sequence);
  Completion done = store.Load<Completion>(kFarReceive);
  if (done.status == Completion::kGet)
    co_await GetAll(buffer, layout_.Landing(SpeOf(rank_)), done.bytes);
  co_return done;
}

// Whole DMAs, then what is left in the sizes that DMA has.
Task<> Cml::PutAll(LsAddress from, cell::EffectiveAddress to, std::uint32_t bytes) {
  while (bytes > 0) {
    std::uint32_t size = std::min(bytes / 16 * 16, cell::kDmaBytesMax);
    for (std::uint32_t small = 8; size == 0; small /= 2) size = bytes & small;
    co_await spe_.Put(from, to, size, kCmlTag);
    from += size;
    to += size;
    bytes -= size;
  }
}

Task<> Cml::GetAll(LsAddress to, cell::EffectiveAddress from, std::uint32_t bytes) {
  while (bytes > 0) {
    std::uint32_t size = std::min(bytes / 16 * 16, cell::kDmaBytesMax);
    for (std::uint32_t small = 8; size == 0; small /= 2) size = bytes & small;
    co_await spe_.Get(to, from, size, kCmlTag);
    to += size;
    from += size;
    bytes -= size;
  }
  co_await spe_.WaitTagAll(kTagMask);
}

// --- Remote procedure calls ----------------------------------------------------------------------

Task<> Cml::Rpc(int number, LsAddress arguments, std::uint32_t argument_bytes, LsAddress result,
                std::uint32_t result_bytes) {
  if (argument_bytes > kRpcBytesMax || result_bytes > kRpcBytesMax) {
    co_await Break(absl::InvalidArgumentError(
        fmt::format("RPC with {} bytes of arguments and {} of results; each has at most {}",
                    argument_bytes, result_bytes, kRpcBytesMax)));
  }
  ++domain_.stats.rpcs;
  co_await spe_.Compute(domain_.parameters.cml.call);
  cell::LocalStore& store = spe_.local_store();
  const std::uint32_t sequence = ++sequence_;
  store.Store(kStagedRpc, Descriptor{result_bytes, argument_bytes, number, rank_, rank_, sequence});
  std::copy_n(at(arguments), argument_bytes, at(kStagedRpc + 128));
  co_await spe_.Put(kStagedRpc, layout_.Rpc(SpeOf(rank_)), 256, kCmlTag);
  co_await spe_.WaitTagAll(kTagMask);
  domain_.Tell(CellOnBlade(rank_), PpeEvent::kRpc, static_cast<std::uint64_t>(SpeOf(rank_)),
               spe_.time());
  waits_for_ = fmt::format("an RPC of function {}", number);
  co_await AwaitCompletion(kRpcDone, sequence);
  if (store.Load<Completion>(kRpcDone).status == Completion::kFailed) {
    co_await Break(domain_.rpc_errors[static_cast<std::size_t>(SpeOf(rank_))]);
  }
  std::copy_n(at(kRpcResult), result_bytes, at(result));
}

}  // namespace percs::roadrunner
