// What an SPE executable takes of the 256 KiB local store: its own code and data, the CML functions
// it calls (the linker leaves out the others), CML's control block, and the heap of the program's
// buffers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cell/local_store.h"

namespace percs::roadrunner {

// The MPI functions of CML, all of them (paper 004, Cell Messaging Layer).
enum class MpiFunction : std::uint8_t {
  kAbort,
  kAllreduce,
  kBarrier,
  kBcast,
  kCommGetAttr,
  kCommRank,
  kCommSize,
  kFinalize,
  kInit,
  kRecv,
  kReduce,
  kSend,
  kWtime,
  kWtick,
};
inline constexpr int kMpiFunctions = 14;
constexpr std::array<std::string_view, kMpiFunctions> kMpiNames = {
    "MPI_Abort",     "MPI_Allreduce", "MPI_Barrier",  "MPI_Bcast", "MPI_Comm_get_attr",
    "MPI_Comm_rank", "MPI_Comm_size", "MPI_Finalize", "MPI_Init",  "MPI_Recv",
    "MPI_Reduce",    "MPI_Send",      "MPI_Wtime",    "MPI_Wtick"};

struct SpeProgramImage {
  std::vector<std::string> functions;         // MPI functions that it calls, by name
  std::uint32_t text = 0, data = 0, bss = 0;  // its own, without CML
  std::uint32_t stack = 4096;
  std::uint32_t heap = 0;  // buffers
};

struct LinkedImage {
  std::array<bool, kMpiFunctions> linked{};
  std::uint32_t cml_bytes = 0;   // code and control block
  cell::LsAddress heap = 0;      // where the program's buffers start, on a line of 128 bytes
  std::uint32_t heap_bytes = 0;  // asked for
  std::uint32_t free_bytes = 0;  // what would be left
};

// An image with every function and `heap` bytes of buffers.
SpeProgramImage FullImage(std::uint32_t heap);

// UNIMPLEMENTED for an MPI function that CML does not have, RESOURCE_EXHAUSTED with the sum when
// the image does not fit into the local store.
absl::StatusOr<LinkedImage> Link(const SpeProgramImage& image);

// CML's control block, at one address in every local store.
inline constexpr std::uint32_t kControlBytes = 4096;
inline constexpr cell::LsAddress kControl = cell::kLocalStoreBytes - kControlBytes;

}  // namespace percs::roadrunner
