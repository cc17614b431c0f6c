// Stands between two processes and does to their connections what networks do: resets them, stalls
// them, delays bytes, at moments drawn from a seed. Never changes a byte.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "emulator/base/random.h"
#include "proto/process/temporary_folder.h"

namespace percs::test {

struct ProxyOptions {
  std::uint64_t seed = 1;
  // A connection is reset after a number of bytes up to this, both ways together; 0: never.
  std::uint32_t reset_within_bytes = 0;
  // ... but only so many in all, so that a run ends.
  int resets_max = 20;
  // One in so many chunks stalls its direction for stall; 0: never.
  std::uint32_t stall_one_in = 0;
  std::chrono::milliseconds stall{50};
  // Every chunk is late by up to this.
  std::chrono::microseconds delay_max{0};
};

class Proxy {
 public:
  explicit Proxy(ProxyOptions options);
  ~Proxy();

  // Address that leads to `target`, a Unix socket.
  std::string AddressFor(const std::string& target);
  int resets() const { return resets_; }
  int stalls() const { return stalls_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Listener {
    int fd;
    std::string target_path;
  };
  struct Chunk {
    Clock::time_point due;
    std::string bytes;
  };
  struct Direction {
    int from = -1, to = -1;
    std::deque<Chunk> chunks;
    Clock::time_point quiet_until;
    bool ended = false;
  };
  struct Connection {
    Direction ways[2];
    std::uint64_t bytes_left = ~0ull;
    bool dead = false;
  };

  void Loop();
  void Accept(const Listener& listener);
  void Read(Connection* connection, Direction* way);
  void Write(Connection* connection, Direction* way, Clock::time_point now);
  void Close(Connection* connection);

  const ProxyOptions options_;
  percs::TemporaryFolder folder_;
  RandomStream random_;
  std::mutex mutex_;  // guards listeners_
  std::vector<Listener> listeners_;
  std::list<Connection> connections_;
  std::atomic<int> resets_{0}, stalls_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace percs::test
