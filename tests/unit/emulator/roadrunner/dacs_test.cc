// DaCS put and get: an SPE has its PPE move bytes to and from its Opteron core's memory, and the
// cost is that of two flights and the bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "emulator/base/random.h"
#include "emulator/roadrunner/cluster.h"
#include "tests/support/seed.h"

namespace percs::roadrunner {
namespace {

constexpr int kPut = 10, kGet = 11;
constexpr std::size_t kBytes = 96;

// What an SPE passes is the place in the region, then the bytes.
std::unique_ptr<Cluster> WithAccesses() {
  auto cluster = *Cluster::Create(DefaultParameters(), {});
  const auto put = [](PpeServices&, const Bytes& arguments) -> absl::StatusOr<RpcAnswer> {
    DacsAccess access;
    access.put = true;
    access.offset = LoadBig(arguments.data(), 8);
    access.data.assign(arguments.begin() + 8, arguments.end());
    access.then = [](const Bytes&) { return Bytes(8); };
    return access;
  };
  const auto get = [](PpeServices&, const Bytes& arguments) -> absl::StatusOr<RpcAnswer> {
    DacsAccess access;
    access.offset = LoadBig(arguments.data(), 8);
    access.bytes = kBytes;
    return access;
  };
  EXPECT_TRUE(cluster->registry().Add(kPut, PpeFunction{"put", 8 + kBytes, 8, 0, put}).ok());
  EXPECT_TRUE(cluster->registry().Add(kGet, PpeFunction{"get", 8, kBytes, 0, get}).ok());
  return cluster;
}

void StorePlace(Cml& mpi, LsAddress at, std::uint64_t place) {
  Bytes bytes;
  AppendBig(&bytes, place, 8);
  std::memcpy(mpi.at(at), bytes.data(), 8);
}

TEST(Dacs, BytesThatSpesPutIntoOpteronMemoryComeBackByGet) {
  PERCS_TRACE_SEED();
  auto cluster = WithAccesses();
  int wrong = 0;
  const auto program = [&wrong](Cml& mpi) -> Task<> {
    co_await mpi.Init();
    const LsAddress arguments = mpi.heap(), result = arguments + 128;
    RandomStream random(test::Seed(), "dacs/" + std::to_string(mpi.rank()));
    // Every SPE of a Cell has a part of its core's region; each Cell a region of its own.
    const std::uint64_t place = 4096 + static_cast<std::uint64_t>(mpi.rank() % 8) * 200;
    for (int round = 0; round < 3; ++round) {
      Bytes sent(kBytes);
      for (std::uint8_t& byte : sent) byte = static_cast<std::uint8_t>(random.Next());
      StorePlace(mpi, arguments, place);
      std::memcpy(mpi.at(arguments + 8), sent.data(), kBytes);
      co_await mpi.Rpc(kPut, arguments, 8 + kBytes, result, 8);
      co_await mpi.Barrier();
      co_await mpi.Rpc(kGet, arguments, 8, result, kBytes);
      wrong += std::memcmp(mpi.at(result), sent.data(), kBytes) != 0;
    }
    co_await mpi.Finalize();
  };
  ASSERT_TRUE(cluster->LaunchAll(FullImage(4096), program).ok());
  const ClusterResult result = cluster->Run();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(result.cml.rpcs, 32u * 6);
}

TEST(Dacs, AnAccessTakesTwoFlightsAndItsBytes) {
  HostPath path(DefaultParameters(), *IbTree::WithTriblades(1));
  const Time flight = path.DacsFlight();
  const LayerParameters dacs = DefaultParameters().dacs;
  EXPECT_EQ(flight, dacs.latency - 2 * dacs.overhead);
  EXPECT_EQ(path.DacsPut(0, 0, 0), flight);
  EXPECT_EQ(path.DacsGet(0, 0, flight), 2 * flight);
  const Time bytes = TransferTime(1'000'000, dacs.bytes_per_ns);
  EXPECT_EQ(path.DacsPut(1, 1'000'000, 0), bytes + flight);
  EXPECT_EQ(path.DacsPut(1, 0, 0), bytes + flight) << "PCIe is taken";
  EXPECT_EQ(path.DacsGet(1, 1'000'000, 0), bytes + flight) << "the other way it is not";
}

TEST(Dacs, OutsideTheRegionIsAnError) {
  auto cluster = WithAccesses();
  const auto program = [](Cml& mpi) -> Task<> {
    co_await mpi.Init();
    StorePlace(mpi, mpi.heap(), kDacsRegionBytes - 1);
    co_await mpi.Rpc(kGet, mpi.heap(), 8, mpi.heap() + 128, kBytes);
    co_await mpi.Finalize();
  };
  ASSERT_TRUE(cluster->Launch({0}, FullImage(4096), program).ok());
  const std::string message(cluster->Run().status.message());
  EXPECT_NE(message.find("DaCS get: bytes 1048575 to 1048671 of a region of 1048576"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace percs::roadrunner
