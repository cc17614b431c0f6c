// The collectives that tasks of nodes have.
#pragma once

#include <cstdint>
#include <string_view>

namespace percs {

enum class Operation : std::uint8_t {
  kBarrier,
  kBroadcast,
  kReduce,
  kAllreduce,
  kScan,
  kGather,
  kScatter,
  kAllgather,
  kAlltoall,
};
inline constexpr int kOperations = 9;
std::string_view OperationName(Operation operation);

}  // namespace percs
