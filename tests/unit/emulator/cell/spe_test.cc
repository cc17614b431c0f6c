// SPE and PPE programs: DMA and its rules, tags, fences, lists, mailboxes, signals, atomics,
// faults.
#include "emulator/cell/spe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/cell/blade.h"
#include "tests/support/seed.h"

namespace percs::cell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Blade> MakeBlade() { return *Blade::Create(*ParametersOfBlade("QS20")); }

// Runs one program on SPE 0 and gives its outcome.
absl::Status RunAlone(Blade& blade, SpeProgram program) {
  EXPECT_TRUE(blade.RunSpe(0, std::move(program)).ok());
  blade.Run(kNever);
  return blade.spe(0).status();
}

TEST(SpeTest, DataTravelFromMemoryThroughLocalStoresAndBack) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "sizes");
  for (int round = 0; round < 50; ++round) {
    auto blade = MakeBlade();
    const std::uint32_t size = 16 * (1 + random.Below(1024));
    const EffectiveAddress from = 16 * random.Below(4096),
                           to = (600u << 20) + 16 * random.Below(4096);
    const LsAddress ls = 16 * random.Below(8192), other = 16 * random.Below(8192);
    std::vector<std::uint8_t> data(size), back(size);
    for (auto& b : data) b = static_cast<std::uint8_t>(random.Below(256));
    blade->memory().Write(from, data.data(), size);
    const int partner = 1 + static_cast<int>(random.Below(15));
    const absl::Status status = RunAlone(*blade, [=](Spe& spe) -> Task<> {
      co_await spe.Get(ls, from, size, 1);
      co_await spe.WaitTagAll(1u << 1);
      co_await spe.Put(ls, LocalStoreAddress(partner, other), size, 2);
      co_await spe.WaitTagAll(1u << 2);
      co_await spe.Get(ls, LocalStoreAddress(partner, other), size, 3);
      co_await spe.Put(ls, to, size, 3, DmaOrder::kFence);
      co_await spe.WaitTagAll(1u << 3);
    });
    ASSERT_TRUE(status.ok()) << status;
    blade->memory().Read(to, back.data(), size);
    EXPECT_EQ(data, back) << size << " bytes";
  }
}

// A DMA that breaks a rule, and words of the rule.
struct Broken {
  LsAddress ls;
  EffectiveAddress ea;
  std::uint32_t size;
  int tag;
  const char* rule;
};

TEST(SpeTest, ABrokenDmaRuleEndsTheProgramAndIsNamed) {
  const std::vector<Broken> all = {
      {0, 0, 3, 0, "3 bytes; it must be 1, 2, 4, 8 or a multiple of 16"},
      {0, 0, 0, 0, "0 bytes; it must be"},
      {0, 0, 17 * 1024, 0, "17408 bytes; a command moves at most 16384"},
      {8, 0, 16, 0, "DMA alignment rule"},
      {0, 4, 16, 0, "both must be multiples of 16"},
      {4, 8, 4, 0, "low four bits"},
      {0x3ff00, 0, 512, 0, "outside the local store of 262144 bytes"},
      {0, (std::uint64_t{1} << 30) - 16, 32, 0, "not in main memory"},
      {0, LocalStoreAddress(0, 0), 16, 0, "own local store"},
      {0, LocalStoreAddress(3, kLocalStoreBytes - 16), 32, 0, "in no local store"},
      {0, LocalStoreAddress(16, 0), 16, 0, "in no local store"},
      {0, 0, 16, 32, "tags are 0 to 31"},
  };
  for (const Broken& b : all) {
    auto blade = MakeBlade();
    bool went_on = false;
    const absl::Status status = RunAlone(*blade, [&](Spe& spe) -> Task<> {
      co_await spe.Put(b.ls, b.ea, b.size, b.tag);
      went_on = true;
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(b.rule));
    EXPECT_THAT(status.message(), HasSubstr("SPE 0 at "));
    EXPECT_FALSE(went_on);
    EXPECT_EQ(blade->spe(0).state(), Processor::State::kFailed);
    EXPECT_EQ(blade->Result().status, status);
  }
}

TEST(SpeTest, EverySmallSizeMovesBetweenEqualOffsets) {
  for (const std::uint32_t size : {1u, 2u, 4u, 8u}) {
    auto blade = MakeBlade();
    blade->memory().Store32(0x1008, 0x04030201);
    blade->memory().Store32(0x100c, 0x08070605);
    ASSERT_TRUE(RunAlone(*blade, [=](Spe& spe) -> Task<> {
                  co_await spe.Get(0x28, 0x1008, size, 0);
                  co_await spe.WaitTagAll(1);
                }).ok());
    for (std::uint32_t i = 0; i < 8; ++i) {
      EXPECT_EQ(blade->spe(0).local_store().Load<std::uint8_t>(0x28 + i), i < size ? i + 1 : 0);
    }
  }
}

TEST(SpeTest, ListsGatherAndScatter) {
  auto blade = MakeBlade();
  constexpr std::uint32_t kElements = 40;
  for (std::uint32_t i = 0; i < kElements; ++i) blade->memory().Store32(0x4000 + 256 * i, 7 * i);
  const absl::Status status = RunAlone(*blade, [&](Spe& spe) -> Task<> {
    for (std::uint32_t i = 0; i < kElements; ++i) {
      spe.local_store().Store(0x100 + 8 * i, DmaListElement{16, 0x4000 + 256 * i});
      spe.local_store().Store(0x800 + 8 * i, DmaListElement{16, 0x20000 + 64 * i});
    }
    co_await spe.GetList(0x8000, 0, 0x100, kElements, 5);
    co_await spe.PutList(0x8000, 0, 0x800, kElements, 5, DmaOrder::kFence);
    co_await spe.WaitTagAll(1u << 5);
  });
  ASSERT_TRUE(status.ok()) << status;
  for (std::uint32_t i = 0; i < kElements; ++i) {
    EXPECT_EQ(blade->memory().Load32(0x20000 + 64 * i), 7 * i);
  }
}

TEST(SpeTest, ABadListNamesItsElement) {
  auto blade = MakeBlade();
  EXPECT_THAT(RunAlone(*blade,
                       [](Spe& spe) -> Task<> {
                         spe.local_store().Store(0x100, DmaListElement{16, 0});
                         spe.local_store().Store(0x108, DmaListElement{24, 16});
                         co_await spe.GetList(0, 0, 0x100, 2, 0);
                       })
                  .message(),
              HasSubstr("list element 1: DMA size rule: 24 bytes"));
  auto misplaced = MakeBlade();
  EXPECT_THAT(
      RunAlone(*misplaced, [](Spe& spe) -> Task<> { co_await spe.GetList(0, 0, 0x104, 2, 0); })
          .message(),
      HasSubstr("DMA list rule"));
  auto too_long = MakeBlade();
  EXPECT_THAT(
      RunAlone(*too_long, [](Spe& spe) -> Task<> { co_await spe.GetList(0, 0, 0x100, 2049, 0); })
          .message(),
      HasSubstr("1 to 2048 elements"));
}

// A long put of data and a short put of a flag behind it, with this order; the receiver looks at
// the data when the flag comes.
std::uint32_t SeenBehindTheFlag(DmaOrder order, int flag_tag) {
  auto blade = MakeBlade();
  std::uint32_t seen = 0;
  EXPECT_TRUE(blade
                  ->RunSpe(0,
                           [=](Spe& spe) -> Task<> {
                             spe.local_store().Store<std::uint32_t>(0x1000 + 16384 - 4, 4711);
                             co_await spe.Put(0x1000, LocalStoreAddress(1, 0x1000), 16384, 1);
                             co_await spe.SendSignal(1, 2, 1, flag_tag, order);
                           })
                  .ok());
  EXPECT_TRUE(blade
                  ->RunSpe(1,
                           [&seen](Spe& spe) -> Task<> {
                             co_await spe.ReadSignal(2);
                             seen = spe.local_store().Load<std::uint32_t>(0x1000 + 16384 - 4);
                           })
                  .ok());
  blade->Run(kNever);
  EXPECT_TRUE(blade->done());
  return seen;
}

TEST(SpeTest, FencesAndBarriersOrderCommandsOfTheirTagOnly) {
  EXPECT_EQ(SeenBehindTheFlag(DmaOrder::kNone, 1), 0u);
  EXPECT_EQ(SeenBehindTheFlag(DmaOrder::kFence, 2), 0u);
  EXPECT_EQ(SeenBehindTheFlag(DmaOrder::kFence, 1), 4711u);
  EXPECT_EQ(SeenBehindTheFlag(DmaOrder::kBarrier, 1), 4711u);
}

TEST(SpeTest, ABarrierHoldsBackLaterCommandsOfItsTagAndAFenceDoesNot) {
  const auto signal_came = [](DmaOrder order) {
    auto blade = MakeBlade();
    EXPECT_TRUE(blade->RunSpe(1, [](Spe& spe) -> Task<> { co_await spe.ReadSignal(1); }).ok());
    EXPECT_TRUE(RunAlone(*blade, [=](Spe& spe) -> Task<> {
                  co_await spe.Put(0, 0x100000, 16384, 1);
                  co_await spe.Put(0, 0x200000, 16384, 1, order);
                  co_await spe.SendSignal(1, 1, 5, 1);
                  co_await spe.WaitTagAll(1u << 1);
                }).ok());
    return blade->spe(1).time();
  };
  EXPECT_LT(signal_came(DmaOrder::kFence), 200 * kNanosecond);
  EXPECT_GT(signal_came(DmaOrder::kBarrier), 2 * 640 * kNanosecond);
}

TEST(SpeTest, TheSeventeenthCommandWaitsForRoomInTheQueue) {
  auto blade = MakeBlade();
  Time sixteen = 0, seventeen = 0;
  ASSERT_TRUE(RunAlone(*blade, [&](Spe& spe) -> Task<> {
                for (int i = 0; i < 16; ++i) co_await spe.Put(0, 0x100000, 16384, 0);
                sixteen = spe.time();
                co_await spe.Put(0, 0x100000, 16384, 0);
                seventeen = spe.time();
                co_await spe.WaitTagAll(1);
              }).ok());
  EXPECT_LT(sixteen, 100 * kNanosecond);
  EXPECT_GT(seventeen, 600 * kNanosecond);
  EXPECT_EQ(blade->stats().dma_commands, 17u);
}

TEST(SpeTest, WhatIsUnderWayIsToldByTheUnitItGoesToAndWhatWaitsIsCounted) {
  auto blade = MakeBlade();
  EXPECT_TRUE(blade->InFlight().empty());
  ASSERT_TRUE(blade
                  ->RunSpe(3,
                           [](Spe& spe) -> Task<> {
                             co_await spe.Put(0, 0x100000, 16384, 1);
                             co_await spe.Get(0x4000, 0x100000, 16384, 2);
                             co_await spe.Put(0, LocalStoreAddress(8, 0), 16384, 3);
                             co_await spe.Put(0, LocalStoreAddress(8, 0x4000), 16384, 3);
                             co_await spe.Put(0, 0x200000, 16, 1, DmaOrder::kFence);
                             co_await spe.WaitTagAll(0xe);
                           })
                  .ok());
  blade->Run(200 * kNanosecond);
  const std::vector<DmaMove> moves = {
      {0, kUnitMic, true, 1}, {0, kUnitMic, false, 1}, {1, kUnitOfSpe[0], true, 2}};
  EXPECT_EQ(blade->InFlight(), (std::vector<SpeInFlight>{{3, 1, moves}}));
  blade->Run(kNever);
  ASSERT_TRUE(blade->done());
  EXPECT_TRUE(blade->InFlight().empty());
}

TEST(SpeTest, WaitTagAnySaysWhichAreDone) {
  auto blade = MakeBlade();
  std::uint32_t first = 0;
  ASSERT_TRUE(RunAlone(*blade, [&](Spe& spe) -> Task<> {
                co_await spe.Put(0, 0x100000, 16384, 3);
                co_await spe.Put(0, 0x200000, 16, 4);
                first = co_await spe.WaitTagAny((1u << 3) | (1u << 4));
                co_await spe.WaitTagAll(1u << 3);
              }).ok());
  EXPECT_EQ(first, 1u << 4);
}

TEST(SpeTest, SignalsCombineInOrModeAndReplaceInOverwriteMode) {
  for (const SignalMode mode : {SignalMode::kOr, SignalMode::kOverwrite}) {
    auto blade = MakeBlade();
    blade->spe(0).SetSignalMode(2, mode);
    std::uint32_t value = 0;
    for (const int sender : {1, 9}) {
      ASSERT_TRUE(
          blade
              ->RunSpe(sender,
                       [=](Spe& spe) -> Task<> { co_await spe.SendSignal(0, 2, 1u << sender, 0); })
              .ok());
    }
    ASSERT_TRUE(blade
                    ->RunSpe(0,
                             [&](Spe& spe) -> Task<> {
                               co_await spe.SleepUntil(2 * kMicrosecond);
                               value = co_await spe.ReadSignal(2);
                             })
                    .ok());
    blade->Run(kNever);
    EXPECT_EQ(value, mode == SignalMode::kOr ? 0x202u : 0x200u);  // SPE 9's comes last
  }
}

TEST(SpeTest, SignalRulesAreNamed) {
  auto blade = MakeBlade();
  EXPECT_THAT(
      RunAlone(*blade, [](Spe& s) -> Task<> { co_await s.SendSignal(16, 1, 1, 0); }).message(),
      HasSubstr("another one of 0 to 15"));
  EXPECT_THAT(
      RunAlone(*blade, [](Spe& s) -> Task<> { co_await s.SendSignal(1, 3, 1, 0); }).message(),
      HasSubstr("registers 1 and 2"));
  EXPECT_THAT(RunAlone(*blade, [](Spe& s) -> Task<> { co_await s.ReadSignal(0); }).message(),
              HasSubstr("registers 1 and 2"));
}

TEST(SpeTest, TheFifthInboundMessageWaitsUntilOneIsRead) {
  auto blade = MakeBlade();
  Time fourth = 0, fifth = 0;
  std::vector<std::uint32_t> got;
  ASSERT_TRUE(blade
                  ->RunPpe(0,
                           [&](Ppe& ppe) -> Task<> {
                             for (std::uint32_t i = 1; i <= 5; ++i) {
                               co_await ppe.WriteInMbox(3, i);
                               if (i == 4) fourth = ppe.time();
                             }
                             fifth = ppe.time();
                           })
                  .ok());
  ASSERT_TRUE(blade
                  ->RunSpe(3,
                           [&](Spe& spe) -> Task<> {
                             co_await spe.SleepUntil(kMillisecond);
                             for (int i = 0; i < 5; ++i) got.push_back(co_await spe.ReadInMbox());
                           })
                  .ok());
  blade->Run(kNever);
  EXPECT_LT(fourth, 100 * kMicrosecond);
  EXPECT_GE(fifth, kMillisecond);
  EXPECT_THAT(got, ElementsAre(1, 2, 3, 4, 5));
}

TEST(SpeTest, OutboundMailboxesHoldOneMessageAndBlock) {
  auto blade = MakeBlade();
  Time written = 0;
  std::vector<std::uint32_t> got;
  ASSERT_TRUE(blade
                  ->RunSpe(0,
                           [&](Spe& spe) -> Task<> {
                             co_await spe.WriteOutMbox(1);
                             co_await spe.WriteOutIntrMbox(2);
                             co_await spe.WriteOutMbox(3);
                             written = spe.time();
                             co_await spe.WriteInMbox(1, 9);
                           })
                  .ok());
  ASSERT_TRUE(
      blade->RunSpe(1, [&](Spe& s) -> Task<> { got.push_back(co_await s.ReadInMbox()); }).ok());
  ASSERT_TRUE(blade
                  ->RunPpe(0,
                           [&](Ppe& ppe) -> Task<> {
                             co_await ppe.SleepUntil(50 * kMicrosecond);
                             got.push_back(co_await ppe.ReadOutIntrMbox(0));
                             got.push_back(co_await ppe.ReadOutMbox(0));
                             got.push_back(co_await ppe.ReadOutMbox(0));
                           })
                  .ok());
  blade->Run(kNever);
  EXPECT_GE(written, 50 * kMicrosecond);
  EXPECT_THAT(got, ::testing::UnorderedElementsAre(2, 1, 3, 9));
  EXPECT_TRUE(blade->done());
}

TEST(SpeTest, AtomicsOnOneWordAreNeverLostAndTakeTurns) {
  auto blade = MakeBlade();
  std::vector<std::uint32_t> seen;
  for (int i = 0; i < kSpes; ++i) {
    ASSERT_TRUE(blade
                    ->RunSpe(i,
                             [&](Spe& spe) -> Task<> {
                               for (int k = 0; k < 10; ++k)
                                 seen.push_back(co_await spe.AtomicAddReturn(0x80, 1));
                             })
                    .ok());
  }
  blade->Run(kNever);
  EXPECT_EQ(blade->memory().Load32(0x80), 160u);
  std::sort(seen.begin(), seen.end());
  for (std::uint32_t i = 0; i < 160; ++i) EXPECT_EQ(seen[i], i);
  EXPECT_GE(blade->now(), 160 * blade->parameters().atomic_service);
  auto lone = MakeBlade();
  EXPECT_THAT(
      RunAlone(*lone, [](Spe& s) -> Task<> { co_await s.AtomicAddReturn(0x82, 1); }).message(),
      HasSubstr("atomic rule"));
}

TEST(SpeTest, ThePpeStartsAndJoinsPrograms) {
  auto blade = MakeBlade();
  bool well = false, badly = true;
  ASSERT_TRUE(blade
                  ->RunPpe(1,
                           [&](Ppe& ppe) -> Task<> {
                             co_await ppe.StartSpe(
                                 4, [](Spe& spe) -> Task<> { co_await spe.Compute(kMicrosecond); });
                             co_await ppe.StartSpe(
                                 5, [](Spe& spe) -> Task<> { co_await spe.Put(0, 0, 5, 0); });
                             well = co_await ppe.JoinSpe(4);
                             badly = co_await ppe.JoinSpe(5);
                             co_await ppe.SendSignal(6, 1, 1);
                             co_await ppe.StartSpe(
                                 17, [](Spe& spe) -> Task<> { co_await spe.Compute(1); });
                           })
                  .ok());
  blade->Run(kNever);
  EXPECT_TRUE(well);
  EXPECT_FALSE(badly);
  EXPECT_THAT(blade->ppe(1).status().message(), HasSubstr("SPE 17; a blade has SPEs 0 to 15"));
}

TEST(SpeTest, EventsFromOutsideReachThePpeInOrder) {
  auto blade = MakeBlade();
  std::vector<std::uint64_t> got;
  ASSERT_TRUE(blade
                  ->RunPpe(0,
                           [&](Ppe& ppe) -> Task<> {
                             for (int i = 0; i < 3; ++i) got.push_back(co_await ppe.WaitEvent());
                           })
                  .ok());
  blade->Post(0, 8, 3000);
  blade->Post(0, 7, 3000);
  blade->Post(0, 9, 2000);
  blade->Run(kNever);
  EXPECT_THAT(got, ElementsAre(9, 7, 8));
}

TEST(SpeTest, ProgramsThatWaitForEverSayForWhat) {
  auto blade = MakeBlade();
  ASSERT_TRUE(blade->RunSpe(2, [](Spe& s) -> Task<> { co_await s.ReadSignal(1); }).ok());
  ASSERT_TRUE(blade->RunSpe(3, [](Spe& s) -> Task<> { co_await s.ReadInMbox(); }).ok());
  blade->Run(kNever);
  EXPECT_FALSE(blade->done());
  EXPECT_THAT(blade->Result().blocked,
              ElementsAre("SPE 2 waits for signal register 1",
                          "SPE 3 waits for a message in its inbound mailbox"));
  EXPECT_EQ(blade->RunSpe(2, [](Spe& s) -> Task<> { co_await s.Compute(1); }).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(SpeTest, AnSpeThatGoesDownEndsItsProgramAndRefusesCommands) {
  auto blade = MakeBlade();
  ASSERT_TRUE(blade
                  ->RunSpe(1,
                           [](Spe& s) -> Task<> {
                             co_await s.Put(0, 0, 16384, 0);
                             co_await s.ReadSignal(1);
                           })
                  .ok());
  ASSERT_TRUE(blade
                  ->RunSpe(0,
                           [](Spe& s) -> Task<> {
                             co_await s.SleepUntil(kMicrosecond);
                             co_await s.SendSignal(1, 1, 1, 0);
                           })
                  .ok());
  ASSERT_TRUE(blade->FailSpe(1, 500 * kNanosecond).ok());
  blade->Run(kNever);
  EXPECT_EQ(blade->spe(1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(blade->spe(0).status().message(), HasSubstr("target rule: SPE 1 is down"));
  EXPECT_EQ(blade->RunSpe(1, [](Spe& s) -> Task<> { co_await s.Compute(1); }).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(blade->FailSpe(16, 0).ok());
}

Task<> PutSome(Spe& spe, EffectiveAddress ea) {
  for (int i = 0; i < 8; ++i) co_await spe.Put(0, ea, 16384, 0);
  co_await spe.WaitTagAll(1);
}

TEST(SpeTest, ADegradedChipLinkAndALostRingSlowDmaDown) {
  const auto time_of = [](const std::function<void(Blade&)>& fault, int target) {
    auto blade = MakeBlade();
    fault(*blade);
    for (const int spe : {4, 2, 0}) {
      EXPECT_TRUE(blade
                      ->RunSpe(spe,
                               [=](Spe& s) {
                                 return PutSome(s, LocalStoreAddress(target + (spe == 4   ? 0
                                                                               : spe == 2 ? 2
                                                                                          : 4),
                                                                     0));
                               })
                      .ok());
    }
    blade->Run(kNever);
    EXPECT_TRUE(blade->done());
    return static_cast<double>(blade->now());
  };
  const auto nothing = [](Blade&) {};
  const auto degrade = [](Blade& b) { EXPECT_TRUE(b.DegradeChipLink(0.25, 0).ok()); };
  const auto lose = [](Blade& b) { EXPECT_TRUE(b.LoseRing(0, 1, 0).ok()); };
  EXPECT_NEAR(time_of(degrade, 8) / time_of(nothing, 8), 4, 0.3);
  EXPECT_GT(time_of(lose, 1) / time_of(nothing, 1), 1.5);

  auto blade = MakeBlade();
  EXPECT_FALSE(blade->DegradeChipLink(0, 0).ok());
  EXPECT_FALSE(blade->DegradeChipLink(1.5, 0).ok());
  EXPECT_FALSE(blade->LoseRing(0, 4, 0).ok());
  EXPECT_TRUE(blade->LoseRing(1, 2, 0).ok());
  EXPECT_THAT(blade->LoseRing(1, 3, 0).message(), HasSubstr("the last of its direction"));
}

TEST(SpeTest, TheDigestIsTheSameForAnyWindowsAndTellsRunsApart) {
  const auto digest_of = [](Time window, std::uint32_t value) {
    auto blade = MakeBlade();
    for (int i = 0; i < kSpes; ++i) {
      EXPECT_TRUE(blade
                      ->RunSpe(i,
                               [=](Spe& spe) -> Task<> {
                                 spe.local_store().Store(0, value);
                                 co_await spe.Put(0, LocalStoreAddress((i + 5) % kSpes, 0x8000),
                                                  4096, 0);
                                 co_await spe.WaitTagAll(1);
                                 co_await spe.AtomicAddReturn(0, 1);
                               })
                      .ok());
    }
    for (Time end = window; blade->next_time() < kNever; end += window) blade->Run(end);
    return blade->Result().digest;
  };
  EXPECT_EQ(digest_of(kMicrosecond, 1), digest_of(777, 1));
  EXPECT_NE(digest_of(kMicrosecond, 1), digest_of(kMicrosecond, 2));
}

}  // namespace
}  // namespace percs::cell
