// Settings that every channel and server of the project shares.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/server_builder.h"
#include "proto/security/credentials.h"

namespace percs {

// Tables of a process with many hubs travel in one message.
inline constexpr int kMessageBytesMax = 256 * 1024 * 1024;
// Calls that one connection has under way; those beyond wait with their client.
inline constexpr int kStreamsPerConnection = 256;

// A channel of its own (connections are not shared) that comes back quickly after a loss.
// `server`: the role that has to answer there.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Credentials& credentials, Role server);
// Limits, and a record of every call.
void ConfigureServer(grpc::ServerBuilder* builder);

}  // namespace percs
