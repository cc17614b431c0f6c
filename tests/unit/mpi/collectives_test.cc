// Collectives of ranks on CAUs, and runs again from their journals. Method: that of job_test.cc.
#include "client/mpi/collectives.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "client/mpi/job_journal.h"
#include "tests/unit/mpi/ranks.h"

namespace percs::mpi {
namespace {

// --- Collectives on CAUs
// --------------------------------------------------------------------------------

JobOptions OnCaus() {
  JobOptions options;
  options.collective_bytes = options.transport.collective_bytes;
  return options;
}

// Rank r of n: sums of 1 to 100 operands at every root, broadcasts from every rank, a barrier.
Part EveryCollective(std::uint32_t r, std::uint32_t n) {
  return [r, n](Program& rank) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < n; ++i) all.push_back(i);
    const std::uint64_t group = rank.Join(all);
    ASSERT_NE(kNoGroup, group);
    for (std::uint32_t root = 0; root < n; ++root) {
      for (const std::size_t count : {1, 8, 9, 100}) {
        const auto mine = [&] {
          std::vector<std::int64_t> values(count);
          for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i * n + r);
          return values;
        };
        std::vector<std::int64_t> sums(count), values = mine();
        for (std::size_t i = 0; i < count; ++i)
          sums[i] = static_cast<std::int64_t>(n * n * i + n * (n - 1) / 2);
        EXPECT_TRUE(rank.Sum(group, 0, &values));
        EXPECT_EQ(sums, values);
        values = mine();
        EXPECT_TRUE(rank.Sum(group, root, &values, CollectiveKind::kReduce, r == root));
        EXPECT_EQ(r == root ? sums : mine(), values);
        std::vector<std::uint8_t> data = Pattern(count * 7, r == root ? root : 255);
        EXPECT_TRUE(rank.Broadcast(group, root, r == root, &data));
        EXPECT_EQ(Pattern(count * 7, root), data);
      }
    }
    CollectiveRequest barrier;
    barrier.group = group;
    EXPECT_TRUE(rank.Carry(&barrier));
  };
}

JobResult RunCollectives(Job& job, std::uint32_t ranks) {
  std::vector<Part> parts;
  for (std::uint32_t r = 0; r < ranks; ++r) parts.push_back(EveryCollective(r, ranks));
  return RunProgram(job, parts);
}

TEST(MpiCollectives, AreRightOnEveryPlacementAndEveryRunHasOneDigest) {
  for (const std::uint32_t per_hub : {1, 2, 3, 8}) {
    SCOPED_TRACE(per_hub);
    const std::uint32_t ranks = per_hub == 1 ? 4 : 6;
    Digest digests[2];
    for (Digest& digest : digests) {
      const auto job = StartJob(ranks, per_hub, OnCaus());
      const JobResult result = RunCollectives(*job, ranks);
      EXPECT_EQ("", result.failure);
      EXPECT_TRUE(result.run.violations.empty());
      EXPECT_EQ(4u * ranks, result.collectives.calls[static_cast<int>(CollectiveKind::kReduce)]);
      EXPECT_EQ(1u, result.collectives.groups);
      EXPECT_EQ(0u, result.ranks[0].traffic.messages);
      digest = result.digest;
    }
    EXPECT_EQ(digests[0], digests[1]);
  }
}

// Ranks on hubs of several processes meet in packets of CAUs alone.
TEST(MpiCollectives, RanksOnSeveralProcessesHaveTheTimesOfRanksOnOne) {
  constexpr std::uint32_t kRanks = 4;
  for (const std::uint32_t per_hub : {1, 2}) {
    const auto job = StartJob(kRanks, per_hub, OnCaus());
    const JobResult one = RunCollectives(*job, kRanks);
    EXPECT_EQ("", one.failure);
    JobOptions options = OnFourHubs(per_hub);
    options.places.resize(kRanks);
    options.collective_bytes = options.transport.collective_bytes;
    options.machine.trees = {WorldTree(options.places)};
    for (const std::uint32_t processes : {2, 4}) {
      SCOPED_TRACE(processes);
      Processes several(options, processes);
      std::vector<Part> parts;
      for (std::uint32_t r = 0; r < kRanks; ++r) parts.push_back(EveryCollective(r, kRanks));
      auto threads = StartRanks(parts, [&](std::uint32_t rank) { return several.SocketOf(rank); });
      const JobResult result = several.Run(0);
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(one.times, result.times);
      EXPECT_EQ(one.digest, result.digest);
      EXPECT_EQ(4u * kRanks, result.collectives.calls[static_cast<int>(CollectiveKind::kReduce)]);
      EXPECT_EQ(1u, result.collectives.groups);
    }
  }
}

// What waits for a rank that is late: broadcasts from elsewhere, and the others' part of a sum.
TEST(MpiCollectives, ARankThatCallsLateHasWhatCameBefore) {
  const auto part = [](std::uint32_t r) {
    return [r](Program& rank) {
      const std::uint64_t group = rank.Join({0, 1, 2, 3});
      EXPECT_EQ(kNoGroup, rank.Join({0, 1, 2, 3}, 1));  // each process knows its own hubs only
      for (int i = 0; r == 3 && i < 50; ++i) rank.Send(0, Pattern(8, 1)), rank.Next();
      for (unsigned i = 0; i < 3; ++i) {
        std::vector<std::uint8_t> data = Pattern(200, r == 0 ? i : 255);
        EXPECT_TRUE(rank.Broadcast(group, 0, r == 0, &data));
        EXPECT_EQ(Pattern(200, i), data);
      }
      std::vector<std::int64_t> values = {r + 1};
      EXPECT_TRUE(rank.Sum(group, 3, &values, CollectiveKind::kReduce, r == 3));
      EXPECT_EQ(r == 3 ? 10 : r + 1, values[0]);
    };
  };
  JobOptions options = OnFourHubs(1);
  options.collective_bytes = options.transport.collective_bytes;
  options.machine.trees = {WorldTree(options.places)};
  Processes several(options, 4);
  const std::vector<Part> parts = {part(0), part(1), part(2), part(3)};
  auto threads = StartRanks(parts, [&](std::uint32_t rank) { return several.SocketOf(rank); });
  const JobResult result = several.Run(0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(3u, result.collectives.calls[static_cast<int>(CollectiveKind::kBroadcast)]);
  EXPECT_EQ(1u, result.collectives.refused);
}

// Ranks of one hub call a reduce at different times, and who has given its operand goes on: no time
// that has passed comes again.
TEST(MpiCollectives, AReduceEndsForARankThatIsNotTheRootWithoutTheOthers) {
  const auto part = [](std::uint32_t r) {
    return [r](Program& rank) {
      const std::uint64_t group = rank.Join({0, 1, 2, 3});
      std::vector<std::int64_t> values = {r + 1};
      if (r < 2) {  // each of hub 0 is late once; messages are for the first rank of hub 1
        for (std::uint32_t late : {0, 1}) {
          for (int i = 0; r == late && i < 50; ++i) rank.Send(1, Pattern(8, 1)), rank.Next();
          EXPECT_TRUE(rank.Sum(group, 3, &values, CollectiveKind::kReduce, false));
          rank.Send(1, Pattern(8, 2)), rank.Next();
        }
        return;
      }
      for (int i = 0; i < 2; ++i) {
        values = {r + 1};
        EXPECT_TRUE(rank.Sum(group, 3, &values, CollectiveKind::kReduce, r == 3));
        EXPECT_EQ(r == 3 ? 10 : r + 1, values[0]);
      }
    };
  };
  const auto job = StartJob(4, 2, OnCaus());
  const JobResult result = RunProgram(*job, {part(0), part(1), part(2), part(3)});
  EXPECT_EQ("", result.failure);
}

TEST(MpiCollectives, ATreeThatIsSetUpAgainLosesNothing) {
  FaultSpec cut = Fault(FaultKind::kLinkDown);
  cut.select.link = LinkEnd{0, 0};
  cut.at = 100 * kMicrosecond;
  cut.duration = 50 * kMicrosecond;
  FaultSpec cau = Fault(FaultKind::kCauDown);
  cau.id = "cau";
  cau.select.in = {2};
  cau.at = 30 * kMicrosecond;
  cau.duration = 400 * kMicrosecond;
  const auto job = StartJob(4, 1, OnCaus());
  Inject(*job, cut);
  Inject(*job, cau);
  const JobResult result = RunCollectives(*job, 4);
  EXPECT_EQ("", result.failure);
  EXPECT_GT(result.virtual_time, 430 * kMicrosecond);
}

TEST(MpiCollectives, CallsThatContradictEachOtherEndTheRunWithBoth) {
  const auto job = StartJob(2, 1, OnCaus());
  const auto part = [](std::size_t count) {
    return [count](Program& rank) {
      const std::uint64_t group = rank.Join({0, 1});
      std::vector<std::int64_t> values(count);
      EXPECT_FALSE(rank.Sum(group, 0, &values));
    };
  };
  const JobResult result = RunProgram(*job, {part(1), part(2)});
  EXPECT_NE(std::string::npos, result.failure.find("an allreduce of 16 bytes")) << result.failure;
  EXPECT_NE(std::string::npos, result.failure.find("an allreduce of 8 bytes")) << result.failure;
}

TEST(MpiCollectives, CommunicatorsBeyondTheTreesOfAHubGetNone) {
  const auto job = StartJob(2, 1, OnCaus());
  const Part part = [](Program& rank) {
    std::vector<std::uint64_t> groups;
    for (std::uint64_t i = 0; i < kCauTrees + 3; ++i) groups.push_back(rank.Join({0, 1}, i));
    for (std::size_t i = 0; i < groups.size(); ++i)
      EXPECT_EQ(i >= kCauTrees, groups[i] == kNoGroup);
    CollectiveRequest leave;
    leave.record = RecordKind::kLeave;
    leave.group = groups[5];
    rank.Leave(&leave);
    std::vector<std::int64_t> ones = {1};
    EXPECT_TRUE(rank.Sum(groups[6], 0, &ones));
    EXPECT_EQ(2, ones[0]);
  };
  const JobResult result = RunProgram(*job, {part, part});
  EXPECT_EQ("", result.failure);
  EXPECT_EQ(3u, result.collectives.refused);
}

// --- Journal
// -------------------------------------------------------------------------------------------

TEST(MpiJournal, WhatRanksOfSeveralProcessesCallIsReplayedInOne) {
  v1::Scenario machine;
  machine.set_name("machine");
  machine.mutable_topology()->set_supernodes(1);
  machine.mutable_topology()->set_drawers(1);
  machine.mutable_topology()->set_hubs(4);
  v1::MpiJob program;
  for (std::uint32_t r = 0; r < 4; ++r) program.add_hubs(r), program.add_windows(0);
  const std::vector<Part> parts = EveryPair(1);
  for (const Time start : {Time{0}, 5 * kMillisecond + 77}) {
    CallLog calls(4);
    JobOptions options = OnFourHubs(1);
    options.calls = &calls;
    Processes two(options, 2);
    auto threads = StartRanks(parts, [&](std::uint32_t rank) { return two.SocketOf(rank); });
    const JobResult live = two.Run(start);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(start, two.job(0).began());
    v1::JournalRecord record;
    record.set_mpi_calls(calls.Take());
    const auto again = ReplayJob(machine, program, {record});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ("", again->failure);
    EXPECT_EQ(live.times, again->times);
    if (start == 0) {
      EXPECT_EQ(live.digest, again->digest);
    }
  }
}

TEST(MpiJournal, AReplayHasTheDigestOfTheRun) {
  const std::string folder = testing::TempDir() + "mpi_journal";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  v1::Scenario machine;
  machine.set_name("machine");
  machine.mutable_topology()->set_supernodes(1);
  machine.mutable_topology()->set_drawers(1);
  machine.mutable_topology()->set_hubs(4);
  v1::MpiJob program;
  for (std::uint32_t r = 0; r < 4; ++r) program.add_hubs(r), program.add_windows(0);
  JobOptions options = OnCaus();
  program.set_collective_bytes(options.collective_bytes);
  auto journal = JobJournal::Open(folder, machine, program);
  ASSERT_TRUE(journal.ok()) << journal.status();
  options.journal = journal->get();
  const auto job = StartJob(4, 1, options);
  FaultSpec cut = Fault(FaultKind::kLinkDown);
  cut.select.link = LinkEnd{0, 0};
  v1::JournalRecord command;
  *command.mutable_create_fault()->mutable_id() = "fault";
  command.mutable_create_fault()->set_link_down("sn0-d0-h0:LL0");
  ASSERT_TRUE(job->Manage([&](Fabric& fabric,
                              Time now) { return fabric.faults()->Create(cut, now).status(); },
                          &command)
                  .ok());
  std::vector<Part> parts;
  for (std::uint32_t r = 0; r < 4; ++r) {
    parts.push_back([r](Program& rank) {
      EveryCollective(r, 4)(rank);
      for (const std::size_t size : {8, 3000, 100000}) {
        std::vector<std::uint8_t> room(size);
        rank.Post(&room);
        rank.Send((r + 1) % 4, Pattern(size, r));
        rank.Next(), rank.Next();
        EXPECT_EQ(Pattern(size, (r + 3) % 4), room);
      }
    });
  }
  const JobResult live = RunProgram(*job, parts);
  EXPECT_EQ("", live.failure);
  ASSERT_TRUE((*journal)->End(live).ok());
  const auto read = ReadJournal(folder);
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<v1::JournalRecord> commands;
  for (const v1::JournalRecord& record : read->records) {
    if (!record.has_apply() && !record.has_end()) commands.push_back(record);
  }
  const auto again = ReplayJob(machine, program, commands);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ("", again->failure);
  EXPECT_EQ(live.digest, again->digest);
  EXPECT_EQ(live.times, again->times);
  commands.back().mutable_mpi_calls()->resize(commands.back().mpi_calls().size() / 2);
  const auto cut_off = ReplayJob(machine, program, commands);
  EXPECT_FALSE(cut_off.ok() && cut_off->digest == live.digest);
}

}  // namespace
}  // namespace percs::mpi
