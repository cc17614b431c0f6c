// A controller's way to its daemons that only keeps what was sent.
#pragma once

#include <memory>
#include <vector>

#include "daemon/controller/fabric_run.h"

namespace percs::test {

class SentMessages : public DaemonPort {
 public:
  std::unique_ptr<v1::ControllerMessage> Prepare(std::uint32_t) override {
    return std::make_unique<v1::ControllerMessage>();
  }
  void Send(std::uint32_t, std::unique_ptr<v1::ControllerMessage> message) override { messages.push_back(*message); }
  v1::Peer Describe(std::uint32_t) const override { return {}; }
  bool Present(std::uint32_t) const override { return true; }
  std::vector<v1::ControllerMessage> messages;
};

}  // namespace percs::test
