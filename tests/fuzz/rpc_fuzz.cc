// Messages of the Control service as a hostile client may send them: bytes that protobuf accepts as
// the message that the first byte chooses. What they ask for is either built or refused with a
// reason, on a small machine.
#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/base/check.h"
#include "percs/v1/control.pb.h"
#include "proto/scenario/build.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/route_tables_codec.h"
#include "proto/scenario/trace_codec.h"
#include "proto/scenario/trees.h"

namespace {

const percs::Topology& Small() {
  static const auto* const topology = new percs::Topology(
      *percs::Topology::Create({.supernodes = 2, .drawers = 2, .hubs = 2, .d_links_per_pair = 2}));
  return *topology;
}

template <typename Result>
void Explained(const Result& result) {
  PERCS_CHECK(result.ok() || !result.status().message().empty());
}

void Try(int which, const std::string& bytes) {
  percs::v1::ApplyRequest apply;
  percs::v1::CreateFaultRequest fault;
  percs::v1::TraceRequest trace;
  percs::v1::CreateTreeRequest tree;
  percs::v1::LoadRoutesRequest routes;
  switch (which) {
    case 0:
      if (apply.ParseFromString(bytes)) Explained(percs::BuildScenario(apply.scenario(), ""));
      break;
    case 1:
      if (fault.ParseFromString(bytes)) Explained(percs::BuildFaultSpec(fault.fault(), Small()));
      break;
    case 2:
      if (trace.ParseFromString(bytes))
        Explained(percs::SelectionFromProto(trace.selection(), Small()));
      break;
    case 3:
      if (tree.ParseFromString(bytes)) Explained(percs::BuildTree(tree.tree(), Small()));
      break;
    default:
      if (routes.ParseFromString(bytes))
        Explained(percs::TablesFromProto(routes.tables(), Small().nodes()));
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int kMessages = 5;
  if (size > 0)
    Try(data[0] % kMessages, std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
