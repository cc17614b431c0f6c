// A folder of the test's own, removed with everything in it.
#pragma once

#include <string>

#include "proto/process/temporary_folder.h"

namespace percs::test {

class TemporaryFolder {
 public:
  const std::string& path() const { return folder_.path(); }

 private:
  percs::TemporaryFolder folder_ = percs::TemporaryFolder::Make("percs-").value();
};

}  // namespace percs::test
