// A value that has memory from when it is first written. There are many of these in a large
// machine, and most stay as they began.
#pragma once

#include <memory>

namespace percs {

// REQUIRES: T is default-constructible and comparable.
template <typename T>
class OnDemand {
 public:
  OnDemand() = default;
  OnDemand(const OnDemand& other) { *this = other; }
  OnDemand(OnDemand&&) = default;
  OnDemand& operator=(const OnDemand& other) {
    if (!other.value_) {
      value_.reset();
    } else if (&other != this) {
      to_write() = *other.value_;
    }
    return *this;
  }
  OnDemand& operator=(OnDemand&&) = default;
  ~OnDemand() = default;

  const T& to_read() const { return value_ ? *value_ : Initial(); }
  T& to_write() {
    if (!value_) [[unlikely]]
      Make();
    return *value_;
  }
  // Gives the memory back if the value is as it began.
  void Trim() {
    if (value_ && *value_ == Initial()) value_.reset();
  }
  bool operator==(const OnDemand& other) const { return to_read() == other.to_read(); }

 private:
  static const T& Initial() {
    static const T initial{};
    return initial;
  }
  [[gnu::noinline]] void Make() { value_ = std::make_unique<T>(); }

  std::unique_ptr<T> value_;
};

}  // namespace percs
