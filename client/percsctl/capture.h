// Traced packets as files that other programs show: one record for each thing that happened to one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/metrics/in_flight.h"
#include "emulator/metrics/rank_log.h"
#include "emulator/topology/topology.h"
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

// What a rank did, and on which hub.
struct NamedRankSlice {
  std::string node;
  RankSlice slice;
};
// In order of rank and time.
std::vector<NamedRankSlice> NamedRanks(const std::vector<RankSlice>& slices,
                                       const Topology& topology);

// What an SPE did by DMA, and on which node.
struct NamedDmaSlice {
  std::string node;
  cell::DmaSlice slice;
};
std::vector<NamedDmaSlice> NamedDma(const std::vector<NodeDmaSlice>& slices,
                                    const Topology& topology);

// What ran on the nodes of a run in this process.
struct NodeSlices {
  std::vector<NamedRankSlice> ranks;
  std::vector<NamedDmaSlice> dma;
};

// For Perfetto: a protobuf trace (perfetto_trace.proto) with tracks for buffers and outputs of
// nodes by virtual channel, one for each rank, and those of each SPE. `scale`: virtual picoseconds
// for each nanosecond of Perfetto's clock; 1 keeps every time exact. More rounds down, which keeps
// the nesting of slices.
std::string AsPerfetto(const TracedPackets& packets, const NodeSlices& slices, std::int64_t scale);

}  // namespace percs
