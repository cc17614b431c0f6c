#include "client/mpi/rank_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "emulator/base/check.h"

namespace percs::mpi {
namespace {

constexpr const char* kFolderPrefix = "percs-mpi-";

absl::Status SystemError(const std::string& what) {
  return absl::InternalError(fmt::format("{}: {}", what, std::strerror(errno)));
}

void Close(int* file) {
  if (*file >= 0) close(std::exchange(*file, -1));
}

// A folder that no process has locked; else, and for another user's, -1.
int OpenLocked(const std::filesystem::path& folder) {
  int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  struct stat status {};
  if (file >= 0 && (fstat(file, &status) != 0 || status.st_uid != geteuid() ||
                    flock(file, LOCK_EX | LOCK_NB) != 0))
    Close(&file);
  return file;
}

}  // namespace

absl::StatusOr<SharedMemory> SharedMemory::Make(const char* name, std::size_t bytes) {
  SharedMemory memory;
  memory.file_ = memfd_create(name, MFD_CLOEXEC);
  if (memory.file_ < 0 || ftruncate(memory.file_, static_cast<off_t>(bytes)) != 0)
    return SystemError(fmt::format("no shared memory of {} bytes", bytes));
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file_, 0);
  if (data == MAP_FAILED) return SystemError(fmt::format("no shared memory of {} bytes", bytes));
  memory.data_ = data;
  memory.bytes_ = bytes;
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(file_, other.file_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  Close(&file_);
}

absl::StatusOr<std::unique_ptr<RankServer>> RankServer::Start(Welcome welcome,
                                                              std::vector<RankSeat> seats) {
  std::unique_ptr<RankServer> server(new RankServer(welcome, std::move(seats)));
  if (absl::Status status = server->Listen(); !status.ok()) return status;
  server->thread_ = std::thread([raw = server.get()] { raw->Serve(); });
  return server;
}

// A folder is locked as long as its process lives, so that folders without one are known.
absl::Status RankServer::MakeFolder() {
  std::error_code error;
  // A process that starts may take a folder that is not locked yet for an abandoned one.
  while (folder_lock_ < 0) {
    auto folder = TemporaryFolder::MakeForSockets(kFolderPrefix);
    if (!folder.ok()) return folder.status();
    folder_lock_ = OpenLocked(folder->path());
    if (!std::filesystem::exists(folder->path(), error)) Close(&folder_lock_);
    if (folder_lock_ >= 0) folder_.emplace(*std::move(folder));
  }
  const auto parent = std::filesystem::path(folder_->path()).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    if (!entry.path().filename().string().starts_with(kFolderPrefix)) continue;
    int left = OpenLocked(entry.path());
    if (left < 0) continue;
    std::error_code ignored;
    std::filesystem::remove_all(entry.path(), ignored);
    Close(&left);
  }
  return absl::OkStatus();
}

absl::Status RankServer::Listen() {
  auto doorbell = SharedMemory::Make("percs-doorbell", sizeof(Doorbell));
  if (!doorbell.ok()) return doorbell.status();
  doorbell_ = *std::move(doorbell);
  new (doorbell_.data()) Doorbell();
  if (absl::Status status = MakeFolder(); !status.ok()) return status;
  path_ = folder_->path() + "/fabric.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  PERCS_CHECK(path_.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path_.c_str(), path_.size());
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (listener_ < 0 || pipe(stop_) != 0 ||
      bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, SOMAXCONN) != 0)
    return SystemError("cannot listen at " + path_);
  return absl::OkStatus();
}

RankServer::~RankServer() {
  if (thread_.joinable()) {
    Close(&stop_[1]);
    thread_.join();
  }
  for (Connection& connection : connections_) Close(&connection.socket);
  Close(&listener_), Close(&stop_[0]), Close(&stop_[1]);
  folder_.reset();
  Close(&folder_lock_);
}

void RankServer::Serve() {
  while (true) {
    std::vector<pollfd> files = {{stop_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Connection& connection : connections_)
      files.push_back({connection.socket, POLLIN, 0});
    if (poll(files.data(), files.size(), -1) < 0 && errno != EINTR) return;
    if (files[0].revents != 0) return;
    const std::size_t heard = files.size() - 2;
    for (std::size_t i = heard; i-- > 0;) {
      if (files[i + 2].revents == 0 || Hear(connections_[i])) continue;
      if (connections_[i].rank != kRankUnknown) Report({connections_[i].rank, true});
      Close(&connections_[i].socket);
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (files[1].revents != 0) Accept();
  }
}

void RankServer::Accept() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return;
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      (peer.uid == geteuid() || peer.uid == 0)) {
    connections_.push_back({socket, kRankUnknown});
    return;
  }
  Welcome refusal;
  const std::string reason =
      fmt::format("user {} may not use the fabric of user {}", peer.uid, geteuid());
  reason.copy(refusal.refused, sizeof(refusal.refused) - 1);
  Answer(socket, refusal);
  close(socket);
}

bool RankServer::Hear(Connection& connection) {
  Hello hello;
  const ssize_t got = recv(connection.socket, &hello, sizeof(hello), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got != sizeof(hello) || connection.rank != kRankUnknown) return false;
  Welcome welcome = welcome_;
  const std::string refused = Admit(connection.socket, hello);
  if (refused.empty()) {
    welcome.rank = connection.rank = hello.rank;
    welcome.peer = seats_[hello.rank].peer;
    seats_[hello.rank].hub.copy(welcome.hub, sizeof(welcome.hub) - 1);
  }
  refused.copy(welcome.refused, sizeof(welcome.refused) - 1);
  Answer(connection.socket, welcome);
  if (refused.empty()) Report({hello.rank, false});
  return refused.empty();
}

// Why not; "" makes its channel.
std::string RankServer::Admit(int socket, const Hello& hello) {
  if (hello.magic != kChannelMagic || hello.version != kChannelVersion) {
    return fmt::format("the provider speaks version {}, this fabric {}", hello.version,
                       kChannelVersion);
  }
  if (hello.rank >= seats_.size()) {
    return fmt::format("rank {} of a program on a fabric with {} places; start as many ranks",
                       hello.rank, seats_.size());
  }
  if (!seats_[hello.rank].here) {
    return fmt::format("rank {} belongs to {}, which is not a hub of this percsd", hello.rank,
                       seats_[hello.rank].hub);
  }
  if (channels_[hello.rank].data() != nullptr)
    return fmt::format("rank {} has attached already", hello.rank);
  auto memory = SharedMemory::Make("percs-rank", sizeof(Channel));
  if (!memory.ok()) return std::string(memory.status().message());
  new (memory->data()) Channel();
  channels_[hello.rank] = *std::move(memory);
  return "";
}

void RankServer::Answer(int socket, const Welcome& welcome) {
  iovec part{const_cast<Welcome*>(&welcome), sizeof(welcome)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  if (welcome.refused[0] == 0) {
    const int files[2] = {channels_[welcome.rank].file(), doorbell_.file()};
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(files));
    std::memcpy(CMSG_DATA(header), files, sizeof(files));
  }
  // A rank that has gone meanwhile is detected by the end of its connection.
  if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return;
}

void RankServer::Report(RankEvent event) {
  {
    const MutexLock lock(mutex_);
    events_.push_back(event);
  }
  doorbell().to_fabric.Ring();
}

std::vector<RankEvent> RankServer::TakeEvents() {
  const MutexLock lock(mutex_);
  return std::exchange(events_, {});
}

}  // namespace percs::mpi
