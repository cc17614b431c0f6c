#include "client/ofi/rank.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace percs::mpi {
namespace {

// Open MPI's states of a process (ompi/runtime/mpiruntime.h): between them programs communicate.
constexpr int kInitCompleted = 2, kFinalizeStarted = 3;
// Blocking calls look elsewhere after so long of wall time without a message. A test waits for the
// answer of a known time, which comes unless another rank is held up for a reason that the fabric
// does not know: it gives up after many times as long, and only then does a run not repeat.
constexpr long kPatienceMilliseconds = 50;
constexpr int kPatiencesOfATest = 100;
constexpr long kRoomMilliseconds = 10;
constexpr unsigned kSamePolls = 16, kDoublingsMax = 7;
// The longest chain of parts of Open MPI that act one after the other without a message has four
// (a step of a communicator's creation, and a round of a nonblocking collective inside it).
constexpr std::uint64_t kQuietPasses = 16;

std::uint32_t NumberFrom(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text != nullptr && *text != 0)
      return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  }
  return kRankUnknown;
}

}  // namespace

std::unique_ptr<RankLink> RankLink::Connect(std::string* why) {
  const char* path = std::getenv(kSocketVariable);
  if (path == nullptr || *path == 0) {
    *why = std::string("no fabric: ") + kSocketVariable +
           " is not set; start the program with `percsctl mpirun`";
    return nullptr;
  }
  std::unique_ptr<RankLink> link(new RankLink());
  if (!link->Greet(path, why)) return nullptr;
  if (void* clock = dlsym(RTLD_DEFAULT, kClockSymbol)) {
    link->clock_ = static_cast<VirtualClock*>(clock);
    link->watched_ = true;  // the library that owns it watches passes, too
    silent = link.get();
    link->clock_->look = &LookInFinalize;
  }
  link->mpi_state_ = static_cast<const int*>(dlsym(RTLD_DEFAULT, "ompi_mpi_state"));
  link->clock_->scale = static_cast<std::int64_t>(link->welcome_.compute_scale * 1000 * 1024);
  std::memcpy(link->clock_->hub, link->welcome_.hub, kHubNameBytes - 1);
  link->clock_->attached = true;
  return link;
}

bool RankLink::Greet(const char* path, std::string* why) {
  socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  Hello hello;
  hello.rank = NumberFrom({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"});
  // A folder has a socket for each rank.
  struct stat status {};
  std::string socket = path;
  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
    socket += "/" + std::to_string(hello.rank);
  std::strncpy(address.sun_path, socket.c_str(), sizeof(address.sun_path) - 1);
  hello.ranks = NumberFrom({"OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"});
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  iovec part{&welcome_, sizeof(welcome_)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (socket_ < 0 ||
      connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      send(socket_, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello) ||
      recvmsg(socket_, &message, MSG_CMSG_CLOEXEC) != sizeof(welcome_)) {
    *why = std::string("the fabric at ") + path + " does not answer: " + std::strerror(errno);
    return false;
  }
  welcome_.refused[sizeof(welcome_.refused) - 1] = 0;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (welcome_.refused[0] != 0 || welcome_.magic != kChannelMagic ||
      welcome_.version != kChannelVersion || header == nullptr) {
    *why = std::string("the fabric refuses: ") +
           (welcome_.refused[0] != 0 ? welcome_.refused : "it is of another version");
    return false;
  }
  int files[2];
  std::memcpy(files, CMSG_DATA(header), sizeof(files));
  Map(files, why);
  return channel_ != nullptr;
}

void RankLink::Map(const int* files, std::string* why) {
  constexpr int kRights = PROT_READ | PROT_WRITE;
  void* channel = mmap(nullptr, sizeof(Channel), kRights, MAP_SHARED, files[0], 0);
  void* doorbell = mmap(nullptr, sizeof(Doorbell), kRights, MAP_SHARED, files[1], 0);
  close(files[0]), close(files[1]);
  if (channel == MAP_FAILED || doorbell == MAP_FAILED) {
    *why = std::string("cannot map the fabric's memory: ") + std::strerror(errno);
    return;
  }
  channel_ = static_cast<Channel*>(channel);
  doorbell_ = static_cast<Doorbell*>(doorbell);
}

RankLink::~RankLink() {
  clock_->look = nullptr;
  if (active_ && !broken_ && FabricIsThere()) {
    Write(At(RecordKind::kAway), nullptr);
    doorbell_->to_fabric.Ring();
  }
  if (channel_ != nullptr) munmap(channel_, sizeof(Channel));
  if (doorbell_ != nullptr) munmap(doorbell_, sizeof(Doorbell));
  if (socket_ >= 0) close(socket_);
}

bool RankLink::FabricIsThere() {
  pollfd file{socket_, POLLIN, 0};
  return poll(&file, 1, 0) == 0;  // it writes nothing more, so any event is its end
}

Record RankLink::At(RecordKind kind) const {
  Record record;
  record.kind = kind;
  record.at = clock_->now.load();
  record.computed = clock_->computed.load();
  return record;
}

void RankLink::Write(const Record& record, const void* bytes) {
  while (!broken_) {
    const std::uint32_t seen = channel_->to_rank.count.load();
    if (channel_->from_rank.Write(record, bytes)) break;
    doorbell_->to_fabric.Ring();
    channel_->to_rank.Wait(seen, kRoomMilliseconds);
    broken_ = !FabricIsThere();
  }
  if (channel_->from_rank.HalfFull()) doorbell_->to_fabric.Ring();
}

void RankLink::Enter(bool communicates) {
  if (waiting_) {
    ComputeFromNow(*clock_);  // it polls without result, and its waiting is already counted
  } else {
    ChargeComputing(*clock_);
  }
  clock_->reads = 0;
  const int state =
      mpi_state_ != nullptr ? *static_cast<const volatile int*>(mpi_state_) : kInitCompleted;
  const bool inside = state == kInitCompleted || state == kFinalizeStarted;
  if (!active_ && !away_ && (inside || communicates)) {
    active_ = true;
    clock_->running = true;
    Write(At(RecordKind::kActive), nullptr);
    doorbell_->to_fabric.Ring();
  } else if (!away_ && state > kFinalizeStarted) {
    active_ = waiting_ = false;
    away_ = true;
    clock_->running = false;
    Write(At(RecordKind::kAway), nullptr);
    doorbell_->to_fabric.Ring();
  }
}

std::uint64_t RankLink::NewId(void* context) {
  if (free_ids_.empty()) {
    pending_.emplace_back();
    free_ids_.push_back(pending_.size());
  }
  const std::uint64_t id = free_ids_.back();
  free_ids_.pop_back();
  Pending& pending = pending_[id - 1];
  pending = Pending();
  pending.context = context;
  pending.used = true;
  return id;
}

void RankLink::FreeId(std::uint64_t id) {
  pending_[id - 1].used = false;
  free_ids_.push_back(id);
}

void RankLink::Send(std::uint64_t to, std::uint64_t tag, std::uint64_t data, const iovec* parts,
                    std::size_t count, bool reports, void* context) {
  Enter(true);
  Withdraw();
  idle_polls_ = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += parts[i].iov_len;
  const bool eager = bytes <= welcome_.eager_bytes;
  clock_->now += welcome_.send_cost;
  Record record = At(RecordKind::kSend);
  record.peer = to;
  record.tag = tag;
  record.data = data;
  record.bytes = bytes;
  if (!eager) record.id = NewId(reports ? context : nullptr);
  if (!eager) pending_[record.id - 1].claims = !reports;  // its end is not reported
  if (eager) clock_->now += static_cast<std::int64_t>(bytes) * welcome_.copy_per_kib / 1024;
  std::size_t part = 0;
  std::uint64_t offset = 0;
  do {
    while (part < count && offset == parts[part].iov_len) ++part, offset = 0;
    const std::uint64_t there = part < count ? parts[part].iov_len - offset : 0;
    record.payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(there, kPayloadMax));
    Write(record,
          there > 0 ? static_cast<const std::uint8_t*>(parts[part].iov_base) + offset : nullptr);
    offset += record.payload;
    bytes -= record.payload;
    record.kind = RecordKind::kMore;
  } while (bytes > 0);
  if (eager && reports) ended_.push_back({context, EndCode::kOk, false});
  Acted();
  sent_silently_ = !reports;
  Leave();
}

void RankLink::Receive(std::uint64_t from, std::uint64_t tag, std::uint64_t ignore,
                       const iovec* parts, std::size_t count, std::uint32_t flags, void* context) {
  Enter(true);
  Withdraw();
  const bool peeks = flags & kPeek;
  clock_->now += peeks ? PollCost() : welcome_.post_cost;
  if (!peeks) idle_polls_ = 0;
  Record record = At(RecordKind::kReceive);
  record.flags = flags;
  // A claimed message was found before, so its sender does not matter.
  record.peer = !peeks && (flags & kClaim) ? kAnyPeer : from;
  record.tag = tag;
  record.ignore = ignore;
  if (!peeks && (flags & kClaim)) {
    const auto claimed = claims_.find(context);
    if (claimed != claims_.end()) {
      record.id = claimed->second;
      claims_.erase(claimed);
    }
  }
  if (record.id == 0) record.id = NewId(context);
  Pending& pending = pending_[record.id - 1];
  pending.parts.assign(parts, parts + count);
  pending.room = 0;
  for (std::size_t i = 0; i < count; ++i) pending.room += parts[i].iov_len;
  pending.claims = peeks && (flags & kClaim);
  record.bytes = pending.room;
  Write(record, nullptr);
  Acted();
  Leave();
}

void RankLink::Cancel(void* context) {
  Enter(true);
  Withdraw();
  for (std::uint64_t id = 1; id <= pending_.size(); ++id) {
    const Pending& pending = pending_[id - 1];
    if (!pending.used || pending.claims || pending.context != context) continue;
    clock_->now += welcome_.post_cost;
    Record record = At(RecordKind::kCancel);
    record.id = id;
    Write(record, nullptr);
    break;
  }
  Acted();
  Leave();
}

bool RankLink::Begin(CollectiveRequest* request) {
  Enter(true);
  if (!active_) return false;
  Withdraw();
  idle_polls_ = 0;
  clock_->now += welcome_.post_cost;
  Record record = At(request->record);
  record.flags = static_cast<std::uint32_t>(request->kind);
  record.tag = record.data = request->group;
  record.ignore = request->reduction;
  record.peer = request->root;
  record.bytes = request->bytes;
  record.payload = static_cast<std::uint32_t>(request->operand_bytes);
  if (request->record != RecordKind::kLeave) {
    record.id = NewId(nullptr);
    Pending& pending = pending_[record.id - 1];
    pending.collective = request;
    if (request->result != nullptr) pending.parts = {{request->result, request->bytes}};
    pending.room = request->bytes;
  }
  Write(record, request->operand);
  Acted();
  Leave();
  return true;
}

// --- Completions ---------------------------------------------------------------------------------

std::int64_t RankLink::PollCost() const {
  return welcome_.poll_cost << std::min(idle_polls_ / kSamePolls, kDoublingsMax);
}

RankLink* RankLink::silent = nullptr;

void RankLink::LookInFinalize() {
  if (silent->mpi_state_ != nullptr &&
      *static_cast<const volatile int*>(silent->mpi_state_) > kFinalizeStarted)
    silent->Poll();
}

RankLink::Polled RankLink::Poll() {
  clock_->look = nullptr;
  Enter(false);
  Polled polled = Polled::kNothing;
  if (broken_) {
    polled = Polled::kBroken;
  } else if (!ended_.empty()) {
    polled = Polled::kSome;
  } else if (!active_) {
    while (Hear()) {
    }
    if (!ended_.empty()) polled = Polled::kSome;
  } else if (MayWait()) {
    polled = Await();
  }
  Leave();
  return polled;
}

void RankLink::Acted() {
  NoteAct(*clock_);
  sent_silently_ = false;
  free_poll_ = true;
}

// A poll from outside a pass is a loop over the provider alone, and what tests waits for a known
// time only. Else all of Open MPI's parts have to find nothing to do. Where passes are not watched
// each poll counts as one.
bool RankLink::MayWait() {
  if (waiting_) return true;
  // A send that reports nothing leaves nothing to read: a test behind it asks, else a loop of the
  // two would never hear of a message.
  const bool asks = std::exchange(sent_silently_, false) && clock_->testing > 0;
  if (std::exchange(free_poll_, false) && !asks) return false;
  if (clock_->testing > 0) return true;
  if (!watched_) return clock_->quiet++ >= kQuietPasses;
  return clock_->passing == 0 || clock_->parts <= 1 || clock_->quiet >= kQuietPasses;
}

bool RankLink::AwaitBell(std::uint32_t seen) {
  channel_->to_rank.Wait(seen, kPatienceMilliseconds, welcome_.looks ? &looking_ : nullptr);
  if (channel_->to_rank.count.load() != seen) return true;
  if (FabricIsThere()) return false;
  std::fprintf(stderr, "percs: rank %u: the fabric is gone\n", welcome_.rank);
  broken_ = true;
  return true;
}

void RankLink::Withdraw() {
  if (!waiting_) return;
  Write(At(RecordKind::kWake), nullptr);
  doorbell_->to_fabric.Ring();
  while (waiting_ && !broken_) {
    const std::uint32_t seen = channel_->to_rank.count.load();
    if (Hear()) {
      waiting_ = false;
    } else if (!broken_) {
      AwaitBell(seen);
    }
  }
}

RankLink::Polled RankLink::Await() {
  if (!std::exchange(waiting_, true)) {
    Record record = At(RecordKind::kWait);
    record.until = clock_->testing > 0 ? record.at + PollCost() : kForever;
    patiences_ = clock_->testing > 0 ? kPatiencesOfATest : 1;
    Write(record, nullptr);
    doorbell_->to_fabric.Ring();
  }
  while (!broken_) {
    const std::uint32_t seen = channel_->to_rank.count.load();
    if (Hear()) {
      waiting_ = false;
      Acted();
      idle_polls_ = ended_.empty() ? idle_polls_ + 1 : 0;
      return ended_.empty() ? Polled::kNothing : Polled::kSome;
    }
    if (broken_) break;
    if (!AwaitBell(seen) && --patiences_ <= 0)
      return Polled::kNothing;  // what it waits for may be elsewhere
  }
  return Polled::kBroken;
}

bool RankLink::Hear() {
  Ring& ring = channel_->from_fabric;
  Record record;
  bool valid = true, resumed = false;
  while (!resumed && ring.Front(&record, &valid)) {
    if (record.kind == RecordKind::kComplete) OnComplete(record);
    if (record.kind == RecordKind::kComplete || record.kind == RecordKind::kMore) TakeBytes(record);
    if (record.kind == RecordKind::kResume) {
      clock_->now = std::max(clock_->now.load(), record.at);
      resumed = true;
    }
    broken_ = broken_ || record.kind == RecordKind::kFailed;
    ring.Pop(record);
  }
  broken_ = broken_ || !valid;
  if (ring.MadeRoom()) doorbell_->to_fabric.Ring();
  return resumed;
}

void RankLink::OnComplete(const Record& record) {
  coming_ = record;
  coming_left_ = record.ignore;
  coming_done_ = 0;
  if (record.id == 0 || record.id > pending_.size() || !pending_[record.id - 1].used) {
    broken_ = true;
    coming_left_ = 0;
  } else if (coming_left_ == 0) {
    EndReceive();
  }
}

// The next bytes of a message, into the buffers of its receive.
void RankLink::TakeBytes(const Record& record) {
  if (record.payload == 0 || broken_ || record.payload > coming_left_) return;
  std::uint8_t piece[kPayloadMax];
  channel_->from_fabric.Payload(piece, record.payload);
  std::uint64_t skip = coming_done_, taken = 0;
  for (const iovec& part : pending_[coming_.id - 1].parts) {
    if (skip >= part.iov_len) {
      skip -= part.iov_len;
      continue;
    }
    const std::uint64_t count =
        std::min<std::uint64_t>(part.iov_len - skip, record.payload - taken);
    std::memcpy(static_cast<std::uint8_t*>(part.iov_base) + skip, piece + taken, count);
    taken += count;
    skip = 0;
    if (taken == record.payload) break;
  }
  coming_done_ += record.payload;
  coming_left_ -= record.payload;
  if (coming_left_ == 0) EndReceive();
}

void RankLink::EndCollective() {
  CollectiveRequest& request = *pending_[coming_.id - 1].collective;
  request.answer = coming_.data;
  request.done = coming_.code == EndCode::kOk ? 1 : -1;
  FreeId(coming_.id);
}

void RankLink::EndReceive() {
  if (pending_[coming_.id - 1].collective != nullptr) return EndCollective();
  const Pending& pending = pending_[coming_.id - 1];
  Ended ended{pending.context, coming_.code, (coming_.flags & kReceived) != 0};
  ended.buffer = pending.parts.empty() ? nullptr : pending.parts.front().iov_base;
  ended.peer = coming_.peer;
  ended.tag = coming_.tag;
  ended.data = coming_.data;
  ended.length = coming_.bytes;
  ended.room = pending.room;
  const bool keeps = ended.received && pending.claims && coming_.code == EndCode::kOk;
  const bool quiet = !ended.received && pending.claims;
  if (ended.code == EndCode::kNoMessage) ++idle_polls_;
  if (!quiet) ended_.push_back(ended);
  if (keeps) {
    claims_[pending.context] = coming_.id;
  } else {
    FreeId(coming_.id);
  }
}

}  // namespace percs::mpi
