#include "daemon/config/port_holder.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace percs {
namespace {

constexpr int kTcpListen = 0x0a;

// Inodes of the sockets that listen on `port`.
std::set<std::string> ListeningInodes(int port) {
  std::set<std::string> inodes;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
          timeout >> inode;
      const std::size_t colon = local.rfind(':');
      if (colon == std::string::npos) continue;
      if (std::strtol(local.c_str() + colon + 1, nullptr, 16) != port) continue;
      if (std::strtol(state.c_str(), nullptr, 16) == kTcpListen) inodes.insert(inode);
    }
  }
  return inodes;
}

bool HoldsOne(const std::filesystem::path& process, const std::set<std::string>& inodes) {
  std::error_code error;
  for (std::filesystem::directory_iterator fd(process / "fd", error), end; !error && fd != end;
       fd.increment(error)) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(fd->path(), ignored).string();
    if (target.rfind("socket:[", 0) != 0) continue;
    if (inodes.count(target.substr(8, target.size() - 9)) != 0) return true;
  }
  return false;
}

}  // namespace

bool TcpPortTaken(int port) { return !ListeningInodes(port).empty(); }

int TcpPortHolder(int port) {
  const std::set<std::string> inodes = ListeningInodes(port);
  if (inodes.empty()) return 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const int pid = std::atoi(entry->path().filename().c_str());
    if (pid > 0 && HoldsOne(entry->path(), inodes)) return pid;
  }
  return 0;
}

}  // namespace percs
