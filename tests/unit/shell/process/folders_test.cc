// Modes of folders.
#include "proto/process/folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace percs {
namespace {

TEST(FoldersTest, ModesAreThoseAskedForUnderAnyUmask) {
  const std::string top = testing::TempDir() + "folders_test";
  const mode_t before = umask(0);
  EXPECT_EQ(MakeFolder(top + "/a/b", kPrivateFolder), absl::OkStatus());
  EXPECT_EQ(MakeFolder(top + "/c", kReadableFolder), absl::OkStatus());
  EXPECT_EQ(MakeFolder(top + "/c", kPrivateFolder), absl::OkStatus()) << "there already";
  umask(before);
  const auto mode = [&](const std::string& folder) {
    struct stat info {};
    EXPECT_EQ(stat((top + folder).c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode("/a"), kPrivateFolder);
  EXPECT_EQ(mode("/a/b"), kPrivateFolder);
  EXPECT_EQ(mode("/c"), kReadableFolder);
  EXPECT_TRUE(absl::IsUnavailable(MakeFolder("/dev/null/a", kPrivateFolder)));
  std::filesystem::remove_all(top);
}

}  // namespace
}  // namespace percs
