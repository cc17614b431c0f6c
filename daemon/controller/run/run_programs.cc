#include "daemon/controller/run/run_programs.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace percs {
namespace {

constexpr std::uint64_t kReportsNotSaved = 128;

// Of one hub, what takes effect first: reservations of numbered windows before those of any window,
// in whatever order they arrived, so that exclusive programs that name their windows have one
// result.
auto OrderOf(const v1::EndpointSubmission& submission) {
  return std::make_tuple(submission.node(), submission.window(), submission.program(),
                         submission.number());
}

}  // namespace

bool RunPrograms::OnReport(std::uint32_t process, v1::EndpointReport* report) {
  Programs& programs = by_process_[process];
  programs.last.set_attached(report->attached());
  programs.last.set_owing(report->owing());
  programs.last.set_arrived(report->arrived());
  for (v1::EndpointSubmission& submission : *report->mutable_submissions()) {
    // The journal had it when the controller before this one died, and the daemon did not know.
    if (submission.number() <= programs.taken) continue;
    submission.set_process(process);
    programs.last.add_submissions()->Swap(&submission);
  }
  Count();
  return ++reports_ % kReportsNotSaved == 0;
}

std::vector<v1::EndpointSubmission> RunPrograms::Take() {
  std::vector<v1::EndpointSubmission> taken;
  for (Programs& programs : by_process_) {
    for (v1::EndpointSubmission& submission : *programs.last.mutable_submissions()) {
      if (submission.number() > programs.taken) taken.push_back(std::move(submission));
    }
    programs.last.clear_submissions();
  }
  std::sort(taken.begin(), taken.end(),
            [](const auto& a, const auto& b) { return OrderOf(a) < OrderOf(b); });
  return taken;
}

void RunPrograms::Taken(std::uint32_t process, std::uint64_t number) {
  by_process_[process].taken = std::max(by_process_[process].taken, number);
}

void RunPrograms::Lose(std::uint32_t process) {
  by_process_[process].last.clear_attached();
  by_process_[process].last.clear_owing();
  by_process_[process].last.clear_submissions();
  Count();
}

void RunPrograms::Forget(std::uint32_t process) {
  by_process_[process] = {};
  Count();
}

void RunPrograms::Stop() {
  stopped_ = true;
  Count();
}

void RunPrograms::Count() {
  counts_ = {};
  std::uint64_t arrived = 0;
  for (const Programs& programs : by_process_) {
    counts_.attached += programs.last.attached();
    counts_.owing += programs.last.owing();
    arrived += programs.last.arrived();
  }
  complete_ = complete_ || arrived >= wanted_;
  counts_.awaited = complete_ || stopped_ ? 0 : wanted_ - arrived;
}

void RunPrograms::Save(v1::SavedRun* saved) const {
  for (const Programs& programs : by_process_) {
    v1::SavedEndpoints* kept = saved->add_endpoints();
    *kept->mutable_last() = programs.last;
    kept->set_taken(programs.taken);
  }
  saved->set_programs_complete(complete_);
}

void RunPrograms::Restore(const v1::SavedRun& saved) {
  const auto known = std::min(by_process_.size(), static_cast<std::size_t>(saved.endpoints_size()));
  for (std::size_t p = 0; p < known; ++p) {
    by_process_[p].last = saved.endpoints(static_cast<int>(p)).last();
    by_process_[p].taken = saved.endpoints(static_cast<int>(p)).taken();
  }
  complete_ = saved.programs_complete();
  Count();
}

}  // namespace percs
