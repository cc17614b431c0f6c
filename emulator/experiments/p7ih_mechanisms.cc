#include "emulator/experiments/p7ih_mechanisms.h"

#include <cstdint>

namespace percs {
namespace {

// Longer than any message.
constexpr std::uint64_t kEndless = std::uint64_t{1} << 40;

constexpr P7ihMechanism kMechanisms[] = {
    {"two-transports", "leaders use RDMA from the same length on as all tasks do",
     [](P7ihMachine& m) { m.host.leader_eager_limit = m.host.eager_limit; }},
    {"registration", "buffers of long messages need no registration",
     [](P7ihMachine& m) { m.host.registration = m.host.network_registration = 0; }},
    {"memory-server", "a copy takes the same time, however many others there are",
     [](P7ihMachine& m) { m.host.node_per_kib = 0; }},
    {"caches", "a buffer of any length stays in the cache of its core",
     [](P7ihMachine& m) { m.host.cached = kEndless; }},
    {"two-buffers", "long broadcasts on a node use one buffer",
     [](P7ihMachine& m) { m.host.two_buffers_from = kEndless; }},
    {"overlapped-misses", "a thread reads one cache line of another chip after the other",
     [](P7ihMachine& m) { m.host.line_repeat = m.host.line_other_chip; }},
    {"shared-cores", "tasks that share a core do not slow each other",
     [](P7ihMachine& m) { m.host.smt = 0; }},
    {"cau-ports", "a CAU sends to all neighbours at the same time",
     [](P7ihMachine& m) { m.parameters.cau_port_time = 0; }},
};

}  // namespace

absl::Span<const P7ihMechanism> P7ihMechanisms() { return kMechanisms; }

}  // namespace percs
