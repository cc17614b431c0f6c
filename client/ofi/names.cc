// Preloaded into Open MPI's mpirun, too: the program gets the same name in every run. Open MPI
// sends names of processes in messages, as text whose length depends on the digits, and else makes
// them from mpirun's process number.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

// A job family in the upper half; as many digits as most have.
constexpr std::uint32_t kJob = 20'000u << 16;

}  // namespace

// Of Open MPI's run-time environment (orte/mca/plm/base): sets the number of mpirun's job in
// orte_process_info, once as its own and once as that of its head. Where these stand there differs
// between versions, so the words that it sets are found by comparing.
extern "C" __attribute__((visibility("default"))) int orte_plm_base_set_hnp_name() {
  const auto next = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "orte_plm_base_set_hnp_name"));
  auto* words = static_cast<std::uint32_t*>(dlsym(RTLD_DEFAULT, "orte_process_info"));
  if (next == nullptr) std::abort();  // who calls it has it
  constexpr std::size_t kWords = 48;  // at the beginning, less than all of it
  std::uint32_t before[kWords] = {};
  if (words != nullptr) std::memcpy(before, words, sizeof(before));
  const int status = next();
  for (std::size_t i = 0; words != nullptr && i < kWords; ++i) {
    const bool job = words[i] != before[i] && words[i] != 0 && (words[i] & 0xffff) == 0;
    if (job) words[i] = kJob;
  }
  return status;
}
