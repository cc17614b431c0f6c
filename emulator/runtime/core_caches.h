// What the caches of a node's cores hold of buffers that its tasks read and write in each other's
// memory. A part of a buffer stays with every core that has read it until another core writes it,
// so that a loop that sends the same buffer again and again finds it in the reader's own cache, as
// the Intel MPI Benchmarks do. What was read or written longest ago leaves a full cache first.
//
// A part is taken as a whole, as if all its lines were in one state of a coherence protocol.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <vector>

namespace percs {

class CoreCaches {
 public:
  enum class Role : std::uint8_t { kSent, kReceived };
  // Of one task's buffer.
  struct Part {
    std::uint32_t task = 0;
    Role role = Role::kSent;
    std::uint32_t number = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the 0 is clang's own
    auto operator<=>(const Part&) const = default;
  };

  // `bytes`: of one core's cache.
  CoreCaches(int cores, std::uint64_t bytes)
      : bytes_(bytes), cores_(static_cast<std::size_t>(cores)) {}

  // True if the core has the part already; it does from now on.
  bool Read(int core, const Part& part, std::uint64_t bytes);
  // True if no other core has it; that is so from now on.
  bool Write(int core, const Part& part, std::uint64_t bytes);

 private:
  struct Held {
    Part part;
    std::uint64_t bytes = 0;
  };
  struct Core {
    std::list<Held> held;  // the latest first
    std::map<Part, std::list<Held>::iterator> index;
    std::uint64_t bytes = 0;
  };
  // True if it was there.
  bool Touch(int core, const Part& part, std::uint64_t bytes);
  void Drop(int core, const Part& part);

  const std::uint64_t bytes_;
  std::vector<Core> cores_;
  std::map<Part, std::set<int>> holders_;
};

}  // namespace percs
