// percsctl plot: pictures of what percsctl measured.
#include "client/percsctl/plot.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/gnuplot.h"
#include "client/percsctl/links.h"

namespace percs {
namespace {

struct PlotKind {
  const char* name;
  absl::StatusOr<std::string> (*script)(const PlotInputs&, PlotSize*);
};
constexpr PlotKind kKinds[] = {{"links", LinksPlot},
                               {"latency", LatencyPlot},
                               {"curves", CurvesPlot},
                               {"load", LoadPlot},
                               {"ranks", RanksPlot}};

struct PlotArguments {
  FabricOptions fabric;
  std::string kind, output;
  std::vector<std::string> files;
};

// "title=file" or a file, whose title is that of its scenario.
absl::StatusOr<PlotInput> ReadInput(const std::string& argument) {
  PlotInput input;
  input.source = argument;
  const std::size_t equals = argument.find('=');
  if (equals != std::string::npos && !std::filesystem::exists(argument)) {
    input.title = argument.substr(0, equals);
    input.source = argument.substr(equals + 1);
  }
  std::ifstream file(input.source);
  if (!file) return absl::NotFoundError(input.source + ": cannot be read");
  input.json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!input.json.is_object()) {
    return absl::InvalidArgumentError(
        input.source +
        ": is no JSON object; write it with --format json of run, result, links or "
        "trace");
  }
  if (input.title.empty()) {
    input.title = input.json.value("scenario", std::filesystem::path(input.source).stem().string());
  }
  return input;
}

Outcome Draw(const PlotArguments& a, const PlotInputs& inputs) {
  if (auto status = CheckGnuplot("plot"); !status.ok()) return FromStatus(status);
  PlotSize size;
  for (const PlotKind& kind : kKinds) {
    if (a.kind != kind.name) continue;
    const auto script = kind.script(inputs, &size);
    if (!script.ok()) return FromStatus(script.status());
    const auto terminal = PlotTerminal(a.output, size.width, size.height);
    if (!terminal.ok()) return Outcome::Fail(ExitCode::kUsage, Text(terminal.status()));
    if (auto status = RunGnuplot(*terminal + *script); !status.ok()) return FromStatus(status);
  }
  fmt::print("{}: {} x {} pixels\n", a.output, size.width, size.height);
  return Outcome::Ok();
}

Outcome Plot(const PlotArguments& a) {
  if (a.files.empty() && a.kind == kKinds[0].name) {
    return WithFabric(a.fabric, [&](FabricClient& client) {
      const auto reply = client.ListLinks("");
      if (!reply.ok()) return FromStatus(reply.status());
      const std::string& name = a.fabric.controller.empty() ? a.fabric.name : a.fabric.controller;
      const std::string title = fmt::format("{} at {}", name, FormatVirtual(reply->virtual_time()));
      return Draw(a, {{title, name, LinksJson(*reply)}});
    });
  }
  if (a.files.empty()) {
    return Outcome::Fail(
        ExitCode::kUsage,
        fmt::format("plot {} needs files that percsctl wrote with --format json", a.kind));
  }
  PlotInputs inputs;
  for (const std::string& file : a.files) {
    auto input = ReadInput(file);
    if (!input.ok()) return FromStatus(input.status());
    inputs.push_back(*std::move(input));
  }
  return Draw(a, inputs);
}

}  // namespace

CommandBody AddPlot(CLI::App& app) {
  auto a = std::make_shared<PlotArguments>();
  std::vector<std::string> names;
  for (const PlotKind& kind : kKinds) names.emplace_back(kind.name);
  app.add_option("KIND", a->kind,
                 "links: heat map of loads between nodes; latency: histogram; curves: latency and "
                 "accepted over offered load; load: of link classes over time; ranks: what ranks "
                 "of a trace did with their time")
      ->required()
      ->check(CLI::IsMember(names));
  app.add_option("FILE", a->files,
                 "JSON of run or result (latency, curves, ranks), links (links) or trace (latency, "
                 "load); title=FILE names its curve. Default for links: the running fabric");
  app.add_option("-o,--output", a->output, "Picture to write: .svg or .png")->required();
  AddNameOption(app, a->fabric.name);
  AddControllerOptions(app, a->fabric);
  return [a] { return Plot(*a); };
}

}  // namespace percs
