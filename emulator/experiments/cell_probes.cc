#include "emulator/experiments/cell_probes.h"

#include <algorithm>

namespace percs::cell {
namespace {

std::unique_ptr<Blade> NewBlade(const BladeParameters& parameters) {
  auto blade = Blade::Create(parameters);
  PERCS_CHECK(blade.ok());
  return *std::move(blade);
}

Task<> PingPong(Spe& spe, int partner, int rounds, bool first) {
  for (int i = 0; i < rounds; ++i) {
    if (first) co_await spe.SendSignal(partner, 1, 1, 0);
    co_await spe.ReadSignal(1);
    if (!first) co_await spe.SendSignal(partner, 1, 1, 0);
  }
}

Task<> Stream(Spe& spe, EffectiveAddress ea, LsAddress ls, std::uint32_t bytes, int count) {
  for (int i = 0; i < count; ++i) co_await spe.Put(ls, ea, bytes, i % 4);
  co_await spe.WaitTagAll(0xf);
}

}  // namespace

double SignalRoundTrip(const BladeParameters& parameters, int partner) {
  constexpr int kRounds = 1000;
  auto blade = NewBlade(parameters);
  PERCS_CHECK(blade->RunSpe(0, [=](Spe& s) { return PingPong(s, partner, kRounds, true); }).ok());
  PERCS_CHECK(blade->RunSpe(partner, [](Spe& s) { return PingPong(s, 0, kRounds, false); }).ok());
  blade->Run(kNever);
  return static_cast<double>(blade->spe(0).time()) / kRounds / kNanosecond;
}

double DmaTime(const BladeParameters& parameters, std::uint32_t bytes) {
  auto blade = NewBlade(parameters);
  PERCS_CHECK(
      blade->RunSpe(0, [=](Spe& s) { return Stream(s, LocalStoreAddress(1, 0), 0, bytes, 1); })
          .ok());
  blade->Run(kNever);
  return static_cast<double>(blade->spe(0).time()) / kNanosecond;
}

double StreamRate(const BladeParameters& parameters, const std::vector<std::pair<int, int>>& pairs,
                  std::uint32_t bytes, std::uint32_t offset) {
  auto blade = NewBlade(parameters);
  const int count = static_cast<int>(std::max<std::uint32_t>(512 * 1024 / bytes, 16));
  for (const auto& [from, to] : pairs) {
    const EffectiveAddress ea = LocalStoreAddress(to, 0x10000 + offset);
    PERCS_CHECK(
        blade->RunSpe(from, [=](Spe& s) { return Stream(s, ea, offset, bytes, count); }).ok());
  }
  blade->Run(kNever);
  Time end = 1;
  for (const auto& pair : pairs) end = std::max(end, blade->spe(pair.first).time());
  return static_cast<double>(pairs.size()) * count * bytes * kNanosecond / static_cast<double>(end);
}

double MemoryRateAgainstSpes(const BladeParameters& parameters) {
  constexpr int kCount = 32;
  auto blade = NewBlade(parameters);
  PERCS_CHECK(blade
                  ->RunSpe(0,
                           [](Spe& spe) -> Task<> {
                             for (int i = 0; i < kCount; ++i)
                               co_await spe.Get(0, 0, kDmaBytesMax, 0);
                             co_await spe.WaitTagAll(1);
                           })
                  .ok());
  for (const int writer : {1, 2}) {
    PERCS_CHECK(blade
                    ->RunSpe(writer,
                             [](Spe& s) {
                               return Stream(s, LocalStoreAddress(0, 0x10000), 0, kDmaBytesMax,
                                             kCount);
                             })
                    .ok());
  }
  blade->Run(kNever);
  return static_cast<double>(kCount) * kDmaBytesMax * kNanosecond /
         static_cast<double>(blade->spe(0).time());
}

int CommandsBeforeWaiting(const BladeParameters& parameters) {
  auto blade = NewBlade(parameters);
  int taken = 0;
  PERCS_CHECK(blade
                  ->RunSpe(0,
                           [&taken](Spe& spe) -> Task<> {
                             for (;; ++taken) {
                               const Time before = spe.time();
                               co_await spe.Put(0, LocalStoreAddress(1, 0), kDmaBytesMax, 0);
                               if (spe.time() - before > 100 * kNanosecond) co_return;
                             }
                           })
                  .ok());
  blade->Run(kNever);
  return taken;
}

int MessagesBeforeWaiting(const BladeParameters& parameters) {
  auto blade = NewBlade(parameters);
  int taken = 0;
  PERCS_CHECK(blade
                  ->RunSpe(0,
                           [&taken](Spe& spe) -> Task<> {
                             for (;; ++taken) co_await spe.WriteInMbox(1, 1);
                           })
                  .ok());
  blade->Run(kMillisecond);
  return taken;
}

static Task<> FillOutboundMailboxes(Spe& spe, int* taken) {
  for (;;) {
    co_await spe.WriteOutMbox(1);
    ++*taken;
    co_await spe.WriteOutIntrMbox(1);
    ++*taken;
  }
}

int OutboundMessages(const BladeParameters& parameters) {
  auto blade = NewBlade(parameters);
  int taken = 0;
  PERCS_CHECK(
      blade->RunSpe(0, [&taken](Spe& spe) { return FillOutboundMailboxes(spe, &taken); }).ok());
  blade->Run(kMillisecond);
  return taken;
}

static Task<> ReadRegister(Spe& spe, int signal_register) {
  co_await spe.ReadSignal(signal_register);
}

int SignalRegisters(const BladeParameters& parameters) {
  for (int next = 1;; ++next) {
    auto blade = NewBlade(parameters);
    PERCS_CHECK(blade->RunSpe(0, [next](Spe& spe) { return ReadRegister(spe, next); }).ok());
    blade->Run(kMillisecond);
    if (!blade->spe(0).status().ok()) return next - 1;
  }
}

std::uint32_t LargestDma(const BladeParameters& parameters) {
  std::uint32_t largest = 0;
  for (std::uint32_t bytes = 16; bytes <= 64 * 1024; bytes += 16) {
    auto blade = NewBlade(parameters);
    PERCS_CHECK(
        blade->RunSpe(0, [=](Spe& s) { return Stream(s, LocalStoreAddress(1, 0), 0, bytes, 1); })
            .ok());
    blade->Run(kNever);
    if (!blade->spe(0).status().ok()) break;
    largest = bytes;
  }
  return largest;
}

}  // namespace percs::cell
