// What cores' caches hold. Method: two or three cores, parts of 100 bytes, and caches of 250.
#include "emulator/runtime/core_caches.h"

#include <gtest/gtest.h>

namespace percs {
namespace {

using Part = CoreCaches::Part;

constexpr Part kA{0, CoreCaches::Role::kSent, 0}, kB{0, CoreCaches::Role::kSent, 1},
    kC{1, CoreCaches::Role::kSent, 0}, kReceived{0, CoreCaches::Role::kReceived, 0};

TEST(CoreCaches, WhatWasReadIsThereForTheNextReadOfThatCoreOnly) {
  CoreCaches caches(2, 250);
  EXPECT_FALSE(caches.Read(0, kA, 100));
  EXPECT_TRUE(caches.Read(0, kA, 100));
  EXPECT_FALSE(caches.Read(1, kA, 100));
  EXPECT_TRUE(caches.Read(0, kA, 100)) << "readers share a part";
  EXPECT_FALSE(caches.Read(0, kReceived, 100)) << "another buffer of the same task";
}

TEST(CoreCaches, AWriteTakesThePartFromAllOtherCores) {
  CoreCaches caches(3, 250);
  EXPECT_FALSE(caches.Write(0, kA, 100)) << "nobody had it";
  EXPECT_TRUE(caches.Write(0, kA, 100));
  EXPECT_FALSE(caches.Read(1, kA, 100));
  EXPECT_FALSE(caches.Write(0, kA, 100)) << "core 1 has it, too";
  EXPECT_TRUE(caches.Write(0, kA, 100));
  EXPECT_FALSE(caches.Read(1, kA, 100));
}

TEST(CoreCaches, AFullCacheLosesWhatWasUsedLongestAgo) {
  CoreCaches caches(1, 250);
  caches.Read(0, kA, 100);
  caches.Read(0, kB, 100);
  caches.Read(0, kA, 100);
  caches.Read(0, kC, 100);
  EXPECT_TRUE(caches.Read(0, kA, 100));
  EXPECT_FALSE(caches.Read(0, kB, 100));
  EXPECT_FALSE(caches.Read(0, Part{2, CoreCaches::Role::kSent, 0}, 251)) << "more than the cache";
  EXPECT_FALSE(caches.Read(0, Part{2, CoreCaches::Role::kSent, 0}, 251));
}

}  // namespace
}  // namespace percs
