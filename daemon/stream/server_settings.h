// Settings that every server of the project shares.
#pragma once

#include "grpcpp/server_builder.h"

namespace percs {

// Calls that one connection has under way; those beyond wait with their client.
inline constexpr int kStreamsPerConnection = 256;

// Limits, and a record of every call.
void ConfigureServer(grpc::ServerBuilder* builder);

}  // namespace percs
