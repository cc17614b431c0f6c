// A signal notification register of an SPE: 32 bits that others set and the SPU reads, which clears
// it. In OR mode arriving bits add to those that wait; in overwrite mode they replace them.
#pragma once

#include <cstdint>

namespace percs::cell {

enum class SignalMode : std::uint8_t { kOverwrite, kOr };

class SignalRegister {
 public:
  void SetMode(SignalMode mode) { mode_ = mode; }
  void Arrive(std::uint32_t value) {
    value_ = mode_ == SignalMode::kOr ? value_ | value : value;
    waiting_ = true;
  }
  bool waiting() const { return waiting_; }  // written since the last read
  std::uint32_t Take() {
    const std::uint32_t value = value_;
    value_ = 0;
    waiting_ = false;
    return value;
  }

 private:
  SignalMode mode_ = SignalMode::kOverwrite;
  bool waiting_ = false;
  std::uint32_t value_ = 0;
};

}  // namespace percs::cell
