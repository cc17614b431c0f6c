#include "emulator/roadrunner/accelerator.h"

#include <algorithm>
#include <memory>

#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

using cell::EffectiveAddress;

constexpr LsAddress kSource = 0x8000, kFlux = 0xa000, kY = 0xc000, kZ = 0x10000, kX = 0x14000;
constexpr int kTag = 0;
constexpr std::uint32_t kStop = ~std::uint32_t{0};

class Farm {
 public:
  Farm(const SweepProblem& problem, cell::Blade& blade) : p_(problem), blade_(blade) {
    const auto line = static_cast<EffectiveAddress>(p_.i) * 8;
    const auto cells = line * static_cast<EffectiveAddress>(p_.j * p_.k);
    source_ = 0;
    flux_ = source_ + (cells + 127) / 128 * 128;
    y_ = flux_ + (cells + 127) / 128 * 128;
    z_ = y_ + static_cast<EffectiveAddress>(p_.angle_block * p_.k) * line;
  }

  AcceleratorResult Run() {
    Check(blade_.RunPpe(0, [this](cell::Ppe& ppe) { return Master(ppe); }));
    for (int spe = 0; spe < cell::kSpesPerCell; ++spe) {
      Check(blade_.RunSpe(spe, [this](cell::Spe& s) { return Worker(s); }));
    }
    blade_.Run(kNever);
    result_.dma = *std::max_element(waited_.begin(), waited_.end());
    result_.dma_bytes = blade_.stats().dma_bytes;
    result_.flux.resize(static_cast<std::size_t>(p_.i * p_.j * p_.k));
    blade_.memory().Read(flux_, result_.flux.data(), result_.flux.size() * 8);
    return std::move(result_);
  }

 private:
  static void Check(const absl::Status& status) { PERCS_CHECK(status.ok()); }
  EffectiveAddress Line(EffectiveAddress base, int line) const {
    return base + static_cast<EffectiveAddress>(line) * static_cast<EffectiveAddress>(p_.i) * 8;
  }

  void Clear(EffectiveAddress at, int doubles) {
    const std::vector<double> zero(static_cast<std::size_t>(doubles), 0.0);
    blade_.memory().Write(at, zero.data(), zero.size() * 8);
  }
  // The source of an iteration; the PPE's part of the work is not charged, as in the sweep on CML.
  void NewSource(bool first) {
    std::vector<double> flux(static_cast<std::size_t>(p_.i * p_.j * p_.k), 0.0),
        source(flux.size());
    if (!first) blade_.memory().Read(flux_, flux.data(), flux.size() * 8);
    for (int c = 0; c < p_.i * p_.j * p_.k; ++c) {
      const auto at = static_cast<std::size_t>(c);
      source[at] = SourceAt(p_, c % p_.i, c / p_.i % p_.j, c / p_.i / p_.j, flux[at]);
    }
    blade_.memory().Write(source_, source.data(), source.size() * 8);
    Clear(flux_, p_.i * p_.j * p_.k);
  }

  Task<> Master(cell::Ppe& ppe) {
    for (int n = 0; n < p_.steps(); ++n) {
      step_ = StepAt(p_, n);
      if (n % (p_.steps() / p_.iterations) == 0) NewSource(n == 0);
      if (step_.k_block == 0) Clear(z_, p_.angle_block * p_.j * p_.i);
      Clear(y_, p_.angle_block * p_.k * p_.i);
      for (int d = 0; d < p_.j + p_.k_block - 1; ++d) {
        const int first = std::max(0, d - p_.k_block + 1), last = std::min(d, p_.j - 1);
        for (int jj = first; jj <= last; jj += cell::kSpesPerCell) {
          const int batch = std::min(cell::kSpesPerCell, last - jj + 1);
          for (int w = 0; w < batch; ++w) {
            co_await ppe.WriteInMbox(w, static_cast<std::uint32_t>((d - jj - w) << 16 | (jj + w)));
          }
          for (int w = 0; w < batch; ++w) co_await ppe.ReadOutMbox(w);
          result_.lines += static_cast<std::uint64_t>(batch);
        }
      }
    }
    for (int w = 0; w < cell::kSpesPerCell; ++w) co_await ppe.WriteInMbox(w, kStop);
    co_await ppe.Sync();
    result_.time = ppe.time();
  }

  Task<> Await(cell::Spe& spe) {
    const Time before = spe.time();
    co_await spe.WaitTagAll(1u << kTag);
    co_await spe.Sync();
    waited_[static_cast<std::size_t>(spe.index())] += spe.time() - before;
  }

  Task<> Worker(cell::Spe& spe) {
    while (true) {
      const std::uint32_t work = co_await spe.ReadInMbox();
      if (work == kStop) co_return;
      const int kk = static_cast<int>(work >> 16), jj = static_cast<int>(work & 0xffff);
      co_await Move(spe, kk, jj, true);
      co_await Await(spe);
      Compute(spe, kk, jj);
      co_await spe.Compute(p_.cell_angle * p_.i * p_.angle_block);
      co_await Move(spe, kk, jj, false);
      co_await Await(spe);
      co_await spe.WriteOutMbox(work);
    }
  }

  int J(int jj) const { return step_.octant & 2 ? p_.j - 1 - jj : jj; }
  int K(int kk) const {
    const int block = step_.octant & 4 ? p_.k_blocks() - 1 - step_.k_block : step_.k_block;
    return block * p_.k_block + (step_.octant & 4 ? p_.k_block - 1 - kk : kk);
  }

  // A line and what it depends on, in or out: y of the line before in J, z of the one before in K,
  // per angle.
  Task<> Move(cell::Spe& spe, int kk, int jj, bool in) {
    const auto bytes = static_cast<std::uint32_t>(p_.i * 8);
    const int j = J(jj), k = K(kk);
    if (in) co_await spe.Get(kSource, Line(source_, k * p_.j + j), bytes, kTag);
    for (int a = -1; a < 2 * p_.angle_block; ++a) {
      const int m = a / 2;
      const auto at = static_cast<LsAddress>(m) * bytes;
      const LsAddress ls = a < 0 ? kFlux : a % 2 == 0 ? kY + at : kZ + at;
      const EffectiveAddress ea = a < 0        ? Line(flux_, k * p_.j + j)
                                  : a % 2 == 0 ? Line(y_, m * p_.k + k)
                                               : Line(z_, m * p_.j + j);
      if (in) {
        co_await spe.Get(ls, ea, bytes, kTag);
      } else {
        co_await spe.Put(ls, ea, bytes, kTag);
      }
    }
  }

  void Compute(cell::Spe& spe, int, int) {
    const auto doubles = [&spe](LsAddress at) {
      return reinterpret_cast<double*>(spe.local_store().at(at));
    };
    std::fill_n(doubles(kX), p_.angle_block, 0.0);
    Sweep({p_.i, 1, 1, step_.octant, step_.angle_block * p_.angle_block, p_.angle_block,
           doubles(kX), doubles(kY), doubles(kZ), doubles(kSource), doubles(kFlux)});
  }

  const SweepProblem& p_;
  cell::Blade& blade_;
  EffectiveAddress source_, flux_, y_, z_;
  SweepStep step_;
  std::array<Time, cell::kSpesPerCell> waited_{};
  AcceleratorResult result_;
};

}  // namespace

absl::StatusOr<AcceleratorResult> SweepOnAccelerator(const cell::BladeParameters& parameters,
                                                     const SweepProblem& problem) {
  if (absl::Status s = CheckProblem(problem, {1, 1}); !s.ok()) return s;
  if (problem.i % 2 != 0 || problem.i > 256 || problem.j > 4096 || problem.k_block > 4096) {
    return absl::InvalidArgumentError(fmt::format(
        "lines of {} cells; the accelerator model moves lines of 2 to 256 cells, an even number",
        problem.i));
  }
  auto blade = cell::Blade::Create(parameters);
  if (!blade.ok()) return blade.status();
  AcceleratorResult result = Farm(problem, **blade).Run();
  if (const cell::BladeResult over = (*blade)->Result(); !over.status.ok()) return over.status;
  return result;
}

}  // namespace percs::roadrunner
