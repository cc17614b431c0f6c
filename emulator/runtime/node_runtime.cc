#include "emulator/runtime/node_runtime.h"

#include <algorithm>
#include <cstring>

#include "fmt/format.h"

namespace percs {

NodeRuntime::NodeRuntime(const HostParameters& host, const TaskPlacement& placement,
                         HubServices& hub)
    : host_(host),
      placement_(placement),
      hub_(hub),
      node_(hub.context().node),
      port_(*this),
      memory_server_(*this),
      caches_(kCoresPerNode, host.own_cache) {
  if (node_ >= placement_.nodes) return;
  for (std::uint32_t local = 0; local < placement_.tasks_per_node; ++local) {
    const int core = placement_.CoreOf(local);
    ranks_.push_back(std::make_unique<Rank>(*this, node_ * placement_.tasks_per_node + local, local,
                                            core, placement_.TasksOnCore(core) - 1));
    log_.Add(ranks_.back()->number());
  }
  endpoints_.resize(ranks_.size() * kChannels);
}

void NodeRuntime::SetEndpoint(Rank& rank, std::uint8_t channel, Endpoint* endpoint) {
  PERCS_CHECK(channel < kChannels);
  endpoints_[rank.local() * kChannels + channel] = endpoint;
}

WindowId NodeRuntime::WindowOf(std::uint32_t local) const {
  const std::uint32_t per_hfi =
      static_cast<std::uint32_t>(hub_.context().parameters->windows_per_hfi);
  return static_cast<WindowId>(local % kHfisPerHub * per_hfi + local / kHfisPerHub);
}

std::uint32_t NodeRuntime::LocalAt(WindowId window) const {
  const std::uint32_t per_hfi =
      static_cast<std::uint32_t>(hub_.context().parameters->windows_per_hfi);
  return window % per_hfi * kHfisPerHub + window / per_hfi;
}

void NodeRuntime::Start() {
  if (!ranks_.empty()) {
    for (const auto& window : cau_windows_) window->Attach();
  }
  for (const auto& rank : ranks_) {
    ++hub_.context().work->unfinished;
    rank->Run(program_(*rank));
  }
}

void NodeRuntime::OnProgramEnd(Rank& rank) {
  --hub_.context().work->unfinished;
  hub_.context().last_event = now();
}

void NodeRuntime::Report(absl::Status error) {
  if (error_.ok()) error_ = std::move(error);
}

void NodeRuntime::OnTimer(std::uint64_t token) {
  if (token == 2 * kTasksPerNodeMax) return memory_server_.OnTimer();
  Rank& rank = *ranks_[token / 2];
  if (token % 2 == 0) {
    rank.OnTimer();
  } else {
    port_.OnStreamTimer(rank);
  }
}

void NodeRuntime::OnPayload(const PacketHeader& header) {
  if (!header.payload) return;
  auto it = std::find_if(partial_.begin(), partial_.end(), [&](const Partial& p) {
    return p.source == header.source && p.message == header.message;
  });
  if (it == partial_.end()) {
    partial_.push_back({header.source, header.message,
                        std::make_shared<std::vector<std::uint8_t>>(header.message_bytes)});
    it = partial_.end() - 1;
  }
  std::memcpy(it->bytes->data() + header.offset, header.payload.bytes(), header.bytes);
}

void NodeRuntime::OnArrived() {
  for (std::size_t i = 0; i < arrived_.size(); ++i)
    port_.OnMessage(arrived_[i], TakeContent(arrived_[i]));
  arrived_.clear();
}

Content NodeRuntime::TakeContent(const DeliveredMessage& message) {
  const auto it = std::find_if(partial_.begin(), partial_.end(), [&](const Partial& p) {
    return p.source == message.source && p.message == message.number;
  });
  if (it == partial_.end()) return nullptr;
  Content content = std::move(it->bytes);
  partial_.erase(it);
  return content;
}

void NodeRuntime::OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) {
  if (delivered) return;
  Report(absl::UnavailableError(fmt::format(
      "message {} from {} to {} failed after its last retransmission", message,
      hub_.context().topology->NodeName(node_), hub_.context().topology->NodeName(destination))));
}

std::vector<RankResult> NodeRuntime::ranks() const {
  std::vector<RankResult> results;
  for (const auto& rank : ranks_) {
    results.push_back({rank->number(), rank->finished(), 0, rank->busy(), 0});
  }
  return results;
}

}  // namespace percs
