// The main() of every GoogleTest program here: says the seed once, so that any log names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/seed.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (!::testing::GTEST_FLAG(list_tests)) {
    std::printf("PERCS_SEED=%llu\n", static_cast<unsigned long long>(percs::test::Seed()));
  }
  return RUN_ALL_TESTS();
}
