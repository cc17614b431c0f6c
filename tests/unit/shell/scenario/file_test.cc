// gzip there and back, and what is wrong with a file that is not whole.
#include "proto/scenario/file.h"

#include "emulator/base/random.h"
#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

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
    const auto back = Gunzip(packed);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, text);
  }
}

TEST(File, ConcatenatedGzipFilesAreOne) {
  const auto both = Gunzip(Gzip("num_ranks ") + Gzip("2\n"));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(*both, "num_ranks 2\n");
}

TEST(File, ADamagedGzipFileIsRefused) {
  const std::string packed = Gzip(RandomText(10'000));
  EXPECT_EQ(Gunzip(packed.substr(0, packed.size() / 2)).status().message(),
            "not a whole gzip file: it ends too early");
  std::string damaged = packed;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  EXPECT_EQ(Gunzip(damaged).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Gunzip("\x1f\x8b").ok());
  EXPECT_FALSE(IsGzip("num_ranks 2"));
}

}  // namespace
}  // namespace percs
