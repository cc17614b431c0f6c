#include "emulator/collectives/schedule.h"

#include <array>
#include <bit>

#include "emulator/collectives/schedules.h"

namespace percs {

std::string_view OperationName(Operation operation) {
  constexpr std::array<std::string_view, kOperations> kNames{"barrier",   "broadcast", "reduce",
                                                             "allreduce", "scan",      "gather",
                                                             "scatter",   "allgather", "alltoall"};
  return kNames[static_cast<std::size_t>(operation)];
}

int CeilLog2(std::uint32_t n) { return n <= 1 ? 0 : std::bit_width(n - 1); }
std::uint32_t PowerOfTwoUpTo(std::uint32_t n) { return std::bit_floor(n); }

const std::vector<P2pAlgorithm>& P2pAlgorithms() {
  static const std::vector<P2pAlgorithm> kAlgorithms{
      {Operation::kBarrier, "dissemination", PlanDissemination},
      {Operation::kBroadcast, "binomial", PlanBarrierBinomialBroadcast},
      {Operation::kBroadcast, "binomial-only", PlanBinomialBroadcast},
      {Operation::kBroadcast, "openmpi", PlanOpenMpiBroadcast},
      {Operation::kReduce, "binomial", PlanBinomialReduce},
      {Operation::kReduce, "openmpi", PlanOpenMpiReduce},
      {Operation::kAllreduce, "butterfly", PlanButterflyAllreduce},
      {Operation::kAllreduce, "openmpi", PlanOpenMpiAllreduce},
      {Operation::kScan, "recursive-doubling", PlanScan},
      {Operation::kGather, "binomial", PlanBinomialGather},
      {Operation::kScatter, "binomial", PlanBinomialScatter},
      {Operation::kAllgather, "ring", PlanRingAllgather},
      {Operation::kAllgather, "recursive-doubling", PlanRecursiveDoublingAllgather},
      {Operation::kAllgather, "bruck", PlanBruckAllgather},
      {Operation::kAlltoall, "pairwise", PlanPairwiseAlltoall},
      {Operation::kAlltoall, "bruck", PlanBruckAlltoall},
      {Operation::kAlltoall, "openmpi", PlanOpenMpiAlltoall},
  };
  return kAlgorithms;
}

const P2pAlgorithm* FindP2pAlgorithm(Operation operation, std::string_view name) {
  for (const P2pAlgorithm& algorithm : P2pAlgorithms()) {
    if (algorithm.operation == operation && (name.empty() || algorithm.name == name))
      return &algorithm;
  }
  return nullptr;
}

}  // namespace percs
