#include "client/mpi/call_log.h"

#include <google/protobuf/io/coded_stream.h>

#include <utility>

#include "emulator/base/zigzag.h"

namespace percs::mpi {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

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
  std::uint8_t bytes[10];
  std::uint8_t* const end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
  to->append(bytes, end);
}

class Reader {
 public:
  explicit Reader(const std::string& text)
      : size_(static_cast<int>(text.size())),
        in_(reinterpret_cast<const std::uint8_t*>(text.data()), size_) {}
  bool more() const { return ok_ && left() > 0; }
  bool ok() const { return ok_; }
  std::uint64_t Number() {
    std::uint64_t value = 0;
    ok_ = in_.ReadVarint64(&value) && ok_;
    return ok_ ? value : 0;
  }
  Bytes Take(std::uint64_t count) {
    ok_ = ok_ && count <= static_cast<std::uint64_t>(left());
    Bytes bytes(ok_ ? count : 0);
    in_.ReadRaw(bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

 private:
  int left() const { return size_ - in_.CurrentPosition(); }

  const int size_;
  CodedInputStream in_;
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
    put(kUntil, ZigZag(record.until));
  }
  put(kComputed, ZigZag(record.computed - last.computed));
  put(kId, record.id);
  put(kPeer, record.peer + 1);  // kAnyPeer is 0
  put(kTag, record.tag);
  put(kIgnore, record.ignore);
  put(kData, record.data);
  put(kBytes, record.bytes);
  PutNumber(static_cast<std::uint64_t>(record.kind), &text_);
  PutNumber(rank, &text_);
  PutNumber(mask, &text_);
  PutNumber(ZigZag(record.at - last.at), &text_);
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
      r.at = last[rank].first += UnZigZag(in.Number());
      r.flags = static_cast<std::uint32_t>(get(kFlags));
      r.code = static_cast<EndCode>(get(kCode));
      r.payload = static_cast<std::uint32_t>(get(kPayload));
      r.until = (mask & kUntilForever) != 0 ? kForever : UnZigZag(get(kUntil));
      r.computed = last[rank].second += UnZigZag(get(kComputed));
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
