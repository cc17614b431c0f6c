// Remote procedure calls of CML: an SPE calls a function of its PPE, which may call one of its
// Opteron core before it answers (paper 004, Cell Messaging Layer). Functions are known by a number
// on both sides.
//
// Cell is big-endian, Opteron little-endian: arguments and results are turned around between PPE
// and Opteron in units that each call names, as DaCS does. Arguments lie in the order of the side
// that reads them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/cell/main_memory.h"
#include "emulator/roadrunner/place.h"

namespace percs::roadrunner {

using Bytes = std::vector<std::uint8_t>;

// Reverses every unit of `unit` bytes (1, 2, 4, 8). INVALID_ARGUMENT for another unit, or one that
// does not divide the length.
absl::Status SwapUnits(Bytes* bytes, int unit);

// Values as they lie in Cell's memory (big-endian), and in Opteron's.
void AppendBig(Bytes* bytes, std::uint64_t value, int size);
std::uint64_t LoadBig(const std::uint8_t* from, int size);
std::uint64_t LoadLittle(const std::uint8_t* from, int size);
void AppendLittle(Bytes* bytes, std::uint64_t value, int size);

// A PPE's function asks for one of the Opteron's. `data_from` bytes of the arguments on are opaque:
// text, not numbers, and stay as they are.
struct OpteronCall {
  int function = 0;
  Bytes arguments;
  int unit = 8;
  std::size_t data_from = 0;
  // Makes the answer to the SPE out of the Opteron's, both in Cell's order.
  std::function<Bytes(const Bytes& result)> then;
};
// A PPE's function moves bytes between its memory and a region of its Opteron core's that both have
// made known (dacs_put, dacs_get); no program of the Opteron takes part.
struct DacsAccess {
  bool put = false;
  std::uint64_t offset = 0;  // in the region
  Bytes data;                // put
  std::size_t bytes = 0;     // get
  // Makes the answer to the SPE when the access has ended, of what a get brought.
  std::function<Bytes(const Bytes& data)> then;
};
inline constexpr std::uint64_t kDacsRegionBytes = 1 << 20;  // of each Opteron core: choice
using RpcAnswer = std::variant<Bytes, OpteronCall, DacsAccess>;

// What a PPE's functions work on.
struct PpeServices {
  cell::MainMemory* memory = nullptr;
  cell::EffectiveAddress heap = 0, heap_end = 0;  // of this Cell's half, moved on by malloc
  Rank caller = 0;
};
struct PpeFunction {
  std::string name;
  std::size_t argument_bytes = 0, result_bytes = 0;
  Time cost = 0;
  std::function<absl::StatusOr<RpcAnswer>(PpeServices&, const Bytes& arguments)> body;
};

// Files of an Opteron, kept as data.
using Files = std::map<std::string, Bytes>;
struct OpteronFunction {
  std::string name;
  std::size_t argument_bytes_min = 0, result_bytes = 0;
  Time cost = 0;
  std::function<absl::StatusOr<Bytes>(Files&, const Bytes& arguments)> body;
};

class RpcRegistry {
 public:
  // INVALID_ARGUMENT if the number is taken.
  absl::Status Add(int number, PpeFunction function);
  absl::Status Add(int number, OpteronFunction function);
  // Mismatched calls are INVALID_ARGUMENT, unknown functions NOT_FOUND; both say what there is.
  absl::StatusOr<const PpeFunction*> Ppe(int number, std::size_t arguments,
                                         std::size_t results) const;
  absl::StatusOr<const OpteronFunction*> Opteron(int number, std::size_t arguments) const;

 private:
  std::map<int, PpeFunction> ppe_;
  std::map<int, OpteronFunction> opteron_;
};

// The functions the paper gives as examples: PPE malloc (8 bytes size, 8 bytes address back), and
// appending to a file of the Opteron (8 bytes file number, 8 bytes address in main memory, 8 bytes
// length; bytes written back).
inline constexpr int kRpcMalloc = 1, kRpcWriteFile = 2;
RpcRegistry DefaultRegistry();

}  // namespace percs::roadrunner
