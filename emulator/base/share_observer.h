// How a long computation says how far it is.
#pragma once

#include <functional>

namespace percs {

// Called now and then with the share that is done, from 0 to 1; it does not go down. May be empty.
using ShareObserver = std::function<void(double share)>;

}  // namespace percs
