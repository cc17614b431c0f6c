#include "daemon/link/codec.h"

#include <algorithm>
#include <cstring>

#include "emulator/base/check.h"
#include "emulator/base/zigzag.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Flags of a run.
constexpr std::uint64_t kTail = 1, kPoisoned = 2, kHead = 4, kPayload = 8, kMessageLayer = 16,
                        kTraced = 32, kCorrupt = 64;
constexpr std::uint64_t kRunFlags = 127;
// Tables of a control item.
constexpr std::uint64_t kNoTables = 0, kInlineTables = 1, kSameTables = 2;

// Bytes of payload that flits [first, first + count) of a packet carry.
struct Slice {
  int offset, size;
};
Slice SliceOf(int first, int count, int bytes) {
  const int begin = std::min(first * kFlitBytes, bytes);
  return {begin, std::min((first + count) * kFlitBytes, bytes) - begin};
}

// Collects small numbers on the stack and appends them in one go.
class Writer {
 public:
  Writer(Time base, std::string* out) : base_(base), out_(out) {}
  ~Writer() { Flush(); }
  void Number(std::uint64_t v) {
    if (size_ + 10 > sizeof(buffer_)) Flush();
    while (v >= 0x80) {
      buffer_[size_++] = static_cast<char>(v | 0x80);
      v >>= 7;
    }
    buffer_[size_++] = static_cast<char>(v);
  }
  void At(Time t) { Number(ZigZag(t - base_)); }
  void Fixed64(std::uint64_t v) {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(v >> (8 * i));
    Bytes(bytes, 8);
  }
  void Bytes(const void* data, std::size_t size) {
    Flush();
    out_->append(static_cast<const char*>(data), size);
  }

 private:
  void Flush() {
    out_->append(buffer_, size_);
    size_ = 0;
  }
  Time base_;
  std::string* out_;
  std::size_t size_ = 0;
  char buffer_[256];
};

void WriteHeader(const PacketHeader& h, Writer* w) {
  w->Number(h.destination);
  w->Number(h.source_window);
  w->Number(h.destination_window);
  w->Number(h.bytes);
  w->Number(h.flits);
  w->Number(static_cast<std::uint64_t>(h.kind));
  w->Number(static_cast<std::uint64_t>(h.mode));
  w->Number(static_cast<std::uint64_t>(h.position - kInjected));
  w->Number(h.hops);
  w->Number(h.middle);
  w->Number(h.epoch);
  w->At(h.created);
  w->Fixed64(h.path);
}

void WriteMessageLayer(const PacketHeader& h, Writer* w) {
  w->Number(h.flow_sequence);
  w->Number(h.flow_base);
  w->Number(h.message);
  w->Number(h.tag);
  w->Number(h.message_bytes);
  w->Number(h.offset);
  w->At(h.message_created);
}

bool HasMessageLayer(const PacketHeader& h) {
  return h.kind != PacketKind::kRaw || h.flow_sequence || h.flow_base || h.message || h.tag ||
         h.message_bytes || h.offset || h.message_created;
}

void WriteRun(const FlitRun& run, Writer* w) {
  const PacketHeader& h = run.header;
  const bool head = run.first == 0;
  const bool message_layer = head && HasMessageLayer(h);
  w->Number((run.tail ? kTail : 0) | (run.tail_marks & kPoisonMark ? kPoisoned : 0) |
            (run.tail_marks & kCorruptMark ? kCorrupt : 0) | (head ? kHead : 0) |
            (h.payload ? kPayload : 0) | (message_layer ? kMessageLayer : 0) |
            (head && h.traced ? kTraced : 0));
  w->Number(run.node);
  w->Number(run.port);
  w->Number(run.vc);
  w->Number(run.count);
  if (!head) w->Number(run.first);
  w->At(run.arrival);
  w->Number(static_cast<std::uint64_t>(run.spacing));
  w->Number(run.generation);
  w->Number(h.source);
  w->Number(h.sequence);
  if (head) WriteHeader(h, w);
  if (message_layer) WriteMessageLayer(h, w);
  if (h.payload) {
    // Only a head is sure to know the packet's length.
    const Slice slice = SliceOf(run.first, run.count, head || h.bytes ? h.bytes : kPacketBytesMax);
    w->Number(static_cast<std::uint64_t>(slice.size));
    w->Bytes(h.payload.bytes() + slice.offset, static_cast<std::size_t>(slice.size));
  }
}

void WriteCredit(const CreditRun& credit, Writer* w) {
  w->Number(credit.node);
  w->Number(credit.port);
  w->Number(credit.vc);
  w->Number(credit.count);
  w->At(credit.arrival);
  w->Number(static_cast<std::uint64_t>(credit.spacing));
  w->Number(credit.generation);
}

void WriteMark(const PoisonMark& mark, Writer* w) {
  w->Number(mark.node);
  w->Number(mark.port);
  w->Number(mark.vc);
  w->At(mark.arrival);
  w->Number(mark.generation);
  w->Number(mark.source);
  w->Number(mark.sequence);
}

// A plan goes to all its hubs: written once.
void WriteTree(const ControlItem& item, const TreePlan** last, Writer* w) {
  w->Number(item.tree);
  w->Number(static_cast<std::uint64_t>(item.problem.code));
  w->Number(static_cast<std::uint64_t>(item.problem.operation));
  w->Number(item.problem.sequence);
  w->Number(item.problem.a);
  w->Number(item.problem.b);
  if (!item.plan) return w->Number(kNoTables);
  if (item.plan.get() == *last) return w->Number(kSameTables);
  *last = item.plan.get();
  const std::string bytes = item.plan->Serialize();
  w->Number(kInlineTables);
  w->Number(bytes.size());
  w->Bytes(bytes.data(), bytes.size());
}

void WriteControl(const ControlItem& item, const HubTables** last, const TreePlan** last_tree,
                  Writer* w) {
  w->Number(static_cast<std::uint64_t>(item.kind));
  w->Number(item.target);
  w->Number(item.source);
  w->Number(item.port);
  w->Number(item.up);
  w->Number(item.epoch);
  w->Number(item.hops);
  w->At(item.arrival);
  w->At(item.raised);
  w->Fixed64(item.hash);
  if (item.of_tree()) WriteTree(item, last_tree, w);
  if (!item.tables) return w->Number(kNoTables);
  if (item.tables.get() == *last) return w->Number(kSameTables);
  *last = item.tables.get();
  const std::string bytes = item.tables->Serialize();
  w->Number(kInlineTables);
  w->Number(bytes.size());
  w->Bytes(bytes.data(), bytes.size());
}

}  // namespace

void EncodeOutbox(const Outbox& outbox, std::string* out) {
  const Time earliest = outbox.EarliestArrival();
  const Time base = earliest == kNever ? 0 : earliest;
  Writer w(base, out);
  w.Number(static_cast<std::uint64_t>(base));
  w.Number(outbox.flits.size());
  w.Number(outbox.credits.size());
  w.Number(outbox.marks.size());
  w.Number(outbox.control.size());
  for (const FlitRun& run : outbox.flits) WriteRun(run, &w);
  for (const CreditRun& credit : outbox.credits) WriteCredit(credit, &w);
  for (const PoisonMark& mark : outbox.marks) WriteMark(mark, &w);
  const HubTables* last = nullptr;
  const TreePlan* last_tree = nullptr;
  for (const ControlItem& item : outbox.control) WriteControl(item, &last, &last_tree, &w);
}

// One pass over a batch. The first error sticks; reading on after it yields zeros.
class BatchReader {
 public:
  BatchReader(absl::Span<const std::uint8_t> bytes, OutboxDecoder* decoder)
      : begin_(bytes.data()), p_(bytes.data()), end_(p_ + bytes.size()), decoder_(decoder) {}

  absl::Status Read(Outbox* outbox);

 private:
  bool failed() const { return !status_.ok(); }
  void Fail(const std::string& what) {
    if (failed()) return;
    status_ = absl::InvalidArgumentError(fmt::format("batch of {} bytes, {} at byte {}: {}",
                                                     end_ - begin_, part_, p_ - begin_, what));
    p_ = end_;
  }
  std::uint64_t Number(std::uint64_t limit, const char* what) {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (p_ == end_) return Fail(fmt::format("ends inside {}", what)), 0;
      const std::uint8_t byte = *p_++;
      if (shift == 63 && byte > 1) break;
      v |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte & 0x80) continue;
      if (v > limit) return Fail(fmt::format("{} is {}, more than {}", what, v, limit)), 0;
      return v;
    }
    return Fail(fmt::format("{} has more than 64 bits", what)), 0;
  }
  template <typename T>
  T Small(std::uint64_t limit, const char* what) {
    return static_cast<T>(Number(limit, what));
  }
  Time At(const char* what) {
    const std::int64_t delta = UnZigZag(Number(~0ull, what));
    if (delta < -kNever || delta > kNever) return Fail(fmt::format("{} is out of range", what)), 0;
    const Time t = base_ + delta;
    if (t < 0 || t > kNever) return Fail(fmt::format("{} is out of range", what)), 0;
    return t;
  }
  std::uint64_t Fixed64(const char* what) {
    if (end_ - p_ < 8) return Fail(fmt::format("ends inside {}", what)), 0;
    std::uint64_t v = 0;
    for (int i = 0; i < 8; ++i) v |= static_cast<std::uint64_t>(*p_++) << (8 * i);
    return v;
  }
  // A count of items that take at least `item_bytes` each cannot be more than the bytes left allow.
  std::size_t Count(std::size_t item_bytes, const char* what) {
    const std::uint64_t n = Number(~0ull, what);
    const auto left = static_cast<std::size_t>(end_ - p_);
    if (n > left / item_bytes) {
      return Fail(fmt::format("{} {} do not fit into the {} bytes left", n, what, left)), 0;
    }
    return static_cast<std::size_t>(n);
  }

  void ReadPlace(NodeId* node, PortId* port, VcId* vc) {
    *node = Small<NodeId>(kNoNode - 1, "node");
    *port = Small<PortId>(kPorts - 1, "port");
    *vc = Small<VcId>(kServiceVc, "VC");
  }
  void ReadHeader(PacketHeader* h);
  void ReadMessageLayer(PacketHeader* h);
  void ReadRun(FlitRun* run);
  void ReadPayload(bool head, FlitRun* run);
  void ReadCredit(CreditRun* credit);
  void ReadMark(PoisonMark* mark);
  void ReadControl(ControlItem* item);
  void ReadTables(ControlItem* item);
  void ReadTree(ControlItem* item);
  void ReadPlan(ControlItem* item);

  const std::uint8_t* begin_;
  const std::uint8_t* p_;
  const std::uint8_t* end_;
  OutboxDecoder* decoder_;
  Time base_ = 0;
  const char* part_ = "header";
  std::shared_ptr<const HubTables> last_tables_;
  std::shared_ptr<const TreePlan> last_plan_;
  absl::Status status_;
};

absl::Status BatchReader::Read(Outbox* outbox) {
  base_ = static_cast<Time>(Number(kNever, "earliest arrival"));
  const std::size_t flits = Count(10, "flit runs");
  const std::size_t credits = Count(7, "credit runs");
  const std::size_t marks = Count(7, "poison marks");
  const std::size_t control = Count(18, "control items");
  part_ = "flit run";
  outbox->flits.reserve(outbox->flits.size() + flits);
  for (std::size_t i = 0; i < flits && !failed(); ++i) ReadRun(&outbox->flits.emplace_back());
  part_ = "credit run";
  for (std::size_t i = 0; i < credits && !failed(); ++i)
    ReadCredit(&outbox->credits.emplace_back());
  part_ = "poison mark";
  for (std::size_t i = 0; i < marks && !failed(); ++i) ReadMark(&outbox->marks.emplace_back());
  part_ = "control item";
  for (std::size_t i = 0; i < control && !failed(); ++i)
    ReadControl(&outbox->control.emplace_back());
  part_ = "end";
  if (p_ != end_) Fail(fmt::format("{} bytes too many", end_ - p_));
  return status_;
}

void BatchReader::ReadHeader(PacketHeader* h) {
  h->destination = Small<NodeId>(kNoNode - 1, "destination");
  h->source_window = Small<WindowId>(0xffff, "source window");
  h->destination_window = Small<WindowId>(0xffff, "destination window");
  h->bytes = Small<std::uint16_t>(kPacketBytesMax, "packet bytes");
  h->flits = Small<std::uint8_t>(kPacketFlitsMax, "packet flits");
  h->kind = Small<PacketKind>(static_cast<std::uint64_t>(kLastPacketKind), "packet kind");
  h->mode = Small<RouteMode>(static_cast<int>(RouteMode::kAdaptive), "route mode");
  h->position = static_cast<Position>(Number(kL2 - kInjected, "position")) + kInjected;
  h->hops = Small<std::uint8_t>(0xff, "hops");
  h->middle = Small<std::uint16_t>(0xffff, "middle supernode");
  h->epoch = Small<Epoch>(0xffffffff, "epoch");
  h->created = At("creation time");
  h->path = Fixed64("path");
  if (h->flits == 0) Fail("a packet of no flits");
}

void BatchReader::ReadMessageLayer(PacketHeader* h) {
  h->flow_sequence = Small<std::uint32_t>(0xffffffff, "flow sequence");
  h->flow_base = Small<std::uint32_t>(0xffffffff, "flow base");
  h->message = Small<std::uint32_t>(0xffffffff, "message");
  h->tag = Small<std::uint32_t>(0xffffffff, "tag");
  h->message_bytes = Number(~0ull, "message bytes");
  h->offset = Number(~0ull, "offset");
  h->message_created = At("message creation time");
}

void BatchReader::ReadRun(FlitRun* run) {
  const std::uint64_t flags = Number(kRunFlags, "flags");
  const bool head = flags & kHead;
  run->tail = flags & kTail;
  run->tail_marks = static_cast<std::uint8_t>((flags & kPoisoned ? kPoisonMark : 0) |
                                              (flags & kCorrupt ? kCorruptMark : 0));
  ReadPlace(&run->node, &run->port, &run->vc);
  run->count = Small<std::uint8_t>(kPacketFlitsMax + 1, "flits");
  run->first = head ? 0 : Small<std::uint8_t>(kPacketFlitsMax, "first flit");
  run->arrival = At("arrival");
  run->spacing = static_cast<Time>(Number(kSecond, "spacing"));
  run->generation = Small<std::uint32_t>(0xffffffff, "generation");
  run->header.source = Small<NodeId>(kNoNode - 1, "source");
  run->header.sequence = Number(~0ull, "sequence");
  if (head) ReadHeader(&run->header);
  run->header.traced = (flags & kTraced) != 0;
  if (flags & kMessageLayer) {
    if (!head) Fail("message layer without a head");
    ReadMessageLayer(&run->header);
  }
  if (!failed() && run->count == 0) Fail("a run of no flits");
  if (!failed() && !head && run->first == 0) Fail("flit 0 without a head");
  if (!failed() && (flags & kPayload)) ReadPayload(head, run);
}

void BatchReader::ReadPayload(bool head, FlitRun* run) {
  PacketHeader& h = run->header;
  const std::uint64_t key = (static_cast<std::uint64_t>(run->node) << 16) |
                            (static_cast<std::uint64_t>(run->port) << 8) | run->vc;
  auto& open = decoder_->open_;
  auto it = open.find(key);
  const Slice slice = SliceOf(run->first, run->count, head ? h.bytes : kPacketBytesMax);
  const auto size = Small<int>(static_cast<std::uint64_t>(slice.size), "bytes of payload");
  if (head) {
    h.payload = PayloadRef::Make();
  } else {
    if (it == open.end() || it->second.source != h.source || it->second.sequence != h.sequence) {
      return Fail(fmt::format("flits {} on of packet ({}, {}) whose head did not come this way",
                              run->first, h.source, h.sequence));
    }
    h.payload = it->second.payload;
  }
  if (failed()) return;
  if (end_ - p_ < size) return Fail(fmt::format("ends inside {} bytes of payload", size));
  std::memcpy(h.payload.bytes() + slice.offset, p_, static_cast<std::size_t>(size));
  p_ += size;
  if (run->tail) {
    if (it != open.end()) open.erase(it);
  } else if (head) {
    if (it == open.end() && open.size() >= decoder_->open_packets_max_) {
      return Fail(
          fmt::format("more than {} packets are open at once", decoder_->open_packets_max_));
    }
    open[key] = {h.source, h.sequence, h.payload};
  }
}

void BatchReader::ReadCredit(CreditRun* credit) {
  ReadPlace(&credit->node, &credit->port, &credit->vc);
  credit->count = Small<std::uint16_t>(0xffff, "credits");
  credit->arrival = At("arrival");
  credit->spacing = static_cast<Time>(Number(kSecond, "spacing"));
  credit->generation = Small<std::uint32_t>(0xffffffff, "generation");
  if (!failed() && credit->count == 0) Fail("a run of no credits");
}

void BatchReader::ReadMark(PoisonMark* mark) {
  ReadPlace(&mark->node, &mark->port, &mark->vc);
  mark->arrival = At("arrival");
  mark->generation = Small<std::uint32_t>(0xffffffff, "generation");
  mark->source = Small<NodeId>(kNoNode - 1, "source");
  mark->sequence = Number(~0ull, "sequence");
}

void BatchReader::ReadControl(ControlItem* item) {
  item->kind = Small<ControlItem::Kind>(kControlKinds - 1, "kind");
  item->target = Small<NodeId>(kNoNode, "target");
  item->source = Small<NodeId>(kNoNode, "source");
  item->port = Small<PortId>(kNoPort, "port");
  item->up = Number(1, "up") != 0;
  item->epoch = Small<Epoch>(0xffffffff, "epoch");
  item->hops = Small<std::uint16_t>(0xffff, "hops");
  item->arrival = At("arrival");
  item->raised = At("raised");
  item->hash = Fixed64("hash");
  if (item->of_tree()) ReadTree(item);
  ReadTables(item);
}

void BatchReader::ReadTree(ControlItem* item) {
  item->tree = Small<CauTreeId>(0xffff, "tree");
  item->problem.code = Small<TreeProblem::Code>(kTreeProblemCodes - 1, "problem");
  item->problem.operation = Small<CauOperation>(1, "operation");
  item->problem.sequence = Small<std::uint32_t>(0xffffffff, "sequence of the operation");
  item->problem.a = Small<NodeId>(kNoNode, "first node of the problem");
  item->problem.b = Small<NodeId>(kNoNode, "second node of the problem");
  ReadPlan(item);
}

void BatchReader::ReadPlan(ControlItem* item) {
  const std::uint64_t how = Number(kSameTables, "plan");
  if (failed() || how == kNoTables) return;
  if (how == kSameTables) {
    if (!last_plan_) return Fail("refers to a plan of an earlier item, of which there is none");
    item->plan = last_plan_;
    return;
  }
  const std::size_t size = Count(1, "bytes of a plan");
  if (failed()) return;
  auto plan = TreePlan::Parse(absl::MakeConstSpan(p_, size));
  if (!plan.ok()) return Fail(std::string(plan.status().message()));
  item->plan = last_plan_ = std::make_shared<const TreePlan>(*std::move(plan));
  p_ += size;
}

void BatchReader::ReadTables(ControlItem* item) {
  const std::uint64_t how = Number(kSameTables, "tables");
  if (failed() || how == kNoTables) return;
  if (how == kSameTables) {
    if (!last_tables_) return Fail("refers to tables of an earlier item, of which there is none");
    item->tables = last_tables_;
    return;
  }
  const std::size_t size = Count(1, "bytes of tables");
  if (failed()) return;
  auto tables = HubTables::Parse(absl::MakeConstSpan(p_, size));
  if (!tables.ok()) return Fail(std::string(tables.status().message()));
  last_tables_ = std::make_shared<const HubTables>(*std::move(tables));
  item->tables = last_tables_;
  p_ += size;
}

absl::Status OutboxDecoder::Decode(absl::Span<const std::uint8_t> bytes, Outbox* outbox) {
  return BatchReader(bytes, this).Read(outbox);
}

}  // namespace percs
