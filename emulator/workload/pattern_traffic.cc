#include "emulator/workload/pattern_traffic.h"

#include "fmt/format.h"

namespace percs {

PatternTraffic::PatternTraffic(const PatternWorkload& workload, DestinationPattern pattern,
                               std::uint64_t seed, HubServices& hub, std::uint64_t token)
    : workload_(workload),
      pattern_(pattern),
      random_(seed, fmt::format("node/{}/traffic", hub.context().node)),
      hub_(hub),
      context_(hub.context()),
      token_(token) {
  if (workload.measure > 0) {
    measure_from_ = context_.now + workload.warm_up;
    measure_to_ = measure_from_ + workload.measure;
  }
  if (workload.load > 0) injection_.emplace(workload, context_.parameters->w_flit_time);
}

void PatternTraffic::Start() {
  if (pattern_.silent()) return;
  sending_ = true;
  ++context_.work->unfinished;
  if (injection_) {
    next_ = context_.now + injection_->Gap(random_);
    hub_.SetTimer(next_, token_);
    DrawAhead();
  } else {
    OnBacklogShrunk();
  }
}

// In the order in which one after the other would be drawn.
void PatternTraffic::DrawAhead() {
  std::array<double, kDrawnAhead> means, draws;
  for (std::size_t i = 0; i < kDrawnAhead; ++i) {
    drawn_[i].to = pattern_.Draw(random_);
    means[i] = injection_->NextMean(random_);
    draws[i] = random_.Unit();
  }
  for (double& draw : draws) draw = NegativeLog(draw);
  for (std::size_t i = 0; i < kDrawnAhead; ++i)
    drawn_[i].gap = InjectionProcess::GapOf(means[i], draws[i]);
  next_drawn_ = 0;
}

void PatternTraffic::OnTimer(std::uint64_t) {
  if (!sending_) return;
  if ((measure_to_ > 0 && next_ >= measure_to_) || !more()) {
    Finish();
    return;
  }
  SendOne(Next().to);
  if (!more()) {
    Finish();
    return;
  }
  next_ += Next().gap;
  if (++next_drawn_ == kDrawnAhead) DrawAhead();
  hub_.SetTimer(next_, token_);
  hub_.Expect(Next().to, SpreadWindow(sent_, *context_.parameters));
}

void PatternTraffic::OnBacklogShrunk() {
  if (!sending_ || injection_) return;
  while (more() && hub_.backlog() < kBacklog) SendOne(pattern_.Draw(random_));
  if (!more()) Finish();
}

void PatternTraffic::SendOne(NodeId to) {
  const WindowId window = SpreadWindow(sent_++, *context_.parameters);
  const bool verified = workload_.payload == PayloadMode::kVerified;
  if (Measuring()) context_.stats.measured_bytes_offered += workload_.message_bytes;
  if (workload_.reliable) {
    hub_.SendMessage({to, window, window, workload_.message_bytes, 0, verified});
  } else {
    hub_.SendRaw(to, window, window, workload_.message_bytes, verified, nullptr);
  }
}

void PatternTraffic::OnRawDelivered(const PacketHeader& header) {
  if (Measuring()) context_.stats.measured_bytes_accepted += header.bytes;
}

void PatternTraffic::OnMessage(const DeliveredMessage& message) {
  if (Measuring()) context_.stats.measured_bytes_accepted += message.bytes;
}

void PatternTraffic::Finish() {
  if (!sending_) return;
  sending_ = false;
  --context_.work->unfinished;
}

void PatternTraffic::Stop() { Finish(); }

}  // namespace percs
