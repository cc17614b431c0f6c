// percsctl tree: trees of CAUs of a running fabric.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/report.h"

namespace percs {
namespace {

struct TreeArguments {
  FabricOptions fabric;
  std::string action, name, members, relays, order = "fixed";
  int fan_out = 8;
};

Outcome List(const TreeArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.ListTrees(a.name);
    if (!reply.ok()) return FromStatus(reply.status());
    if (IsJson(a.fabric.format)) {
      const nlohmann::json json = {{"virtual_ps", reply->virtual_time()},
                                   {"trees", TreesJson(reply->trees())}};
      fmt::print("{}\n", json.dump(2));
    } else {
      fmt::print("{}", TreesText(reply->trees()));
    }
    return Outcome::Ok();
  });
}

Outcome Print(const TreeArguments& a, const char* what, std::uint32_t id, std::int64_t at) {
  if (IsJson(a.fabric.format)) {
    fmt::print("{}\n", nlohmann::json{{"tree", a.name}, {"id", id}, {"at_ps", at}}.dump(2));
  } else {
    fmt::print("tree {} (number {}): {} at {}\n", a.name, id, what, FormatVirtual(at));
  }
  return Outcome::Ok();
}

Outcome Create(const TreeArguments& a) {
  v1::CreateTreeRequest request;
  v1::Tree& tree = *request.mutable_tree();
  tree.set_name(a.name);
  tree.set_members(a.members);
  if (!a.relays.empty()) tree.set_relays(a.relays);
  tree.set_fan_out(a.fan_out);
  tree.set_order(a.order == "arrival" ? v1::OPERAND_ORDER_ARRIVAL : v1::OPERAND_ORDER_FIXED);
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.CreateTree(request);
    return reply.ok() ? Print(a, "being set up", reply->id(), reply->at())
                      : FromStatus(reply.status());
  });
}

Outcome Delete(const TreeArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto reply = client.DeleteTree(a.name);
    return reply.ok() ? Print(a, "being deleted", reply->id(), reply->at())
                      : FromStatus(reply.status());
  });
}

Outcome Tree(const TreeArguments& a) {
  if (a.action == "list") return List(a);
  if (a.name.empty()) {
    return Outcome::Fail(ExitCode::kUsage, fmt::format("{} needs the NAME of a tree", a.action));
  }
  if (a.action == "delete") return Delete(a);
  if (a.members.empty()) {
    return Outcome::Fail(ExitCode::kUsage,
                         "create needs --members, for example `--members sn0-d0,sn0-d1-h4`");
  }
  return Create(a);
}

}  // namespace

CommandBody AddTree(CLI::App& app) {
  auto a = std::make_shared<TreeArguments>();
  app.add_option("ACTION", a->action, "create, list or delete")
      ->required()
      ->check(CLI::IsMember({"create", "list", "delete"}));
  app.add_option("NAME", a->name, "Name of the tree; list shows this tree with its links");
  app.add_option("--members", a->members,
                 "create: hubs that take part, separated by commas: hubs, drawers (sn0-d1), "
                 "supernodes (sn0) or all");
  app.add_option("--relays", a->relays, "create: hubs whose CAU forwards without a participant");
  app.add_option("--fan-out", a->fan_out, "create: tree links of a CAU to its children")
      ->capture_default_str();
  app.add_option("--order", a->order, "create: order of operands, fixed or arrival")
      ->check(CLI::IsMember({"fixed", "arrival"}))
      ->capture_default_str();
  AddFabricOptions(app, a->fabric);
  return [a] { return Tree(*a); };
}

}  // namespace percs
