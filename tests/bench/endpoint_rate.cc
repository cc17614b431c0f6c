// How many operations of a program outside a fabric of daemons takes per second of wall time: RDMA
// writes of 64 bytes between windows of two hubs, many under way and one at a time. Prints JSON.
//
//   endpoint_rate CONTROLLER HUB HUB OPERATIONS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>

#include "client/endpoint/endpoint.h"

namespace {

using percs::client::Endpoint;
using percs::client::EndpointOptions;
using percs::client::Peer;
using percs::client::Pending;

constexpr percs::client::Address kMemory = 0x10000;
constexpr std::uint64_t kBytes = 64;

[[noreturn]] void Die(const char* what, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Endpoint> Open(const char* controller, const char* hub) {
  EndpointOptions options;
  options.controller = controller;
  options.hub = hub;
  auto endpoint = Endpoint::Attach(options);
  if (!endpoint.ok()) Die(hub, endpoint.status());
  const absl::Status status = (*endpoint)->Register(kMemory, kBytes).Wait().status;
  if (!status.ok()) Die("register", status);
  return *std::move(endpoint);
}

// Operations per second, `under_way` at a time.
double Measure(Endpoint& from, const Peer& to, int operations, std::size_t under_way) {
  const auto began = std::chrono::steady_clock::now();
  std::deque<Pending> pending;
  for (int i = 0; i < operations; ++i) {
    pending.push_back(from.RdmaWrite(to, kMemory, kMemory, kBytes));
    if (pending.size() < under_way && i + 1 < operations) continue;
    do {
      const absl::Status status = pending.front().Wait().status;
      if (!status.ok()) Die("write", status);
      pending.pop_front();
    } while (i + 1 == operations && !pending.empty());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  return operations / took.count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "endpoint_rate CONTROLLER HUB HUB OPERATIONS\n");
    return 2;
  }
  const auto from = Open(argv[1], argv[2]), to = Open(argv[1], argv[3]);
  const Peer peer{to->node(), to->window(), to->context()};
  const int operations = std::atoi(argv[4]);
  Measure(*from, peer, operations / 10, 128);  // warms up
  const percs::client::Time began = from->now();
  const double many = Measure(*from, peer, operations, 128);
  const double microseconds =
      static_cast<double>(from->now() - began) / percs::client::kMicrosecond;
  const double one = Measure(*from, peer, operations / 20, 1);
  std::printf("{\"many_under_way\": %.1f, \"one_at_a_time\": %.1f, \"virtual_us\": %.3f}\n", many,
              one, microseconds);
  return 0;
}
