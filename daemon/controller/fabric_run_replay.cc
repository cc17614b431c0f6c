// The part of FabricRun that takes the commands of an earlier run's journal again.
#include <utility>

#include "daemon/controller/fabric_run.h"
#include "fmt/format.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/route_tables_codec.h"
#include "spdlog/spdlog.h"

namespace percs {

void FabricRun::TakeReplay() {
  while (!replay_.empty() && replay_.front().at() <= master_.next() && phase_ != Phase::kEnded) {
    const v1::JournalRecord record = std::move(replay_.front());
    replay_.pop_front();
    Submit(record);
    TakeCommands(record.at());
  }
}

// As if somebody had asked for it. What was refused then is refused now.
void FabricRun::Submit(const v1::JournalRecord& record) {
  const auto tell = [number = number_](const absl::Status& status) {
    if (!status.ok())
      spdlog::info("run {}: replayed command: {}", number, std::string(status.message()));
  };
  Command command{std::nullopt, std::nullopt, true,
                  [tell](absl::StatusOr<Time> at) { tell(at.status()); }};
  command.record = record;
  // What programs asked for in another run, no daemon has.
  if (!retaking_ && record.has_endpoint()) command.record.mutable_endpoint()->clear_process();
  if (retaking_ && record.lease_wall_ms() > 0) {
    command.done = [this, tell, record](absl::StatusOr<Time> at) {
      tell(at.status());
      const auto fault = faults().Get(record.create_fault().id());
      if (at.ok() && fault.ok())
        Lease(fault->spec.id, fault->number, std::chrono::milliseconds(record.lease_wall_ms()));
    };
  }
  if (IsManagement(record)) {
    command.on_manager = [this, record](Fabric& manager, Time at) {
      const auto before = manager.faults()->Get(record.update_fault().id());
      absl::Status status = ActOnManagement(record, manager, at);
      const auto after = manager.faults()->Get(record.update_fault().id());
      if (before.ok() && after.ok())
        KeepLease(record.update_fault().id(), before->number, after->number);
      return status;
    };
  } else if (record.has_link_fault()) {
    const auto link = topology().ParseLink(record.link_fault().link());
    if (!link.ok()) return tell(link.status());
    command.now = !record.link_fault().has_at();
    command.fault = LinkFault{record.link_fault().at(), *link, record.link_fault().up()};
  } else if (record.has_fault()) {
    command.now = record.fault().now();
    command.other_fault = record.fault().fault();
  } else if (record.has_trace()) {
    command.trace = record.trace();
  } else if (record.has_routes()) {
    auto tables = TablesFromProto(record.routes().tables(), topology().nodes());
    if (!tables.ok()) return tell(tables.status());
    command.tables = *std::move(tables);
    command.loaded = [tell](absl::StatusOr<LoadedRoutes> loaded) { tell(loaded.status()); };
  }
  commands_.push_back(std::move(command));
}

}  // namespace percs
