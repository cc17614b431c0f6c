#include "client/mpi/call_log.h"

#include <cstring>
#include <utility>

namespace percs::mpi {
namespace {

// Of a record, beside its kind: which of its fields follow. The end of waiting without a time is a
// flag, because it is the most frequent one.
enum Field : std::uint32_t {
  kFlags = 1,
  kCode = 2,
  kPayload = 4,
  kUntil = 8,
  kComputed = 16,
  kId = 32,
  kPeer = 64,
  kTag = 128,
  kIgnore = 256,
  kData = 512,
  kBytes = 1024,
  kUntilForever = 2048,
};

void PutNumber(std::uint64_t value, std::string* to) {
  while (value >= 0x80) {
    to->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  to->push_back(static_cast<char>(value));
}

// Small numbers of either sign are short.
std::uint64_t Folded(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t Unfolded(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

class Reader {
 public:
  explicit Reader(const std::string& text) : at_(text.data()), end_(at_ + text.size()) {}
  bool more() const { return ok_ && at_ < end_; }
  bool ok() const { return ok_; }
  std::uint64_t Number() {
    std::uint64_t value = 0;
    for (int shift = 0; at_ < end_ && shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(*at_++);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    ok_ = false;
    return 0;
  }
  Bytes Take(std::uint64_t count) {
    ok_ = ok_ && count <= static_cast<std::uint64_t>(end_ - at_);
    if (!ok_) return {};
    Bytes bytes(at_, at_ + count);
    at_ += count;
    return bytes;
  }

 private:
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace

void CallLog::Add(std::uint32_t rank, const Record& record, const Bytes& bytes) {
  Last& last = last_[rank];
  std::string fields;
  std::uint32_t mask = 0;
  const auto put = [&](Field field, std::uint64_t value) {
    if (value == 0) return;
    mask |= field;
    PutNumber(value, &fields);
  };
  put(kFlags, record.flags);
  put(kCode, static_cast<std::uint64_t>(record.code));
  put(kPayload, record.payload);
  if (record.until == kForever) {
    mask |= kUntilForever;
  } else {
    put(kUntil, Folded(record.until));
  }
  put(kComputed, Folded(record.computed - last.computed));
  put(kId, record.id);
  put(kPeer, record.peer + 1);  // kAnyPeer is 0
  put(kTag, record.tag);
  put(kIgnore, record.ignore);
  put(kData, record.data);
  put(kBytes, record.bytes);
  PutNumber(static_cast<std::uint64_t>(record.kind), &text_);
  PutNumber(rank, &text_);
  PutNumber(mask, &text_);
  PutNumber(Folded(record.at - last.at), &text_);
  text_ += fields;
  text_.append(bytes.begin(), bytes.end());
  last = {record.at, record.computed};
}

std::string CallLog::Take() { return std::exchange(text_, std::string()); }

absl::StatusOr<std::vector<std::deque<LoggedCall>>> ReadCalls(
    std::size_t ranks, const std::vector<std::string>& parts) {
  std::vector<std::deque<LoggedCall>> calls(ranks);
  std::vector<std::pair<std::int64_t, std::int64_t>> last(ranks);
  for (const std::string& part : parts) {
    Reader in(part);
    while (in.more()) {
      LoggedCall call;
      Record& r = call.record;
      const std::uint64_t kind = in.Number(), rank = in.Number();
      const std::uint64_t mask = in.Number();
      if (kind > static_cast<std::uint64_t>(RecordKind::kMore) || rank >= ranks)
        return absl::DataLossError("the calls of an MPI program in the journal are damaged");
      const auto get = [&](Field field) { return (mask & field) != 0 ? in.Number() : 0; };
      r.kind = static_cast<RecordKind>(kind);
      r.at = last[rank].first += Unfolded(in.Number());
      r.flags = static_cast<std::uint32_t>(get(kFlags));
      r.code = static_cast<EndCode>(get(kCode));
      r.payload = static_cast<std::uint32_t>(get(kPayload));
      r.until = (mask & kUntilForever) != 0 ? kForever : Unfolded(get(kUntil));
      r.computed = last[rank].second += Unfolded(get(kComputed));
      r.id = get(kId);
      r.peer = get(kPeer) - 1;
      r.tag = get(kTag);
      r.ignore = get(kIgnore);
      r.data = get(kData);
      r.bytes = get(kBytes);
      call.bytes = in.Take(r.payload);
      if (!in.ok())
        return absl::DataLossError("the calls of an MPI program in the journal are cut off");
      calls[rank].push_back(std::move(call));
    }
  }
  return calls;
}

}  // namespace percs::mpi
