// First in, first out, in one block that grows to what it once had to hold: often one.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace percs {

template <typename T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T& front() { return items_[first_]; }
  const T& front() const { return items_[first_]; }
  T& operator[](std::size_t i) { return items_[(first_ + i) & (capacity_ - 1)]; }
  const T& operator[](std::size_t i) const { return items_[(first_ + i) & (capacity_ - 1)]; }
  void push_back(T value) {
    if (size_ == capacity_) Grow();
    items_[(first_ + size_++) & (capacity_ - 1)] = std::move(value);
  }
  void pop_front() {
    first_ = (first_ + 1) & (capacity_ - 1);
    --size_;
  }
  void clear() { first_ = size_ = 0; }

 private:
  void Grow() {
    const std::size_t capacity = capacity_ ? 2 * capacity_ : 1;
    auto items = std::make_unique<T[]>(capacity);
    for (std::size_t i = 0; i < size_; ++i) items[i] = std::move((*this)[i]);
    items_ = std::move(items);
    capacity_ = capacity;
    first_ = 0;
  }
  std::unique_ptr<T[]> items_;
  std::size_t capacity_ = 0, first_ = 0, size_ = 0;
};

}  // namespace percs
