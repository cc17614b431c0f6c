// percsctl fabric COMMAND: methods of the Control service that need no code of their own here.
// Their words, help and options come from percs/v1/control.proto.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/field_options.h"
#include "client/percsctl/format.h"
#include "proto/process/message_bytes.h"
#include "proto/scenario/command_methods.h"

namespace percs {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr const char kGroup[] = "fabric ";

struct FabricCommand {
  const MethodDescriptor* method;
  FieldTexts texts;
  const CLI::App* app = nullptr;
};

struct FabricArguments {
  FabricOptions fabric;
  std::vector<std::unique_ptr<FabricCommand>> commands;
};

Outcome Run(const FabricOptions& options, const FabricCommand& command) {
  const auto request = NewMessage(command.method->input_type());
  if (Outcome wrong = SetFieldTexts(command.texts, request.get()); wrong.code != ExitCode::kOk)
    return wrong;
  return WithFabric(options, [&](FabricClient& client) {
    const auto reply = NewMessage(command.method->output_type());
    const absl::Status status = client.CallMethod(*command.method, *request, reply.get());
    if (!status.ok()) return FromStatus(status);
    const auto* field = reply->GetDescriptor()->FindFieldByName("at");
    const Time at = reply->GetReflection()->GetInt64(*reply, field);
    if (IsJson(options.format)) {
      fmt::print("{}\n", nlohmann::json{{"at_ps", at}}.dump(2));
    } else {
      fmt::print("{} at {}\n", CommandRulesOf(*command.method).done(), FormatVirtual(at));
    }
    return Outcome::Ok();
  });
}

}  // namespace

CommandBody AddFabric(CLI::App& app) {
  auto a = std::make_shared<FabricArguments>();
  for (const MethodDescriptor* method : CommandMethods()) {
    const v1::CommandRules& rules = CommandRulesOf(*method);
    if (rules.words().rfind(kGroup, 0) != 0) continue;
    auto& command = *a->commands.emplace_back(new FabricCommand{method, {}});
    CLI::App* sub = app.add_subcommand(rules.words().substr(sizeof(kGroup) - 1), rules.summary());
    AddFieldOptions(*sub, method->input_type(), &command.texts);
    AddFabricOptions(*sub, a->fabric);
    command.app = sub;
  }
  app.require_subcommand(1);
  return [a] {
    for (const auto& command : a->commands) {
      if (command->app->parsed()) return Run(a->fabric, *command);
    }
    return Outcome::Fail(ExitCode::kUsage, "a command is missing");
  };
}

}  // namespace percs
