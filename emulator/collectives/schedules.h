// The algorithms made of messages, one function each. Sizes are any, also no powers of two.
#pragma once

#include "emulator/collectives/schedule.h"

namespace percs {

// Phase i: to me + 2^i, from me - 2^i; ceil(log2 T) phases without data.
void PlanDissemination(PhaseSchedule& s);
// Figure 4 of paper 003, by relative number: phase i covers distance 2^(phases - 1 - i).
void PlanBinomialBroadcast(PhaseSchedule& s);
// The two behind one another: no task gets data of an operation that it has not started, which is
// what keeps operations of different roots in order (paper 003 section 3.6).
void PlanBarrierBinomialBroadcast(PhaseSchedule& s);
void PlanBinomialReduce(PhaseSchedule& s);
// Tasks above the largest power of two fold in, the others exchange with me xor 2^i, and unfold.
void PlanButterflyAllreduce(PhaseSchedule& s);
// Inclusive prefix: phase i brings the sum of the 2^i tasks before those already in.
void PlanScan(PhaseSchedule& s);
void PlanBinomialGather(PhaseSchedule& s);
void PlanBinomialScatter(PhaseSchedule& s);
void PlanRingAllgather(PhaseSchedule& s);
// With a fold as in the butterfly when T is no power of two.
void PlanRecursiveDoublingAllgather(PhaseSchedule& s);
void PlanBruckAllgather(PhaseSchedule& s);
void PlanPairwiseAlltoall(PhaseSchedule& s);
void PlanBruckAlltoall(PhaseSchedule& s);

// What Open MPI of 2008 takes for the size of the data and the number of tasks.
void PlanOpenMpiBroadcast(PhaseSchedule& s);
void PlanOpenMpiReduce(PhaseSchedule& s);
void PlanOpenMpiAllreduce(PhaseSchedule& s);
void PlanOpenMpiAlltoall(PhaseSchedule& s);

}  // namespace percs
