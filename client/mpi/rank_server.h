// Where ranks attach: a Unix socket in a folder of its own, which only processes of the same user
// may use. A rank says its number and gets the memory that it shares with the fabric; its
// connection stays open, so that its end is noticed however it ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ofi/channel.h"
#include "proto/process/mutex.h"
#include "proto/process/temporary_folder.h"

namespace percs::mpi {

// Memory that is shared by a file descriptor and has no name.
class SharedMemory {
 public:
  static absl::StatusOr<SharedMemory> Make(const char* name, std::size_t bytes);
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();
  void* data() const { return data_; }
  int file() const { return file_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  int file_ = -1;
};

// Where a rank attaches.
struct RankSeat {
  std::uint64_t peer = 0;  // PeerOf its hub and window
  std::string hub;         // its name
  bool here = true;        // else its hub is of another percsd
};

struct RankEvent {
  std::uint32_t rank = 0;
  bool gone = false;
};

class RankServer {
 public:
  // `welcome` has what is the same for all ranks; `seats` are by rank.
  static absl::StatusOr<std::unique_ptr<RankServer>> Start(Welcome welcome,
                                                           std::vector<RankSeat> seats);
  ~RankServer();
  RankServer(const RankServer&) = delete;
  RankServer& operator=(const RankServer&) = delete;

  const std::string& path() const { return path_; }
  Doorbell& doorbell() { return *static_cast<Doorbell*>(doorbell_.data()); }
  // Since the last call. Rings the doorbell when there is one.
  std::vector<RankEvent> TakeEvents();
  // REQUIRES: the rank has attached.
  Channel& channel(std::uint32_t rank) { return *static_cast<Channel*>(channels_[rank].data()); }

 private:
  struct Connection {
    int socket = -1;
    std::uint32_t rank = kRankUnknown;  // until it said so
  };
  RankServer(Welcome welcome, std::vector<RankSeat> seats)
      : welcome_(welcome), seats_(std::move(seats)), channels_(seats_.size()) {}
  absl::Status MakeFolder();
  absl::Status Listen();
  void Serve();
  void Accept();
  // False: the connection is over.
  bool Hear(Connection& connection);
  std::string Admit(int socket, const Hello& hello);
  void Answer(int socket, const Welcome& welcome);
  void Report(RankEvent event);

  Welcome welcome_;
  const std::vector<RankSeat> seats_;   // by rank
  std::vector<SharedMemory> channels_;  // by rank
  SharedMemory doorbell_;
  std::optional<TemporaryFolder> folder_;
  std::string path_;
  int folder_lock_ = -1, listener_ = -1, stop_[2] = {-1, -1};
  std::vector<Connection> connections_;
  Mutex mutex_;
  std::vector<RankEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace percs::mpi
