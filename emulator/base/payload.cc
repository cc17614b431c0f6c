#include "emulator/base/payload.h"

namespace percs {

SparePayloads::Closer::~Closer() {
  while (void* block = spare_payloads.Take()) ::operator delete(block);
  spare_payloads.limit_ = 0;
  spare_payloads.closed_ = true;
}

bool SparePayloads::Open() {
  if (closed_ || limit_ == kMax) return false;
  static thread_local const Closer closer;
  limit_ = kMax;
  return true;
}

}  // namespace percs
