// The channels between processes of a fabric.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "proto/security/credentials.h"

namespace percs {

// Tables of a process with many hubs travel in one message; servers have the same limit.
inline constexpr int kMessageBytesMax = 256 * 1024 * 1024;

// A channel of its own (connections are not shared) that comes back quickly after a loss.
// `server`: the role that has to answer there.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Credentials& credentials, Role server);

}  // namespace percs
