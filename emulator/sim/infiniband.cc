#include "emulator/sim/infiniband.h"

#include <algorithm>
#include <utility>

#include "emulator/base/check.h"
#include "emulator/roadrunner/parameters.h"

namespace percs {

Time OneCrossbarTime(const P7ihParameters& p) {
  const Time latency = p.ib_crossbar - p.ib.flit_time, hop = latency + p.ib.flit_time + p.ib.wire;
  const Time in = p.hfi.flit_time,
             out = latency + p.hfi.flit_time;  // to the adapter's port, and from it
  return in + 2 * hop + out;
}

Scenario WithInfiniband(Scenario scenario) {
  if (!scenario.topology.infiniband) return scenario;
  const P7ihParameters& p = scenario.parameters;
  scenario.crossbar = scenario.adapter = p;
  // The latency of an ISR is without the flit's own time.
  scenario.crossbar.isr_latency = scenario.adapter.isr_latency =
      std::max<Time>(0, p.ib_crossbar - p.ib.flit_time);
  scenario.crossbar.lr = scenario.adapter.d = p.ib;
  // What is left of MPI's latency is the adapters' own, half at each end: calibrated on paths over
  // one crossbar, with the defaults, so that a slower crossbar is not made up for.
  const roadrunner::LayerParameters mpi = roadrunner::DefaultParameters().mpi;
  const Time flight = mpi.latency - 2 * mpi.overhead - OneCrossbarTime(P7ihParameters());
  PERCS_CHECK(flight > 0);
  scenario.adapter.send_overhead = scenario.adapter.receive_overhead = flight / 2;
  return scenario;
}

}  // namespace percs
