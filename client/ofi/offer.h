// What the libfabric provider `percs` offers, and whether it satisfies a program's hints.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>

namespace percs::mpi {

inline constexpr char kName[] = "percs";
inline constexpr std::size_t kContextsMax = 4096;

// `hints` may be null: anything will do.
bool Offers(const fi_info* hints);
// Fills in what a program gets that asked for `hints`.
void Describe(const fi_info* hints, fi_info* info);

}  // namespace percs::mpi
