// Under the thread sanitizer this header gives fields of maps two members more, for its own checks.
// The library that Debian built does not have them, so that its objects and ours would differ in
// size.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
