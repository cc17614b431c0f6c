// Files up to a limit, what is no file, gzip there and back, and what is wrong with a file that is
// not whole.
#include "proto/scenario/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "emulator/base/random.h"
#include "fmt/format.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPlenty = 1 << 24;

std::string RandomText(std::size_t size) {
  RandomStream random(test::Seed(), "file");
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + random.Below(6));
  return text;
}

TEST(File, GzipReadsBack) {
  for (const std::size_t size : {0, 1, 100, 65'536, 1'000'000}) {
    const std::string text = RandomText(size);
    const std::string packed = Gzip(text);
    EXPECT_TRUE(IsGzip(packed));
    const auto back = Gunzip(packed, kPlenty);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, text);
  }
}

TEST(File, ConcatenatedGzipFilesAreOne) {
  const auto both = Gunzip(Gzip("num_ranks ") + Gzip("2\n"), kPlenty);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(*both, "num_ranks 2\n");
}

TEST(File, ADamagedGzipFileIsRefused) {
  const std::string packed = Gzip(RandomText(10'000));
  EXPECT_EQ(Gunzip(packed.substr(0, packed.size() / 2), kPlenty).status().message(),
            "not a whole gzip file: it ends too early");
  std::string damaged = packed;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  EXPECT_EQ(Gunzip(damaged, kPlenty).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Gunzip("\x1f\x8b", kPlenty).ok());
  EXPECT_FALSE(IsGzip("num_ranks 2"));
}

TEST(File, AGzipFileThatBecomesTooLargeIsRefusedAtTheLimit) {
  const std::string packed = Gzip(std::string(1'000'000, 'x'));
  ASSERT_LT(packed.size(), 2'000u);
  EXPECT_TRUE(Gunzip(packed, 1'000'000).ok());
  const absl::Status status = Gunzip(packed, 999'999).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "has more than 999999 bytes when uncompressed, which is the limit");
  EXPECT_THAT(std::string(Gunzip(packed, 1 << 18).status().message()),
              ::testing::StartsWith("has more than 262144 bytes"));
}

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() : folder_(fs::temp_directory_path() / fmt::format("percs-files-{}", getpid())) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~FolderTest() override { fs::remove_all(folder_); }
  std::string Path(const char* name) const { return (folder_ / name).string(); }

  const fs::path folder_;
};

TEST_F(FolderTest, AFileIsReadUpToTheLimit) {
  std::ofstream(Path("file")) << RandomText(100'000);
  const auto whole = ReadWholeFile(Path("file"), 100'000);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(*whole, RandomText(100'000));
  const absl::Status status = ReadWholeFile(Path("file"), 99'999).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), Path("file") + ": has more than 99999 bytes, which is the limit");
  EXPECT_TRUE(ReadWholeFile("/proc/self/status").ok()) << "its size is said to be 0";
  EXPECT_EQ(ReadWholeFile(Path("nothing")).status().code(), absl::StatusCode::kNotFound);
}

// Reading one of these would wait, or never end.
TEST_F(FolderTest, WhatIsNoFileIsRefusedByWhatItIs) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", folder_ / "link");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  Path("socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  for (const auto& [path, what] : {std::pair<std::string, const char*>("/dev/zero", "a device"),
                                   {Path("link"), "a device"},
                                   {Path("fifo"), "a pipe"},
                                   {Path("socket"), "a socket"},
                                   {Path("."), "a directory"}}) {
    const absl::Status status = ReadWholeFile(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_EQ(status.message(), fmt::format("{}: is {}; name a file", path, what));
  }
  close(socket);
}

}  // namespace
}  // namespace percs
