// The Cell Messaging Layer on one SPE: 14 MPI functions with one rank per SPE, and remote procedure
// calls (paper 004, Cell Messaging Layer). Programs are coroutines:
//
//   Task<> Program(Cml& mpi) {
//     co_await mpi.Init();
//     if (mpi.Rank() == 0) co_await mpi.Send(buffer, 4096, /*destination=*/40, /*tag=*/3);
//     if (mpi.Rank() == 40) co_await mpi.Recv(buffer, 4096, /*source=*/0, /*tag=*/3);
//     co_await mpi.Finalize();
//   }
//
// Messages are initiated by the receiver. In one address space it puts a descriptor into the
// sender's local store; the sender puts the data and, fenced, the flag: two latencies, and no PPE.
// Otherwise both take a slot of their PPE's queues, and the data go by DaCS, MPI and DaCS. Send is
// synchronous: it returns when the receive has begun to take the data.
//
// An error ends the program where it is, as MPI_ERRORS_ARE_FATAL does; status() of the rank says
// which rule. Buffers are in the local store, on 16 bytes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "emulator/base/reduce_op.h"
#include "emulator/cell/blade.h"
#include "emulator/roadrunner/cml_domain.h"
#include "emulator/roadrunner/cml_layout.h"
#include "emulator/roadrunner/rpc.h"

namespace percs::roadrunner {

using cell::LsAddress;
using percs::OperandType;
using percs::ReduceOp;

enum class Comm : std::uint8_t { kWorld, kMemDomain };  // MPI_COMM_WORLD, MPI_COMM_MEM_DOMAIN
inline constexpr Rank kAnySource = -1;  // MPI_ANY_SOURCE, which CML does not support
enum class Attribute : std::uint8_t { kTagUpperBound, kMemDomainSize, kWtimeIsGlobal };

struct ReceiveStatus {
  Rank source = 0;
  int tag = 0;
  std::uint32_t bytes = 0;
};

// The PMPI interface: called around every MPI function. PMPI_ functions of Cml are the same without
// it.
struct PmpiHooks {
  std::function<void(Rank, MpiFunction, Time)> enter, leave;
};

// WIDE: one method for each function of MPI that the Cell Messaging Layer has, and its PMPI twin.
class Cml {
 public:
  Cml(Rank rank, cell::Spe& spe, CmlDomain& domain, const LinkedImage& image,
      const PmpiHooks* hooks);

  FramePool& frames() { return spe_.frames(); }
  cell::Spe& spe() { return spe_; }
  LsAddress heap() const { return image_.heap; }
  std::uint8_t* at(LsAddress ls) { return spe_.local_store().at(ls); }

  // --- MPI.
  Task<> Init();
  Task<> Finalize();
  Task<> Abort(int code);
  Task<> Send(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag,
              Comm comm = Comm::kWorld);
  Task<ReceiveStatus> Recv(LsAddress buffer, std::uint32_t bytes, Rank source, int tag,
                           Comm comm = Comm::kWorld);
  Task<> Barrier(Comm comm = Comm::kWorld);
  Task<> Bcast(LsAddress buffer, std::uint32_t bytes, Rank root, Comm comm = Comm::kWorld);
  Task<> Reduce(LsAddress from, LsAddress to, std::uint32_t count, OperandType type, ReduceOp op,
                Rank root, Comm comm = Comm::kWorld);
  Task<> Allreduce(LsAddress from, LsAddress to, std::uint32_t count, OperandType type, ReduceOp op,
                   Comm comm = Comm::kWorld);
  Rank CommRank(Comm comm = Comm::kWorld);
  int CommSize(Comm comm = Comm::kWorld);
  std::optional<int> CommGetAttr(Attribute attribute);
  double Wtime();
  double Wtick();

  // --- PMPI, for those that send messages.
  Task<> PmpiSend(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag);
  Task<ReceiveStatus> PmpiRecv(LsAddress buffer, std::uint32_t bytes, Rank source, int tag);

  // Calls function `number` of the PPE with `argument_bytes` at `arguments`; the result goes to
  // `result`.
  Task<> Rpc(int number, LsAddress arguments, std::uint32_t argument_bytes, LsAddress result,
             std::uint32_t result_bytes);

  Rank rank() const { return rank_; }
  Task<> Run(std::function<Task<>(Cml&)>* program);

 private:
  // One member of a communicator: ranks first, first + 1, ...
  struct Group {
    Rank first = 0;
    int size = 0;
  };
  struct Family {  // in the tree of a collective
    Rank parent = -1;
    int children = 0;
    std::array<Rank, 40> child;  // far ones first
  };
  Group GroupOf(Comm comm) const;
  Family FamilyOf(Rank root, Comm comm) const;
  bool Local(Rank other) const { return domain_.SharesMemory(rank_, other); }

  // Null, or what is wrong with a call.
  absl::Status CheckCall(MpiFunction f) const;
  absl::Status CheckTransfer(MpiFunction f, LsAddress buffer, std::uint64_t bytes, Rank peer,
                             int tag, Comm comm) const;
  void Enter(MpiFunction f);
  void Leave(MpiFunction f);
  cell::Processor::Stop Break(const absl::Status& status) { return spe_.Break(status); }

  // Point to point; tags of users and CML's own.
  Task<> SendTo(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag);
  Task<ReceiveStatus> ReceiveFrom(LsAddress buffer, std::uint32_t bytes, Rank source, int tag);
  Task<> SendNear(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag);
  Task<Completion> ReceiveNear(LsAddress buffer, std::uint32_t bytes, Rank source, int tag);
  Task<> SendFar(LsAddress buffer, std::uint32_t bytes, Rank destination, int tag);
  Task<Completion> ReceiveFar(LsAddress buffer, std::uint32_t bytes, Rank source, int tag);
  Task<std::uint32_t> TakeSlot(int queue);
  Task<> PutAll(LsAddress from, cell::EffectiveAddress to, std::uint32_t bytes);
  Task<> GetAll(LsAddress to, cell::EffectiveAddress from, std::uint32_t bytes);
  Task<> AwaitCompletion(LsAddress at, std::uint32_t sequence);
  Task<> AwaitDescriptor(LsAddress at, int tag);

  Task<> Down(LsAddress buffer, std::uint32_t bytes, Rank root, Comm comm);
  Task<> Up(LsAddress from, LsAddress to, std::uint32_t count, OperandType type, ReduceOp op,
            Rank root, Comm comm);
  Task<> Meet(Comm comm);

  const Rank rank_;
  cell::Spe& spe_;
  CmlDomain& domain_;
  const LinkedImage image_;
  const PmpiHooks* const hooks_;
  const PpeLayout layout_;
  bool initialised_ = false, finalised_ = false;
  std::uint32_t sequence_ = 0;  // of receives, sends and calls of this rank
  std::string waits_for_;
};

}  // namespace percs::roadrunner
