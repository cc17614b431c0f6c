// Payload bytes of one packet: a reference-counted block that is passed along, never copied, while
// the packet crosses hubs of one process. It is no larger than it has to be: in an exchange of all
// with all, millions of short ones are there at once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "emulator/base/unused_memory.h"

namespace percs {

inline constexpr int kFlitBytes = 128;        // paper 000 section IV-C
inline constexpr int kPacketBytesMax = 2048;  // paper 000 section IV-C
inline constexpr int kPacketFlitsMax = kPacketBytesMax / kFlitBytes;

// Memory of full packets' payloads that a thread has dropped, the last one first: that is still in
// its cache.
class SparePayloads {
 public:
  // Null if there is none.
  void* Take() { return count_ > 0 ? blocks_[--count_] : nullptr; }
  // False if there are many already, or the thread is about to end.
  bool Keep(void* block) {
    if (count_ == limit_ && !Open()) return false;
    blocks_[count_++] = block;
    return true;
  }

 private:
  static constexpr std::uint32_t kMax = 64;
  struct Closer {
    ~Closer();
  };
  // Those of this thread; has them freed when it ends.
  bool Open();

  // It is used after the thread's objects are gone, too, so it has no destructor.
  std::array<void*, kMax> blocks_;
  std::uint32_t count_, limit_;
  bool closed_;
};
inline constinit thread_local SparePayloads spare_payloads = {};

class PayloadRef {
 public:
  PayloadRef() = default;
  // Room for `capacity` bytes, 0 to kPacketBytesMax, rounded up to whole words of eight.
  static PayloadRef Make(int capacity = kPacketBytesMax) {
    PayloadRef ref;
    const std::size_t room = (static_cast<std::size_t>(capacity) + 7) / 8 * 8;
    void* memory = room == kPacketBytesMax ? spare_payloads.Take() : nullptr;
    if (memory == nullptr) memory = ::operator new(sizeof(Block) + room);
    MarkUsed(memory, sizeof(Block) + room);
    ref.block_ = new (memory) Block;
    ref.block_->full = room == kPacketBytesMax;
    return ref;
  }
  PayloadRef(const PayloadRef& other) : block_(other.block_) {
    if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  PayloadRef(PayloadRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  PayloadRef& operator=(const PayloadRef& other) noexcept {
    if (block_ != other.block_) *this = PayloadRef(other);
    return *this;
  }
  PayloadRef& operator=(PayloadRef&& other) noexcept {
    Block* block = std::exchange(other.block_, nullptr);
    Clear();
    block_ = block;
    return *this;
  }
  ~PayloadRef() { Clear(); }
  void Clear() {
    if (block_) Drop(std::exchange(block_, nullptr));
  }
  explicit operator bool() const { return block_ != nullptr; }
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(block_ + 1); }
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(block_ + 1); }

 private:
  struct alignas(8) Block {  // the bytes are behind it
    std::atomic<std::uint32_t> references{1};
    bool full = false;  // room for kPacketBytesMax
  };
  [[gnu::noinline]] static void Drop(Block* block) {
    if (block->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (!block->full || !spare_payloads.Keep(block)) {
      ::operator delete(block);
    } else {
      MarkUnused(block, sizeof(Block) + kPacketBytesMax);
    }
  }
  Block* block_ = nullptr;
};

}  // namespace percs
