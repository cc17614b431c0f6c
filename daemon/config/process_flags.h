// Flags that both programs have.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "daemon/config/address.h"
#include "daemon/config/log.h"
#include "fmt/format.h"

namespace percs {

// `role` is the folder that `percsctl ca` makes for the program.
inline void AddSecurityFlags(CLI::App* app, const char* role, SecurityOptions* options) {
  app->add_option(
      "--tls", options->tls,
      fmt::format("Folder of the identity of a {}, made by `percsctl ca`: mutual TLS on every "
                  "connection; default: plaintext, allowed only on a Unix socket or loopback",
                  role));
  app->add_flag("--plaintext", options->plaintext,
                "Without --tls, also listen on addresses that other machines can reach: every "
                "caller may do everything");
  app->add_option("--requests-per-second", options->requests_per_second,
                  "Requests per second that one address may make; more are refused")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

inline void AddMetricsTlsFlag(CLI::App* app, std::string* file) {
  app->add_option("--metrics-tls", *file,
                  "PEM file of a private key and its certificate, such as identity.pem made by "
                  "`percsctl ca`: serve --metrics by HTTPS; default: plain HTTP");
}

inline void AddLogFlags(CLI::App* app) {
  const auto checked = [](absl::Status (*set)(const std::string&)) {
    return [set](const std::string& value) {
      if (const absl::Status status = set(value); !status.ok()) {
        throw CLI::ValidationError(std::string(status.message()), CLI::ExitCodes::ValidationError);
      }
    };
  };
  app->add_option_function<std::string>("--log-format", checked(&SetLogFormat),
                                        "text, or json: one object per line; default: text");
  app->add_option_function<std::string>("--log-level", checked(&SetLogLevel),
                                        "debug, info, warning, error or off; default: info");
}

}  // namespace percs
