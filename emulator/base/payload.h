// Payload bytes of one packet: a reference-counted block that is passed along, never copied, while
// the packet crosses hubs of one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace percs {

inline constexpr int kFlitBytes = 128;        // paper 000 section IV-C
inline constexpr int kPacketBytesMax = 2048;  // paper 000 section IV-C
inline constexpr int kPacketFlitsMax = kPacketBytesMax / kFlitBytes;

class PayloadRef {
 public:
  PayloadRef() = default;
  static PayloadRef Make() {
    PayloadRef ref;
    ref.block_ = new Block;
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
  std::uint8_t* bytes() { return block_->bytes; }
  const std::uint8_t* bytes() const { return block_->bytes; }

 private:
  struct Block {
    std::atomic<std::uint32_t> references{1};
    std::uint8_t bytes[kPacketBytesMax];
  };
  [[gnu::noinline]] static void Drop(Block* block) {
    if (block->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block;
  }
  Block* block_ = nullptr;
};

}  // namespace percs
