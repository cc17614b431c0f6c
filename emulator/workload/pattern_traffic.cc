#include "emulator/workload/pattern_traffic.h"

#include "fmt/format.h"

namespace percs {

PatternTraffic::PatternTraffic(const PatternWorkload& workload,
                               std::vector<DestinationPattern> patterns, std::uint64_t seed,
                               HubServices& hub, std::uint64_t token)
    : workload_(workload),
      endpoints_(hub.context().topology->spec().endpoints),
      random_(seed, fmt::format("node/{}/traffic", hub.context().node)),
      hub_(hub),
      context_(hub.context()),
      by_part_(context_.phase && context_.phase->several()),
      token_(token) {
  if (workload.measure > 0) {
    measure_from_ = context_.now + workload.warm_up;
    measure_to_ = measure_from_ + workload.measure;
    send_to_ = measure_to_ + workload.drain;
  }
  // Each endpoint has its share of W, and offers a share of it.
  const auto shares = static_cast<Time>(patterns.size());
  for (std::size_t endpoint = 0; endpoint < patterns.size(); ++endpoint) {
    if (patterns[endpoint].silent()) continue;
    sources_.push_back({static_cast<int>(endpoint), std::move(patterns[endpoint]), {}});
    if (workload.load > 0)
      sources_.back().injection.emplace(workload, shares * context_.parameters->w_flit_time);
  }
}

void PatternTraffic::Start() {
  if (sources_.empty()) return;
  sending_ = true;
  ++context_.work->unfinished;
  if (workload_.load == 0) return OnBacklogShrunk();
  for (Source& source : sources_) {
    source.next = context_.now + source.injection->Gap(random_);
    DrawAhead(source);
  }
  SetTimer(Earliest());
}

// In the order in which one after the other would be drawn.
void PatternTraffic::DrawAhead(Source& source) {
  std::array<double, kDrawnAhead> means, draws;
  for (std::size_t i = 0; i < kDrawnAhead; ++i) {
    source.drawn[i].to = source.pattern.Draw(random_);
    means[i] = source.injection->NextMean(random_);
    draws[i] = random_.Unit();
  }
  for (double& draw : draws) draw = NegativeLog(draw);
  for (std::size_t i = 0; i < kDrawnAhead; ++i)
    source.drawn[i].gap = source.injection->GapOf(means[i], draws[i]);
  source.next_drawn = 0;
}

PatternTraffic::Source& PatternTraffic::EarliestOfAll() {
  Source* first = sources_.data();
  for (Source& source : sources_) {
    if (source.next < first->next) first = &source;
  }
  return *first;
}

void PatternTraffic::SetTimer(const Source& source) {
  hub_.SetTimer(source.next, token_);
  if (!context_.work->fetches) return;
  // Each as if one more came before it: nothing is fetched for the last step, because the queue is
  // empty, mostly, and much else happens between two packets.
  const auto expect = [this, &source](std::size_t ahead) {
    const std::size_t i = source.next_drawn + ahead;
    if (i >= kDrawnAhead) return;
    hub_.Expect(HubOf(source.drawn[i].to), WindowOf(source.endpoint, ahead),
                static_cast<int>(ahead) + 1);
  };
  expect(0);
  expect(1);
}

void PatternTraffic::OnTimer(std::uint64_t) {
  if (!sending_) return;
  Source& source = Earliest();
  if ((send_to_ > 0 && source.next >= send_to_) || !more()) {
    Finish();
    return;
  }
  SendOne(source.endpoint, source.drawn[source.next_drawn].to);
  if (!more()) {
    Finish();
    return;
  }
  source.next += source.drawn[source.next_drawn].gap;
  if (++source.next_drawn == kDrawnAhead) DrawAhead(source);
  SetTimer(Earliest());
}

void PatternTraffic::OnBacklogShrunk() {
  if (!sending_ || workload_.load > 0) [[likely]]
    return;
  const std::uint64_t most = workload_.outstanding > 0 ? workload_.outstanding
                             : workload_.reliable      ? kOpenMessages
                                                       : 0;
  const bool over = send_to_ > 0 && context_.now >= send_to_;
  const auto sources = static_cast<std::uint32_t>(sources_.size());
  while (!over && more() && hub_.backlog() < kBacklog && (most == 0 || sent_ < done_ + most)) {
    Source& source = sources_[sources > 1 ? random_.Below(sources) : 0];
    SendOne(source.endpoint, source.pattern.Draw(random_));
  }
  if (over || !more()) Finish();
}

void PatternTraffic::OnMessageDone(NodeId, std::uint32_t, bool) {
  ++done_;
  OnBacklogShrunk();
}

void PatternTraffic::SendOne(int from_endpoint, NodeId place) {
  const NodeId to = HubOf(place);
  const WindowId from_window = WindowOf(from_endpoint);
  const WindowId to_window =
      endpoints_ < 2 ? from_window
                     : WindowOf(static_cast<int>(place % static_cast<NodeId>(endpoints_)));
  ++sent_;
  const bool verified = workload_.payload == PayloadMode::kVerified;
  if (Measuring()) {
    context_.stats.measured_bytes_offered += workload_.message_bytes;
    if (by_part_) context_.phase->Offered(context_.now, workload_.message_bytes);
  }
  if (workload_.reliable) {
    hub_.SendMessage({to, from_window, to_window, workload_.message_bytes, 0, verified});
  } else {
    hub_.SendRaw(to, from_window, to_window, workload_.message_bytes, verified, nullptr);
  }
}

void PatternTraffic::Accept(std::uint64_t bytes) {
  context_.stats.measured_bytes_accepted += bytes;
  if (by_part_) context_.phase->Accepted(context_.now, bytes);
}

void PatternTraffic::OnRawDelivered(const PacketHeader& header) {
  if (Measuring()) Accept(header.bytes);
}

void PatternTraffic::OnMessage(const DeliveredMessage& message) {
  if (Measuring()) Accept(message.bytes);
}

void PatternTraffic::Finish() {
  if (!sending_) return;
  sending_ = false;
  --context_.work->unfinished;
}

void PatternTraffic::Stop() { Finish(); }

}  // namespace percs
