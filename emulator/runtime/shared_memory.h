// The memory region that all tasks of a node reserve at start (paper 003 section 3.4): for every
// instance of a shared-memory collective a line per task and two large buffers.
//
// Copies take a thread's time at a fixed rate; contents are real where the caller has any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "emulator/runtime/shared_line.h"
#include "emulator/scenario/host_parameters.h"

namespace percs {

// What the tasks of one collective instance share on a node.
struct SharedArea {
  struct Slot {
    SharedLine line;                   // counter and small record
    std::vector<std::uint8_t> record;  // what the record holds
    std::uint64_t records = 0;         // number of the operation it belongs to
  };
  std::vector<Slot> slots;  // by local task
  struct Buffer {
    SharedLine line;  // its counter: operations written
    std::vector<std::uint8_t> bytes;
  };
  std::array<Buffer, 2> buffers;
};

// The structure of every process that the others reach directly (paper 002 section IV): its
// buffers, and counters of calls entered, turns taken and work finished.
struct SmartmapArea {
  struct Info {
    SharedLine entered, turn, finished;
    const std::uint8_t* send = nullptr;
    std::uint8_t* receive = nullptr;
  };
  std::vector<Info> infos;  // by local task
};

class SharedMemory {
 public:
  // The area of instance `channel`; made when first asked for.
  SharedArea& area(std::uint8_t channel, std::size_t tasks) {
    auto& area = areas_[channel];
    if (!area) {
      area = std::make_unique<SharedArea>();
      area->slots = std::vector<SharedArea::Slot>(tasks);
    }
    return *area;
  }
  SmartmapArea& smartmap(std::uint8_t channel, std::size_t tasks) {
    auto& area = smartmaps_[channel];
    if (!area) {
      area = std::make_unique<SmartmapArea>();
      area->infos = std::vector<SmartmapArea::Info>(tasks);
    }
    return *area;
  }

 private:
  std::map<std::uint8_t, std::unique_ptr<SharedArea>> areas_;
  std::map<std::uint8_t, std::unique_ptr<SmartmapArea>> smartmaps_;
};

}  // namespace percs
