#include "emulator/roadrunner/image.h"

#include <algorithm>

#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

// Code bytes: MPI_Init, MPI_Finalize, MPI_Send and MPI_Recv are 5 KB together (RR-034), control
// block apart; the others are a choice of that order.
constexpr std::array<std::uint32_t, kMpiFunctions> kCodeBytes = {
    128, 1024, 768, 1024, 128, 64, 64, 512, 1024, 1792, 1280, 1792, 96, 64};

}  // namespace

SpeProgramImage FullImage(std::uint32_t heap) {
  SpeProgramImage image;
  for (const std::string_view name : kMpiNames) image.functions.emplace_back(name);
  image.text = 16 * 1024;
  image.heap = heap;
  return image;
}

absl::StatusOr<LinkedImage> Link(const SpeProgramImage& image) {
  LinkedImage linked;
  std::uint32_t code = 0;
  for (const std::string& name : image.functions) {
    const auto found = std::find(kMpiNames.begin(), kMpiNames.end(), name);
    if (found == kMpiNames.end()) {
      return absl::UnimplementedError(
          fmt::format("unsupported function {}; CML has {} and MPI_Wtick", name,
                      fmt::join(kMpiNames.begin(), kMpiNames.end() - 1, ", ")));
    }
    const auto index = static_cast<std::size_t>(found - kMpiNames.begin());
    if (!linked.linked[index]) code += kCodeBytes[index];
    linked.linked[index] = true;
  }
  linked.cml_bytes = code + kControlBytes;
  const std::uint64_t fixed =
      (std::uint64_t{image.text} + image.data + image.bss + code + image.stack + 127) / 128 * 128;
  const std::uint64_t sum = fixed + image.heap + kControlBytes;
  if (sum > cell::kLocalStoreBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("local store overrun: text {} + data {} + bss {} + stack {} + CML code {} + "
                    "CML control block {} + "
                    "heap {} = {} bytes; an SPE has {}",
                    image.text, image.data, image.bss, image.stack, code, kControlBytes, image.heap,
                    sum, cell::kLocalStoreBytes));
  }
  linked.heap = static_cast<cell::LsAddress>(fixed);
  linked.heap_bytes = image.heap;
  linked.free_bytes = cell::kLocalStoreBytes - static_cast<std::uint32_t>(sum);
  return linked;
}

}  // namespace percs::roadrunner
