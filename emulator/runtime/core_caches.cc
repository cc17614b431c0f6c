#include "emulator/runtime/core_caches.h"

namespace percs {

bool CoreCaches::Read(int core, const Part& part, std::uint64_t bytes) {
  return Touch(core, part, bytes);
}

bool CoreCaches::Write(int core, const Part& part, std::uint64_t bytes) {
  const std::set<int> others = holders_[part];
  bool alone = true;
  for (const int other : others) {
    if (other == core) continue;
    Drop(other, part);
    alone = false;
  }
  return Touch(core, part, bytes) && alone;
}

bool CoreCaches::Touch(int core, const Part& part, std::uint64_t bytes) {
  Core& cache = cores_[static_cast<std::size_t>(core)];
  const bool there = cache.index.contains(part);
  if (there) Drop(core, part);
  cache.held.push_front({part, bytes});
  cache.index[part] = cache.held.begin();
  cache.bytes += bytes;
  holders_[part].insert(core);
  while (cache.bytes > bytes_) Drop(core, Part(cache.held.back().part));
  return there;
}

void CoreCaches::Drop(int core, const Part& part) {
  Core& cache = cores_[static_cast<std::size_t>(core)];
  const auto it = cache.index.find(part);
  if (it == cache.index.end()) return;
  cache.bytes -= it->second->bytes;
  cache.held.erase(it->second);
  cache.index.erase(it);
  holders_[part].erase(core);
}

}  // namespace percs
