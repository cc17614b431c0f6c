// What became of a rank, as messages and back (proto/percs/v1/ranks.proto).
#pragma once

#include "client/mpi/job.h"
#include "percs/v1/ranks.pb.h"

namespace percs::mpi {

// All but its number.
void SummaryToProto(const RankSummary& summary, v1::EndedRank* message);
RankSummary SummaryFromProto(const v1::EndedRank& message);
void CollectivesToProto(const CollectiveCounts& counts, v1::EndRanksReply* message);
// To those of other processes.
void AddCollectives(const v1::EndRanksReply& message, CollectiveCounts* counts);

}  // namespace percs::mpi
