// A rank's side of its channel to the fabric (client/ofi/channel.h): calls become records, records
// become completions, and the rank's clock moves with both.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/ofi/channel.h"
#include "client/ofi/collective.h"
#include "client/ofi/virtual_clock.h"

namespace percs::mpi {

// What ended, for a completion queue.
struct Ended {
  void* context = nullptr;
  EndCode code = EndCode::kOk;
  bool received = false;
  void* buffer = nullptr;
  std::uint64_t peer = kAnyPeer, tag = 0, data = 0;
  std::uint64_t length = 0;  // of the message
  std::uint64_t room = 0;    // of the receive
};

class RankLink {
 public:
  // Attaches to the fabric whose socket the environment names. Null: `why` not.
  static std::unique_ptr<RankLink> Connect(std::string* why);
  ~RankLink();
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  std::uint64_t peer() const { return welcome_.peer; }

  // `reports`: the end becomes an Ended with `context`. The bytes may be changed on return.
  void Send(std::uint64_t to, std::uint64_t tag, std::uint64_t data, const iovec* parts,
            std::size_t count, bool reports, void* context);
  void Receive(std::uint64_t from, std::uint64_t tag, std::uint64_t ignore, const iovec* parts,
               std::size_t count, std::uint32_t flags, void* context);
  void Cancel(void* context);
  std::uint64_t collective_bytes() const { return welcome_.collective_bytes; }
  // False: the program does not communicate any more.
  bool Begin(CollectiveRequest* request);

  enum class Polled : std::uint8_t { kSome, kNothing, kBroken };
  // Waits in virtual time until something has ended; in a test, no longer than that takes. It does
  // so only when the program can make no call by itself, as MayWait determines.
  Polled Poll();
  std::deque<Ended>& ended() { return ended_; }
  void Took() { Acted(); }

 private:
  struct Pending {
    void* context = nullptr;
    std::vector<iovec> parts;
    std::uint64_t room = 0;
    bool used = false, claims = false;
    CollectiveRequest* collective = nullptr;  // or null: a message
  };
  RankLink() = default;
  bool Greet(const char* path, std::string* why);
  void Map(const int* files, std::string* why);
  // A call of the program begins; `communicates`: it cannot be a part of MPI_Init.
  void Enter(bool communicates);
  void Leave() { ComputeFromNow(*clock_); }
  // For a rank that never communicates Open MPI does not poll the provider. It still has to say, in
  // MPI_Finalize, that virtual time need not wait for it.
  static void LookInFinalize();
  static RankLink* silent;
  Record At(RecordKind kind) const;
  void Write(const Record& record, const void* bytes);
  std::uint64_t NewId(void* context);
  void FreeId(std::uint64_t id);
  // True once the fabric has resumed the rank.
  bool Hear();
  void OnComplete(const Record& record);
  void TakeBytes(const Record& record);
  void EndReceive();
  void EndCollective();
  bool FabricIsThere();
  // The rank called, or received something: its next action is unknown.
  void Acted();
  bool MayWait();
  // The rank has declared to wait, and has to call earlier: the fabric sends it the time.
  void Withdraw();
  // Until the fabric rings, for a while; false if it did not.
  bool AwaitBell(std::uint32_t seen);
  std::int64_t PollCost() const;
  Polled Await();

  int socket_ = -1;
  Channel* channel_ = nullptr;
  Doorbell* doorbell_ = nullptr;
  Welcome welcome_;
  VirtualClock own_clock_;
  VirtualClock* clock_ = &own_clock_;
  const int* mpi_state_ = nullptr;
  bool active_ = false, away_ = false, broken_ = false, waiting_ = false;
  bool watched_ = false;        // Open MPI's passes are
  bool free_poll_ = false;      // reads until there is nothing end with a poll of nothing
  bool sent_silently_ = false;  // the last act was a send whose end is not reported
  unsigned idle_polls_ = 0;
  int patiences_ = 1;  // left of the wait that goes on
  Looking looking_;
  std::vector<Pending> pending_;  // by id - 1
  std::vector<std::uint64_t> free_ids_;
  std::unordered_map<void*, std::uint64_t> claims_;
  std::deque<Ended> ended_;
  // The completion whose bytes are coming.
  Record coming_;
  std::uint64_t coming_left_ = 0, coming_done_ = 0;
};

}  // namespace percs::mpi
