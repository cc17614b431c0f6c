#include "emulator/experiments/roadrunner_perf.h"

#include <algorithm>

#include "emulator/base/random.h"
#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

struct Measurement {
  Rank other;
  bool first;
  std::uint32_t bytes;
  int round_trips;
  Time begun = 0, over = 0;
  int wrong = 0;
};

std::uint8_t Pattern(std::uint32_t i) { return static_cast<std::uint8_t>(Mix64(i)); }

Task<> PingPong(Cml& mpi, Measurement* m) {
  co_await mpi.Init();
  const LsAddress buffer = mpi.heap();
  if (m->first) {
    for (std::uint32_t i = 0; i < m->bytes; ++i) *mpi.at(buffer + i) = Pattern(i);
  }
  for (int n = -1; n < m->round_trips; ++n) {  // the first one warms up
    if (n == 0) m->begun = mpi.spe().time();
    if (m->first) {
      co_await mpi.Send(buffer, m->bytes, m->other, 0);
      std::fill_n(mpi.at(buffer), m->bytes, std::uint8_t{0});
      co_await mpi.Recv(buffer, m->bytes, m->other, 0);
    } else {
      co_await mpi.Recv(buffer, m->bytes, m->other, 0);
      co_await mpi.Send(buffer, m->bytes, m->other, 0);
    }
  }
  m->over = mpi.spe().time();
  if (m->first) {
    for (std::uint32_t i = 0; i < m->bytes; ++i) m->wrong += *mpi.at(buffer + i) != Pattern(i);
  }
  co_await mpi.Finalize();
}

}  // namespace

absl::StatusOr<PerfResult> MeasurePerf(const RoadrunnerParameters& parameters, Rank a, Rank b,
                                       std::uint32_t bytes, int round_trips, Protocol protocol) {
  if (a == b || a < 0 || b < 0) {
    return absl::InvalidArgumentError(
        fmt::format("a message from SPE {} to SPE {}; name two different SPEs", a, b));
  }
  if (bytes > kPerfBytesMax || round_trips < 1) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes, {} round trips; write at most {} bytes, which fit beside the "
                    "program, and at least 1 round trip",
                    bytes, round_trips, kPerfBytesMax));
  }
  auto cluster = Cluster::Create(parameters, {NodeOf(std::max(a, b)) + 1, 0, protocol});
  if (!cluster.ok()) return cluster.status();
  Measurement first{b, true, bytes, round_trips}, second{a, false, bytes, round_trips};
  for (const auto& [rank, m] : {std::pair{a, &first}, std::pair{b, &second}}) {
    Measurement* const mine = m;
    const absl::Status status = (*cluster)->Launch(
        {rank}, FullImage(kPerfBytesMax), [mine](Cml& mpi) { return PingPong(mpi, mine); });
    if (!status.ok()) return status;
  }
  const ClusterResult over = (*cluster)->Run();
  if (!over.status.ok()) return over.status;
  if (first.wrong > 0)
    return absl::InternalError(fmt::format("{} bytes returned wrong", first.wrong));
  PerfResult result;
  result.distance = DistanceOf(a, b);
  if (result.distance == Distance::kNetwork) {
    const auto path = (*cluster)->host().network().tree().Route(NodeOf(a), NodeOf(b));
    if (path.ok()) result.crossbars = path->crossbars();
  }
  result.half_round_trip = (first.over - first.begun) / (2 * round_trips);
  result.gigabytes_per_second =
      static_cast<double>(bytes) * 1000 / static_cast<double>(result.half_round_trip);
  result.digest = over.digest;
  return result;
}

}  // namespace percs::roadrunner
