#include "daemon/page/fabric_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/page/processor_time.h"
#include "fmt/format.h"

namespace percs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kEvery(200);
constexpr int kShareOfTime = 33;  // looking costs no more than 3 % of wall time
constexpr std::chrono::seconds kSlowest(5), kCallLimit(3);

}  // namespace

FabricFeed::FabricFeed(const std::shared_ptr<grpc::Channel>& channel, LookAtFabric look)
    : control_(v1::Control::NewStub(channel)), look_(std::move(look)), thread_([this] { Run(); }) {}

absl::Status FabricFeed::Add(std::shared_ptr<FeedReader> reader) {
  const MutexLock guard(gate_->mutex);
  if (stopped_) return absl::UnavailableError("the controller is shutting down");
  if (readers_.size() >= kReadersMax) {
    return absl::ResourceExhaustedError(
        fmt::format("{} pages are open already, which is the maximum; close one", kReadersMax));
  }
  readers_.push_back(std::move(reader));
  gate_->changed.notify_all();
  return absl::OkStatus();
}

void FabricFeed::Remove(const FeedReader* reader) {
  const MutexLock guard(gate_->mutex);
  std::erase_if(readers_, [reader](const auto& r) { return r.get() == reader; });
}

void FabricFeed::Stop() {
  {
    const MutexLock guard(gate_->mutex);
    stopped_ = true;
    if (under_way_ != nullptr) under_way_->TryCancel();
    gate_->changed.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::vector<std::shared_ptr<FeedReader>> readers;
  {
    const MutexLock guard(gate_->mutex);
    readers.swap(readers_);
  }
  for (const auto& reader : readers) reader->End();
}

void FabricFeed::Run() {
  MutexLock lock(gate_->mutex);
  while (!stopped_) {
    if (readers_.empty()) {
      writer_.ForgetRecent();
      gate_->changed.wait(gate_->mutex);
      continue;
    }
    lock.unlock();
    const auto start = Clock::now();
    const auto worked = ProcessorTime();
    LookAgain();
    Distribute();
    const auto pause = std::clamp<Clock::duration>(
        (ProcessorTime() - worked + cost_) * kShareOfTime, kEvery, kSlowest);
    lock.lock();
    const auto stopped = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate_->mutex) { return stopped_; };
    gate_->changed.wait_until(gate_->mutex, start + pause, stopped);
  }
}

template <typename Call>
bool FabricFeed::Ask(const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
  {
    const MutexLock guard(gate_->mutex);
    if (stopped_) return false;
    under_way_ = &context;
  }
  const grpc::Status status = call(&context);
  const MutexLock guard(gate_->mutex);
  under_way_ = nullptr;
  return status.ok();
}

void FabricFeed::LookAgain() {
  cost_ = {};
  v1::StatusReply status;
  if (!Ask([&](auto* context) { return control_->Status(context, {}, &status); })) return;
  const bool passed = status.run() != writer_.run() || status.virtual_time() != writer_.seen_at();
  writer_.TakeStatus(status);
  if (status.run() == 0 || status.state() == v1::FABRIC_STATE_CONFIGURING) return;
  if (!TakeEvents() && !passed) return;
  const auto answer = AskForSight();
  if (!answer || !answer->sight.ok() || answer->sight->run != writer_.run()) return;
  cost_ = answer->sight->cost;
  writer_.TakeSight(*std::move(answer->sight));
}

// A fabric that has not answered is not asked again before it has.
std::shared_ptr<FabricFeed::Answer> FabricFeed::AskForSight() {
  if (!asked_) {
    asked_ = std::make_shared<Answer>();
    look_([gate = gate_, answer = asked_](absl::StatusOr<FabricSight> sight) {
      const MutexLock guard(gate->mutex);
      answer->sight = std::move(sight);
      answer->there = true;
      gate->changed.notify_all();
    });
  }
  const MutexLock lock(gate_->mutex);
  const Clock::time_point until = Clock::now() + kCallLimit;
  while (!stopped_ && !asked_->there) {
    if (gate_->changed.wait_until(gate_->mutex, until) == std::cv_status::timeout) break;
  }
  if (!asked_->there) return nullptr;
  return std::exchange(asked_, nullptr);
}

bool FabricFeed::TakeEvents() {
  v1::WatchEventsRequest request;
  request.set_after(writer_.last_event());
  Ask([&](auto* context) {
    const auto reader = control_->WatchEvents(context, request);
    for (v1::EventBatch batch; reader->Read(&batch);) {
      for (const v1::FabricEvent& event : batch.events()) writer_.TakeEvent(event);
    }
    return reader->Finish();
  });
  return writer_.last_event() != request.after();
}

void FabricFeed::Distribute() {
  std::vector<std::shared_ptr<FeedReader>> readers;
  {
    const MutexLock guard(gate_->mutex);
    readers = readers_;
  }
  FeedReader::Text snapshot;
  const auto delta = std::make_shared<const std::string>(writer_.Delta());
  for (const auto& reader : readers) {
    if (!reader->WantsSnapshot()) {
      reader->Push(delta);
    } else {
      if (!snapshot) snapshot = std::make_shared<const std::string>(writer_.Snapshot());
      reader->PushSnapshot(snapshot);
    }
  }
}

}  // namespace percs
