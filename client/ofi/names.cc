// Names that Open MPI sends in messages, as text whose length changes virtual times, are the same
// in every run and on every machine. Of processes: preloaded into Open MPI's mpirun, too, which
// else makes them from its process number. Of machines: they are left out.
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "client/ofi/interposed.h"

namespace {

using percs::mpi::NextOf;

// A job family in the upper half; as many digits as most have.
constexpr std::uint32_t kJob = 20'000u << 16;

thread_local int packing_processes = 0;

}  // namespace

// Of Open MPI's run-time environment (orte/mca/plm/base): sets the number of mpirun's job in
// orte_process_info, once as its own and once as that of its head. Where these stand there differs
// between versions, so the words that it sets are found by comparing.
PERCS_EXPORT int orte_plm_base_set_hnp_name() {
  const auto next = NextOf<int()>("orte_plm_base_set_hnp_name");
  auto* words = static_cast<std::uint32_t*>(dlsym(RTLD_DEFAULT, "orte_process_info"));
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

// Of Open MPI (ompi/proc): the processes of a group, for an intercommunicator.
PERCS_EXPORT int ompi_proc_pack(void* processes, int count, void* buffer) {
  static const auto next = NextOf<int(void*, int, void*)>("ompi_proc_pack");
  ++packing_processes;
  const int status = next(processes, count, buffer);
  --packing_processes;
  return status;
}

// Of Open MPI (opal/dss). The only text of a process is the name of its machine; none is allowed.
PERCS_EXPORT int opal_dss_pack_string(void* buffer, const void* texts, std::int32_t count,
                                      std::uint8_t type) {
  static const auto next =
      NextOf<int(void*, const void*, std::int32_t, std::uint8_t)>("opal_dss_pack_string");
  if (packing_processes == 0) return next(buffer, texts, count, type);
  const std::vector<const char*> none(static_cast<std::size_t>(count), nullptr);
  return next(buffer, none.data(), count, type);
}
