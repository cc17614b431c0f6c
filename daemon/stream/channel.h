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

// A channel of its own (connections are not shared) that comes back quickly after a loss.
// `server`: the role that has to answer there.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Credentials& credentials, Role server);
void ConfigureServer(grpc::ServerBuilder* builder);

}  // namespace percs
