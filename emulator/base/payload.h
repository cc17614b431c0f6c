// Payload bytes of one packet: a reference-counted block that is passed along, never copied, while
// the packet crosses hubs of one process. It is no larger than it has to be: in an exchange of all
// with all, millions of short ones are there at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace percs {

inline constexpr int kFlitBytes = 128;        // paper 000 section IV-C
inline constexpr int kPacketBytesMax = 2048;  // paper 000 section IV-C
inline constexpr int kPacketFlitsMax = kPacketBytesMax / kFlitBytes;

class PayloadRef {
 public:
  PayloadRef() = default;
  // Room for `capacity` bytes, 0 to kPacketBytesMax, rounded up to whole words of eight.
  static PayloadRef Make(int capacity = kPacketBytesMax) {
    PayloadRef ref;
    const std::size_t room = (static_cast<std::size_t>(capacity) + 7) / 8 * 8;
    ref.block_ = new (::operator new(sizeof(Block) + room)) Block;
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
  };
  [[gnu::noinline]] static void Drop(Block* block) {
    if (block->references.fetch_sub(1, std::memory_order_acq_rel) == 1) ::operator delete(block);
  }
  Block* block_ = nullptr;
};

}  // namespace percs
