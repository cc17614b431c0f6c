// What a Cell blade of a scenario does: PPE 0 runs its programs one after the other, each on some
// of the SPEs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/cell/blade.h"
#include "emulator/cell/collectives/measure.h"
#include "emulator/node/blade_port.h"
#include "emulator/scenario/scenario.h"
#include "emulator/topology/topology.h"

namespace percs {

// INVALID_ARGUMENT for an algorithm, count or size that there is not, with what there is.
absl::Status CheckCollective(const CollectiveProgram& program);

class BladePrograms {
 public:
  // `over` is called once, when all have ended or one cannot.
  BladePrograms(NodeId node, const std::vector<BladeProgram>& programs, const Topology& topology,
                cell::Blade& blade, BladePort& port, NodeContext& network,
                std::function<void()> over);

  void Start();
  // An SPE went down, now. A collective that it takes part in never ends; in an exchange the PPE
  // does its part.
  void OnSpeDown(int spe);
  const std::vector<BladeProgramResult>& results() const { return results_; }

 private:
  // Part of one SPE in a message.
  struct Part {
    cell::EffectiveAddress ea = 0;
    std::uint32_t bytes = 0;
    std::uint64_t seed = 0, first_word = 0;  // of the pattern it has to be
  };
  static Part PartOf(const Part& whole, int spe);
  void PlaceInboxes();
  std::string Describe(const BladeProgram& program) const;
  Task<> RunAll(cell::Ppe& ppe);
  Task<> Run(cell::Ppe& ppe, const CollectiveProgram& program);
  Task<> Run(cell::Ppe& ppe, const ExchangeProgram& program);
  // `task` for every part of a message, on its SPE, or by the PPE where the SPE is down.
  Task<> OnAllParts(cell::Ppe& ppe, const ExchangeProgram& program, Part whole, bool fill);
  cell::SpeProgram ProgramOf(const Part& part, bool fill);
  cell::SpeProgram LoopProgram();
  Task<> Fill(cell::Spe& spe, Part part);
  Task<> Check(cell::Spe& spe, Part part);
  void FillByPpe(const Part& part);
  void CheckByPpe(const Part& part);
  Time Handling(std::uint32_t bytes) const;
  bool Up(int spe) const { return blade_.spe(spe).state() != cell::Processor::State::kDown; }
  void End();

  const NodeId node_;
  const std::vector<BladeProgram>& programs_;
  const Topology& topology_;
  cell::Blade& blade_;
  BladePort& port_;
  NodeContext& network_;
  std::function<void()> over_;
  std::vector<BladeProgramResult> results_;   // the last one may still run
  std::optional<cell::RunningLoop> running_;  // of the last collective
  int spes_calling_ = 0;                      // SPEs that take part in it, while it runs
  int spes_started_ = 0;                      // of these; the PPE starts one after the other
  bool over_called_ = false;
};

}  // namespace percs
