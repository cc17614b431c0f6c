// Parts of the page's server that need neither a socket nor a fabric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "daemon/page/control_gateway.h"
#include "daemon/page/feed_reader.h"
#include "daemon/page/page_files.h"
#include "daemon/page/page_guard.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

FeedReader::Text TextOf(const std::string& text) {
  return std::make_shared<const std::string>(text);
}

// A reader and what the server did for it.
struct SlowBrowser {
  int slept = 0, woken = 0;
  FeedReader reader{TextOf("hello "), [this] { ++slept; }, [this] { ++woken; }};

  // All that is there, in pieces of `room` bytes.
  std::string TakeAll(std::size_t room) {
    std::string text, piece(room, '\0');
    while (const auto bytes = reader.Take(piece.data(), room)) {
      if (*bytes == 0) break;
      text.append(piece, 0, *bytes);
    }
    return text;
  }
};

TEST(FeedReaderTest, ABrowserGetsASnapshotAndThenEveryChangeInOrder) {
  SlowBrowser browser;
  browser.reader.Push(TextOf("too early "));
  EXPECT_TRUE(browser.reader.WantsSnapshot());
  browser.reader.PushSnapshot(TextOf("snapshot "));
  browser.reader.Push(TextOf("one "));
  EXPECT_EQ("hello snapshot one ", browser.TakeAll(3));
  EXPECT_EQ(1, browser.slept);
  EXPECT_EQ(0, browser.woken);
  browser.reader.Push(TextOf("two "));
  EXPECT_EQ(1, browser.woken);
  EXPECT_EQ("two ", browser.TakeAll(100));
}

TEST(FeedReaderTest, ASlowBrowserGetsASnapshotInPlaceOfWhatItMissed) {
  SlowBrowser browser;
  browser.reader.PushSnapshot(TextOf("snapshot "));
  EXPECT_EQ("hello snapshot ", browser.TakeAll(100));
  browser.reader.Push(TextOf("begun "));
  std::string piece(2, '\0');
  ASSERT_EQ(2u, browser.reader.Take(piece.data(), piece.size()));
  for (std::size_t i = 0; i < FeedReader::kMessagesMax; ++i) browser.reader.Push(TextOf("more "));
  EXPECT_TRUE(browser.reader.WantsSnapshot());
  browser.reader.Push(TextOf("not this "));
  browser.reader.PushSnapshot(TextOf("new snapshot "));
  EXPECT_EQ("gun new snapshot ", browser.TakeAll(100));
}

TEST(FeedReaderTest, TheEndWakesAndIsTheEnd) {
  SlowBrowser browser;
  EXPECT_EQ("hello ", browser.TakeAll(100));
  browser.reader.End();
  EXPECT_EQ(1, browser.woken);
  char byte = 0;
  EXPECT_FALSE(browser.reader.Take(&byte, 1).has_value());
}

TEST(PageGuardTest, OnlyOurOwnHostsAndPagesMayAsk) {
  const PageGuard guard("127.0.0.1:4711", NewPageToken(), "");
  for (const char* host : {"127.0.0.1:4711", "localhost:4711", "10.1.2.3:4711", "[::1]:4711"}) {
    EXPECT_TRUE(guard.CheckSource({host, "", "", ""}).ok()) << host;
    EXPECT_TRUE(guard.CheckSource({host, std::string("http://") + host, "same-origin", ""}).ok());
  }
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:80", "evil.example:4711", ":4711",
                           "127.0.0.1.evil.example:4711", "localhost.evil.example:4711"}) {
    EXPECT_EQ(absl::StatusCode::kPermissionDenied, guard.CheckSource({host, "", "", ""}).code())
        << host;
  }
  for (const char* origin : {"null", "https://127.0.0.1:4711", "http://127.0.0.1:4712"}) {
    EXPECT_FALSE(guard.CheckSource({"127.0.0.1:4711", origin, "", ""}).ok()) << origin;
  }
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_FALSE(guard.CheckSource({"127.0.0.1:4711", "", site, ""}).ok()) << site;
  }
}

TEST(PageGuardTest, TokensAreDrawnAndHaveToMatch) {
  const PageGuard guard("127.0.0.1:4711", NewPageToken(), "");
  EXPECT_EQ(32u, guard.token().size());
  EXPECT_NE(NewPageToken(), guard.token());
  EXPECT_TRUE(guard.CheckToken({"", "", "", guard.token()}).ok());
  for (const std::string& token : {std::string(), guard.token().substr(1), NewPageToken()}) {
    EXPECT_EQ(absl::StatusCode::kUnauthenticated, guard.CheckToken({"", "", "", token}).code());
  }
}

TEST(ControlGatewayTest, MethodsWithOneAnswerAreThere) {
  EXPECT_TRUE(ControlGateway::CheckMethod("CreateFault").ok());
  for (const char* method : {"", "WatchEvents", "createFault", "../Status"}) {
    EXPECT_THAT(std::string(ControlGateway::CheckMethod(method).message()),
                HasSubstr("is not there"));
  }
}

TEST(PageFilesTest, FilesAreFoundByTheirPathsAndNothingElseIs) {
  for (const char* path : {"/", "/page.js", "/page.css"}) {
    ASSERT_NE(nullptr, FindPageFile(path)) << path;
    EXPECT_LT(1000u, FindPageFile(path)->text.size()) << path;
  }
  EXPECT_EQ(nullptr, FindPageFile("/page.js/"));
  EXPECT_EQ(nullptr, FindPageFile(""));
}

}  // namespace
}  // namespace percs
