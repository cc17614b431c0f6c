// Batches of flits from one process to another that the receiver may not have applied: when a
// process is lost, they say from which virtual time on nothing of it arrived.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "emulator/base/time.h"
#include "percs/v1/state.pb.h"
#include "percs/v1/sync.pb.h"

namespace percs {

class SentBatches {
 public:
  explicit SentBatches(std::uint32_t processes) : granted_(processes) {}

  // `process` is granted a window in which it applies the batches that the grant names.
  void OnGrant(std::uint32_t process, const v1::WindowGrant& grant);
  // It has run the window that began at `window`: it has applied them, and sent the batches that it
  // reports.
  void OnReport(std::uint32_t process, const v1::WindowReport& report, Time window);
  // Number of the last batch on the stream from `from` that `to` may take in and may not have; 0 if
  // there is none. Not those after one that the controller has carried no further.
  std::uint64_t Last(std::uint32_t from, std::uint32_t to) const;
  // Beginning of the first window of `from` of which `to` lacks a batch, if `accepted` is the last
  // that it has; kNever if it has all.
  Time FirstMissing(std::uint32_t from, std::uint32_t to, std::uint64_t accepted) const;
  // `process` is lost. A process that was granted one of its batches may run the window without it,
  // so a report no longer means that the batch was applied.
  void Lose(std::uint32_t process);
  // Another one has its place: nothing is on its way to it or from it.
  void Forget(std::uint32_t process);

  void Save(v1::SavedRun* saved) const;
  void Restore(const v1::SavedRun& saved);

 private:
  struct Batch {
    std::uint64_t number = 0;  // on the stream; 0: the controller carries it
    Time window = 0;           // where the one it is of begins
    bool granted = false;      // it is in a grant, so of those that are carried, it arrives
    bool Missing(std::uint64_t accepted) const {
      return number == 0 ? !granted : number > accepted;
    }
  };
  // By sender and receiver; in order.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Batch>> sent_;
  // By receiver: senders whose batches its grant has, and how many.
  std::vector<std::vector<std::pair<std::uint32_t, std::size_t>>> granted_;
};

}  // namespace percs
