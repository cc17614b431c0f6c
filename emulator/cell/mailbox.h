// A mailbox of an SPE: a queue of 32-bit messages. A writer to a full one waits for room,
// a reader of an empty one waits for a message; both in the order of arrival.
#pragma once

#include <cstdint>

#include "emulator/base/ring.h"

namespace percs::cell {

class Processor;

class Mailbox {
 public:
  explicit Mailbox(int depth) : depth_(static_cast<std::size_t>(depth)) {}

  int count() const { return static_cast<int>(entries_.size()); }
  // Each finishes the operation of a waiting processor once it could be done.
  void Write(Processor* writer, std::uint32_t value);
  void Read(Processor* reader);

 private:
  struct Writer {
    Processor* processor = nullptr;
    std::uint32_t value = 0;
  };
  void Settle();

  std::size_t depth_;
  Ring<std::uint32_t> entries_;
  Ring<Writer> writers_;
  Ring<Processor*> readers_;
};

}  // namespace percs::cell
