#include "proto/scenario/reader.h"

#include <filesystem>
#include <system_error>

#include "fmt/format.h"
#include "proto/scenario/file.h"
#include "proto/scenario/limits.h"
#include "proto/scenario/parsers.h"
#include "proto/scenario/suggest.h"
#include "proto/scenario/validate.h"

namespace percs {

namespace {

// By extension.
absl::StatusOr<ScenarioFormat> FormatOf(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".yaml" || extension == ".yml") return ScenarioFormat::kYaml;
  if (extension == ".json") return ScenarioFormat::kJson;
  if (extension == ".textproto" || extension == ".pbtxt") return ScenarioFormat::kTextproto;
  return absl::InvalidArgumentError(
      fmt::format("{}: the extension \"{}\" is not a scenario format; name the file .yaml, .yml, "
                  ".json, .textproto or .pbtxt",
                  path, extension));
}

}  // namespace

absl::StatusOr<LoadedScenario> LoadScenarioText(const std::string& text, const std::string& name,
                                                ScenarioFormat format) {
  LoadedScenario loaded{{}, SourceMarks(name), ""};
  ErrorList errors(&loaded.marks);
  if (format == ScenarioFormat::kTextproto) {
    ParseTextproto(text, &loaded.scenario, &loaded.marks, &errors);
  } else {
    ParseYaml(text, &loaded.scenario, &loaded.marks, &errors);
  }
  CheckFields(loaded.scenario, &errors);
  if (!errors.empty()) return errors.ToStatus();
  return loaded;
}

absl::StatusOr<LoadedScenario> LoadScenarioFile(const std::string& path) {
  // A name that is no file's is more likely wrong than its extension.
  const auto text = ReadWholeFile(path, kScenarioBytesMax);
  if (!text.ok()) return text.status();
  const auto format = FormatOf(path);
  if (!format.ok()) return format.status();
  auto loaded = LoadScenarioText(*text, path, *format);
  if (loaded.ok()) loaded->directory = std::filesystem::path(path).parent_path().string();
  return loaded;
}

absl::StatusOr<v1::Scenario> ReadScenarioText(const std::string& text, const std::string& name,
                                              ScenarioFormat format) {
  auto loaded = LoadScenarioText(text, name, format);
  if (!loaded.ok()) return loaded.status();
  return std::move(loaded->scenario);
}

absl::StatusOr<v1::Scenario> ReadScenarioFile(const std::string& path) {
  auto loaded = LoadScenarioFile(path);
  if (!loaded.ok()) return loaded.status();
  return std::move(loaded->scenario);
}

}  // namespace percs
