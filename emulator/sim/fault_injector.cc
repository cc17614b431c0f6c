#include "emulator/sim/fault_injector.h"

#include "absl/cleanup/cleanup.h"
#include "emulator/node/edge_node.h"
#include "emulator/node/hub.h"
#include "fmt/format.h"

namespace percs {

absl::Status FaultInjector::CheckTime(Time at, Time now) const {
  if (at >= now) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a fault at {} of virtual time, which is already {}", FormatTime(at), FormatTime(now)));
}

absl::Status FaultInjector::Inject(const std::vector<BladeFault>& faults) {
  for (const BladeFault& fault : faults) {
    if (absl::Status status = Inject(fault, 0); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status FaultInjector::Inject(const BladeFault& fault, Time now) {
  if (!topology_.is_blade(fault.node)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a blade; only blades have SPEs, rings and chip links",
                    topology_.NodeName(fault.node)));
  }
  EdgeNode* blade = BladeAt(fault.node);
  if (!blade) return absl::OkStatus();
  if (absl::Status status = CheckTime(fault.at, now); !status.ok()) return status;
  return blade->Inject(fault);
}

absl::Status FaultInjector::Inject(const FaultAction& action, Time now) {
  if (absl::Status s = CheckAction(action, topology_, parameters_); !s.ok()) return s;
  if (absl::Status status = CheckTime(action.at, now); !status.ok()) return status;
  const LinkEnd end = action.end;
  Give(action, end);
  if (action.at_both_ends()) Give(action, topology_.Peer(end.node, end.port));
  return absl::OkStatus();
}

absl::Status FaultInjector::TellAgain(const RejoinedHubs& rejoined, Time now) {
  only_ = &rejoined.nodes;
  const auto all_again = absl::MakeCleanup([this] { only_ = nullptr; });
  for (const FaultAction& action : rejoined.faults) {
    if (absl::Status status = Inject(action, now); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void FaultInjector::Give(const FaultAction& action, LinkEnd end) {
  Hub* hub = HubAt(end.node);
  if (!hub) return;
  ControlItem item;
  item.kind = ControlItem::Kind::kFault;
  item.target = end.node;
  item.port = end.port;
  item.arrival = action.at;
  item.action = action;
  hub->Receive(item);
}

}  // namespace percs
