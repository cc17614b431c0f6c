// What ranks say and hear: records of the rings become calls, completions become records.
#include <algorithm>
#include <cstring>
#include <utility>

#include "client/mpi/job.h"
#include "client/mpi/job_journal.h"
#include "fmt/format.h"

namespace percs::mpi {

bool Job::Hear() {
  const std::uint32_t rung = server_->doorbell().to_fabric.count.load();
  const bool heard = std::exchange(rung_, rung) != rung;
  if (heard) {
    for (const RankEvent& event : server_->TakeEvents()) OnEvent(event);
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].has_channel && ranks_[r].state != State::kGone) Read(r);
    }
  }
  if (!std::exchange(lines_wait_, false)) return heard;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) Flush(r);
  return heard;
}

void Job::OnEvent(const RankEvent& event) {
  Rank& rank = ranks_[event.rank];
  if (!event.gone) {
    rank.has_channel = true;
    rank.state = State::kAttached;
    ++attached_;
    return;
  }
  Read(event.rank);
  --attached_;
  rank.state = State::kGone;
  rank.completions.clear();
  rank.lines.clear();
  transport_->Leave(event.rank);
}

void Job::Read(std::uint32_t rank) {
  Channel& channel = server_->channel(rank);
  Ring& ring = channel.from_rank;
  Record record;
  bool valid = true;
  while (ring.Front(&record, &valid)) {
    Bytes bytes(record.payload);
    if (record.payload > 0) ring.Payload(bytes.data(), record.payload);
    ring.Pop(record);
    Log(rank, record, bytes);
    record.at += base_;
    record.until += base_;
    if (!OnRecord(rank, record, std::move(bytes))) valid = false;
    if (!valid) break;
  }
  if (!valid) {
    OnFailure(fmt::format(
        "rank {} wrote into its memory what is no record, or a call of a time that has passed",
        rank));
  }
  if (ring.MadeRoom()) channel.to_rank.Ring();
}

// In the ranks' own times.
void Job::Log(std::uint32_t rank, Record record, const Bytes& bytes) {
  if (record.kind == RecordKind::kWake) record.until = fabric_->now() - base_;  // it comes any time
  if (options_.calls != nullptr) options_.calls->Add(rank, record, bytes);
  if (options_.journal == nullptr) return;
  if (absl::Status status = options_.journal->Add(rank, record, bytes); !status.ok())
    OnFailure("journal: " + std::string(status.message()));
}

bool Job::HearReplayed() {
  bool heard = false;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    std::deque<LoggedCall>& calls = replay_.calls[r];
    while (!calls.empty() && ranks_[r].state != State::kAway) {
      const Record& record = calls.front().record;
      const bool late = record.kind == RecordKind::kWake && fabric_->now() >= record.until;
      if (ranks_[r].state == State::kWaiting && !late) break;
      if (!OnRecord(r, record, std::move(calls.front().bytes))) {
        OnFailure(fmt::format("rank {} calls in the journal what the run has no place for", r));
        return false;
      }
      calls.pop_front();
      heard = true;
    }
  }
  return heard;
}

bool Job::OnRecord(std::uint32_t r, const Record& record, Bytes&& bytes) {
  Rank& rank = ranks_[r];
  switch (record.kind) {
    case RecordKind::kMore: {
      if (rank.calls_begun.empty() || bytes.size() > rank.missing) return false;
      Bytes& whole = std::get<SendCall>(rank.calls_begun.front().what).bytes;
      whole.insert(whole.end(), bytes.begin(), bytes.end());
      rank.missing -= bytes.size();
      break;
    }
    case RecordKind::kActive:
      rank.state = State::kRunning;
      rank.clock = rank.earliest = record.at;
      return true;
    case RecordKind::kAway:
      rank.state = State::kAway;
      rank.clock = std::max(rank.clock, record.at);
      rank.computed = record.computed;
      rank.ended = true;
      for (auto& [at, completion] : std::exchange(rank.completions, {}))
        Deliver(r, std::move(completion));
      Wake(r);
      return true;
    case RecordKind::kWait:
      if (rank.state == State::kAway) return true;
      rank.state = State::kWaiting;
      rank.clock = std::max(rank.clock, record.at);
      rank.until = std::max(record.at, record.until);
      rank.computed = record.computed;
      return true;
    case RecordKind::kWake:
      if (rank.state != State::kWaiting) return true;  // it will hear that it was resumed
      ++late_calls_;
      rank.late = true;
      if (own_fabric_) ResumeLate(fabric_->now());
      return true;
    default:
      if (!OnCall(r, record, std::move(bytes))) return false;
  }
  if (rank.missing > 0 || rank.calls_begun.empty()) return true;
  rank.calls.push_back(std::move(rank.calls_begun.front()));
  rank.calls_begun.clear();
  return true;
}

bool Job::OnCall(std::uint32_t r, const Record& record, Bytes&& bytes) {
  Rank& rank = ranks_[r];
  if (rank.missing > 0 || record.at > kForever) return false;
  // Virtual time has passed what it says now.
  if (rank.state != State::kRunning || record.at < rank.earliest) return false;
  Call call;
  call.at = record.at;
  const bool valid =
      OnMessageCall(record, bytes, &rank.missing, &call) || OnCollectiveCall(record, bytes, &call);
  if (!valid) return false;
  rank.calls_begun.push_back(std::move(call));
  rank.earliest = std::max(rank.earliest, record.at);
  rank.clock = std::max(rank.clock, record.at);
  return true;
}

bool Job::OnMessageCall(const Record& record, Bytes& bytes, std::uint64_t* missing,
                        Call* call) const {
  if (record.kind == RecordKind::kCancel) {
    call->what = Cancelling{record.id};
    return true;
  }
  const bool sends = record.kind == RecordKind::kSend;
  if (!sends && record.kind != RecordKind::kReceive) return false;
  std::uint32_t peer = kRankUnknown;
  if (record.peer != kAnyPeer) {
    const auto found = rank_of_peer_.find(record.peer);
    if (found == rank_of_peer_.end()) return false;
    peer = found->second;
  }
  if (!sends) {
    call->what =
        ReceiveCall{record.id, peer, record.tag, record.ignore, record.bytes, record.flags};
    return true;
  }
  if (peer == kRankUnknown || record.bytes > options_.transport.message_max ||
      bytes.size() > record.bytes)
    return false;
  *missing = record.bytes - bytes.size();
  bytes.reserve(record.bytes);
  call->what = SendCall{peer, record.id, record.tag, record.data, std::move(bytes)};
  return true;
}

bool Job::OnCollectiveCall(const Record& record, Bytes& bytes, Call* call) const {
  if (!collectives_) return false;
  if (record.kind == RecordKind::kLeave) {
    call->what = Leaving{record.tag};
    return true;
  }
  if (record.kind == RecordKind::kJoin) {
    JoinCall join{record.id, record.data, std::vector<std::uint32_t>(bytes.size() / 4)};
    if (join.ranks.size() * 4 != bytes.size()) return false;
    std::memcpy(join.ranks.data(), bytes.data(), bytes.size());
    call->what = std::move(join);
    return true;
  }
  const std::uint64_t op = record.ignore >> 8, type = record.ignore & 0xff;
  if (record.kind != RecordKind::kCollective || op >= kReduceOps || type >= kOperandTypes ||
      record.flags > static_cast<std::uint32_t>(CollectiveKind::kAllreduce) ||
      record.bytes > options_.collective_bytes || record.peer >= ranks_.size() ||
      !CheckReduction(static_cast<ReduceOp>(op), static_cast<OperandType>(type)).ok() ||
      record.bytes % (op == 0 ? 1 : OperandBytes(static_cast<OperandType>(type))) != 0)
    return false;
  call->what = CollectiveCall{record.id,
                              record.tag,
                              static_cast<CollectiveKind>(record.flags),
                              static_cast<ReduceOp>(op),
                              static_cast<OperandType>(type),
                              static_cast<std::uint32_t>(record.peer),
                              record.bytes,
                              std::move(bytes)};
  return true;
}

// --- To ranks
// -----------------------------------------------------------------------------------------

void Job::OnCompletion(std::uint32_t r, Completion&& completion) {
  Rank& rank = ranks_[r];
  if (rank.state == State::kGone || rank.state == State::kElsewhere) return;
  completed_ = true;
  Note(r, completion.at, completion.peer, completion.length);
  if (rank.state == State::kAway) {
    Deliver(r, std::move(completion));
    return Wake(r);
  }
  const Time at = completion.at;
  rank.completions.emplace(at, std::move(completion));
}

bool Job::any_late() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.late; });
}

void Job::ResumeLate(Time at) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (std::exchange(ranks_[r].late, false) && ranks_[r].state == State::kWaiting)
      Resume(r, std::max(ranks_[r].clock, at));
  }
}

void Job::Resume(std::uint32_t r, Time at) {
  Rank& rank = ranks_[r];
  rank.late = false;
  rank.waited += at - rank.clock;
  rank.clock = at;
  rank.earliest = at + cost_min_;
  rank.state = State::kRunning;
  while (!rank.completions.empty() && rank.completions.begin()->first <= at) {
    Deliver(r, std::move(rank.completions.begin()->second));
    rank.completions.erase(rank.completions.begin());
  }
  Record record;
  record.kind = RecordKind::kResume;
  record.at = at;
  Write(r, record, nullptr);
  Wake(r);
}

// No rank is there in a replay.
void Job::Wake(std::uint32_t r) {
  if (server_) server_->channel(r).to_rank.Ring();
}

void Job::Deliver(std::uint32_t rank, Completion&& completion) {
  Record record;
  record.kind = RecordKind::kComplete;
  record.flags = completion.received ? kReceived : 0;
  record.code = completion.code;
  record.at = completion.at;
  record.id = completion.id;
  record.peer =
      PeerOf(options_.places[completion.peer].hub, options_.places[completion.peer].window);
  record.tag = completion.tag;
  record.data = completion.data;
  record.bytes = completion.length;
  const std::uint8_t* bytes = completion.bytes.data();
  std::uint64_t left = completion.bytes.size();
  record.ignore = left;  // bytes that follow in total
  do {
    record.payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kPayloadMax));
    Write(rank, record, bytes);
    bytes += record.payload;
    left -= record.payload;
    record.kind = RecordKind::kMore;
  } while (left > 0);
}

void Job::Write(std::uint32_t r, const Record& record, const std::uint8_t* bytes) {
  if (!server_) return;
  Rank& rank = ranks_[r];
  Record line = record;
  line.at -= base_;
  if (rank.lines.empty() && server_->channel(r).from_fabric.Write(line, bytes)) return;
  rank.lines.push_back({line, Bytes(bytes, bytes + record.payload)});
  lines_wait_ = true;
}

void Job::Flush(std::uint32_t r) {
  Rank& rank = ranks_[r];
  if (rank.lines.empty()) return;
  Channel& channel = server_->channel(r);
  while (!rank.lines.empty() &&
         channel.from_fabric.Write(rank.lines.front().record, rank.lines.front().bytes.data()))
    rank.lines.pop_front();
  channel.to_rank.Ring();
  lines_wait_ = lines_wait_ || !rank.lines.empty();
}

void Job::OnFailure(const std::string& reason) {
  if (failed_.exchange(true)) return;
  failure_ = reason;
  Record record;
  record.kind = RecordKind::kFailed;
  record.payload = static_cast<std::uint32_t>(std::min<std::size_t>(reason.size(), kPayloadMax));
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].has_channel || ranks_[r].state == State::kGone) continue;
    Write(r, record, reinterpret_cast<const std::uint8_t*>(reason.data()));
    server_->channel(r).to_rank.Ring();
  }
}

}  // namespace percs::mpi
