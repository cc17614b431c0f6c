// Figures from outside find their rows by id, by the numbers of their conditions, or not at all.
#include "emulator/experiments/withheld.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/experiments/judge.h"

namespace percs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<ValidationRow> SomeRows() {
  const auto row = [](const char* id, const char* quantity, const char* unit,
                      PublishedFigure published, std::vector<std::string> other_ids) {
    return ValidationRow{
        id, quantity, std::move(published), 10, unit, RowKind::kPredicted, std::move(other_ids)};
  };
  return {row("fig.p2p.1KB.512", "P2P broadcast of 1KB on 512 cores", "MB/s",
              PublishedFigure::None(), {"X-061"}),
          row("fig.hybrid.1KB.512", "hybrid broadcast of 1KB on 512 cores", "MB/s",
              PublishedFigure::None(), {"X-062"}),
          row("all.4096", "hybrid allreduce, shared memory and CAU, 4096 cores", "us",
              PublishedFigure::None(), {}),
          row("X-001", "P2P allreduce, 4096 cores", "us", PublishedFigure::At(24), {})};
}

WithheldMatch Match(const std::string& csv) {
  const auto figures = ReadWithheld(csv);
  EXPECT_TRUE(figures.ok()) << figures.status();
  return figures.ok() ? MatchWithheld(SomeRows(), *figures) : WithheldMatch{};
}

TEST(Withheld, FiguresFindTheirRowsByIdAndByConditions) {
  const WithheldMatch match = Match(
      "id,value,conditions\n"
      "X-061,9,\"P2P, 1KB, 512 cores\"\n"
      "fig.hybrid.1KB.512,11-12,\r\n"
      "Y-9,10.5,\"hybrid allreduce of \"\"shm\"\", CAU; 4096 cores\"\n"
      "X-001,20,\n");
  EXPECT_THAT(match.unmatched, IsEmpty());
  std::vector<std::string> ids;
  for (const ValidationRow& row : match.rows) ids.push_back(row.id);
  EXPECT_THAT(ids, ElementsAre("fig.p2p.1KB.512", "fig.hybrid.1KB.512", "all.4096", "X-001"));
  EXPECT_TRUE(Holds(match.rows[0]));
  EXPECT_EQ(match.rows[1].published.low, 11);
  EXPECT_TRUE(Holds(match.rows[2]));
  EXPECT_FALSE(Holds(match.rows[3]));  // 10 against 20: the figure from outside counts
}

TEST(Withheld, WhatContradictsARowIsNotJudged) {
  const WithheldMatch match = Match(
      "id,value,unit,conditions\n"
      "X-061,9,,\"P2P, 1KB, 1024 cores\"\n"
      "X-062,9,us,\"1KB, 512 cores\"\n"
      "Z-1,9,,\"broadcast, 1KB, 512 cores\"\n"
      "Z-2,9,,something else\n");
  EXPECT_THAT(match.rows, IsEmpty());
  EXPECT_THAT(match.unmatched,
              ElementsAre(HasSubstr("line 2, X-061: row fig.p2p.1KB.512"),
                          HasSubstr("its unit is us; row fig.hybrid.1KB.512 is in MB/s"),
                          HasSubstr("fit several rows"), HasSubstr("no row has this id")));
}

TEST(Withheld, MalformedTablesAreRefusedWithTheLine) {
  EXPECT_THAT(ReadWithheld("id,conditions\n").status().message(),
              HasSubstr("line 1: the first line names the columns"));
  EXPECT_THAT(ReadWithheld("id,value\nA,1,2\n").status().message(),
              HasSubstr("line 2: 3 fields; the first line names 2 columns"));
  EXPECT_THAT(ReadWithheld("id,value\nA,1\n\nB,5-2\n").status().message(),
              HasSubstr("line 4: value \"5-2\""));
  EXPECT_THAT(ReadWithheld("value,id\n1,\n").status().message(), HasSubstr("the id is empty"));
}

}  // namespace
}  // namespace percs
