// CML's collectives, PMPI and remote procedure calls on real blades, against plain references.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "emulator/base/random.h"
#include "emulator/roadrunner/cluster.h"
#include "tests/support/seed.h"

namespace percs::roadrunner {
namespace {

constexpr std::uint32_t kCollectiveHeap = 160 * 1024;

std::unique_ptr<Cluster> Make(int triblades, int ranks = 0,
                              RoadrunnerParameters p = DefaultParameters()) {
  auto cluster = Cluster::Create(p, {triblades, ranks, Protocol::kReceiverInitiated});
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *std::move(cluster);
}

// What one call of each collective gives at a rank, against all ranks' inputs.
struct Round {
  std::uint32_t bytes, count;
  OperandType type;
  ReduceOp op;
  std::uint32_t root;  // taken modulo the size of the communicator
  Comm comm;
  std::uint64_t seed;
  Time late;
};

std::uint64_t Input(const Round& round, Rank rank, std::uint32_t i) {
  return Mix64(round.seed + static_cast<std::uint64_t>(rank) * 100'003 + i) % 1000;
}

class Reference {
 public:
  Reference(const Round& round, Rank first, int size) {
    const std::size_t width = OperandBytes(round.type);
    std::vector<std::uint8_t> sum = Vector(round, first);
    for (Rank rank = first + 1; rank < first + size; ++rank) {
      const std::vector<std::uint8_t> next = Vector(round, rank);
      Combine(round.op, round.type, round.count, next.data(), sum.data());
    }
    bytes_.assign(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(width * round.count));
  }
  bool Equals(const std::uint8_t* data) const {
    return bytes_.empty() || std::memcmp(data, bytes_.data(), bytes_.size()) == 0;
  }
  static std::vector<std::uint8_t> Vector(const Round& round, Rank rank) {
    std::vector<std::uint8_t> bytes(round.count * OperandBytes(round.type) + 8);
    for (std::uint32_t i = 0; i < round.count; ++i) {
      const std::uint64_t value = Input(round, rank, i);
      if (round.type == OperandType::kDouble) {
        const auto d = static_cast<double>(value);
        std::memcpy(bytes.data() + 8 * i, &d, 8);
      } else if (round.type == OperandType::kFloat) {
        const auto f = static_cast<float>(value);
        std::memcpy(bytes.data() + 4 * i, &f, 4);
      } else {
        std::memcpy(bytes.data() + OperandBytes(round.type) * i, &value, OperandBytes(round.type));
      }
    }
    return bytes;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

struct Meeting {
  std::vector<Time> entered, left;  // by rank, of a barrier
};

Task<> Walk(Cml& mpi, const std::vector<Round>* rounds, std::vector<Meeting>* meetings,
            int* wrong) {
  co_await mpi.Init();
  const LsAddress a = mpi.heap(), b = a + 40'960;
  for (std::size_t n = 0; n < rounds->size(); ++n) {
    const Round& r = (*rounds)[n];
    const int size = mpi.CommSize(r.comm), me = mpi.CommRank(r.comm);
    const Rank first = mpi.rank() - me,
               root = static_cast<Rank>(r.root % static_cast<std::uint32_t>(size));
    co_await mpi.spe().Compute(
        static_cast<Time>(Mix64(r.seed + static_cast<std::uint64_t>(mpi.rank())) %
                          static_cast<std::uint64_t>(r.late)));
    for (std::uint32_t i = 0; i < r.bytes; ++i)
      *mpi.at(a + i) = static_cast<std::uint8_t>(me == root ? i * 7 + n : 0);
    co_await mpi.Bcast(a, r.bytes, root, r.comm);
    for (std::uint32_t i = 0; i < r.bytes; ++i)
      *wrong += *mpi.at(a + i) != static_cast<std::uint8_t>(i * 7 + n);
    const std::vector<std::uint8_t> own = Reference::Vector(r, mpi.rank());
    std::copy(own.begin(), own.end(), mpi.at(a));
    const Reference expected(r, first, size);
    co_await mpi.Reduce(a, b, r.count, r.type, r.op, root, r.comm);
    if (me == root) *wrong += !expected.Equals(mpi.at(b));
    co_await mpi.Allreduce(a, b, r.count, r.type, r.op, r.comm);
    *wrong += !expected.Equals(mpi.at(b));
    (*meetings)[n].entered[static_cast<std::size_t>(mpi.rank())] = mpi.spe().time();
    co_await mpi.Barrier(r.comm);
    (*meetings)[n].left[static_cast<std::size_t>(mpi.rank())] = mpi.spe().time();
  }
  co_await mpi.Finalize();
}

TEST(CmlCollectives, RandomRootsSizesAndLateRanksGiveWhatAPlainReferenceGives) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "cml_collectives");
  constexpr OperandType kTypes[] = {OperandType::kInt32, OperandType::kUint64, OperandType::kFloat,
                                    OperandType::kDouble};
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax};
  for (const int ranks : {64, 52, 16, 5, 1}) {
    std::vector<Round> rounds;
    for (int n = 0; n < 4; ++n) {
      rounds.push_back({random.Below(n == 0 ? 20'000 : 300), random.Below(n == 1 ? 900 : 40),
                        kTypes[random.Below(4)], kOps[random.Below(3)], random.Below(64),
                        random.Below(3) == 0 ? Comm::kMemDomain : Comm::kWorld, random.Next(),
                        1 + static_cast<Time>(random.Below(40)) * kMicrosecond});
    }
    const auto all = static_cast<std::size_t>(ranks);
    std::vector<Meeting> meetings(rounds.size(), {std::vector<Time>(all), std::vector<Time>(all)});
    int wrong = 0;
    RoadrunnerParameters p = DefaultParameters();
    p.cml.mem_domain_cells = 1 + static_cast<int>(random.Below(2));
    auto cluster = Make(2, ranks, p);
    ASSERT_TRUE(cluster
                    ->LaunchAll(FullImage(kCollectiveHeap),
                                [&](Cml& mpi) { return Walk(mpi, &rounds, &meetings, &wrong); })
                    .ok());
    const ClusterResult result = cluster->Run();
    EXPECT_TRUE(result.status.ok()) << ranks << " ranks: " << result.status;
    EXPECT_EQ(wrong, 0) << ranks << " ranks";
    for (std::size_t n = 0; n < rounds.size(); ++n) {
      if (rounds[n].comm != Comm::kWorld) continue;
      EXPECT_GE(*std::min_element(meetings[n].left.begin(), meetings[n].left.end()),
                *std::max_element(meetings[n].entered.begin(), meetings[n].entered.end()));
    }
  }
}

// One far message per blade and way, one over the chip link: 4 blades of 2 triblades.
TEST(CmlCollectives, ABroadcastSparesPpeAndChipLink) {
  auto cluster = Make(2);
  ASSERT_TRUE(cluster
                  ->LaunchAll(FullImage(kCollectiveHeap),
                              [](Cml& mpi) -> Task<> {
                                co_await mpi.Init();
                                co_await mpi.Bcast(mpi.heap(), 1024, 5);
                                co_await mpi.Finalize();
                              })
                  .ok());
  const ClusterResult result = cluster->Run();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.cml.far_sends, 3u);
  EXPECT_EQ(result.cml.near_sends, 60u);
  for (int b = 0; b < 4; ++b) {
    const cell::BladeStats& stats = cluster->blade(b)->stats();
    // Descriptor one way, data and flag the other.
    EXPECT_EQ(stats.link_dmas[0] + stats.link_dmas[1], 3u) << "blade " << b;
  }
}

TEST(CmlCollectives, AMemoryDomainIsABladeOrACell) {
  for (const int cells : {1, 2}) {
    RoadrunnerParameters p = DefaultParameters();
    p.cml.mem_domain_cells = cells;
    auto cluster = Make(1, 0, p);
    int wrong = 0;
    ASSERT_TRUE(cluster
                    ->LaunchAll(FullImage(kCollectiveHeap),
                                [&wrong, cells](Cml& mpi) -> Task<> {
                                  co_await mpi.Init();
                                  wrong += mpi.CommSize(Comm::kMemDomain) != 8 * cells;
                                  wrong +=
                                      mpi.CommRank(Comm::kMemDomain) != mpi.rank() % (8 * cells);
                                  wrong += mpi.CommGetAttr(Attribute::kTagUpperBound) != 15;
                                  wrong += mpi.CommGetAttr(Attribute::kMemDomainSize) != 8 * cells;
                                  const double before = mpi.Wtime();
                                  co_await mpi.Barrier(Comm::kMemDomain);
                                  wrong += !(mpi.Wtime() > before) || !(mpi.Wtick() < 1e-7);
                                  co_await mpi.Finalize();
                                })
                    .ok());
    const ClusterResult result = cluster->Run();
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(result.cml.far_sends, 0u);
  }
}

TEST(CmlPmpi, HooksSeeEveryCallOfEveryFunctionAndPmpiCallsNone) {
  auto cluster = Make(1);
  std::array<int, kMpiFunctions> entered{}, left{};
  PmpiHooks hooks;
  hooks.enter = [&](Rank, MpiFunction f, Time) { ++entered[static_cast<std::size_t>(f)]; };
  hooks.leave = [&](Rank, MpiFunction f, Time) { ++left[static_cast<std::size_t>(f)]; };
  const auto program = [](Cml& mpi) -> Task<> {
    co_await mpi.Init();
    const LsAddress a = mpi.heap(), b = a + 1024;
    const Rank me = mpi.CommRank(), other = me ^ 16;
    (void)mpi.CommSize();
    (void)mpi.CommGetAttr(Attribute::kTagUpperBound);
    (void)mpi.Wtime();
    (void)mpi.Wtick();
    for (int i = 0; i < 3; ++i) {
      if (me < 16) co_await mpi.Send(a, 64, other, i);
      if (me >= 16) co_await mpi.Recv(a, 64, other, i);
    }
    if (me < 16) co_await mpi.PmpiSend(a, 64, other, 0);
    if (me >= 16) co_await mpi.PmpiRecv(a, 64, other, 0);
    co_await mpi.Bcast(a, 64, 3);
    co_await mpi.Reduce(a, b, 4, OperandType::kInt32, ReduceOp::kSum, 9);
    co_await mpi.Allreduce(a, b, 4, OperandType::kInt32, ReduceOp::kSum);
    co_await mpi.Barrier();
    co_await mpi.Finalize();
  };
  ASSERT_TRUE(cluster->LaunchAll(FullImage(kCollectiveHeap), program, hooks).ok());
  const ClusterResult result = cluster->Run();
  EXPECT_TRUE(result.status.ok()) << result.status;
  for (int f = 0; f < kMpiFunctions; ++f) {
    const auto function = static_cast<MpiFunction>(f);
    const int expected = function == MpiFunction::kAbort                                    ? 0
                         : function == MpiFunction::kSend || function == MpiFunction::kRecv ? 48
                                                                                            : 32;
    EXPECT_EQ(entered[static_cast<std::size_t>(f)], expected)
        << kMpiNames[static_cast<std::size_t>(f)];
    EXPECT_EQ(left[static_cast<std::size_t>(f)], expected)
        << kMpiNames[static_cast<std::size_t>(f)];
  }
}

// --- Remote procedure calls ----------------------------------------------------------------------

void StoreBig(Cml& mpi, LsAddress at, std::uint64_t value) {
  Bytes bytes;
  AppendBig(&bytes, value, 8);
  std::copy(bytes.begin(), bytes.end(), mpi.at(at));
}

// malloc on the PPE, data put there by DMA, and written to a file of the Opteron from there.
TEST(CmlRpc, MemoryIsAllocatedByThePpeAndWrittenToAFileByTheOpteron) {
  auto cluster = Make(2);
  std::vector<std::uint64_t> addresses;
  int wrong = 0;
  const auto program = [&](Cml& mpi) -> Task<> {
    co_await mpi.Init();
    const LsAddress arguments = mpi.heap(), result = arguments + 128, text = result + 128;
    StoreBig(mpi, arguments, 1000);
    co_await mpi.Rpc(kRpcMalloc, arguments, 8, result, 8);
    const std::uint64_t address = LoadBig(mpi.at(result), 8);
    addresses.push_back(address);
    std::memset(mpi.at(text), 'a' + mpi.rank() % 26, 48);
    co_await mpi.spe().Put(text, address, 48, 0);
    co_await mpi.spe().WaitTagAll(1);
    StoreBig(mpi, arguments, static_cast<std::uint64_t>(mpi.rank()));
    StoreBig(mpi, arguments + 8, address);
    StoreBig(mpi, arguments + 16, 48);
    co_await mpi.Rpc(kRpcWriteFile, arguments, 24, result, 8);
    wrong += LoadBig(mpi.at(result), 8) != 48;
    co_await mpi.Finalize();
  };
  const std::vector<Rank> ranks = {0, 1, 9, 17, 40};
  ASSERT_TRUE(cluster->Launch(ranks, FullImage(kCollectiveHeap), program).ok());
  const ClusterResult result = cluster->Run();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(result.cml.rpcs, 10u);
  EXPECT_EQ(result.cml.opteron_calls, 5u);
  ASSERT_EQ(result.files.size(), 5u);
  for (const Rank rank : ranks) {
    const auto file =
        result.files.find("triblade" + std::to_string(rank / 32) + "/file" + std::to_string(rank));
    ASSERT_NE(file, result.files.end());
    EXPECT_EQ(file->second, Bytes(48, static_cast<std::uint8_t>('a' + rank % 26)));
  }
  EXPECT_NE(addresses[0], addresses[1]);
}

TEST(CmlRpc, NumbersAreTurnedAroundInTheUnitsOfTheCall) {
  Bytes bytes = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(SwapUnits(&bytes, 4).ok());
  EXPECT_EQ(bytes, (Bytes{4, 3, 2, 1, 8, 7, 6, 5}));
  ASSERT_TRUE(SwapUnits(&bytes, 4).ok());
  ASSERT_TRUE(SwapUnits(&bytes, 8).ok());
  EXPECT_EQ(LoadLittle(bytes.data(), 8), LoadBig(Bytes{1, 2, 3, 4, 5, 6, 7, 8}.data(), 8));
  EXPECT_FALSE(SwapUnits(&bytes, 3).ok());
  bytes.pop_back();
  EXPECT_FALSE(SwapUnits(&bytes, 2).ok());
}

absl::Status RpcStatus(int number, std::uint32_t arguments, std::uint32_t results) {
  auto cluster = Make(1);
  // A PPE function that calls a function the Opteron does not have.
  EXPECT_TRUE(cluster->registry()
                  .Add(7, PpeFunction{"stray", 0, 8, 0,
                                      [](PpeServices&, const Bytes&) {
                                        OpteronCall call;
                                        call.function = 99;
                                        return absl::StatusOr<RpcAnswer>(std::move(call));
                                      }})
                  .ok());
  EXPECT_FALSE(cluster->registry().Add(7, PpeFunction{}).ok());
  const auto program = [=](Cml& mpi) -> Task<> {
    co_await mpi.Init();
    std::memset(mpi.at(mpi.heap()), 0xff, 256);
    co_await mpi.Rpc(number, mpi.heap(), arguments, mpi.heap(), results);
    co_await mpi.Finalize();
  };
  EXPECT_TRUE(cluster->Launch({3}, FullImage(kCollectiveHeap), program).ok());
  return cluster->Run().status;
}

TEST(CmlRpc, MismatchedCallsNameWhatTheFunctionTakes) {
  const auto has = [](const absl::Status& status, const char* text) {
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << text << "\n"
                                                                           << status;
  };
  has(RpcStatus(5, 8, 8), "mismatched RPC: the PPE has no function 5");
  has(RpcStatus(kRpcMalloc, 16, 8),
      "mismatched RPC: malloc takes 8 bytes and gives 8; it was called with 16 and 8");
  has(RpcStatus(kRpcMalloc, 8, 4), "it was called with 8 and 4");
  has(RpcStatus(7, 0, 8), "mismatched RPC: the Opteron has no function 99");
  has(RpcStatus(kRpcMalloc, 8, 8), "PPE malloc of");
  has(RpcStatus(kRpcMalloc, 200, 8), "each has at most 128");
}

}  // namespace
}  // namespace percs::roadrunner
