// Two programs on two hubs throw a packet back and forth; the first one prints what a round trip
// takes.
//
//   percsctl up --daemons 2 && percsctl apply deploy/scenarios/two-windows.yaml --wait-endpoints 2
//   ping_pong CONTROLLER sn0-d0-h0 0 sn0-d1-h0 0 serve &
//   ping_pong CONTROLLER sn0-d1-h0 0 sn0-d0-h0 0 return
//
// Both are exclusive: virtual time is held while a program is about to answer, so the times
// are those of the machine, and the same in every run; and neither sends before both have their
// windows.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "client/endpoint/endpoint.h"

namespace {

using percs::client::Endpoint;
using percs::client::EndpointOptions;
using percs::client::Mode;
using percs::client::Packet;
using percs::client::Peer;
using percs::client::Time;

int Fail(const char* what, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  return 1;
}

int Serve(Endpoint& endpoint, const Peer& peer, int rounds) {
  Time least = std::numeric_limits<Time>::max(), most = 0, sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const Time from = endpoint.now();
    // Not waited for: its completion says nothing about the other side.
    endpoint.SendFifo(peer, "ping");
    const auto pong = endpoint.Receive();
    if (!pong.ok()) return Fail("receive", pong.status());
    const Time took = pong->at - from;
    least = std::min(least, took);
    most = std::max(most, took);
    sum += took;
  }
  endpoint.SendFifo(peer, "bye").Wait();
  std::printf("%d round trips: least %s, mean %s, most %s of virtual time\n", rounds,
              percs::client::FormatTime(least).c_str(),
              percs::client::FormatTime(sum / rounds).c_str(),
              percs::client::FormatTime(most).c_str());
  return 0;
}

int Return(Endpoint& endpoint, const Peer& peer) {
  bool ended = false;
  while (!ended) {
    const auto packet = endpoint.Receive(std::chrono::minutes(10));
    if (!packet.ok()) return Fail("receive", packet.status());
    const std::string text(packet->data.begin(), packet->data.end());
    ended = text == "bye";
    if (!ended) endpoint.SendFifo(peer, packet->data);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool serve = argc > 6 && std::strcmp(argv[6], "serve") == 0;
  const int rounds = argc > 7 ? std::atoi(argv[7]) : 100;
  if (argc < 7 || rounds < 1) {
    std::fprintf(stderr,
                 "ping_pong CONTROLLER HUB WINDOW PEER_HUB PEER_WINDOW serve|return [ROUNDS]\n");
    return 2;
  }
  EndpointOptions options;
  options.controller = argv[1];
  options.hub = argv[2];
  options.window = static_cast<percs::client::WindowId>(std::atoi(argv[3]));
  options.mode = Mode::kExclusive;
  options.name = "ping_pong";
  const auto endpoint = Endpoint::Attach(options);
  if (!endpoint.ok()) return Fail("attach", endpoint.status());
  const auto node = (*endpoint)->FindNode(argv[4]);
  if (!node.ok()) return Fail(argv[4], node.status());
  const Peer peer{*node, static_cast<percs::client::WindowId>(std::atoi(argv[5]))};
  return serve ? Serve(**endpoint, peer, rounds) : Return(**endpoint, peer);
}
