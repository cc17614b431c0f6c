// Messages and receives of a rank: which belong together, and how the bytes of long ones come.
#include <algorithm>
#include <utility>

#include "client/mpi/packet.h"
#include "client/mpi/transport.h"
#include "fmt/format.h"

namespace percs::mpi {
namespace {

constexpr int kReadTries = 4;
constexpr std::uint64_t kRegionMin = 65536;

bool Fits(const ReceiveCall& call, std::uint32_t from, std::uint64_t tag) {
  return (call.from == kRankUnknown || call.from == from) &&
         (tag & ~call.ignore) == (call.tag & ~call.ignore);
}

}  // namespace

// --- Sending -------------------------------------------------------------------------------------

void Transport::Send(std::uint32_t rank, Time at, SendCall call) {
  TrafficCounts& counts = ranks_[rank].counts;
  ++counts.messages;
  counts.bytes += call.bytes.size();
  std::size_t size = 0;
  while (size + 1 < std::size(counts.by_size) &&
         call.bytes.size() > (size == 0 ? 0 : std::uint64_t{1} << (size - 1)))
    ++size;
  ++counts.by_size[size];
  if (SameHub(rank, call.to)) {
    ++counts.local;
    SendLocal(rank, at, std::move(call));
  } else if (call.bytes.size() > parameters_.eager_bytes) {
    ++counts.rendezvous;
    SendLong(rank, at, std::move(call));
  } else {
    ++counts.eager;
    SendEager(rank, at, call);
  }
}

// The rank's thread copies into the send FIFO from `at` on; packets leave as they get there.
void Transport::SendEager(std::uint32_t rank, Time at, const SendCall& call) {
  Header header;
  header.type = PacketType::kEager;
  header.tag = call.tag;
  header.data = call.data;
  header.length = call.bytes.size();
  std::uint64_t done = 0;
  do {
    const std::uint64_t room = kPacketBytesMax - Header::BytesOf(header.type);
    const std::uint64_t count = std::min<std::uint64_t>(room, call.bytes.size() - done);
    Enqueue(rank, call.to, at + CopyTime(done + count), header, call.bytes.data() + done, count);
    done += count;
    header.type = PacketType::kMore;
  } while (done < call.bytes.size());
  if (call.id == 0) return;
  EndSend(rank, at + CopyTime(done), call.id);
}

void Transport::SendLong(std::uint32_t rank, Time at, SendCall call) {
  Rank& r = ranks_[rank];
  Time known_at = at;
  const std::size_t region = TakeRegion(rank, call.bytes.size(), at, &known_at);
  Header header;
  header.type = PacketType::kRequest;
  header.tag = call.tag;
  header.data = call.data;
  header.length = call.bytes.size();
  header.address = r.regions[region].address;
  header.transfer = r.next_transfer++;
  r.transfers[header.transfer] = {call.id, region};
  WindowOperation write = Operation(r, WindowOp::kWriteMemory);
  write.address = header.address;
  write.data = std::move(call.bytes);
  Issue(rank, at, std::move(write));
  Enqueue(rank, call.to, known_at, header, nullptr, 0);
}

void Transport::SendLocal(std::uint32_t rank, Time at, SendCall call) {
  auto message = std::make_shared<Message>();
  message->from = rank;
  message->tag = call.tag;
  message->data = call.data;
  message->length = call.bytes.size();
  message->bytes = std::move(call.bytes);
  message->local = true;
  message->whole = message->length <= parameters_.eager_bytes;
  const std::uint32_t to = call.to;
  if (message->whole) {
    if (call.id != 0) EndSend(rank, at, call.id);
  } else {
    message->transfer = ranks_[rank].next_transfer++;
    ranks_[rank].transfers[message->transfer] = {call.id, ~std::size_t{0}};
  }
  Act(to, at + parameters_.host.line_other_chip, [this, to, message](Time now) {
    Rank& r = ranks_[to];
    r.receive_busy = std::max(r.receive_busy, now) + parameters_.host.local_receive;
    message->visible_at = r.receive_busy;
    if (message->whole) r.receive_busy += parameters_.host.CopyTime(message->length);
    message->done_at = r.receive_busy;
    Arrive(to, message, now);
  });
}

void Transport::OnFinished(std::uint32_t rank, std::uint32_t transfer, Time now) {
  Rank& r = ranks_[rank];
  const auto found = r.transfers.find(transfer);
  if (found == r.transfers.end()) return;
  const Transfer done = found->second;
  r.transfers.erase(found);
  if (done.region < r.regions.size()) GiveRegion(rank, done.region, now);
  if (done.id != 0 && !r.gone) EndSend(rank, now, done.id);
}

void Transport::EndSend(std::uint32_t rank, Time at, std::uint64_t id) {
  Completion completion;
  completion.at = at;
  completion.id = id;
  user_.OnCompletion(rank, std::move(completion));
}

// --- Receiving -----------------------------------------------------------------------------------

void Transport::Receive(std::uint32_t rank, Time at, const ReceiveCall& call) {
  if (call.flags & kPeek) return Peek(rank, call, at);
  if (call.flags & kClaim) return Claim(rank, call, at);
  std::list<MessageRef>& unexpected = ranks_[rank].unexpected;
  const auto found = std::find_if(unexpected.begin(), unexpected.end(),
                                  [&](const MessageRef& m) { return Fits(call, m->from, m->tag); });
  if (found == unexpected.end()) {
    ranks_[rank].posted.push_back(call);
    return;
  }
  const MessageRef message = *found;
  unexpected.erase(found);
  Match(rank, message, call, at);
}

void Transport::Arrive(std::uint32_t rank, const MessageRef& message, Time now) {
  Rank& r = ranks_[rank];
  const auto found = std::find_if(r.posted.begin(), r.posted.end(), [&](const ReceiveCall& call) {
    return Fits(call, message->from, message->tag);
  });
  if (found == r.posted.end()) {
    ++r.counts.unexpected;
    r.unexpected.push_back(message);
    return;
  }
  const ReceiveCall call = *found;
  r.posted.erase(found);
  Match(rank, message, call, now);
}

void Transport::Match(std::uint32_t rank, const MessageRef& message, const ReceiveCall& call,
                      Time now) {
  message->matched = true;
  message->receive = call;
  message->matched_at = now;
  const Time begins = std::max(now, message->visible_at);
  if (message->request) return BeginRead(rank, message, begins);
  if (message->local && message->length > parameters_.eager_bytes) {
    const Time done = begins + parameters_.host.registration +
                      parameters_.host.CopyTime(std::min(message->length, call.room));
    Finish(rank, *message, done);
    return Complete(rank, message, done);
  }
  CompleteIfWhole(rank, message);
}

// A message that came before its receive was copied into a buffer of the message layer, and is
// copied again.
void Transport::CompleteIfWhole(std::uint32_t rank, const MessageRef& message) {
  if (!message->whole || !message->matched) return;
  const bool copied = message->matched_at >= message->visible_at;
  const Time again = copied ? CopyTime(message->length) : 0;
  Complete(rank, message, std::max(message->done_at, message->matched_at + again));
}

void Transport::Complete(std::uint32_t rank, const MessageRef& message, Time at) {
  if (ranks_[rank].gone) return;
  Completion completion;
  completion.at = at;
  completion.id = message->receive.id;
  completion.code = message->length > message->receive.room ? EndCode::kTruncated : EndCode::kOk;
  completion.received = true;
  completion.peer = message->from;
  completion.tag = message->tag;
  completion.data = message->data;
  completion.length = message->length;
  completion.bytes = std::move(message->bytes);
  completion.bytes.resize(std::min(message->length, message->receive.room));
  user_.OnCompletion(rank, std::move(completion));
}

void Transport::Peek(std::uint32_t rank, const ReceiveCall& call, Time now) {
  std::list<MessageRef>& unexpected = ranks_[rank].unexpected;
  const auto found = std::find_if(unexpected.begin(), unexpected.end(), [&](const MessageRef& m) {
    return m->visible_at <= now && Fits(call, m->from, m->tag);
  });
  Completion completion;
  completion.at = now;
  completion.id = call.id;
  completion.received = true;
  completion.tag = call.tag;
  completion.code = EndCode::kNoMessage;
  if (found != unexpected.end()) {
    const MessageRef message = *found;
    completion.code = EndCode::kOk;
    completion.peer = message->from;
    completion.tag = message->tag;
    completion.data = message->data;
    completion.length = message->length;
    if (call.flags & (kClaim | kDiscard)) unexpected.erase(found);
    if (call.flags & kClaim) ranks_[rank].claimed[call.id] = message;
    if (call.flags & kDiscard) Drop(rank, message, now);
  }
  user_.OnCompletion(rank, std::move(completion));
}

void Transport::Claim(std::uint32_t rank, const ReceiveCall& call, Time now) {
  auto& claimed = ranks_[rank].claimed;
  const auto found = claimed.find(call.id);
  if (found == claimed.end()) {
    Completion completion;
    completion.at = now;
    completion.id = call.id;
    completion.received = true;
    completion.code = EndCode::kNoMessage;
    return user_.OnCompletion(rank, std::move(completion));
  }
  const MessageRef message = found->second;
  claimed.erase(found);
  if (!(call.flags & kDiscard)) return Match(rank, message, call, now);
  Drop(rank, message, now);
  Completion completion;
  completion.at = now;
  completion.id = call.id;
  completion.received = true;
  completion.peer = message->from;
  completion.tag = message->tag;
  user_.OnCompletion(rank, std::move(completion));
}

// No rank gets it; its sender is notified that it is done.
void Transport::Drop(std::uint32_t rank, const MessageRef& message, Time now) {
  if (message->request || (message->local && !message->whole)) Finish(rank, *message, now);
}

void Transport::Cancel(std::uint32_t rank, Time at, std::uint64_t id) {
  std::list<ReceiveCall>& posted = ranks_[rank].posted;
  const auto found = std::find_if(posted.begin(), posted.end(),
                                  [id](const ReceiveCall& call) { return call.id == id; });
  if (found == posted.end()) return;
  Completion completion;
  completion.at = at;
  completion.id = id;
  completion.received = true;
  completion.code = EndCode::kCancelled;
  completion.tag = found->tag;
  posted.erase(found);
  user_.OnCompletion(rank, std::move(completion));
}

// --- Long messages -------------------------------------------------------------------------------

void Transport::BeginRead(std::uint32_t rank, const MessageRef& message, Time now) {
  if (std::min(message->length, message->receive.room) == 0) {
    Finish(rank, *message, now);
    return Complete(rank, message, now);
  }
  Act(rank, now, [this, rank, message](Time then) {
    Rank& r = ranks_[rank];
    Time known_at = then;
    const std::uint64_t bytes = std::min(message->length, message->receive.room);
    const std::size_t region = TakeRegion(rank, bytes, then, &known_at);
    const std::uint64_t number = r.next_read++;
    r.reads[number] = {message, region};
    Act(rank, known_at, [this, rank, number](Time later) {
      ranks_[rank].waiting_reads.push_back(number);
      NextRead(rank, later);
    });
  });
}

void Transport::NextRead(std::uint32_t rank, Time now) {
  Rank& r = ranks_[rank];
  while (r.reading < parameters_.reads && !r.waiting_reads.empty()) {
    const std::uint64_t number = r.waiting_reads.front();
    r.waiting_reads.pop_front();
    const Read& read = r.reads.at(number);
    const Message& message = *read.message;
    WindowOperation operation = Operation(r, WindowOp::kRdmaRead);
    operation.id = OperationId(OperationUse::kRead, number);
    operation.bytes = std::min(message.length, message.receive.room);
    operation.address = r.regions[read.region].address;
    operation.node = ranks_[message.from].place.hub;
    operation.peer_window = ranks_[message.from].place.window;
    operation.peer_context = operation.peer_window;
    operation.peer_address = message.address;
    ++r.reading;
    Issue(rank, now, std::move(operation));
  }
}

void Transport::OnReadDone(std::uint32_t rank, const WindowEvent& event) {
  const std::uint64_t number = NumberOf(event.id);
  Read& read = ranks_[rank].reads.at(number);
  if (event.status == WindowStatus::kOk) {
    WindowOperation operation = Operation(ranks_[rank], WindowOp::kReadMemory);
    operation.id = OperationId(OperationUse::kReadBytes, number);
    operation.address = ranks_[rank].regions[read.region].address;
    operation.bytes = std::min(read.message->length, read.message->receive.room);
    return Act(rank, event.at + reaction_,
               [this, rank, operation](Time now) { Issue(rank, now, operation); });
  }
  if (++read.tries >= kReadTries) {
    return Fail(fmt::format("{} could not read a message of {} bytes from {}: {}", Name(rank),
                            read.message->length, Name(read.message->from),
                            WindowStatusName(event.status)));
  }
  --ranks_[rank].reading;
  ranks_[rank].waiting_reads.push_front(number);
  Act(rank, event.at + parameters_.retransmit, [this, rank](Time now) { NextRead(rank, now); });
}

void Transport::OnReadBytes(std::uint32_t rank, const WindowEvent& event) {
  Rank& r = ranks_[rank];
  const auto found = r.reads.find(NumberOf(event.id));
  const Read read = found->second;
  r.reads.erase(found);
  --r.reading;
  if (event.status != WindowStatus::kOk) return CheckCompletion(rank, event);
  read.message->bytes = event.data;
  r.receive_busy = std::max(r.receive_busy, event.at) + parameters_.receive_cost;
  Complete(rank, read.message, r.receive_busy);
  const Time now = event.at + reaction_;
  GiveRegion(rank, read.region, now);
  Finish(rank, *read.message, now);
  Act(rank, now, [this, rank](Time then) { NextRead(rank, then); });
}

void Transport::Finish(std::uint32_t rank, const Message& message, Time now) {
  const std::uint32_t from = message.from, transfer = message.transfer;
  if (message.local) {
    return Act(from, now + parameters_.host.line_other_chip,
               [this, from, transfer](Time then) { OnFinished(from, transfer, then); });
  }
  Header header;
  header.type = PacketType::kFinish;
  header.transfer = transfer;
  Enqueue(rank, from, now, header, nullptr, 0);
}

// Regions are kept for the next message, as a cache of registrations does.
std::size_t Transport::TakeRegion(std::uint32_t rank, std::uint64_t bytes, Time now,
                                  Time* known_at) {
  Rank& r = ranks_[rank];
  std::size_t best = r.regions.size();
  for (std::size_t i = 0; i < r.regions.size(); ++i) {
    const Region& region = r.regions[i];
    if (region.busy || !region.registered || region.bytes < bytes) continue;
    if (best == r.regions.size() || region.bytes < r.regions[best].bytes) best = i;
  }
  *known_at = now;
  if (best < r.regions.size()) {
    r.regions[best].busy = true;
    return best;
  }
  std::uint64_t size = kRegionMin;
  while (size < bytes) size *= 2;
  auto place = std::find_if(r.regions.begin(), r.regions.end(),
                            [](const Region& region) { return !region.registered; });
  if (place == r.regions.end()) place = r.regions.insert(place, Region());
  *place = {r.next_address, size, true, true};
  r.next_address += size;
  WindowOperation memory = Operation(r, WindowOp::kRegister);
  memory.address = place->address;
  memory.bytes = size;
  Issue(rank, now, memory);
  *known_at = now + parameters_.host.network_registration;
  return static_cast<std::size_t>(place - r.regions.begin());
}

void Transport::GiveRegion(std::uint32_t rank, std::size_t index, Time now) {
  Rank& r = ranks_[rank];
  r.regions[index].busy = false;
  std::uint64_t kept = 0;
  for (const Region& region : r.regions)
    kept += region.busy || !region.registered ? 0 : region.bytes;
  if (kept <= parameters_.kept_registered) return;
  r.regions[index].registered = false;
  WindowOperation memory = Operation(r, WindowOp::kDeregister);
  memory.address = r.regions[index].address;
  Act(rank, now, [this, rank, memory](Time then) { Issue(rank, then, memory); });
}

}  // namespace percs::mpi
