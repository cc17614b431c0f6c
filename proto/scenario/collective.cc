#include "proto/scenario/collective.h"

#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

constexpr const char* kPath = "workload.collective";

void SetPlacement(const v1::TaskCollective& message, std::uint32_t hubs, TaskPlacement* placement) {
  placement->nodes = message.has_nodes() ? static_cast<std::uint32_t>(message.nodes()) : hubs;
  if (message.has_tasks_per_node()) {
    placement->tasks_per_node = static_cast<std::uint32_t>(message.tasks_per_node());
  }
  if (message.has_threads_per_core()) placement->threads_per_core = message.threads_per_core();
  if (message.mapping() == v1::THREAD_MAPPING_CPU) placement->mapping = ThreadMapping::kCpu;
}

std::uint16_t TreeNamed(const std::string& name, const std::vector<TreeSpec>& trees,
                        ErrorList* errors) {
  std::vector<std::string> known;
  for (const TreeSpec& tree : trees) known.push_back(tree.name);
  const auto it = std::find(known.begin(), known.end(), name);
  if (it == known.end()) {
    errors->Add(fmt::format("{}.tree", kPath),
                fmt::format("there is no tree \"{}\"{}", name, DidYouMean(name, known)));
    return 0;
  }
  return static_cast<std::uint16_t>(it - known.begin());
}

void CheckHostParameters(const HostParameters& p, ErrorList* errors) {
  if (p.own_per_kib > p.copy_per_kib && p.own_cache > 0) {
    errors->Add(fmt::format("{}.host.own_per_kib", kPath),
                "a copy within a core's own cache takes longer than one that misses; write at most "
                "copy_per_kib");
  }
  if (p.shared_piece <= p.shared_chunk) return;
  errors->Add(fmt::format("{}.host.shared_piece", kPath),
              fmt::format("shared_piece = {} B is more than half of the shared buffer, which is "
                          "shared_chunk = {} B; write at most shared_chunk",
                          p.shared_piece, p.shared_chunk));
}

}  // namespace

HostParameters BuildHostParameters(const v1::HostParameters& message) {
  HostParameters p;
#define PERCS_COPY(field) \
  if (message.has_##field()) p.field = static_cast<decltype(p.field)>(message.field())
  PERCS_COPY(smt);
  PERCS_COPY(collective_entry);
  PERCS_COPY(local_send);
  PERCS_COPY(local_receive);
  PERCS_COPY(eager_limit);
  PERCS_COPY(leader_eager_limit);
  PERCS_COPY(local_fragment);
  PERCS_COPY(registration);
  PERCS_COPY(network_registration);
  PERCS_COPY(rdma_per_kib);
  PERCS_COPY(fifo_per_kib);
  PERCS_COPY(fifo_latency);
  PERCS_COPY(write_per_kib);
  PERCS_COPY(copy_per_kib);
  PERCS_COPY(memory_per_kib);
  PERCS_COPY(cached);
  PERCS_COPY(own_cache);
  PERCS_COPY(own_per_kib);
  PERCS_COPY(combine_per_kib);
  PERCS_COPY(line_same_core);
  PERCS_COPY(line_same_chip);
  PERCS_COPY(line_other_chip);
  PERCS_COPY(line_repeat);
  PERCS_COPY(shared_entry);
  PERCS_COPY(shared_step);
  PERCS_COPY(node_per_kib);
  PERCS_COPY(shared_memory_per_kib);
  PERCS_COPY(spin_polls);
  PERCS_COPY(poll);
  PERCS_COPY(shared_record);
  PERCS_COPY(shared_chunk);
  PERCS_COPY(shared_piece);
  PERCS_COPY(two_buffers_from);
  PERCS_COPY(cau_send);
  PERCS_COPY(cau_receive);
#undef PERCS_COPY
  return p;
}

CollectiveWorkload BuildCollective(const v1::TaskCollective& message,
                                   const std::vector<TreeSpec>& trees, std::uint32_t hubs,
                                   ErrorList* errors) {
  static_assert(v1::TASK_OPERATION_BARRIER == static_cast<int>(Operation::kBarrier) + 1 &&
                v1::TASK_OPERATION_ALLTOALL == static_cast<int>(Operation::kAlltoall) + 1 &&
                v1::REDUCE_OPERATION_MINLOC == static_cast<int>(ReduceOp::kMinLoc) + 1 &&
                v1::OPERAND_TYPE_DOUBLE == static_cast<int>(OperandType::kDouble) + 1);
  CollectiveWorkload w;
  if (message.operation() != v1::TASK_OPERATION_UNSPECIFIED) {
    w.operation = static_cast<Operation>(message.operation() - 1);
  }
  w.algorithm = message.algorithm();
  SetPlacement(message, hubs, &w.placement);
  if (message.has_bytes()) w.bytes = static_cast<std::uint64_t>(message.bytes());
  if (message.op() != v1::REDUCE_OPERATION_UNSPECIFIED)
    w.op = static_cast<ReduceOp>(message.op() - 1);
  if (message.type() != v1::OPERAND_TYPE_UNSPECIFIED)
    w.type = static_cast<OperandType>(message.type() - 1);
  w.root = static_cast<std::uint32_t>(message.root());
  w.rotate_root = message.rotate_root();
  if (message.has_warm_up()) w.warm_up = static_cast<std::uint64_t>(message.warm_up());
  if (message.has_iterations()) w.iterations = static_cast<std::uint64_t>(message.iterations());
  if (message.has_verified()) w.verified = message.verified();
  if (message.has_tree()) w.cau_tree = TreeNamed(message.tree(), trees, errors);
  w.host = BuildHostParameters(message.host());
  CheckHostParameters(w.host, errors);
  if (hubs == 0) return w;  // the topology's own error says more
  const absl::Status status = CheckCollectiveWorkload(w, hubs);
  if (!status.ok()) errors->Add(kPath, std::string(status.message()));
  return w;
}

}  // namespace percs
