// percsctl version: what has to match between processes and files.
#include "proto/process/version.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "proto/scenario/journal_file.h"
#include "proto/scenario/state_format.h"

namespace percs {
namespace {

std::string Build() {
  return fmt::format("{}, {} {}", PERCS_BUILD_TYPE,
#ifdef __clang__
                     "clang", __clang_version__
#else
                     "gcc", __VERSION__
#endif
  );
}

}  // namespace

std::string VersionText() {
  return fmt::format(
      "percsctl {}\n"
      "wire    {}  between processes: must be equal\n"
      "format  {}  of scenario files: older formats are readable\n"
      "model   {}  equal models give equal digests\n"
      "journal {}  of --state-dir: older formats are readable\n"
      "state   {}  of its database: older formats are readable\n"
      "build   {}",
      kSoftwareVersion, kWireVersion, kFormatVersion, kModelVersion, kJournalFormat, kStateFormat,
      Build());
}

CommandBody AddVersion(CLI::App& app) {
  auto format = std::make_shared<std::string>();
  AddFormatOption(app, *format);
  return [format] {
    if (IsJson(*format)) {
      fmt::print("{}\n", nlohmann::json{{"software", kSoftwareVersion},
                                        {"wire", kWireVersion},
                                        {"format", kFormatVersion},
                                        {"model", kModelVersion},
                                        {"journal", kJournalFormat},
                                        {"state", kStateFormat},
                                        {"build", Build()}}
                             .dump(2));
      return Outcome::Ok();
    }
    fmt::print("{}\n", VersionText());
    return Outcome::Ok();
  };
}

}  // namespace percs
