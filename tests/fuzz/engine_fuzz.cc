// Random small networks with failures, in one process and split over several with the Link codec in
// between: engine and codec under the address sanitizer, which must find nothing; and the digests
// must be the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "daemon/link/codec.h"
#include "emulator/base/check.h"
#include "tests/differential/random_network.h"
#include "tests/differential/split_check.h"

namespace {

constexpr std::size_t kOpenPacketsMax = 4096;

// Puts every outbox through the bytes that daemons would exchange.
class Wire {
 public:
  void Carry(int from, int to, percs::Outbox& box) {
    std::string bytes;
    percs::EncodeOutbox(box, &bytes);
    percs::Outbox arrived;
    auto [decoder, fresh] = decoders_.try_emplace({from, to}, kOpenPacketsMax);
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    PERCS_CHECK(decoder->second.Decode(absl::MakeConstSpan(data, bytes.size()), &arrived).ok());
    box = std::move(arrived);
  }

 private:
  std::map<std::pair<int, int>, percs::OutboxDecoder> decoders_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint64_t seed = 0;
  std::memcpy(&seed, data, size < sizeof seed ? size : sizeof seed);
  Wire wire;
  const auto carry = [&wire](int from, int to, percs::Outbox& box) { wire.Carry(from, to, box); };
  for (const std::string& wrong :
       percs::reference::RunSplit(percs::reference::RandomNetwork(seed), carry)) {
    std::fprintf(stderr, "network %s: %s\n", std::to_string(seed).c_str(), wrong.c_str());
    std::abort();
  }
  return 0;
}
