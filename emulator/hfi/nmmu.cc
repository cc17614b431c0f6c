#include "emulator/hfi/nmmu.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/base/check.h"
#include "emulator/base/random.h"

namespace percs {

Nmmu::Nmmu(const WindowParameters& parameters, NodeStats& stats)
    : parameters_(parameters),
      stats_(stats),
      page_shift_(std::bit_width(static_cast<unsigned>(parameters.page_bytes)) - 1),
      cache_((static_cast<std::size_t>(parameters.nmmu_entries) + kWays - 1) / kWays * kWays) {}

WindowStatus Nmmu::Register(ContextId id, JobKey job, Address address, std::uint64_t bytes,
                            bool writable, const MemoryPlace& place) {
  if (bytes == 0) return WindowStatus::kEmpty;
  if (address + bytes < address || address + bytes > Address{1} << 47)
    return WindowStatus::kOutOfRange;
  const auto found = contexts_.find(id);
  if (found != contexts_.end() && found->second.job != job) return WindowStatus::kWrongKey;
  const Context none{};
  const WindowStatus status =
      CheckPlace(found == contexts_.end() ? none : found->second, job, address, bytes, place);
  if (status != WindowStatus::kOk) return status;
  const std::uint64_t first = page_of(address), last = page_of(address + bytes - 1);
  Context& context = contexts_[id];
  context.job = job;
  context.regions[address] = {bytes, writable, place};
  for (std::uint64_t p = first; p <= last; ++p) {
    Page& page = context.pages[p];
    if (page.regions++ > 0) continue;
    if (!place.on_device())
      page.bytes = std::make_unique<std::uint8_t[]>(std::size_t{1} << page_shift_);  // zeros
    ++pages_;
  }
  return WindowStatus::kOk;
}

// Is there room for it, in the context and in the hub? A page is in main memory or in a device, and
// bytes of a device are one job's at a time.
WindowStatus Nmmu::CheckPlace(const Context& context, JobKey job, Address address,
                              std::uint64_t bytes, const MemoryPlace& place) const {
  const auto next = context.regions.lower_bound(address);
  if (next != context.regions.end() && next->first < address + bytes) return WindowStatus::kOverlap;
  if (next != context.regions.begin() &&
      std::prev(next)->first + std::prev(next)->second.bytes > address) {
    return WindowStatus::kOverlap;
  }
  const std::uint64_t first = page_of(address), last = page_of(address + bytes - 1);
  for (const std::uint64_t p :
       {first, last}) {  // pages between the two would be an overlap of addresses
    const auto page = context.pages.find(p);
    if (page != context.pages.end() && (place.on_device() || !page->second.bytes))
      return WindowStatus::kOverlap;
  }
  const auto limit = static_cast<std::uint64_t>(parameters_.registered_bytes) >> page_shift_;
  // Pages that another region has already cost nothing more, but then there are at most two of
  // these.
  if (last - first + 1 > limit || pages_ + (last - first + 1) > limit)
    return WindowStatus::kNoMemory;
  if (!place.on_device()) return WindowStatus::kOk;
  for (const auto& [id, other] : contexts_) {
    if (other.job == job) continue;
    for (const auto& [start, region] : other.regions) {
      const bool apart = region.place.port != place.port ||
                         region.place.offset >= place.offset + bytes ||
                         region.place.offset + region.bytes <= place.offset;
      if (!apart) return WindowStatus::kWrongKey;
    }
  }
  return WindowStatus::kOk;
}

WindowStatus Nmmu::Deregister(ContextId id, JobKey job, Address address) {
  const auto found = contexts_.find(id);
  if (found == contexts_.end()) return WindowStatus::kNotRegistered;
  if (found->second.job != job) return WindowStatus::kWrongKey;
  const auto region = found->second.regions.find(address);
  if (region == found->second.regions.end()) return WindowStatus::kNotRegistered;
  Remove(id, found->second, region);
  if (found->second.regions.empty()) contexts_.erase(found);
  return WindowStatus::kOk;
}

void Nmmu::DropJob(JobKey job) {
  for (auto context = contexts_.begin(); context != contexts_.end();) {
    if (context->second.job != job) {
      ++context;
      continue;
    }
    auto& regions = context->second.regions;
    while (!regions.empty()) Remove(context->first, context->second, regions.begin());
    context = contexts_.erase(context);
  }
}

void Nmmu::Remove(ContextId id, Context& context, std::map<Address, Region>::iterator region) {
  const Address address = region->first, end = address + region->second.bytes;
  for (std::uint64_t p = page_of(address); p <= page_of(end - 1); ++p) {
    const auto page = context.pages.find(p);
    PERCS_CHECK(page != context.pages.end());
    if (--page->second.regions > 0) {
      // What another region has of the page stays; what this one had is free.
      const Address start = p << page_shift_, size = Address{1} << page_shift_;
      const Address from = std::max(address, start), to = std::min(end, start + size);
      std::memset(page->second.bytes.get() + (from - start), 0, to - from);
      continue;
    }
    context.pages.erase(page);
    Invalidate(KeyOf(id, p));
    --pages_;
  }
  context.regions.erase(region);
}

WindowStatus Nmmu::Check(ContextId id, JobKey job, Address address, std::uint64_t bytes, bool write,
                         MemoryPlace* place) const {
  const auto found = contexts_.find(id);
  if (found == contexts_.end()) return WindowStatus::kNotRegistered;
  if (found->second.job != job) return WindowStatus::kWrongKey;
  const auto& regions = found->second.regions;
  auto region = regions.upper_bound(address);
  if (region == regions.begin()) return WindowStatus::kNotRegistered;
  --region;
  const std::uint64_t offset = address - region->first;
  if (offset >= region->second.bytes) return WindowStatus::kNotRegistered;
  if (bytes > region->second.bytes - offset) return WindowStatus::kOutOfRange;
  if (write && !region->second.writable) return WindowStatus::kReadOnly;
  const MemoryPlace& start = region->second.place;
  if (!place) return start.on_device() ? WindowStatus::kOnDevice : WindowStatus::kOk;
  *place = {start.port, start.offset + offset};
  return WindowStatus::kOk;
}

Time Nmmu::Translate(ContextId id, Address address, std::uint64_t bytes) {
  Time cost = 0;
  const std::uint64_t last = page_of(address + std::max<std::uint64_t>(bytes, 1) - 1);
  for (std::uint64_t p = page_of(address); p <= last; ++p) {
    const auto found = contexts_.find(id);
    const bool mapped = found != contexts_.end() && found->second.pages.contains(p);
    const bool hit = mapped && Lookup(KeyOf(id, p));
    ++(hit ? stats_.nmmu_hits : stats_.nmmu_misses);
    cost += hit ? parameters_.nmmu_hit : parameters_.nmmu_miss;
  }
  return cost;
}

std::uint64_t* Nmmu::SetOf(std::uint64_t key) {
  return &cache_[Mix64(key) % (cache_.size() / kWays) * kWays];
}

bool Nmmu::Lookup(std::uint64_t key) {
  std::uint64_t* const set = SetOf(key);
  std::uint64_t* const place = std::find(set, set + kWays, key);
  const bool hit = place != set + kWays;
  std::move_backward(set, hit ? place : set + kWays - 1, hit ? place + 1 : set + kWays);
  *set = key;
  return hit;
}

void Nmmu::Invalidate(std::uint64_t key) {
  std::uint64_t* const set = SetOf(key);
  std::uint64_t* const place = std::find(set, set + kWays, key);
  if (place == set + kWays) return;
  std::move(place + 1, set + kWays, place);
  set[kWays - 1] = 0;
}

template <typename F>
void Nmmu::ForPieces(Address address, std::uint64_t bytes, F&& f) const {
  const std::uint64_t size = std::uint64_t{1} << page_shift_;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t in_page = (address + done) & (size - 1);
    const std::uint64_t piece = std::min(bytes - done, size - in_page);
    f(page_of(address + done), in_page, done, static_cast<std::size_t>(piece));
    done += piece;
  }
}

void Nmmu::Write(ContextId id, Address address, const std::uint8_t* from, std::uint64_t bytes) {
  Context& context = contexts_.find(id)->second;
  ForPieces(address, bytes,
            [&](std::uint64_t page, std::uint64_t at, std::uint64_t done, std::size_t size) {
              std::memcpy(context.pages.find(page)->second.bytes.get() + at, from + done, size);
            });
}

void Nmmu::Read(ContextId id, Address address, std::uint8_t* to, std::uint64_t bytes) const {
  const Context& context = contexts_.find(id)->second;
  ForPieces(address, bytes,
            [&](std::uint64_t page, std::uint64_t at, std::uint64_t done, std::size_t size) {
              std::memcpy(to + done, context.pages.find(page)->second.bytes.get() + at, size);
            });
}

}  // namespace percs
