// Arbitrary text as a scenario file in each of its three spellings: the reader gives a scenario or
// an error that starts with the file's name, and never anything else.
#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/base/check.h"
#include "proto/scenario/reader.h"

// The first line picks the spelling, so that an ordinary file is a seed as it is.
static percs::ScenarioFormat FormatOfText(const std::string& text) {
  if (text.rfind("{", 0) == 0) return percs::ScenarioFormat::kJson;
  if (text.rfind("#textproto", 0) == 0) return percs::ScenarioFormat::kTextproto;
  return percs::ScenarioFormat::kYaml;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto scenario = percs::ReadScenarioText(text, "input", FormatOfText(text));
  if (!scenario.ok()) PERCS_CHECK(scenario.status().message().find("input") == 0);
  return 0;
}
