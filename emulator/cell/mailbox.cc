#include "emulator/cell/mailbox.h"

#include "emulator/cell/processor.h"

namespace percs::cell {

void Mailbox::Write(Processor* writer, std::uint32_t value) {
  writers_.push_back({writer, value});
  Settle();
}

void Mailbox::Read(Processor* reader) {
  readers_.push_back(reader);
  Settle();
}

void Mailbox::Settle() {
  for (bool moved = true; moved;) {
    moved = false;
    if (!writers_.empty() && entries_.size() < depth_) {
      const Writer writer = writers_.front();
      writers_.pop_front();
      entries_.push_back(writer.value);
      writer.processor->FinishOperation(0);
      moved = true;
    }
    if (!readers_.empty() && !entries_.empty()) {
      Processor* reader = readers_.front();
      readers_.pop_front();
      const std::uint32_t value = entries_.front();
      entries_.pop_front();
      reader->FinishOperation(value);
      moved = true;
    }
  }
}

}  // namespace percs::cell
