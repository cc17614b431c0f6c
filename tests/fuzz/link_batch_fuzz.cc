// Batches of the Link stream as a hostile peer may send them: decoding must never do harm, and what
// was decoded must encode and decode to the same bytes again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/link/codec.h"
#include "emulator/base/check.h"

namespace {

constexpr std::size_t kOpenPacketsMax = 8;

absl::Span<const std::uint8_t> Span(const std::string& s) {
  return absl::MakeConstSpan(reinterpret_cast<const std::uint8_t*>(s.data()), s.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  percs::Outbox first;
  percs::OutboxDecoder decoder(kOpenPacketsMax);
  if (!decoder.Decode(absl::MakeConstSpan(data, size), &first).ok()) return 0;
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
