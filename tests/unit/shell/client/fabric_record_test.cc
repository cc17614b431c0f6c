// Method: writes and reads records in a temporary state directory of its own.
#include "client/lib/fabric_record.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace percs {
namespace {

class FabricRecordTest : public testing::Test {
 protected:
  FabricRecordTest()
      : root_(testing::TempDir() + "percs_record_test." + std::to_string(getpid())) {}
  ~FabricRecordTest() override { std::filesystem::remove_all(root_); }

  FabricRecord Record(const FabricStore& store, const std::string& name) const {
    const auto self = IdentifyProcess(getpid());
    return {name,
            "unix",
            "unix:/x/controller.sock",
            "http://127.0.0.1:9464/metrics",
            "http://127.0.0.1:9465/#key",
            "a.yaml",
            store.SocketFolderOf(name),
            "/x/tls/operator",
            {{"controller", *self, "c.log"}, {"percsd", {getpid(), 1}, "d.log"}}};
  }
  std::string root_;
};

TEST_F(FabricRecordTest, WhatWasSavedIsLoadedAgain) {
  const FabricStore store(root_);
  const auto lock = FabricLock::Take(store, "one");
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_TRUE(store.Save(Record(store, "one")).ok());
  const auto loaded = store.Load("one");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->controller, "unix:/x/controller.sock");
  EXPECT_EQ(loaded->page, "http://127.0.0.1:9465/#key");
  ASSERT_EQ(loaded->processes.size(), 2u);
  EXPECT_EQ(loaded->processes[1].log, "d.log");
  EXPECT_EQ(loaded->running(), 1) << "the second has our pid but another start time";
  EXPECT_EQ(store.Names(), std::vector<std::string>{"one"});
}

TEST_F(FabricRecordTest, AnUnknownNameListsTheKnownOnes) {
  const FabricStore store(root_);
  EXPECT_EQ(store.Load("two").status().message(),
            "no local fabric is called \"two\"; there is none, `percsctl up` starts one");
  const auto lock = FabricLock::Take(store, "one");
  ASSERT_TRUE(store.Save(Record(store, "one")).ok());
  EXPECT_EQ(store.Load("two").status().message(),
            "no local fabric is called \"two\"; write --name one");
}

TEST_F(FabricRecordTest, NamesThatCouldLeaveTheStateDirectoryAreRefused) {
  for (const char* name :
       {"", "..", "a/b", ".hidden", "a b", "123456789012345678901234567890123"}) {
    EXPECT_FALSE(CheckFabricName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckFabricName("lab-2_b.1").ok());
}

TEST_F(FabricRecordTest, ABrokenRecordIsReportedWithItsFile) {
  const FabricStore store(root_);
  const auto lock = FabricLock::Take(store, "one");
  std::ofstream(root_ + "/one/fabric.json") << "{\"name\": 3";
  const auto loaded = store.Load("one");
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(loaded.status().message().find("one/fabric.json"), absl::string_view::npos);
}

TEST_F(FabricRecordTest, ALockedFabricCannotBeTakenTwice) {
  const FabricStore store(root_);
  {
    const auto lock = FabricLock::Take(store, "one");
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(FabricLock::Take(store, "one").status().code(), absl::StatusCode::kAborted);
    EXPECT_TRUE(FabricLock::Take(store, "two").ok());
  }
  EXPECT_TRUE(FabricLock::Take(store, "one").ok());
}

TEST_F(FabricRecordTest, RemovingTakesSocketsAndRecordButLeavesLogs) {
  const FabricStore store(root_);
  const auto lock = FabricLock::Take(store, "one");
  const FabricRecord record = Record(store, "one");
  ASSERT_TRUE(store.Save(record).ok());
  std::filesystem::create_directories(record.sockets);
  const std::string socket_path = record.sockets + "/controller.sock";
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket_path.size(), sizeof(address.sun_path));
  std::strcpy(address.sun_path, socket_path.c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  std::ofstream(root_ + "/one/controller.log") << "hello\n";
  store.Remove(record);
  EXPECT_FALSE(std::filesystem::exists(socket_path));
  EXPECT_TRUE(std::filesystem::exists(root_ + "/one/controller.log"));
  EXPECT_TRUE(store.Names().empty());
}

TEST_F(FabricRecordTest, SocketsMoveToAShortFolderWhenTheStateDirectoryIsDeep) {
  const FabricStore deep("/" + std::string(100, 'x'));
  EXPECT_LT(deep.SocketFolderOf("one").size(), 80u);
  EXPECT_NE(deep.SocketFolderOf("one"), deep.SocketFolderOf("two"));
  const FabricStore shallow("/s");
  EXPECT_EQ(shallow.SocketFolderOf("one"), "/s/one");
}

}  // namespace
}  // namespace percs
