// Daemons that say that they do not reach others.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "percs/v1/sync.pb.h"

namespace percs {

class UnreachedPeers {
 public:
  // Where a process is; without a name if its streams, or their lack, are not what is waited for.
  using Describe = absl::FunctionRef<v1::Peer(std::uint32_t process)>;

  void OnLinkState(std::uint32_t process, const v1::LinkState& state);
  // Virtual time does not wait for the peers that it does not reach.
  void Forget(std::uint32_t process) { by_process_.erase(process); }
  // "d0 does not reach d1 at ADDRESS (why); ..."; "" if nothing waits for any of them.
  std::string Text(Describe describe) const;
  // Those that others do not reach.
  std::set<std::uint32_t> processes() const;
  // Wall time for which the first of them has waited; 0 if there is none.
  double longest_seconds() const;

 private:
  std::map<std::uint32_t, v1::LinkState> by_process_;
};

}  // namespace percs
