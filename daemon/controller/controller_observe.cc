// Levels of logs and detail of metrics of processes.
#include "daemon/config/log.h"
#include "daemon/controller/controller.h"
#include "daemon/metrics/hub_metrics.h"

namespace percs {

absl::Status Controller::Observe(const v1::ObserveRequest& request) {
  v1::Observe observe;
  if (!request.nodes().empty()) {
    if (auto detail = ParseMetricsDetail(request.metrics_detail()); !detail.ok())
      return detail.status();
    auto run = ActiveRun();
    if (!run.ok()) return run.status();
    for (const std::string& name : request.nodes()) {
      const auto node = (*run)->topology().ParseNode(name);
      if (!node.ok()) return node.status();
      observe.add_nodes(*node);
    }
    for (const std::uint32_t node : observe.nodes())
      metrics_detail_[(*run)->topology().NodeName(node)] = request.metrics_detail();
  } else if (!request.metrics_detail().empty()) {
    return absl::InvalidArgumentError(
        "metrics_detail: nodes is empty; name the hubs whose detail changes");
  }
  if (!request.log_level().empty()) {
    if (absl::Status status = SetLogLevel(request.log_level()); !status.ok()) return status;
  }
  observe.set_log_level(request.log_level());
  observe.set_metrics_detail(request.metrics_detail());
  for (std::uint32_t p = 0; p < membership_.places(); ++p) {
    if (!membership_.member(p)) continue;
    auto message = Prepare(p);
    *message->mutable_observe() = observe;
    Send(p, std::move(message));
  }
  return absl::OkStatus();
}

// A daemon that builds another machine forgets the numbers of hubs.
void Controller::SendMetricsDetail(std::uint32_t process) {
  for (const auto& [hub, detail] : metrics_detail_) {
    const auto node = run_->topology().ParseNode(hub);
    if (!node.ok()) continue;  // this machine has no such hub
    auto message = Prepare(process);
    message->mutable_observe()->add_nodes(*node);
    message->mutable_observe()->set_metrics_detail(detail);
    Send(process, std::move(message));
  }
}

}  // namespace percs
