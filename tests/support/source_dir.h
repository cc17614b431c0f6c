// Where the sources lie. In one object file, so that all others are the same in every checkout and
// come out of the compiler's cache.
#pragma once

#include <string>

namespace percs::test {

std::string SourceDir();

}  // namespace percs::test
