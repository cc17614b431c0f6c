// What the two halves of percsctl fault share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "client/percsctl/outcome.h"
#include "emulator/base/time.h"
#include "percs/v1/fault.pb.h"

namespace percs {

// Sets `at` to the virtual time that --at names, or to -1 for now, when the wait on the wall clock
// is over.
Outcome AwaitTime(const std::string& text, Time& at);

// Declares create, update, preview, list, get, delete and reset. What it returns runs the one that
// was asked for, if any.
std::function<std::optional<Outcome>()> AddFaultResources(CLI::App& app);

// Faults with their conditions.
using FaultList = google::protobuf::RepeatedPtrField<v1::FaultStatus>;
nlohmann::json FaultsJson(const FaultList& faults);
std::string FaultsText(const FaultList& faults);

}  // namespace percs
