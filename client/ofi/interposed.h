// What a preloaded library needs to stand in front of functions of others.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

#define PERCS_EXPORT extern "C" __attribute__((visibility("default")))

namespace percs::mpi {

// The next library's function of this name. The caller cannot continue without it, so a missing one
// is fatal. MPI may have been loaded in a local scope, so that is searched, too.
template <typename Function>
Function* NextOf(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    void* library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) found = dlsym(library, name);
  }
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

}  // namespace percs::mpi
