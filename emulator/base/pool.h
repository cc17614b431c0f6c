// Objects with stable addresses that are reused, so that a steady state allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "emulator/base/unused_memory.h"

namespace percs {

template <typename T>
class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (const Chunk& chunk : chunks_) MarkUsed(chunk.objects.get(), chunk.count * sizeof(T));
  }

  // The object keeps what its last user left in it, but for `next_free` links kept apart.
  T* Take() {
    if (free_.empty()) Grow();
    T* object = free_.back();
    free_.pop_back();
    MarkUsed(object, sizeof(T));
    return object;
  }
  // It may be another pool's, which has to outlive its use.
  void Give(T* object) {
    MarkUnused(object, sizeof(T));
    free_.push_back(object);
  }
  std::size_t free() const { return free_.size(); }

 private:
  struct Chunk {
    std::unique_ptr<T[]> objects;
    std::size_t count;
  };
  void Grow() {
    const std::size_t count = next_;
    if (next_ < 256) next_ *= 2;
    T* const objects =
        chunks_.emplace_back(Chunk{std::make_unique<T[]>(count), count}).objects.get();
    MarkUnused(objects, count * sizeof(T));
    total_ += count;
    // All that there are may be given back. Twice the room each time: this is not to be quadratic.
    if (free_.capacity() < total_) free_.reserve(2 * total_);
    for (std::size_t i = count; i-- > 0;) free_.push_back(&objects[i]);
  }
  std::vector<Chunk> chunks_;
  std::vector<T*> free_;
  std::size_t next_ = 16, total_ = 0;
};

}  // namespace percs
