// Arbitrary bytes as what a peer sends on a Link stream. What is accepted survives encoding and
// decoding again unchanged; what is refused says so with a place; nothing is trusted.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/link/codec.h"
#include "emulator/base/check.h"

namespace percs {
namespace {

constexpr std::size_t kOpenPacketsMax = 8;

absl::Span<const std::uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Two batches, because packets stay open from one to the next: the first byte says where to cut.
void TwoBatches(absl::Span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const std::size_t cut = std::min<std::size_t>(bytes[0], bytes.size() - 1);
  bytes.remove_prefix(1);
  OutboxDecoder decoder(kOpenPacketsMax);
  Outbox outbox;
  if (decoder.Decode(bytes.first(cut), &outbox).ok()) {
    (void)decoder.Decode(bytes.subspan(cut), &outbox);
  }
  PERCS_CHECK(decoder.open_packets() <= kOpenPacketsMax);
}

void OneBatch(absl::Span<const std::uint8_t> bytes) {
  Outbox first;
  const absl::Status status = OutboxDecoder(kOpenPacketsMax).Decode(bytes, &first);
  if (!status.ok()) {
    PERCS_CHECK(status.message().find("batch of ") == 0);
    return;
  }
  std::string once, twice;
  EncodeOutbox(first, &once);
  Outbox second;
  PERCS_CHECK(OutboxDecoder(kOpenPacketsMax).Decode(BytesOf(once), &second).ok());
  EncodeOutbox(second, &twice);
  PERCS_CHECK(once == twice);
}

}  // namespace
}  // namespace percs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  percs::OneBatch({data, size});
  percs::TwoBatches({data, size});
  return 0;
}
