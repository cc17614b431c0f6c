// Method: starts real `sleep` and `sh` processes and checks identity, stopping and killing.
#include "client/lib/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

namespace percs {
namespace {

using std::chrono::milliseconds;

std::string LogPath() {
  return testing::TempDir() + "percs_process_test." + std::to_string(getpid());
}

TEST(ProcessTest, APidWithAnotherStartTimeIsAnotherProcess) {
  const auto self = IdentifyProcess(getpid());
  ASSERT_TRUE(self.ok());
  EXPECT_TRUE(IsRunning(*self));
  EXPECT_FALSE(IsRunning({self->pid, self->start + 1}));
}

TEST(ProcessTest, StoppingLeavesARecycledPidAlone) {
  const auto child = StartDetached({"/bin/sleep", "60"}, LogPath());
  ASSERT_TRUE(child.ok()) << child.status();
  const StopResult nothing = StopProcesses({{child->pid, child->start + 1}}, milliseconds(100));
  EXPECT_EQ(nothing.stopped + nothing.killed, 0);
  EXPECT_TRUE(IsRunning(*child));
  EXPECT_EQ(StopProcesses({*child}, milliseconds(60'000)).stopped, 1);
  EXPECT_FALSE(IsRunning(*child));
}

TEST(ProcessTest, WhatIgnoresSigtermIsKilledAfterTheGrace) {
  const auto child = StartDetached(
      {"/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"}, LogPath());
  ASSERT_TRUE(child.ok()) << child.status();
  for (int i = 0; i < 6000 && LastLines(LogPath(), 1) != "ready"; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(StopProcesses({*child}, milliseconds(200)).killed, 1);
  EXPECT_FALSE(IsRunning(*child));
  unlink(LogPath().c_str());
}

TEST(ProcessTest, AProgramThatIsNotThereIsNamed) {
  const auto child = StartDetached({"/no/such/program"}, LogPath());
  EXPECT_FALSE(child.ok());
  EXPECT_NE(child.status().message().find("/no/such/program"), absl::string_view::npos);
  EXPECT_FALSE(FindProgram("percs-no-such-program").ok());
}

}  // namespace
}  // namespace percs
