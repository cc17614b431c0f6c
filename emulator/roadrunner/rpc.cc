#include "emulator/roadrunner/rpc.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace percs::roadrunner {

absl::Status SwapUnits(Bytes* bytes, int unit) {
  if (unit != 1 && unit != 2 && unit != 4 && unit != 8) {
    return absl::InvalidArgumentError(
        fmt::format("byte-order unit {}; it is one of 1, 2, 4, 8 bytes", unit));
  }
  const auto size = static_cast<std::size_t>(unit);
  if (bytes->size() % size != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes is not a multiple of units of {} bytes", bytes->size(), unit));
  }
  for (std::size_t i = 0; i < bytes->size(); i += size) {
    std::reverse(bytes->begin() + static_cast<std::ptrdiff_t>(i),
                 bytes->begin() + static_cast<std::ptrdiff_t>(i + size));
  }
  return absl::OkStatus();
}

void AppendBig(Bytes* bytes, std::uint64_t value, int size) {
  for (int i = size - 1; i >= 0; --i) bytes->push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}
void AppendLittle(Bytes* bytes, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes->push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}
std::uint64_t LoadBig(const std::uint8_t* from, int size) {
  std::uint64_t value = 0;
  for (int i = 0; i < size; ++i) value = value << 8 | from[i];
  return value;
}
std::uint64_t LoadLittle(const std::uint8_t* from, int size) {
  std::uint64_t value = 0;
  for (int i = size - 1; i >= 0; --i) value = value << 8 | from[i];
  return value;
}

namespace {

template <typename Function>
absl::Status AddTo(std::map<int, Function>& all, const char* where, int number, Function function) {
  const auto [place, added] = all.emplace(number, std::move(function));
  if (added) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} function {} is {} already", where, number, place->second.name));
}

absl::StatusOr<RpcAnswer> Malloc(PpeServices& ppe, const Bytes& arguments) {
  const std::uint64_t wanted = LoadBig(arguments.data(), 8), left = ppe.heap_end - ppe.heap;
  if (wanted > left || (wanted + 127) / 128 * 128 > left) {
    return absl::ResourceExhaustedError(
        fmt::format("PPE malloc of {} bytes; {} are left", wanted, left));
  }
  const std::uint64_t size = (wanted + 127) / 128 * 128;
  Bytes result;
  AppendBig(&result, ppe.heap, 8);
  ppe.heap += size;
  return RpcAnswer(std::move(result));
}

absl::StatusOr<RpcAnswer> WriteFile(PpeServices& ppe, const Bytes& arguments) {
  const std::uint64_t address = LoadBig(arguments.data() + 8, 8);
  const std::uint64_t length = LoadBig(arguments.data() + 16, 8);
  if (!ppe.memory->holds(address, length)) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes at {:#x} are not in main memory of {} bytes", length, address,
                    ppe.memory->size()));
  }
  OpteronCall call;
  call.function = kRpcWriteFile;
  call.arguments.assign(arguments.begin(), arguments.begin() + 8);
  call.data_from = call.arguments.size();
  call.arguments.resize(call.arguments.size() + length);
  ppe.memory->Read(address, call.arguments.data() + call.data_from, length);
  call.then = [](const Bytes& written) { return written; };
  return RpcAnswer(std::move(call));
}

absl::StatusOr<Bytes> AppendToFile(Files& files, const Bytes& arguments) {
  Bytes& file = files[fmt::format("file{}", LoadLittle(arguments.data(), 8))];
  file.insert(file.end(), arguments.begin() + 8, arguments.end());
  Bytes result;
  AppendLittle(&result, arguments.size() - 8, 8);
  return result;
}

}  // namespace

absl::Status RpcRegistry::Add(int number, PpeFunction function) {
  return AddTo(ppe_, "PPE", number, std::move(function));
}
absl::Status RpcRegistry::Add(int number, OpteronFunction function) {
  return AddTo(opteron_, "Opteron", number, std::move(function));
}

absl::StatusOr<const PpeFunction*> RpcRegistry::Ppe(int number, std::size_t arguments,
                                                    std::size_t results) const {
  const auto found = ppe_.find(number);
  if (found == ppe_.end()) {
    return absl::NotFoundError(
        fmt::format("mismatched RPC: the PPE has no function {}; it has {}", number, ppe_.size()));
  }
  const PpeFunction& f = found->second;
  if (arguments != f.argument_bytes || results != f.result_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("mismatched RPC: {} takes {} bytes and gives {}; it was called with {} and {}",
                    f.name, f.argument_bytes, f.result_bytes, arguments, results));
  }
  return &f;
}

absl::StatusOr<const OpteronFunction*> RpcRegistry::Opteron(int number,
                                                            std::size_t arguments) const {
  const auto found = opteron_.find(number);
  if (found == opteron_.end()) {
    return absl::NotFoundError(fmt::format(
        "mismatched RPC: the Opteron has no function {}; it has {}", number, opteron_.size()));
  }
  const OpteronFunction& f = found->second;
  if (arguments < f.argument_bytes_min) {
    return absl::InvalidArgumentError(
        fmt::format("mismatched RPC: {} takes at least {} bytes; it was called with {}", f.name,
                    f.argument_bytes_min, arguments));
  }
  return &f;
}

RpcRegistry DefaultRegistry() {
  RpcRegistry registry;
  (void)registry.Add(kRpcMalloc, PpeFunction{"malloc", 8, 8, 500'000, Malloc});
  (void)registry.Add(kRpcWriteFile, PpeFunction{"write_file", 24, 8, 500'000, WriteFile});
  (void)registry.Add(kRpcWriteFile,
                     OpteronFunction{"append", 8, 8, 2 * kMicrosecond, AppendToFile});
  return registry;
}

}  // namespace percs::roadrunner
