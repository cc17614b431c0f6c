// Traced packets as files that other programs show: one record for each thing that happened to one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "percs/v1/common.pb.h"

namespace percs {

using TracedPackets = google::protobuf::RepeatedPtrField<v1::TracedPacket>;

// For Wireshark: a pcapng file (draft-ietf-opsawg-pcapng) with one interface for each direction of
// a link that a packet took, named as the link is, and one for each hub at which packets were
// created, delivered or dropped. What a record has in it is docs/look.md;
// deploy/wireshark/percs.lua reads it.
class PcapngWriter {
 public:
  // Blocks with these packets, to follow what was returned before. Within one call records are in
  // order of time.
  std::string Add(const TracedPackets& packets);

 private:
  std::map<std::string, std::uint32_t> interfaces_;
};

// For Perfetto: a protobuf trace (perfetto_trace.proto) with tracks for buffers and outputs of
// nodes by virtual channel. `scale`: virtual picoseconds for each nanosecond of Perfetto's clock; 1
// keeps every time exact. More rounds down, which keeps the nesting of slices.
std::string AsPerfetto(const TracedPackets& packets, std::int64_t scale);

}  // namespace percs
