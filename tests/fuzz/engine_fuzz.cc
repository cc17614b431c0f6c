// Random small networks with failures, in one process and split over several with the Link codec in
// between: engine and codec under the address sanitizer, which must find nothing; and the digests
// must be the same.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "daemon/link/codec.h"
#include "emulator/base/check.h"
#include "tests/differential/random_network.h"
#include "tests/support/split_run.h"

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
  const percs::Scenario scenario = percs::reference::RandomNetwork(seed);
  const auto one = percs::RunScenario(scenario, {});
  PERCS_CHECK(one.ok() && one->violations.empty());

  Wire wire;
  percs::test::SplitOptions options;
  options.processes = 1 + static_cast<int>(seed % 4);
  options.seed = seed;
  options.tamper = [&wire](int from, int to, percs::Outbox& box) { wire.Carry(from, to, box); };
  const auto split = percs::test::SplitRun(scenario, options);
  // Some of these networks have links too short for a distributed run, and say so.
  if (split.status().code() == absl::StatusCode::kInvalidArgument) return 0;
  PERCS_CHECK(split.ok() && split->violations.empty() && split->digest == one->digest);
  return 0;
}
