// Collectives on CAUs: what the component of Open MPI (client/ofi/coll.cc) asks of the provider.
// Both are libraries of their own in one process, so this is C: the component finds the functions
// by name in the provider, which libfabric has loaded.
#pragma once

#include <cstdint>

#include "client/ofi/channel.h"

namespace percs::mpi {

struct CollectiveRequest {
  RecordKind record = RecordKind::kCollective;  // or kJoin, kLeave
  CollectiveKind kind = CollectiveKind::kBarrier;
  std::uint64_t reduction = 0;    // ReductionCode
  std::uint64_t group = 0;        // of kJoin: the communicator's number
  std::uint32_t root = 0;         // rank of the program
  const void* operand = nullptr;  // null: this rank has none
  std::uint64_t operand_bytes = 0;
  void* result = nullptr;   // of `bytes`, or null
  std::uint64_t bytes = 0;  // of the collective
  // The answer.
  volatile int done = 0;  // 1; -1: the run has failed
  volatile std::uint64_t answer = 0;
};

// Bytes of a collective at most, 0 if collectives are messages.
using CollectiveBytesFunction = std::uint64_t();
// Returns at once; the request lives until it is done, which happens in the progress of Open MPI.
// -1 without a fabric. kLeave needs no answer.
using CollectiveBeginFunction = int(CollectiveRequest*);
inline constexpr const char* kCollectiveBytesSymbol = "percs_collective_bytes";
inline constexpr const char* kCollectiveBeginSymbol = "percs_collective_begin";
inline constexpr const char* kProviderLibrary = "libpercs-fi.so";

}  // namespace percs::mpi
