// percsctl context: fabrics elsewhere (in containers, on a cluster), with the identity to show
// there.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "proto/security/certificate.h"

namespace percs {
namespace {

struct ContextArguments {
  std::string name, controller, file = "-", folder, format;
};

absl::StatusOr<std::string> ReadAll(const std::string& file) {
  if (file == "-") return std::string((std::istreambuf_iterator<char>(std::cin)), {});
  std::ifstream input(file, std::ios::binary);
  if (!input) return absl::NotFoundError(fmt::format("cannot read {}", file));
  return std::string((std::istreambuf_iterator<char>(input)), {});
}

// Of a viewer or operator, from a bundle.
absl::StatusOr<Identity> ReadCaller(const std::string& file) {
  const auto text = ReadAll(file);
  if (!text.ok()) return text.status();
  const std::string where = file == "-" ? "standard input" : file;
  auto identity = FromBundle(*text);
  const auto role =
      identity.ok() ? VerifyIdentity(*identity) : absl::StatusOr<Role>(identity.status());
  if (!role.ok())
    return absl::Status(role.status().code(), fmt::format("{}: {}", where, Text(role.status())));
  if (*role == Role::kOperator || *role == Role::kViewer) return identity;
  return absl::InvalidArgumentError(
      fmt::format("{}: this identity has the role {}; percsctl needs the role operator or viewer",
                  where, RoleName(*role)));
}

absl::Status Import(const ContextArguments& a, const FabricStore& store) {
  const auto old = store.Load(a.name);
  if (old.ok() && !old->remote()) {
    return absl::AlreadyExistsError(
        fmt::format("\"{0}\" is a local fabric; `percsctl down --name {0}` stops it", a.name));
  }
  const auto lock = FabricLock::Take(store, a.name);
  if (!lock.ok()) return lock.status();
  const auto identity = ReadCaller(a.file);
  if (!identity.ok()) return identity.status();
  FabricRecord record;
  record.name = a.name;
  record.transport = kRemote;
  record.controller = a.controller;
  record.tls = store.TlsFolderOf(a.name);
  if (absl::Status s = WriteIdentity(record.tls, *identity); !s.ok()) return s;
  return store.Save(record);
}

absl::Status Delete(const ContextArguments& a, const FabricStore& store) {
  const auto record = store.Load(a.name);
  if (!record.ok()) return record.status();
  if (!record->remote()) {
    return absl::FailedPreconditionError(
        fmt::format("\"{0}\" is a local fabric; `percsctl down --name {0}` stops it", a.name));
  }
  store.Remove(*record);
  return absl::OkStatus();
}

Outcome WithStore(const ContextArguments& a,
                  absl::Status (*act)(const ContextArguments&, const FabricStore&),
                  const char* done) {
  const auto store = FabricStore::Open();
  if (!store.ok()) return FromStatus(store.status());
  if (absl::Status s = act(a, *store); !s.ok()) return FromStatus(s);
  fmt::print("{} \"{}\"\n", done, a.name);
  return Outcome::Ok();
}

Outcome Export(const ContextArguments& a) {
  const auto identity = ReadIdentity(a.folder);
  if (!identity.ok()) return FromStatus(identity.status());
  fmt::print("{}", ToBundle(*identity));
  return Outcome::Ok();
}

Outcome List(const ContextArguments& a) {
  const auto store = FabricStore::Open();
  if (!store.ok()) return FromStatus(store.status());
  nlohmann::json list = nlohmann::json::array();
  Table table({"name", "controller", "role"}, "lll");
  for (const std::string& name : store->Names()) {
    const auto record = store->Load(name);
    if (!record.ok() || !record->remote()) continue;
    const auto identity = ReadIdentity(record->tls);
    const auto role =
        identity.ok() ? VerifyIdentity(*identity) : absl::StatusOr<Role>(identity.status());
    const std::string text = role.ok() ? RoleName(*role) : Text(role.status());
    table.Add({name, record->controller, text});
    list.push_back({{"name", name}, {"controller", record->controller}, {"role", text}});
  }
  if (IsJson(a.format)) {
    fmt::print("{}\n", list.dump(2));
  } else {
    fmt::print("{}", table.empty() ? "no context; `percsctl context import` makes one\n"
                                   : table.ToString());
  }
  return Outcome::Ok();
}

}  // namespace

CommandBody AddContext(CLI::App& app) {
  auto a = std::make_shared<ContextArguments>();
  app.require_subcommand(1);
  CLI::App* const import = app.add_subcommand(
      "import", "Save an address and an identity under a name, for use with --name");
  import->add_option("NAME", a->name, "Name for the fabric")->required();
  import
      ->add_option("--controller", a->controller,
                   "host:port of the controller, reachable from here")
      ->required();
  import->add_option("FILE", a->file, "Output of `percsctl context export`; -: standard input")
      ->capture_default_str();
  CLI::App* const give = app.add_subcommand("export", "Print an identity as a single text");
  give->add_option("FOLDER", a->folder, "Folder of one role, made by `percsctl ca`")->required();
  CLI::App* const list = app.add_subcommand("list", "List remote fabrics and the role used there");
  AddFormatOption(*list, a->format);
  CLI::App* const forget = app.add_subcommand("delete", "Delete a context and its identity");
  forget->add_option("NAME", a->name, "Name from `percsctl context list`")->required();
  return [a, import, give, list] {
    if (*import) return WithStore(*a, &Import, "imported");
    if (*give) return Export(*a);
    if (*list) return List(*a);
    return WithStore(*a, &Delete, "deleted");
  };
}

}  // namespace percs
