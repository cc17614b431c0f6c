#include "daemon/page/fabric_feed.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "google/protobuf/util/json_util.h"

namespace percs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kEvery(250);
constexpr int kShareOfTime = 12;  // asking takes no more than a 12th of wall time
constexpr std::chrono::seconds kSlowest(5), kCallLimit(3);
constexpr std::size_t kEventsKept = 256;
constexpr std::uint64_t kNodesMax = 512;  // a larger machine is told without its links
constexpr char kLinkColumns[] =
    R"(["ends","link_class","up","recent_forward","recent_backward",)"
    R"("forward.flits","forward.packets","forward.credit_stall_ps","forward.crc_errors",)"
    R"("forward.replays","forward.lanes_lost",)"
    R"("backward.flits","backward.packets","backward.credit_stall_ps","backward.crc_errors",)"
    R"("backward.replays","backward.lanes_lost"])";

std::string JsonOf(const google::protobuf::Message& message, bool with_zeros) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = with_zeros;
  std::string json;
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

std::string PortRow(const v1::PortCounters& port) {
  return fmt::format("{},{},{},{},{},{}", port.flits(), port.packets(), port.credit_stall_ps(),
                     port.crc_errors(), port.replays(), port.lanes_lost());
}

void AddPart(const char* name, const std::string& part, std::string* message) {
  if (part.empty()) return;
  *message += fmt::format("{}\"{}\":{}", message->empty() ? "" : ",", name, part);
}

std::string LinksJson(std::int64_t at, const std::string& rows) {
  return fmt::format(R"({{"virtual_time":{},"rows":{{{}}}}})", at, rows);
}

}  // namespace

FabricFeed::FabricFeed(const std::shared_ptr<grpc::Channel>& channel)
    : control_(v1::Control::NewStub(channel)), thread_([this] { Run(); }) {}

absl::Status FabricFeed::Add(std::shared_ptr<FeedReader> reader) {
  const std::lock_guard guard(mutex_);
  if (stopped_) return absl::UnavailableError("the controller is shutting down");
  if (readers_.size() >= kReadersMax) {
    return absl::ResourceExhaustedError(
        fmt::format("{} pages are open already, which is the maximum; close one", kReadersMax));
  }
  readers_.push_back(std::move(reader));
  changed_.notify_all();
  return absl::OkStatus();
}

void FabricFeed::Remove(const FeedReader* reader) {
  const std::lock_guard guard(mutex_);
  std::erase_if(readers_, [reader](const auto& r) { return r.get() == reader; });
}

void FabricFeed::Stop() {
  {
    const std::lock_guard guard(mutex_);
    stopped_ = true;
    if (under_way_ != nullptr) under_way_->TryCancel();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (const auto& reader : std::exchange(readers_, {})) reader->End();
}

void FabricFeed::Run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (readers_.empty()) {
      links_at_ = -1;  // what passes meanwhile is no recent utilisation
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    const auto start = Clock::now();
    const Parts parts = LookAgain();
    std::string delta;
    AddPart("status", parts.status, &delta);
    AddPart("links", parts.links, &delta);
    AddPart("counters", parts.counters, &delta);
    AddPart("events", parts.events, &delta);
    Distribute(delta);
    const auto pause =
        std::clamp<Clock::duration>((Clock::now() - start) * kShareOfTime, kEvery, kSlowest);
    lock.lock();
    changed_.wait_until(lock, start + pause, [this] { return stopped_; });
  }
}

template <typename Call>
bool FabricFeed::Ask(const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
  {
    const std::lock_guard guard(mutex_);
    if (stopped_) return false;
    under_way_ = &context;
  }
  const grpc::Status status = call(&context);
  const std::lock_guard guard(mutex_);
  under_way_ = nullptr;
  return status.ok();
}

FabricFeed::Parts FabricFeed::LookAgain() {
  Parts parts;
  v1::StatusReply status;
  if (!Ask([&](auto* context) { return control_->Status(context, {}, &status); })) return parts;
  if (status.run() != run_) BeginRun(status.run());
  const bool passed = links_at_ < 0 || status.virtual_time() != links_at_;
  if (status.run() != 0 && status.state() != v1::FABRIC_STATE_CONFIGURING) {
    parts.events = EventsChange();
    if (passed || !parts.events.empty()) {
      if (status.nodes() <= kNodesMax) parts.links = LinksChange();
      parts.counters = CountersChange();
    }
  }
  parts.status = StatusChange(status);
  return parts;
}

// Whoever reads is told everything of the new run.
void FabricFeed::BeginRun(std::uint64_t run) {
  run_ = run;
  last_event_ = 0;
  links_at_ = -1;
  links_.clear();
  events_.clear();
  counters_.clear();
}

std::string FabricFeed::StatusChange(const v1::StatusReply& reply) {
  v1::StatusReply status = reply;
  status.clear_versions();
  for (v1::ProcessStatus& process : *status.mutable_processes()) {
    v1::ProcessStatus kept;
    kept.set_name(process.name());
    kept.set_connected(process.connected());
    kept.set_first_node(process.first_node());
    kept.set_nodes(process.nodes());
    process = std::move(kept);
  }
  std::string json = JsonOf(status, /*with_zeros=*/true);
  if (json == status_) return "";
  return status_ = std::move(json);
}

std::string FabricFeed::RowOf(const v1::LinkStatus& status, double now, Link* link) const {
  const auto recent = [&](double utilisation, double* busy) {
    const double before = std::exchange(*busy, utilisation * now);
    const double passed = now - static_cast<double>(links_at_);
    return links_at_ < 0 || passed <= 0 ? -1.0 : std::clamp((*busy - before) / passed, 0.0, 1.0);
  };
  const double forward = recent(status.utilisation_forward(), &link->busy_forward);
  const double backward = recent(status.utilisation_backward(), &link->busy_backward);
  if (forward >= 0) link->recent_forward = forward;
  if (backward >= 0) link->recent_backward = backward;
  return fmt::format("{},{:.4f},{:.4f},{},{}", status.up() ? 1 : 0, link->recent_forward,
                     link->recent_backward, PortRow(status.forward()), PortRow(status.backward()));
}

std::string FabricFeed::LinksChange() {
  v1::ListLinksReply reply;
  if (!Ask([&](auto* context) { return control_->ListLinks(context, {}, &reply); })) return "";
  std::string changed;
  for (const v1::LinkStatus& status : reply.links()) {
    Link& link = links_[status.name()];
    if (link.fixed.empty())
      link.fixed = fmt::format("\"{}\",\"{}\"", status.ends(), status.link_class());
    std::string row = RowOf(status, static_cast<double>(reply.virtual_time()), &link);
    if (row == link.row) continue;
    link.row = std::move(row);
    changed += fmt::format("{}\"{}\":[{},{}]", changed.empty() ? "" : ",", status.name(),
                           link.fixed, link.row);
  }
  links_at_ = reply.virtual_time();
  if (changed.empty()) return "";
  return LinksJson(links_at_, changed);
}

std::string FabricFeed::CountersChange() {
  v1::GetCountersReply reply;
  if (!Ask([&](auto* context) { return control_->GetCounters(context, {}, &reply); })) return "";
  for (v1::NodeCounters& node : *reply.mutable_nodes()) node.mutable_counters()->clear_ports();
  return counters_ = JsonOf(reply, /*with_zeros=*/false);
}

std::string FabricFeed::EventsChange() {
  std::string added;
  v1::WatchEventsRequest request;
  request.set_after(last_event_);
  Ask([&](auto* context) {
    const auto reader = control_->WatchEvents(context, request);
    for (v1::EventBatch batch; reader->Read(&batch);) {
      for (const v1::FabricEvent& event : batch.events()) {
        last_event_ = event.sequence();
        events_.push_back(JsonOf(event, /*with_zeros=*/true));
        added += (added.empty() ? "" : ",") + events_.back();
        if (events_.size() > kEventsKept) events_.pop_front();
      }
    }
    return reader->Finish();
  });
  return added.empty() ? "" : "[" + added + "]";
}

std::string FabricFeed::Snapshot() const {
  std::string rows, events, message;
  for (const auto& [name, link] : links_)
    rows += fmt::format("{}\"{}\":[{},{}]", rows.empty() ? "" : ",", name, link.fixed, link.row);
  for (const std::string& event : events_) events += (events.empty() ? "" : ",") + event;
  AddPart("link_columns", kLinkColumns, &message);
  AddPart("status", status_, &message);
  AddPart("links", LinksJson(links_at_, rows), &message);
  AddPart("counters", counters_, &message);
  AddPart("events", "[" + events + "]", &message);
  return message;
}

void FabricFeed::Distribute(const std::string& delta) {
  std::vector<std::shared_ptr<FeedReader>> readers;
  {
    const std::lock_guard guard(mutex_);
    readers = readers_;
  }
  const auto message = [](const char* event, const std::string& data) {
    return std::make_shared<const std::string>(
        fmt::format("event: {}\ndata: {{{}}}\n\n", event, data));
  };
  FeedReader::Text snapshot;
  const FeedReader::Text change = message("delta", delta);
  for (const auto& reader : readers) {
    if (!reader->WantsSnapshot()) {
      reader->Push(change);
    } else {
      if (!snapshot) snapshot = message("snapshot", Snapshot());
      reader->PushSnapshot(snapshot);
    }
  }
}

}  // namespace percs
