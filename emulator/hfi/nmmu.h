// Nest Memory Management Unit: address spaces that programs have registered, so that packets can
// work on them without the processors (paper 000 section IV-E). A context is the address space of
// one job on this hub: regions with their bytes, and the page table that maps their effective
// addresses to real memory. A cache keeps translations; what is not in it costs a walk of the page
// table.
//
// Not modelled: pages that are not in memory. A registered region is pinned.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/scenario/window_operation.h"
#include "emulator/scenario/window_parameters.h"
#include "emulator/topology/pcie_device.h"

namespace percs {

class Nmmu {
 public:
  // Counts hits and misses in `stats`.
  Nmmu(const WindowParameters& parameters, NodeStats& stats);

  // Makes the context if it is not there. kWrongKey: another job's, or another job has some of
  // these bytes of the device; kEmpty; kOutOfRange: beyond the end of the address space; kOverlap:
  // of addresses, or of a page with a device's; kNoMemory: more than the hub may have registered.
  WindowStatus Register(ContextId context, JobKey job, Address address, std::uint64_t bytes,
                        bool writable, const MemoryPlace& place = {});
  // The region that begins there, whole; its translations leave the cache, its memory is gone.
  // kNotRegistered, kWrongKey.
  WindowStatus Deregister(ContextId context, JobKey job, Address address);
  // Everything of a job.
  void DropJob(JobKey job);

  // May `job` do this? kNotRegistered, kWrongKey, kOutOfRange, kReadOnly (`write` only), in this
  // order of what is looked at: context, key, address, range, right. No bytes fit into every
  // region. Then `place` is where the bytes are; without it they are in main memory, or it is
  // kOnDevice.
  WindowStatus Check(ContextId context, JobKey job, Address address, std::uint64_t bytes,
                     bool write, MemoryPlace* place = nullptr) const;
  // How long translating takes, page by page. Of addresses that are not registered,
  // too: a walk finds that out.
  Time Translate(ContextId context, Address address, std::uint64_t bytes);
  // The bytes of registered main memory. REQUIRES: Check would be kOk, rights apart.
  void Write(ContextId context, Address address, const std::uint8_t* from, std::uint64_t bytes);
  void Read(ContextId context, Address address, std::uint8_t* to, std::uint64_t bytes) const;

  std::uint64_t page_of(Address address) const { return address >> page_shift_; }

 private:
  struct Region {
    std::uint64_t bytes = 0;
    bool writable = false;
    MemoryPlace place;
  };
  struct Page {
    std::unique_ptr<std::uint8_t[]> bytes;  // null: a device's
    int regions = 0;                        // that have part of it
  };
  struct Context {
    JobKey job = 0;
    std::map<Address, Region> regions;
    absl::flat_hash_map<std::uint64_t, Page> pages;  // the page table
  };
  static constexpr std::size_t kWays = 8;

  static std::uint64_t KeyOf(ContextId context, std::uint64_t page) {
    return (page << 16 | context) + 1;  // 0: an empty place
  }
  std::uint64_t* SetOf(std::uint64_t key);
  bool Lookup(std::uint64_t key);  // true: a hit; else it is in the cache now
  WindowStatus CheckPlace(const Context& context, JobKey job, Address address, std::uint64_t bytes,
                          const MemoryPlace& place) const;
  void Invalidate(std::uint64_t key);
  void Remove(ContextId id, Context& context, std::map<Address, Region>::iterator region);
  template <typename F>
  void ForPieces(Address address, std::uint64_t bytes, F&& f) const;

  const WindowParameters& parameters_;
  NodeStats& stats_;
  int page_shift_ = 0;
  std::map<ContextId, Context> contexts_;
  std::uint64_t pages_ = 0;           // of all contexts
  std::vector<std::uint64_t> cache_;  // sets of kWays keys, the latest used first
};

}  // namespace percs
