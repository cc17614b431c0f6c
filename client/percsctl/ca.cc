// percsctl ca: an authority and an identity for every role of a fabric.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/lib/authority_folder.h"
#include "client/percsctl/command.h"

namespace percs {
namespace {

constexpr int kDaysDefault = 365, kDaysMax = 3650;

struct CaArguments {
  std::string folder, format;
  int days = kDaysDefault;
  bool renew = false;
};

Outcome Ca(const CaArguments& a) {
  const auto made = MakeAuthorityFolder(a.folder, std::chrono::hours(24 * a.days), a.renew);
  if (!made.ok()) return FromStatus(made.status());
  if (IsJson(a.format)) {
    nlohmann::json roles;
    for (const Role role : kAllRoles) roles[RoleName(role)] = RoleFolder(a.folder, role);
    fmt::print("{}\n", nlohmann::json{{"made", *made}, {"roles", roles}}.dump(2));
    return Outcome::Ok();
  }
  fmt::print(
      "{}\n",
      *made ? fmt::format("created a new authority and its identities, valid for {} days:", a.days)
            : "kept the existing identities, which are valid:");
  for (const Role role : kAllRoles)
    fmt::print("  {:<10}  {}\n", RoleName(role), RoleFolder(a.folder, role));
  return Outcome::Ok();
}

}  // namespace

CommandBody AddCa(CLI::App& app) {
  auto a = std::make_shared<CaArguments>();
  app.add_option("FOLDER", a->folder,
                 "Folder to write: one subfolder per role, with ca.pem and identity.pem")
      ->required();
  app.add_option("--days", a->days, "Days that the certificates are valid")
      ->check(CLI::Range(1, kDaysMax))
      ->capture_default_str();
  app.add_flag("--renew", a->renew, "Create new ones even if the existing ones are valid");
  AddFormatOption(app, a->format);
  return [a] { return Ca(*a); };
}

}  // namespace percs
