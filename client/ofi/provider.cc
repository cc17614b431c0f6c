// The libfabric provider `percs`: endpoints of type FI_EP_RDM with tagged messages, each a window
// of an HFI of the emulated machine. libfabric finds it as libpercs-fi.so in FI_PROVIDER_PATH.
//
// What it does not have: RMA, atomics, counters, event queues, multi-receives, and more than one
// endpoint in a process. Threads may call it at the same time; they take turns.
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "client/ofi/offer.h"
#include "client/ofi/rank.h"
#include "proto/process/mutex.h"

namespace percs::mpi {
namespace {

struct Address {
  std::uint64_t peer = 0;
};

// One of each in a process: they share the link to the fabric.
struct State {
  RecursiveMutex mutex;
  std::unique_ptr<RankLink> link ABSL_GUARDED_BY(mutex);
  // Of an AV of type FI_AV_TABLE.
  std::vector<std::uint64_t> table ABSL_GUARDED_BY(mutex);
  bool is_table ABSL_GUARDED_BY(mutex) = false;
};
State& state() {
  static State* const kState = new State();  // outlives destructors of others
  return *kState;
}

std::uint64_t PeerOf(const State& s, fi_addr_t address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(s.mutex) {
  if (address == FI_ADDR_UNSPEC) return kAnyPeer;
  return s.is_table && address < s.table.size() ? s.table[address] : address;
}

fi_addr_t AddressOf(const State& s, std::uint64_t peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(s.mutex) {
  if (!s.is_table) return peer;
  for (std::size_t i = 0; i < s.table.size(); ++i) {
    if (s.table[i] == peer) return i;
  }
  return FI_ADDR_NOTAVAIL;
}

// --- What is common to all objects ---------------------------------------------------------------

template <typename Object>
int CloseObject(fid* object) {
  delete reinterpret_cast<Object*>(object);
  return 0;
}
int NoBind(fid*, fid*, std::uint64_t) { return 0; }
int NoControl(fid*, int, void*) { return 0; }
int NoOps(fid*, const char*, std::uint64_t, void**, void*) { return -FI_ENOSYS; }

template <typename Object>
fi_ops* ObjectOps() {
  static fi_ops ops = {sizeof(fi_ops), CloseObject<Object>, NoBind, NoControl, NoOps, nullptr,
                       nullptr};
  return &ops;
}

// --- Completion queue ----------------------------------------------------------------------------

bool IsError(const Ended& ended) { return ended.code != EndCode::kOk; }

ssize_t ReadFrom(fid_cq*, void* buffer, std::size_t count, fi_addr_t* source) {
  State& s = state();
  const MutexLock lock(s.mutex);
  if (!s.link) return -FI_EAGAIN;
  const RankLink::Polled polled = s.link->Poll();
  if (polled == RankLink::Polled::kBroken) return -FI_EIO;
  if (polled == RankLink::Polled::kNothing) return -FI_EAGAIN;
  std::deque<Ended>& ended = s.link->ended();
  if (IsError(ended.front())) return -FI_EAVAIL;
  auto* entries = static_cast<fi_cq_tagged_entry*>(buffer);
  std::size_t read = 0;
  while (read < count && !ended.empty() && !IsError(ended.front())) {
    const Ended& e = ended.front();
    const std::uint64_t flags = FI_TAGGED | (e.received ? FI_RECV : FI_SEND) |
                                (e.received && e.data != 0 ? FI_REMOTE_CQ_DATA : 0);
    entries[read] = {e.context, flags, e.length, e.buffer, e.data, e.tag};
    if (source != nullptr) source[read] = e.received ? AddressOf(s, e.peer) : FI_ADDR_NOTAVAIL;
    ended.pop_front();
    ++read;
  }
  s.link->Took();
  return static_cast<ssize_t>(read);
}

ssize_t Read(fid_cq* cq, void* buffer, std::size_t count) {
  return ReadFrom(cq, buffer, count, nullptr);
}

int ErrorOf(EndCode code) {
  switch (code) {
    case EndCode::kTruncated:
      return FI_ETRUNC;
    case EndCode::kCancelled:
      return FI_ECANCELED;
    case EndCode::kNoMessage:
      return FI_ENOMSG;
    default:
      return FI_EHOSTUNREACH;
  }
}

ssize_t ReadError(fid_cq*, fi_cq_err_entry* entry, std::uint64_t) {
  State& s = state();
  const MutexLock lock(s.mutex);
  if (!s.link || s.link->ended().empty() || !IsError(s.link->ended().front())) return -FI_EAGAIN;
  const Ended e = s.link->ended().front();
  s.link->ended().pop_front();
  s.link->Took();
  entry->op_context = e.context;
  entry->flags = FI_TAGGED | (e.received ? FI_RECV : FI_SEND);
  entry->len = std::min(e.length, e.room);
  entry->olen = e.length > e.room ? e.length - e.room : 0;
  entry->buf = e.buffer;
  entry->data = e.data;
  entry->tag = e.tag;
  entry->err = ErrorOf(e.code);
  entry->prov_errno = entry->err;
  entry->err_data = nullptr;
  entry->err_data_size = 0;
  return 1;
}

ssize_t WaitRead(fid_cq* cq, void* buffer, std::size_t count, const void*, int) {
  return Read(cq, buffer, count);
}
ssize_t WaitReadFrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* source, const void*,
                     int) {
  return ReadFrom(cq, buffer, count, source);
}
int Signal(fid_cq*) { return -FI_ENOSYS; }
const char* ErrorText(fid_cq*, int error, const void*, char* buffer, std::size_t length) {
  const char* text = fi_strerror(error);
  if (buffer != nullptr && length > 0) std::snprintf(buffer, length, "%s", text);
  return text;
}

int OpenQueue(fid_domain*, fi_cq_attr* attributes, fid_cq** made, void* context) {
  if (attributes->format != FI_CQ_FORMAT_TAGGED) return -FI_ENOSYS;
  static fi_ops_cq ops = {sizeof(fi_ops_cq), Read,         ReadFrom, ReadError,
                          WaitRead,          WaitReadFrom, Signal,   ErrorText};
  auto* cq = new fid_cq();
  cq->fid = {FI_CLASS_CQ, context, ObjectOps<fid_cq>()};
  cq->ops = &ops;
  *made = cq;
  return 0;
}

// --- Addresses -----------------------------------------------------------------------------------

int Insert(fid_av*, const void* addresses, std::size_t count, fi_addr_t* made, std::uint64_t,
           void*) {
  State& s = state();
  const MutexLock lock(s.mutex);
  for (std::size_t i = 0; i < count; ++i) {
    Address address;
    std::memcpy(&address, static_cast<const char*>(addresses) + i * sizeof(address),
                sizeof(address));
    if (s.is_table) s.table.push_back(address.peer);
    if (made != nullptr) made[i] = s.is_table ? s.table.size() - 1 : address.peer;
  }
  return static_cast<int>(count);
}
int NoService(fid_av*, const char*, const char*, fi_addr_t*, std::uint64_t, void*) {
  return -FI_ENOSYS;
}
int NoSymmetric(fid_av*, const char*, std::size_t, const char*, std::size_t, fi_addr_t*,
                std::uint64_t, void*) {
  return -FI_ENOSYS;
}
int Remove(fid_av*, fi_addr_t*, std::size_t, std::uint64_t) { return 0; }
int Lookup(fid_av*, fi_addr_t address, void* to, std::size_t* length) {
  State& s = state();
  const MutexLock lock(s.mutex);
  const Address found{PeerOf(s, address)};
  std::memcpy(to, &found, std::min(*length, sizeof(found)));
  *length = sizeof(found);
  return 0;
}
const char* AddressText(fid_av*, const void* address, char* buffer, std::size_t* length) {
  Address a;
  std::memcpy(&a, address, sizeof(a));
  const int written = std::snprintf(buffer, *length, "percs:hub %llu window %llu",
                                    static_cast<unsigned long long>(a.peer >> 16),
                                    static_cast<unsigned long long>(a.peer & 0xffff));
  *length = static_cast<std::size_t>(written) + 1;
  return buffer;
}

int OpenAddresses(fid_domain*, fi_av_attr* attributes, fid_av** made, void* context) {
  static fi_ops_av ops = {sizeof(fi_ops_av), Insert, NoService, NoSymmetric, Remove, Lookup,
                          AddressText,       nullptr};
  State& s = state();
  const MutexLock lock(s.mutex);
  s.is_table = attributes->type == FI_AV_TABLE;
  auto* av = new fid_av();
  av->fid = {FI_CLASS_AV, context, ObjectOps<fid_av>()};
  av->ops = &ops;
  *made = av;
  return 0;
}

// --- Endpoint: tagged messages -------------------------------------------------------------------

ssize_t PostSend(const iovec* parts, std::size_t count, fi_addr_t to, std::uint64_t tag,
                 std::uint64_t data, bool reports, void* context) {
  State& s = state();
  const MutexLock lock(s.mutex);
  if (!s.link) return -FI_EOPBADSTATE;
  s.link->Send(PeerOf(s, to), tag, data, parts, count, reports, context);
  return 0;
}

ssize_t PostReceive(const iovec* parts, std::size_t count, fi_addr_t from, std::uint64_t tag,
                    std::uint64_t ignore, std::uint64_t flags, void* context) {
  State& s = state();
  const MutexLock lock(s.mutex);
  if (!s.link) return -FI_EOPBADSTATE;
  const std::uint32_t kinds = (flags & FI_PEEK ? kPeek : 0) | (flags & FI_CLAIM ? kClaim : 0) |
                              (flags & FI_DISCARD ? kDiscard : 0);
  s.link->Receive(PeerOf(s, from), tag, ignore, parts, count, kinds, context);
  return 0;
}

ssize_t Receive(fid_ep*, void* buffer, std::size_t length, void*, fi_addr_t from, std::uint64_t tag,
                std::uint64_t ignore, void* context) {
  const iovec part{buffer, length};
  return PostReceive(&part, 1, from, tag, ignore, 0, context);
}
ssize_t ReceiveParts(fid_ep*, const iovec* parts, void**, std::size_t count, fi_addr_t from,
                     std::uint64_t tag, std::uint64_t ignore, void* context) {
  return PostReceive(parts, count, from, tag, ignore, 0, context);
}
ssize_t ReceiveMessage(fid_ep*, const fi_msg_tagged* message, std::uint64_t flags) {
  return PostReceive(message->msg_iov, message->iov_count, message->addr, message->tag,
                     message->ignore, flags, message->context);
}
ssize_t Send(fid_ep*, const void* buffer, std::size_t length, void*, fi_addr_t to,
             std::uint64_t tag, void* context) {
  const iovec part{const_cast<void*>(buffer), length};
  return PostSend(&part, 1, to, tag, 0, true, context);
}
ssize_t SendParts(fid_ep*, const iovec* parts, void**, std::size_t count, fi_addr_t to,
                  std::uint64_t tag, void* context) {
  return PostSend(parts, count, to, tag, 0, true, context);
}
ssize_t SendMessage(fid_ep*, const fi_msg_tagged* message, std::uint64_t flags) {
  return PostSend(message->msg_iov, message->iov_count, message->addr, message->tag, message->data,
                  (flags & FI_INJECT) == 0 || (flags & FI_COMPLETION) != 0, message->context);
}
ssize_t Inject(fid_ep*, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t tag) {
  const iovec part{const_cast<void*>(buffer), length};
  return PostSend(&part, 1, to, tag, 0, false, nullptr);
}
ssize_t SendData(fid_ep*, const void* buffer, std::size_t length, void*, std::uint64_t data,
                 fi_addr_t to, std::uint64_t tag, void* context) {
  const iovec part{const_cast<void*>(buffer), length};
  return PostSend(&part, 1, to, tag, data, true, context);
}
ssize_t InjectData(fid_ep*, const void* buffer, std::size_t length, std::uint64_t data,
                   fi_addr_t to, std::uint64_t tag) {
  const iovec part{const_cast<void*>(buffer), length};
  return PostSend(&part, 1, to, tag, data, false, nullptr);
}

// --- Endpoint ------------------------------------------------------------------------------------

ssize_t Cancel(fid*, void* context) {
  State& s = state();
  const MutexLock lock(s.mutex);
  if (s.link) s.link->Cancel(context);
  return 0;
}
int GetOption(fid*, int, int, void*, std::size_t*) { return -FI_ENOPROTOOPT; }
int SetOption(fid*, int, int, const void*, std::size_t) { return -FI_ENOPROTOOPT; }
int NoSend(fid_ep*, int, fi_tx_attr*, fid_ep**, void*) { return -FI_ENOSYS; }
int NoReceive(fid_ep*, int, fi_rx_attr*, fid_ep**, void*) { return -FI_ENOSYS; }
ssize_t ContextsLeft(fid_ep*) { return kContextsMax; }

int SetName(fid*, void*, std::size_t) { return -FI_ENOSYS; }
int GetName(fid*, void* to, std::size_t* length) {
  State& s = state();
  const MutexLock lock(s.mutex);
  if (!s.link) return -FI_EOPBADSTATE;
  const Address address{s.link->peer()};
  const std::size_t room = *length;
  *length = sizeof(address);
  if (room < sizeof(address)) return -FI_ETOOSMALL;
  std::memcpy(to, &address, sizeof(address));
  return 0;
}
int NoPeer(fid_ep*, void*, std::size_t*) { return -FI_ENOSYS; }
int NoConnect(fid_ep*, const void*, const void*, std::size_t) { return -FI_ENOSYS; }
int NoListen(fid_pep*) { return -FI_ENOSYS; }
int NoAccept(fid_ep*, const void*, std::size_t) { return -FI_ENOSYS; }
int NoReject(fid_pep*, fid_t, const void*, std::size_t) { return -FI_ENOSYS; }
int NoShutdown(fid_ep*, std::uint64_t) { return -FI_ENOSYS; }
int NoJoin(fid_ep*, const void*, std::uint64_t, fid_mc**, void*) { return -FI_ENOSYS; }

int CloseEndpoint(fid* object) {
  State& s = state();
  const MutexLock lock(s.mutex);
  s.link = nullptr;
  return CloseObject<fid_ep>(object);
}
// The window is attached when the endpoint is enabled.
int Control(fid*, int command, void*) {
  if (command != FI_ENABLE) return -FI_ENOSYS;
  State& s = state();
  const MutexLock lock(s.mutex);
  if (s.link) return -FI_EBUSY;
  std::string why;
  s.link = RankLink::Connect(&why);
  if (s.link) return 0;
  std::fprintf(stderr, "percs: %s\n", why.c_str());
  return -FI_ECONNREFUSED;
}

int OpenEndpoint(fid_domain*, fi_info*, fid_ep** made, void* context) {
  static fi_ops ops = {sizeof(fi_ops), CloseEndpoint, NoBind, Control, NoOps, nullptr, nullptr};
  static fi_ops_ep endpoint = {sizeof(fi_ops_ep), Cancel,       GetOption,   SetOption, NoSend,
                               NoReceive,         ContextsLeft, ContextsLeft};
  static fi_ops_cm names = {sizeof(fi_ops_cm), SetName,  GetName,  NoPeer,     NoConnect,
                            NoListen,          NoAccept, NoReject, NoShutdown, NoJoin};
  static fi_ops_tagged tagged = {
      sizeof(fi_ops_tagged), Receive, ReceiveParts, ReceiveMessage, Send, SendParts,
      SendMessage,           Inject,  SendData,     InjectData};
  auto* ep = new fid_ep();
  ep->fid = {FI_CLASS_EP, context, &ops};
  ep->ops = &endpoint;
  ep->cm = &names;
  ep->tagged = &tagged;
  *made = ep;
  return 0;
}

// --- Domain and fabric ---------------------------------------------------------------------------

int NoScalable(fid_domain*, fi_info*, fid_ep**, void*) { return -FI_ENOSYS; }
int NoCounter(fid_domain*, fi_cntr_attr*, fid_cntr**, void*) { return -FI_ENOSYS; }
int NoPollSet(fid_domain*, fi_poll_attr*, fid_poll**) { return -FI_ENOSYS; }
int NoSharedSend(fid_domain*, fi_tx_attr*, fid_stx**, void*) { return -FI_ENOSYS; }
int NoSharedReceive(fid_domain*, fi_rx_attr*, fid_ep**, void*) { return -FI_ENOSYS; }
int NoAtomic(fid_domain*, fi_datatype, fi_op, fi_atomic_attr*, std::uint64_t) { return -FI_ENOSYS; }
int NoCollective(fid_domain*, fi_collective_op, fi_collective_attr*, std::uint64_t) {
  return -FI_ENOSYS;
}
int NoRegister(fid*, const void*, std::size_t, std::uint64_t, std::uint64_t, std::uint64_t,
               std::uint64_t, fid_mr**, void*) {
  return -FI_ENOSYS;
}
int NoRegisterParts(fid*, const iovec*, std::size_t, std::uint64_t, std::uint64_t, std::uint64_t,
                    std::uint64_t, fid_mr**, void*) {
  return -FI_ENOSYS;
}
int NoRegisterAttributes(fid*, const fi_mr_attr*, std::uint64_t, fid_mr**) { return -FI_ENOSYS; }

int OpenDomain(fid_fabric*, fi_info*, fid_domain** made, void* context) {
  static fi_ops_domain ops = {sizeof(fi_ops_domain),
                              OpenAddresses,
                              OpenQueue,
                              OpenEndpoint,
                              NoScalable,
                              NoCounter,
                              NoPollSet,
                              NoSharedSend,
                              NoSharedReceive,
                              NoAtomic,
                              NoCollective,
                              nullptr};
  static fi_ops_mr memory = {sizeof(fi_ops_mr), NoRegister, NoRegisterParts, NoRegisterAttributes};
  auto* domain = new fid_domain();
  domain->fid = {FI_CLASS_DOMAIN, context, ObjectOps<fid_domain>()};
  domain->ops = &ops;
  domain->mr = &memory;
  *made = domain;
  return 0;
}

int NoPassive(fid_fabric*, fi_info*, fid_pep**, void*) { return -FI_ENOSYS; }
int NoEventQueue(fid_fabric*, fi_eq_attr*, fid_eq**, void*) { return -FI_ENOSYS; }
int NoWaitSet(fid_fabric*, fi_wait_attr*, fid_wait**) { return -FI_ENOSYS; }
int TryWait(fid_fabric*, fid**, int) { return 0; }

int OpenFabric(fi_fabric_attr* attributes, fid_fabric** made, void* context) {
  static fi_ops_fabric ops = {
      sizeof(fi_ops_fabric), OpenDomain, NoPassive, NoEventQueue, NoWaitSet, TryWait, nullptr};
  auto* fabric = new fid_fabric();
  fabric->fid = {FI_CLASS_FABRIC, context, ObjectOps<fid_fabric>()};
  fabric->ops = &ops;
  fabric->api_version = attributes->api_version;
  *made = fabric;
  return 0;
}

int GetInfo(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info* hints,
            fi_info** made) {
  if (std::getenv(kSocketVariable) == nullptr) {
    const char* wanted = std::getenv("OMPI_MCA_mtl_ofi_provider_include");
    static bool said = false;
    if (wanted != nullptr && std::strcmp(wanted, kName) == 0 && !said) {
      said = true;
      std::fprintf(stderr,
                   "percs: no fabric: %s is not set; start the program with "
                   "`percsctl mpirun`\n",
                   kSocketVariable);
    }
    return -FI_ENODATA;
  }
  if (!Offers(hints)) return -FI_ENODATA;
  fi_info* info = fi_allocinfo();
  if (info == nullptr) return -FI_ENOMEM;
  Describe(hints, info);
  *made = info;
  return 0;
}

fi_provider provider = {FI_VERSION(0, 1), FI_VERSION(1, 17), {},     kName,
                        GetInfo,          OpenFabric,        nullptr};

}  // namespace
}  // namespace percs::mpi

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini(void) {
  return &percs::mpi::provider;
}

extern "C" __attribute__((visibility("default"))) std::uint64_t percs_collective_bytes() {
  percs::mpi::State& s = percs::mpi::state();
  const std::lock_guard lock(s.mutex);
  return s.link ? s.link->collective_bytes() : 0;
}

extern "C" __attribute__((visibility("default"))) int percs_collective_begin(
    percs::mpi::CollectiveRequest* request) {
  percs::mpi::State& s = percs::mpi::state();
  const std::lock_guard lock(s.mutex);
  return s.link && s.link->Begin(request) ? 0 : -1;
}
