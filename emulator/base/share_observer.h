// How a long computation says how far it is.
#pragma once

#include <algorithm>
#include <functional>

namespace percs {

// Called now and then with the share that is done, from 0 to 1; it does not go down. May be empty.
using ShareObserver = std::function<void(double share)>;

// Tells an observer the share of a work of which the parts are known before it begins: one pass
// adds them up, a second one does them.
class WorkShare {
 public:
  explicit WorkShare(const ShareObserver& observer) : observer_(observer) {}
  // Whether this pass adds up, and does nothing.
  bool adds_up() const { return adds_up_; }
  void Begin() { adds_up_ = false; }  // ... the second pass
  // A part of `work`, in any unit, was added up or done.
  void Part(double work) {
    (adds_up_ ? all_ : done_) += work;
    if (!adds_up_ && observer_ && all_ > 0) observer_(std::min(done_ / all_, 1.0));
  }

 private:
  const ShareObserver& observer_;
  bool adds_up_ = true;
  double all_ = 0, done_ = 0;
};

}  // namespace percs
