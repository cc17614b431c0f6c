// A component of Open MPI's collectives, loaded with `--mca mca_base_component_path`: blocking
// Barrier, Bcast, Reduce and Allreduce of operands that CAUs can combine, and that are short, go to
// the fabric. Everything else goes to the component that Open MPI would have used without this one.
//
// A communicator asks for its tree with its first such call, because only then is it certain that
// all its ranks ask. Its ranks get the same answer, so all of them fall back or none.
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "client/ofi/collective.h"
#include "emulator/base/reduce_op.h"
#include "ompi_config.h"
// Open MPI's headers need its configuration first.
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/proc/proc.h"
#include "opal/runtime/opal_progress.h"

namespace percs::mpi {
namespace {

constexpr int kPriority = 90;  // above those of Open MPI's own components

struct Provider {
  CollectiveBytesFunction* bytes = nullptr;
  CollectiveBeginFunction* begin = nullptr;
};

// Libraries of ranks lie in one folder. Null functions if the provider is not loaded.
const Provider& provider() {
  static const Provider kProvider = [] {
    Provider found;
    Dl_info self;
    if (dladdr(reinterpret_cast<void*>(&provider), &self) == 0) return found;
    const std::string path(self.dli_fname);
    const std::string library = path.substr(0, path.rfind('/') + 1) + kProviderLibrary;
    void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return found;
    found.bytes = reinterpret_cast<CollectiveBytesFunction*>(dlsym(handle, kCollectiveBytesSymbol));
    found.begin = reinterpret_cast<CollectiveBeginFunction*>(dlsym(handle, kCollectiveBeginSymbol));
    return found;
  }();
  return kProvider;
}

}  // namespace

template <typename Function>
struct Previous {
  Function function = nullptr;
  mca_coll_base_module_t* module = nullptr;
};

// Of a communicator.
struct Calls {
  bool joined = false;
  std::uint64_t group = kNoGroup;
  Previous<mca_coll_base_module_barrier_fn_t> barrier;
  Previous<mca_coll_base_module_bcast_fn_t> bcast;
  Previous<mca_coll_base_module_reduce_fn_t> reduce;
  Previous<mca_coll_base_module_allreduce_fn_t> allreduce;
};

}  // namespace percs::mpi

// Of C's object system: begins with what all modules have.
struct percs_coll_module_t {
  mca_coll_base_module_t super;
  percs::mpi::Calls* calls;
};

namespace percs::mpi {
namespace {

Calls& CallsOf(mca_coll_base_module_t* module) {
  return *reinterpret_cast<percs_coll_module_t*>(module)->calls;
}

std::uint32_t WorldRank(ompi_communicator_t* comm, int rank) {
  return ompi_group_get_proc_name(comm->c_local_group, rank).vpid;
}

// Open MPI's error, or success. Progress is Open MPI's: a rank may have to pass on messages of
// nonblocking collectives meanwhile.
int Carry(CollectiveRequest* request) {
  if (provider().begin(request) != 0) return OMPI_ERROR;
  while (request->done == 0) opal_progress();
  return request->done > 0 ? OMPI_SUCCESS : OMPI_ERROR;
}

// Whether the communicator has a tree.
bool HasGroup(ompi_communicator_t* comm, Calls& calls) {
  if (calls.joined) return calls.group != kNoGroup;
  calls.joined = true;
  std::vector<std::uint32_t> ranks;
  for (int r = 0; r < ompi_comm_size(comm); ++r) ranks.push_back(WorldRank(comm, r));
  CollectiveRequest request;
  request.record = RecordKind::kJoin;
  request.group = comm->c_contextid;
  request.operand = ranks.data();
  request.operand_bytes = request.bytes = ranks.size() * sizeof(ranks[0]);
  if (Carry(&request) == OMPI_SUCCESS) calls.group = request.answer;
  return calls.group != kNoGroup;
}

std::optional<OperandType> TypeOf(ompi_datatype_t* type) {
  const struct {
    MPI_Datatype mpi;
    OperandType type;
  } kTypes[] = {{MPI_INT, OperandType::kInt32},
                {MPI_INT32_T, OperandType::kInt32},
                {MPI_INTEGER, OperandType::kInt32},
                {MPI_INTEGER4, OperandType::kInt32},
                {MPI_UNSIGNED, OperandType::kUint32},
                {MPI_UINT32_T, OperandType::kUint32},
                {MPI_LONG, OperandType::kInt64},
                {MPI_LONG_LONG, OperandType::kInt64},
                {MPI_INT64_T, OperandType::kInt64},
                {MPI_INTEGER8, OperandType::kInt64},
                {MPI_UNSIGNED_LONG, OperandType::kUint64},
                {MPI_UNSIGNED_LONG_LONG, OperandType::kUint64},
                {MPI_UINT64_T, OperandType::kUint64},
                {MPI_FLOAT, OperandType::kFloat},
                {MPI_REAL, OperandType::kFloat},
                {MPI_REAL4, OperandType::kFloat},
                {MPI_DOUBLE, OperandType::kDouble},
                {MPI_DOUBLE_PRECISION, OperandType::kDouble},
                {MPI_REAL8, OperandType::kDouble}};
  for (const auto& known : kTypes) {
    if (known.mpi == type) return known.type;
  }
  return std::nullopt;
}

std::optional<ReduceOp> OpOf(ompi_op_t* op) {
  const struct {
    MPI_Op mpi;
    ReduceOp op;
  } kOps[] = {{MPI_SUM, ReduceOp::kSum}, {MPI_PROD, ReduceOp::kProd}, {MPI_MIN, ReduceOp::kMin},
              {MPI_MAX, ReduceOp::kMax}, {MPI_BAND, ReduceOp::kAnd},  {MPI_BOR, ReduceOp::kOr},
              {MPI_BXOR, ReduceOp::kXor}};
  for (const auto& known : kOps) {
    if (known.mpi == op) return known.op;
  }
  return std::nullopt;
}

// The reduction as CAUs carry it out (docs/cau.md), with its bytes. All ranks of a call name the
// same operation, type and count, so they decide alike.
bool OnCaus(int count, ompi_datatype_t* type, ompi_op_t* op, CollectiveRequest* request) {
  const std::optional<OperandType> operand = TypeOf(type);
  const std::optional<ReduceOp> reduce = OpOf(op);
  if (count <= 0 || !operand || !reduce) return false;
  const bool floating = *operand == OperandType::kFloat || *operand == OperandType::kDouble;
  const bool bits =
      *reduce == ReduceOp::kAnd || *reduce == ReduceOp::kOr || *reduce == ReduceOp::kXor;
  if (floating ? bits : *reduce == ReduceOp::kProd) return false;
  request->bytes = static_cast<std::uint64_t>(count) * OperandBytes(*operand);
  request->reduction =
      ReductionCode(static_cast<std::uint32_t>(*reduce), static_cast<std::uint32_t>(*operand));
  return request->bytes <= provider().bytes();
}

int Barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Calls& calls = CallsOf(module);
  if (!HasGroup(comm, calls)) return calls.barrier.function(comm, calls.barrier.module);
  CollectiveRequest request;
  request.group = calls.group;
  request.root = WorldRank(comm, 0);
  return Carry(&request);
}

int Allreduce(const void* from, void* to, int count, ompi_datatype_t* type, ompi_op_t* op,
              ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Calls& calls = CallsOf(module);
  CollectiveRequest request;
  if (!OnCaus(count, type, op, &request) || !HasGroup(comm, calls))
    return calls.allreduce.function(from, to, count, type, op, comm, calls.allreduce.module);
  request.kind = CollectiveKind::kAllreduce;
  request.group = calls.group;
  request.root = WorldRank(comm, 0);
  request.operand = from == MPI_IN_PLACE ? to : from;
  request.operand_bytes = request.bytes;
  request.result = to;
  return Carry(&request);
}

int Reduce(const void* from, void* to, int count, ompi_datatype_t* type, ompi_op_t* op, int root,
           ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Calls& calls = CallsOf(module);
  CollectiveRequest request;
  if (!OnCaus(count, type, op, &request) || !HasGroup(comm, calls))
    return calls.reduce.function(from, to, count, type, op, root, comm, calls.reduce.module);
  request.kind = CollectiveKind::kReduce;
  request.group = calls.group;
  request.root = WorldRank(comm, root);
  request.operand = from == MPI_IN_PLACE ? to : from;
  request.operand_bytes = request.bytes;
  request.result = ompi_comm_rank(comm) == root ? to : nullptr;
  return Carry(&request);
}

// Ranks may describe the same bytes by different types, so only their number decides.
int Bcast(void* data, int count, ompi_datatype_t* type, int root, ompi_communicator_t* comm,
          mca_coll_base_module_t* module) {
  Calls& calls = CallsOf(module);
  std::size_t size = 0;
  ompi_datatype_type_size(type, &size);
  CollectiveRequest request;
  request.bytes = size * static_cast<std::size_t>(count < 0 ? 0 : count);
  if (request.bytes == 0 || request.bytes > provider().bytes() || !HasGroup(comm, calls))
    return calls.bcast.function(data, count, type, root, comm, calls.bcast.module);
  const bool sends = ompi_comm_rank(comm) == root;
  std::vector<std::uint8_t> packed(request.bytes);
  const int bytes = static_cast<int>(request.bytes);
  int position = 0;
  if (sends) PMPI_Pack(data, count, type, packed.data(), bytes, &position, comm);
  request.kind = CollectiveKind::kBroadcast;
  request.group = calls.group;
  request.root = WorldRank(comm, root);
  if (sends) {
    request.operand = packed.data();
    request.operand_bytes = request.bytes;
  } else {
    request.result = packed.data();
  }
  const int status = Carry(&request);
  if (status == OMPI_SUCCESS && !sends)
    PMPI_Unpack(packed.data(), bytes, &position, data, count, type, comm);
  return status;
}

template <typename Function>
bool Keep(Function function, mca_coll_base_module_t* module, Previous<Function>* previous) {
  if (function == nullptr || module == nullptr) return false;
  *previous = {function, module};
  OBJ_RETAIN(module);
  return true;
}

int Enable(mca_coll_base_module_t* module, ompi_communicator_t* comm) {
  Calls& calls = CallsOf(module);
  const mca_coll_base_comm_coll_t& coll = *comm->c_coll;
  const bool all = Keep(coll.coll_barrier, coll.coll_barrier_module, &calls.barrier) &&
                   Keep(coll.coll_bcast, coll.coll_bcast_module, &calls.bcast) &&
                   Keep(coll.coll_reduce, coll.coll_reduce_module, &calls.reduce) &&
                   Keep(coll.coll_allreduce, coll.coll_allreduce_module, &calls.allreduce);
  return all ? OMPI_SUCCESS : OMPI_ERROR;
}

void Construct(percs_coll_module_t* module) { module->calls = new Calls(); }

void Destruct(percs_coll_module_t* module) {
  Calls* const calls = module->calls;
  if (calls->group != kNoGroup) {
    CollectiveRequest request;
    request.record = RecordKind::kLeave;
    request.group = calls->group;
    // The program may have ended already: then the tree ends with it.
    static_cast<void>(provider().begin(&request));
  }
  for (mca_coll_base_module_t* previous : {calls->barrier.module, calls->bcast.module,
                                           calls->reduce.module, calls->allreduce.module}) {
    if (previous != nullptr) OBJ_RELEASE(previous);
  }
  delete calls;
}

}  // namespace
}  // namespace percs::mpi

static OBJ_CLASS_INSTANCE(percs_coll_module_t, mca_coll_base_module_t, percs::mpi::Construct,
                          percs::mpi::Destruct);

namespace percs::mpi {
namespace {

int Start(bool, bool) { return OMPI_SUCCESS; }

mca_coll_base_module_t* Query(ompi_communicator_t* comm, int* priority) {
  const bool usable = provider().begin != nullptr && provider().bytes != nullptr &&
                      provider().bytes() > 0 && !OMPI_COMM_IS_INTER(comm) &&
                      ompi_comm_size(comm) > 1;
  if (!usable) return nullptr;
  *priority = kPriority;
  percs_coll_module_t* const made = OBJ_NEW(percs_coll_module_t);
  made->super.coll_module_enable = Enable;
  made->super.coll_barrier = Barrier;
  made->super.coll_bcast = Bcast;
  made->super.coll_reduce = Reduce;
  made->super.coll_allreduce = Allreduce;
  return &made->super;
}

mca_coll_base_component_2_0_0_t Component() {
  mca_coll_base_component_2_0_0_t component = {};
  component.collm_version = {MCA_COLL_BASE_VERSION_2_0_0};
  std::strcpy(component.collm_version.mca_component_name, "percs");
  component.collm_version.mca_component_major_version = OMPI_MAJOR_VERSION;
  component.collm_version.mca_component_minor_version = OMPI_MINOR_VERSION;
  component.collm_version.mca_component_release_version = OMPI_RELEASE_VERSION;
  component.collm_init_query = Start;
  component.collm_comm_query = Query;
  return component;
}

}  // namespace
}  // namespace percs::mpi

extern "C" {
__attribute__((visibility("default"))) mca_coll_base_component_2_0_0_t mca_coll_percs_component =
    percs::mpi::Component();
}
