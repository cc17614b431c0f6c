// The journal on disk: whole records or none, what a crash or a full disk leaves, payloads once.
#include "proto/scenario/journal_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "emulator/base/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scenario/file.h"

namespace percs {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::uint64_t kRoom = 1 << 20;

v1::JournalRecord Delete(const std::string& id, Time at) {
  v1::JournalRecord record;
  record.set_run(1);
  record.set_at(at);
  record.set_delete_fault(id);
  return record;
}

class JournalFileTest : public ::testing::Test {
 protected:
  JournalFileTest()
      : folder_(fs::temp_directory_path() / ("percs-journal-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~JournalFileTest() override { fs::remove_all(folder_); }

  std::string name() const { return folder_ + "/journal"; }
  void WriteThree() {
    JournalFile journal;
    ASSERT_TRUE(journal.Open(folder_, kRoom).ok());
    ASSERT_TRUE(journal.Append({Delete("a", 1), Delete("b", 2)}).ok());
    ASSERT_TRUE(journal.Append({Delete("c", 3)}).ok());
  }
  std::string folder_;
};

TEST_F(JournalFileTest, IsReadAsItWasWritten) {
  WriteThree();
  const auto contents = ReadJournal(folder_);
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->records.size(), 3u);
  EXPECT_EQ(contents->records[2].delete_fault(), "c");
  EXPECT_EQ(contents->cut_off, 0u);
  EXPECT_TRUE(ReadJournal(name()).ok()) << "the file as well as its folder";
}

TEST_F(JournalFileTest, SaysWhichRunsItHasAndWhichOfThemHaveEnded) {
  WriteThree();
  v1::JournalRecord end, next = Delete("d", 4);
  end.set_run(1);
  end.mutable_end()->set_error("a reason");
  next.set_run(2);
  JournalFile journal;
  ASSERT_TRUE(journal.Open(folder_, kRoom).ok());
  EXPECT_EQ(journal.last_run(), 1u);
  EXPECT_EQ(journal.last_ended(), 0u);
  ASSERT_TRUE(journal.Append({end, next}).ok());
  JournalFile again;
  ASSERT_TRUE(again.Open(folder_, kRoom).ok());
  EXPECT_EQ(again.last_run(), 2u);
  EXPECT_EQ(again.last_ended(), 1u);
}

TEST_F(JournalFileTest, CutOffAnywhereItRecoversToItsLastWholeRecord) {
  WriteThree();
  const std::string whole = *ReadWholeFile(name());
  const std::size_t record = (whole.size() - 16) / 3;
  for (std::size_t size = 16; size < whole.size(); ++size) {
    std::ofstream(name(), std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    const auto contents = ReadJournal(folder_);
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_EQ(contents->records.size(), (size - 16) / record) << size;
    EXPECT_EQ(contents->whole + contents->cut_off, size);
    JournalFile journal;
    ASSERT_TRUE(journal.Open(folder_, kRoom).ok());
    EXPECT_EQ(journal.cut_off(), contents->cut_off);
    ASSERT_TRUE(journal.Append({Delete("after", 9)}).ok());
    const auto again = ReadJournal(folder_);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->records.size(), contents->records.size() + 1);
    EXPECT_EQ(again->records.back().delete_fault(), "after");
  }
}

TEST_F(JournalFileTest, ADamagedRecordEndsIt) {
  WriteThree();
  std::string bytes = *ReadWholeFile(name());
  const std::size_t record = (bytes.size() - 16) / 3;
  bytes[16 + record + record / 2] ^= 1;  // in the middle of the second
  std::ofstream(name(), std::ios::binary | std::ios::trunc) << bytes;
  const auto contents = ReadJournal(folder_);
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(contents->records.size(), 1u);
  EXPECT_GT(contents->cut_off, 0u);
}

TEST_F(JournalFileTest, WhatIsNoJournalOrANewerOneIsRefused) {
  EXPECT_EQ(ReadJournal(folder_).status().code(), absl::StatusCode::kNotFound);
  fs::create_directories(folder_);
  std::ofstream(name()) << "a shopping list, long enough to have a header";
  EXPECT_EQ(ReadJournal(folder_).status().code(), absl::StatusCode::kDataLoss);
  JournalFile journal;
  EXPECT_EQ(journal.Open(folder_, kRoom).code(), absl::StatusCode::kDataLoss)
      << "and nothing of it is overwritten";
  // Format 2, with its CRC.
  const unsigned char newer[] = {'P', 'E', 'R', 'C', 'S',  'J',  'N',  'L',
                                 2,   0,   0,   0,   0xb4, 0x88, 0xc5, 0x83};
  std::string header(reinterpret_cast<const char*>(newer), sizeof newer);
  std::ofstream(name(), std::ios::binary | std::ios::trunc) << header;
  const absl::Status status = ReadJournal(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has format 2, and this software reads formats up to 1"));
}

TEST_F(JournalFileTest, TakesNothingMoreWhenItIsFullAndLosesNothing) {
  JournalFile journal;
  ASSERT_TRUE(journal.Open(folder_, 200).ok());
  std::size_t taken = 0;
  absl::Status status;
  while ((status = journal.Append({Delete("a fault", static_cast<Time>(taken))})).ok()) ++taken;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("of at most 200 bytes"));
  EXPECT_EQ(journal.Store(std::string(100, 'x')).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_GT(taken, 3u);
  EXPECT_EQ(ReadJournal(folder_)->records.size(), taken);
}

// A file size limit stands in for the full disk: writing fails in the middle of a record.
TEST_F(JournalFileTest, AFullDiskRefusesCommandsAndLeavesWholeRecords) {
  WriteThree();
  JournalFile journal;
  ASSERT_TRUE(journal.Open(folder_, kRoom).ok());
  const std::uint64_t before = fs::file_size(name());
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{before + 10, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  const absl::Status status = journal.Append({Delete("too much", 4)});
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(fs::file_size(name()), before);
  EXPECT_TRUE(journal.Append({Delete("room again", 4)}).ok());
  EXPECT_EQ(ReadJournal(folder_)->records.size(), 4u);
}

TEST_F(JournalFileTest, KeepsEqualPayloadsOnceAndNoticesDamage) {
  JournalFile journal;
  ASSERT_TRUE(journal.Open(folder_, kRoom).ok());
  const auto first = journal.Store("a scenario"), second = journal.Store("a scenario");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(*ReadPayload(folder_, *first), "a scenario");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder_))
    files += entry.path().filename() != "journal";
  EXPECT_EQ(files, 1);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename() != "journal") std::ofstream(entry.path()) << "another one";
  }
  EXPECT_EQ(ReadPayload(folder_, *first).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace percs
