// Batches of the Link stream as a hostile peer may send them: decoding must never do harm, and what
// was decoded must encode and decode to the same bytes again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/link/codec.h"
#include "emulator/base/check.h"

namespace {

constexpr std::size_t kOpenPacketsMax = 8;

// With PERCS_PLANTED_BUG in the environment this target has a bug that only a batch can reach that
// decodes, has two runs of flits, and the second of them shorter than the first: does the fuzzer
// find such things?
const bool planted = std::getenv("PERCS_PLANTED_BUG") != nullptr;

void PlantedBug(const percs::Outbox& batch) {
  if (!planted || batch.flits.size() < 2) return;
  PERCS_CHECK(batch.flits[1].count >= batch.flits[0].count);
}

absl::Span<const std::uint8_t> Span(const std::string& s) {
  return absl::MakeConstSpan(reinterpret_cast<const std::uint8_t*>(s.data()), s.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  percs::Outbox first;
  percs::OutboxDecoder decoder(kOpenPacketsMax);
  if (!decoder.Decode(absl::MakeConstSpan(data, size), &first).ok()) return 0;
  PlantedBug(first);
  // Payload of headless runs refers to earlier batches, so only batches without them are closed.
  for (const percs::FlitRun& run : first.flits) {
    if (run.header.payload && (run.first != 0 || !run.tail)) return 0;
  }
  std::string once, twice;
  percs::EncodeOutbox(first, &once);
  percs::Outbox second;
  percs::OutboxDecoder again(kOpenPacketsMax);
  PERCS_CHECK(again.Decode(Span(once), &second).ok());
  percs::EncodeOutbox(second, &twice);
  PERCS_CHECK(once == twice);
  return 0;
}
