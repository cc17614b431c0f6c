#include "client/lib/run_recorder.h"

#include <algorithm>
#include <utility>

#include "daemon/page/feed_writer.h"
#include "daemon/page/recorded_page.h"
#include "proto/scenario/status.h"

namespace percs {
namespace {

constexpr std::size_t kMemory = 128 << 20;  // of all frames
constexpr std::size_t kFramesMin = 16, kFramesMax = 480;

std::size_t FramesFor(const Topology& topology) {
  const bool large = topology.nodes() > kSeenNodesMax;
  const std::size_t links = large ? 0 : topology.Links().size();
  const std::size_t cells =
      large ? static_cast<std::size_t>(topology.supernodes()) * topology.supernodes() : 0;
  const std::size_t bytes =
      links * sizeof(LinkSight) + cells * (sizeof(double) + sizeof(int)) + sizeof(NodeStats);
  return std::clamp(kMemory / bytes, kFramesMin, kFramesMax);
}

// Every other one, and the first.
template <typename Frames>
void Thin(Frames* frames) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < frames->size(); i += 2) {
    if (kept != i) (*frames)[kept] = std::move((*frames)[i]);
    ++kept;
  }
  frames->resize(kept);
}

}  // namespace

RunRecorder::RunRecorder(const Topology& topology, std::uint64_t number)
    : sight_(topology, number), frames_max_(FramesFor(topology)) {}

void RunRecorder::Watch(const Fabric& fabric, std::uint64_t windows, bool ended) {
  if (!ended && fabric.now() < next_) return;
  std::uint64_t lost = 0;
  const std::uint64_t known = events_.empty() ? 0 : events_.back().sequence();
  for (const FabricEvent& event : fabric.events().After(known, EventLog::kKept, &lost))
    EventToProto(event, &events_.emplace_back());
  Frame frame;
  frame.sight = sight_.Look(fabric, ended);
  frame.sight.in_flight.clear();  // no view of a finished run shows it
  frame.status = sight_.Status(fabric, windows, frame.sight.total.packets_delivered);
  if (ended) frame.status.set_state(v1::FABRIC_STATE_FINISHED);
  frame.events = events_.size();
  if (ended && !frames_.empty() && frames_.back().sight.virtual_time == fabric.now())
    frames_.pop_back();
  frames_.push_back(std::move(frame));
  if (frames_.size() >= frames_max_) {
    Thin(&frames_);
    interval_ = 2 * fabric.now() / static_cast<Time>(frames_max_);
  }
  next_ = fabric.now() + interval_;
}

std::string RunRecorder::Messages(std::size_t every) const {
  FeedWriter writer;
  std::string messages;
  std::size_t told = 0;
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    if (i % every != 0 && i + 1 != frames_.size()) continue;
    const Frame& frame = frames_[i];
    writer.TakeStatus(frame.status);
    writer.TakeSight(frame.sight);
    for (; told < frame.events; ++told) writer.TakeEvent(events_[told]);
    const std::string delta = writer.Delta();
    messages += messages.empty() ? writer.Snapshot() : delta;
  }
  return messages;
}

std::string RunRecorder::Page(std::size_t bytes_max) const {
  for (std::size_t every = 1;; every *= 2) {
    std::string page = RecordedPage(Messages(every));
    if (page.size() <= bytes_max || every >= frames_.size()) return page;
  }
}

}  // namespace percs
