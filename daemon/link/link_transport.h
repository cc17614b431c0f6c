// How daemons reach each other: gRPC, or the simulator's network.
#pragma once

#include <memory>
#include <string>

#include "daemon/stream/streams.h"
#include "percs/v1/link.pb.h"
#include "proto/security/credentials.h"

namespace percs {

// The way to one daemon. THREAD: guarded by the process's lock.
class LinkLine {
 public:
  using Stream = DialledStream<v1::LinkMessage, v1::LinkMessage>;
  virtual ~LinkLine() = default;
  // `wait`: until there is a connection; else the stream ends if there is none.
  virtual Stream* Open(bool wait) = 0;
};

class LinkTransport {
 public:
  virtual ~LinkTransport() = default;
  virtual std::unique_ptr<LinkLine> LineTo(ProcessLock* lock, const std::string& address,
                                           const Credentials& credentials) = 0;

  // Over gRPC.
  static LinkTransport& Real();
};

}  // namespace percs
