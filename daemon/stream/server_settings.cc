#include "daemon/stream/server_settings.h"

#include "daemon/stream/call_meter.h"
#include "proto/security/channel.h"

namespace percs {
namespace {

// What a client's keepalive may ask; the channels of the project do so every 20 s.
constexpr int kPingsAllowedMs = 5'000;

}  // namespace

void ConfigureServer(grpc::ServerBuilder* builder) {
  MeterCalls(builder);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder->SetMaxReceiveMessageSize(kMessageBytesMax);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kPingsAllowedMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);  // has a part in each message
}

}  // namespace percs
