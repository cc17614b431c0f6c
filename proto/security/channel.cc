#include "proto/security/channel.h"

#include "grpcpp/create_channel.h"

namespace percs {
namespace {

// A peer that is silent for so long counts as lost: the stream is reopened.
constexpr int kKeepaliveMs = 20'000;
constexpr int kReconnectFirstMs = 20, kReconnectMaxMs = 500;
// What one attempt may take on a busy machine: gRPC gives it the "minimum backoff".
constexpr int kConnectMs = 5'000;

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Credentials& credentials, Role server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  // What costs time for each message and is not used: sessions open their streams again themselves.
  for (const char* unused :
       {GRPC_ARG_ENABLE_RETRIES, GRPC_ARG_ENABLE_CHANNELZ, GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION,
        GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION}) {
    arguments.SetInt(unused, 0);
  }
  return grpc::CreateCustomChannel(address, credentials.ForChannel(server, &arguments), arguments);
}

}  // namespace percs
