// Every file in deploy/scenarios must read, and build where the machine can be asked.
#include <filesystem>

#include "gtest/gtest.h"
#include "proto/scenario/describe.h"
#include "proto/scenario/file.h"
#include "proto/scenario/reader.h"
#include "tests/support/source_dir.h"

namespace percs {
namespace {

std::vector<std::string> Examples() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::SourceDir() + "/deploy/scenarios")) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  return files;
}

TEST(Examples, AllOfTheDocumentedOnesAreThere) {
  const std::string folder = test::SourceDir() + "/deploy/scenarios/";
  for (const char* name :
       {"two-hubs", "one-drawer", "supernode-alltoall", "four-supernodes", "link-failure",
        "link-level", "service-port", "trace-replay", "cell-blades", "triblades", "roadrunner"}) {
    EXPECT_TRUE(std::filesystem::exists(folder + name + ".yaml")) << name;
  }
}

TEST(Examples, EachReads) {
  for (const std::string& file : Examples()) {
    EXPECT_TRUE(ReadScenarioFile(file).ok()) << ReadScenarioFile(file).status();
  }
}

TEST(Examples, EachIsNamedAfterItsFileAndDescribed) {
  for (const std::string& file : Examples()) {
    const auto scenario = ReadScenarioFile(file);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_EQ(scenario->name(), std::filesystem::path(file).stem().string());
    EXPECT_FALSE(scenario->description().empty());
  }
}

TEST(Examples, EachReadsBackAfterPrinting) {
  for (const std::string& file : Examples()) {
    const auto scenario = ReadScenarioFile(file);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const std::string printed = PrintScenarioYaml(*scenario);
    const auto back = ReadScenarioText(printed, "printed", ScenarioFormat::kYaml);
    ASSERT_TRUE(back.ok()) << back.status() << printed;
    EXPECT_EQ(back->DebugString(), scenario->DebugString()) << printed;
  }
}

TEST(Examples, TheOnesOnThePageRead) {
  const auto page = ReadWholeFile(test::SourceDir() + "/docs/scenario.md");
  ASSERT_TRUE(page.ok()) << page.status();
  int blocks = 0;
  for (std::size_t at = page->find("```yaml\n"); at != std::string::npos;
       at = page->find("```yaml\n", at + 1)) {
    const std::size_t begin = at + 8;
    const std::string text = page->substr(begin, page->find("```\n", begin) - begin);
    const auto scenario = ReadScenarioText(text, "docs", ScenarioFormat::kYaml);
    EXPECT_TRUE(scenario.ok()) << scenario.status() << "\n" << text;
    ++blocks;
  }
  EXPECT_EQ(blocks, 11);
}

}  // namespace
}  // namespace percs
