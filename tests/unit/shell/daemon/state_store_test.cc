// The controller's database: what is committed is found again, as a whole or not at all; damage,
// newer formats and full disks are told apart. Method: a store in a folder of its own, and SQLite's
// own files changed under it.
#include "daemon/controller/store/state_store.h"

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulator/disk.h"
#include "tests/simulator/world.h"
#include "tests/support/source_dir.h"

namespace percs {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StateStoreTest : public ::testing::Test {
 protected:
  StateStoreTest()
      : folder_(fs::temp_directory_path() / ("percs-store-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~StateStoreTest() override { fs::remove_all(folder_); }

  void Execute(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((folder_ + "/state.db").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  std::int64_t PagesInUse() {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open((folder_ + "/state.db").c_str(), &database), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    const char* const sql =
        "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count";
    EXPECT_EQ(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const std::int64_t pages = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return pages;
  }
  // A run with one step, and one daemon.
  void Write() {
    StateStore store;
    ASSERT_TRUE(store.Open(folder_).ok());
    store.Begin(Survives::kProcess);
    store.PutFabric(17, 2);
    v1::SavedMember member;
    member.set_sent(4);
    store.PutMember(1, member);
    v1::ApplyRequest request;
    request.set_hold(true);
    store.PutRun(3, "name", request);
    store.PutStep(3, 0, v1::ManagerStep());
    v1::SavedRun saved;
    saved.set_number(3);
    saved.set_steps(1);
    store.PutSaved(&saved);
    ASSERT_TRUE(store.Commit().ok());
  }
  absl::Status OpenAndLoad() {
    StateStore store;
    absl::Status status = store.Open(folder_);
    return status.ok() ? store.Load().status() : status;
  }

  std::string folder_;
};

// In every window of a run each daemon's row may be written, and SQLite writes whole pages.
TEST_F(StateStoreTest, SmallRowsOfDaemonsSharePagesAfterLargeOnes) {
  constexpr std::uint32_t kDaemons = 32;
  StateStore store;
  ASSERT_TRUE(store.Open(folder_).ok());
  const auto put = [&](std::size_t bytes) {
    store.Begin(Survives::kProcess);
    store.PackMembers();
    for (std::uint32_t place = 0; place < kDaemons; ++place) {
      v1::SavedMember member;
      member.mutable_joined()->set_name(std::string(bytes, 'x'));
      store.PutMember(place, member);
    }
    store.PutFabric(17, kDaemons);
    EXPECT_TRUE(store.Commit().ok());
  };
  put(3000);
  for (int i = 0; i < 64; ++i) put(10);
  EXPECT_EQ(store.Load()->members.size(), kDaemons);
  store.Close();
  EXPECT_LT(PagesInUse(), 10) << "tables, their names and one page of daemons";
}

TEST_F(StateStoreTest, NobodyElseReadsIt) {
  const mode_t before = umask(0);
  Write();
  umask(before);
  const auto mode = [](const fs::path& path) { return fs::status(path).permissions(); };
  EXPECT_EQ(mode(folder_), fs::perms::owner_all);
  const auto private_file = fs::perms::owner_read | fs::perms::owner_write;
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(mode(entry.path()), private_file) << entry.path();
  fs::permissions(folder_ + "/state.db", private_file | fs::perms::others_read);
  EXPECT_EQ(OpenAndLoad(), absl::OkStatus());
  EXPECT_EQ(mode(folder_ + "/state.db"), private_file) << "of earlier software";
}

TEST_F(StateStoreTest, WhatWasCommittedIsFoundAgainAndWhatWasNotIsNot) {
  Write();
  {
    StateStore store;
    ASSERT_TRUE(store.Open(folder_).ok());
    store.Begin(Survives::kProcess);
    store.RemoveMember(1);
    store.PutFabric(18, 5);
  }
  StateStore store;
  ASSERT_TRUE(store.Open(folder_).ok());
  const auto state = store.Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->fabric, 17u);
  EXPECT_EQ(state->places, 2u);
  ASSERT_EQ(state->members.size(), 1u);
  EXPECT_EQ(state->members[0].second.sent(), 4u);
  ASSERT_EQ(state->runs.size(), 1u);
  EXPECT_TRUE(state->runs[0].request.hold());
  EXPECT_EQ(state->steps.size(), 1u);
}

TEST_F(StateStoreTest, ARunThatEndedKeepsItsResultOrItsError) {
  Write();
  StateStore store;
  ASSERT_TRUE(store.Open(folder_).ok());
  store.Begin(Survives::kProcess);
  store.EndRun(3, absl::UnavailableError("gone"));
  v1::GetResultReply reply;
  reply.set_run(4);
  store.PutRun(4, "next", v1::ApplyRequest());
  store.EndRun(4, reply);
  ASSERT_TRUE(store.Commit().ok());
  const auto state = store.Load();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->runs.size(), 2u);
  EXPECT_EQ(state->runs[0].state, "failed");
  EXPECT_EQ(state->runs[0].error, "gone");
  EXPECT_EQ(state->runs[0].code, static_cast<std::uint32_t>(absl::StatusCode::kUnavailable));
  EXPECT_EQ(state->runs[1].result.run(), 4u);
}

TEST_F(StateStoreTest, DamageIsNoticed) {
  Write();
  Execute("PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string name = folder_ + "/state.db";
  const auto size = fs::file_size(name);
  std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(size / 2));
  file << std::string(size / 2, 'x');
  file.close();
  const absl::Status status = OpenAndLoad();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("move it away"));
}

TEST_F(StateStoreTest, AStepThatIsMissingIsNoticed) {
  Write();
  Execute("DELETE FROM step");
  EXPECT_EQ(OpenAndLoad().code(), absl::StatusCode::kDataLoss);
}

TEST_F(StateStoreTest, OtherVersionsAreRefusedWhereTheyMatter) {
  Write();
  Execute("UPDATE meta SET value = '0' WHERE key = 'model'");
  EXPECT_THAT(std::string(OpenAndLoad().message()),
              HasSubstr("run 3 is in progress, started by model 0; this software has model"));
  Execute("UPDATE run SET state = 'finished'");
  EXPECT_TRUE(OpenAndLoad().ok()) << "nothing to go on with";
  Execute("UPDATE meta SET value = '6' WHERE key = 'format'");
  const absl::Status status = OpenAndLoad();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has format 6, and this software reads formats up to 5"));
}

TEST_F(StateStoreTest, DatabasesOfEarlierFormatsAreRead) {
  std::ifstream file(test::SourceDir() + "/tests/unit/shell/daemon/formats/state_1.sql");
  const std::string sql((std::istreambuf_iterator<char>(file)), {});
  fs::create_directories(folder_);
  Execute(sql);
  StateStore store;
  ASSERT_TRUE(store.Open(folder_).ok());
  const auto state = store.Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->fabric, 0x04a708c914290c26u);
  ASSERT_EQ(state->runs.size(), 1u);
  EXPECT_EQ(state->runs[0].state, "finished");
  EXPECT_EQ(state->runs[0].result.result().digest(), "dfaa1434113142086343052d643f6f22");
  store.Begin(Survives::kProcess);
  v1::ApplyRequest request;
  request.set_hold(true);
  store.PutRun(2, "next", request);
  v1::SavedRun saved;
  saved.set_number(2);
  saved.set_recoveries(5);
  store.PutSaved(&saved);
  ASSERT_TRUE(store.Commit().ok()) << "and written";
  const auto next = store.Load();
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_EQ(next->runs.size(), 2u);
  EXPECT_EQ(next->runs[1].saved.recoveries(), 5u);
}

// Of format 2, whose members and progress had tables of their own.
TEST_F(StateStoreTest, ARunInProgressOfTheFormatBeforeGoesOn) {
  Write();
  Execute(
      "UPDATE meta SET value = '2' WHERE key = 'format';"
      "CREATE TABLE member(place INTEGER PRIMARY KEY, state BLOB NOT NULL);"
      "CREATE TABLE progress(run INTEGER PRIMARY KEY, saved BLOB NOT NULL);"
      "INSERT INTO member SELECT * FROM current WHERE place >= 0;"
      "INSERT INTO progress SELECT 3, state FROM current WHERE place = -1;"
      "DROP TABLE current");
  for (const char* time : {"taken over", "read again"}) {
    StateStore store;
    ASSERT_TRUE(store.Open(folder_).ok()) << time;
    const auto state = store.Load();
    ASSERT_TRUE(state.ok()) << time << ": " << state.status();
    ASSERT_EQ(state->members.size(), 1u) << time;
    EXPECT_EQ(state->members[0].first, 1u) << time;
    EXPECT_EQ(state->members[0].second.sent(), 4u) << time;
    ASSERT_EQ(state->runs.size(), 1u) << time;
    EXPECT_EQ(state->runs[0].saved.number(), 3u) << time;
  }
  Execute("INSERT INTO current VALUES(0, x'')");
  EXPECT_EQ(OpenAndLoad(), absl::OkStatus()) << "it is of the newest format now";
}

TEST_F(StateStoreTest, TheEndOfARunLeavesTheProgressOfTheNext) {
  Write();
  StateStore store;
  ASSERT_TRUE(store.Open(folder_).ok());
  store.Begin(Survives::kProcess);
  store.PutRun(4, "next", v1::ApplyRequest());
  store.EndRun(3, absl::UnavailableError("gone"));
  v1::SavedRun saved;
  saved.set_number(4);
  store.PutSaved(&saved);
  ASSERT_TRUE(store.Commit().ok());
  const auto state = store.Load();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->runs.size(), 2u);
  EXPECT_EQ(state->runs[0].saved.number(), 0u);
  EXPECT_EQ(state->runs[1].saved.number(), 4u);
}

TEST_F(StateStoreTest, AFullDiskKeepsNothingAndTheSameCanBeTriedAgain) {
  Write();
  StateStore store;
  ASSERT_TRUE(store.Open(folder_).ok());
  v1::ApplyRequest large;
  large.mutable_scenario()->set_name(std::string(4 << 20, 'x'));
  const auto put = [&] {
    store.Begin(Survives::kProcess);
    store.PutFabric(19, 2);
    store.PutRun(9, "large", large);
    return store.Commit();
  };
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit small = limit;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status full = put();
  const auto state = store.Load();
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("virtual time is blocked"));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->fabric, 17u);
  EXPECT_TRUE(put().ok());
  EXPECT_EQ(store.Load()->fabric, 19u);
}

// On the simulated disk, which forgets at a loss of power what was not synced, or parts of it.
class StateStorePowerTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  StateStorePowerTest() : world_(GetParam()), disk_(&world_) { StartProcess(); }
  void StartProcess() {
    process_ = std::make_shared<sim::Process>(&world_, "c");
    disk_.Mount(process_);
  }
  // The process dies first: it would write into what is left when it closes the database.
  void LosePower(std::unique_ptr<StateStore> store) {
    process_->Die();
    disk_.LosePower();
    store.reset();
    StartProcess();
  }
  static void Put(StateStore& store, Survives survives, std::uint64_t run, std::uint64_t steps) {
    store.Begin(survives);
    store.PutFabric(17, 2);
    store.PutRun(run, "name", v1::ApplyRequest());
    v1::SavedRun saved;
    saved.set_number(run);
    saved.set_steps(steps);
    for (std::uint64_t i = 0; i < steps; ++i) store.PutStep(run, i, v1::ManagerStep());
    store.PutSaved(&saved);
    ASSERT_TRUE(store.Commit().ok());
  }

  sim::World world_;
  sim::SimulatedDisk disk_;
  std::shared_ptr<sim::Process> process_;
};

TEST_P(StateStorePowerTest, WhatSurvivesTheMachineIsThereAndTheRestIsWhole) {
  auto before = std::make_unique<StateStore>(&disk_);
  ASSERT_TRUE(before->Open("/state").ok());
  Put(*before, Survives::kProcess, 1, 1);
  Put(*before, Survives::kMachine, 1, 2);  // and with it the one before
  for (std::uint64_t steps = 3; steps <= 40; ++steps) Put(*before, Survives::kProcess, 1, steps);
  LosePower(std::move(before));
  StateStore store(&disk_);
  ASSERT_TRUE(store.Open("/state").ok());
  const auto kept = store.Load();
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->fabric, 17u);
  ASSERT_EQ(kept->runs.size(), 1u);
  EXPECT_GE(kept->steps.size(), 2u);
  EXPECT_EQ(kept->steps.size(), kept->runs[0].saved.steps());
}

TEST_P(StateStorePowerTest, ACommitThatSurvivesTheMachineIsSyncedAfterManyThatDoNot) {
  auto before = std::make_unique<StateStore>(&disk_);
  ASSERT_TRUE(before->Open("/state").ok());
  for (std::uint64_t steps = 1; steps <= 20; ++steps) Put(*before, Survives::kProcess, 1, steps);
  Put(*before, Survives::kMachine, 1, 21);
  LosePower(std::move(before));
  StateStore store(&disk_);
  ASSERT_TRUE(store.Open("/state").ok());
  EXPECT_EQ(store.Load()->steps.size(), 21u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StateStorePowerTest, ::testing::Range<std::uint64_t>(1, 21));

}  // namespace
}  // namespace percs
