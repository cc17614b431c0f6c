#include "daemon/page/recorded_page.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "absl/strings/escaping.h"
#include "daemon/page/page_files.h"
#include "emulator/base/check.h"
#include "fmt/format.h"
#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace percs {
namespace {

constexpr char kPolicy[] =
    R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src )"
    R"('unsafe-inline'; style-src 'unsafe-inline'; img-src data:">)";
constexpr int kBestCompression = 9;

std::string Compressed(const std::string& text) {
  namespace io = google::protobuf::io;
  std::string packed;
  io::StringOutputStream string(&packed);
  io::GzipOutputStream::Options options;
  options.compression_level = kBestCompression;
  io::GzipOutputStream gzip(&string, options);
  for (std::size_t at = 0; at < text.size();) {
    void* place = nullptr;
    int room = 0;
    PERCS_CHECK(gzip.Next(&place, &room));
    const std::size_t bytes = std::min(static_cast<std::size_t>(room), text.size() - at);
    text.copy(static_cast<char*>(place), bytes, at);
    gzip.BackUp(room - static_cast<int>(bytes));
    at += bytes;
  }
  PERCS_CHECK(gzip.Close());
  return absl::Base64Escape(packed);
}

std::string TextOf(std::string_view path) { return std::string(FindPageFile(path)->text); }

void Replace(std::string_view what, std::string_view by, std::string* text) {
  for (std::size_t at = 0; (at = text->find(what, at)) != std::string::npos; at += by.size())
    text->replace(at, what.size(), by);
}

// Nothing in a script or style may look like its end.
std::string Inside(std::string_view tag, std::string_view attributes, std::string text) {
  Replace("</", "<\\/", &text);
  Replace("<!--", "<\\!--", &text);
  return fmt::format("<{}{}>{}</{}>", tag, attributes, text, tag);
}

}  // namespace

std::string RecordedPage(const std::string& messages) {
  std::string page = TextOf("/");
  const std::string data =
      Inside("script", R"( type="text/plain" id="recorded")", Compressed(messages));
  Replace(R"(<link rel="stylesheet" href="page.css">)",
          kPolicy + Inside("style", "", TextOf("/page.css")), &page);
  Replace(R"(<script src="page.js"></script>)", data + Inside("script", "", TextOf("/page.js")),
          &page);
  return page;
}

}  // namespace percs
