// Raw packets at given times; packets of one source at one instant keep the order of the script.
#pragma once

#include <algorithm>

#include "emulator/workload/hub_workload.h"

namespace percs {

class Scripted : public HubWorkload {
 public:
  Scripted(const ScriptedWorkload& workload, HubServices& hub) : hub_(hub) {
    for (const ScriptedPacket& p : workload.packets) {
      if (p.source == hub.context().node) packets_.push_back(p);
    }
    std::stable_sort(packets_.begin(), packets_.end(),
                     [](const ScriptedPacket& a, const ScriptedPacket& b) { return a.at < b.at; });
  }
  void Start() override {
    if (packets_.empty()) return;
    ++hub_.context().work->unfinished;
    for (ScriptedPacket& packet : packets_) packet.at += hub_.context().now;  // of its start
    hub_.SetTimer(packets_.front().at, 0);
  }
  void OnTimer(std::uint64_t) override {
    for (; next_ < packets_.size() && packets_[next_].at <= hub_.context().now; ++next_) {
      const ScriptedPacket& p = packets_[next_];
      hub_.SendRaw(p.destination, p.source_window, p.destination_window,
                   static_cast<std::uint64_t>(p.bytes), false, p.route ? &*p.route : nullptr);
    }
    if (next_ < packets_.size()) {
      hub_.SetTimer(packets_[next_].at, 0);
    } else {
      --hub_.context().work->unfinished;
    }
  }

 private:
  HubServices& hub_;
  std::vector<ScriptedPacket> packets_;
  std::size_t next_ = 0;
};

}  // namespace percs
