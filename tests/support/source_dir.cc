#include "tests/support/source_dir.h"

namespace percs::test {

std::string SourceDir() { return PERCS_SOURCE_DIR; }

}  // namespace percs::test
