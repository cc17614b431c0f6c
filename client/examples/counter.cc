// A distributed counter: one program owns eight bytes of memory, any number of others add to them
// by fetch-and-add, and each gets a number that no other program gets.
//
//   percsctl up --daemons 2 && percsctl apply deploy/scenarios/two-windows.yaml --hold
//   counter CONTROLLER sn0-d0-h0 0 own 1000 &
//   counter CONTROLLER sn0-d1-h0 1 add sn0-d0-h0 0 1000
//
// Shared: virtual time continues, whatever the programs do. An atomic is done once,
// however often its packets are lost.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "client/endpoint/endpoint.h"

namespace {

using percs::client::Completion;
using percs::client::Endpoint;
using percs::client::EndpointOptions;
using percs::client::Peer;
using percs::client::Pending;

constexpr percs::client::Address kCounter = 0x1000;
constexpr std::size_t kUnderWay = 16;  // adds that this program does not wait for

int Fail(const char* what, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  return 1;
}

// Has the counter until it has reached `end`.
int Own(Endpoint& endpoint, std::uint64_t end) {
  if (auto s = endpoint.Register(kCounter, 8).Wait().status; !s.ok()) return Fail("register", s);
  if (auto s = endpoint.Write(kCounter, std::string(8, '\0')).Wait().status; !s.ok())
    return Fail("write", s);
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::uint64_t value = 0; value < end;) {
    // Every add sends a notification; the value itself is read only when needed.
    const auto told = endpoint.WaitNotification(std::chrono::minutes(10));
    if (!told.ok()) return Fail("notification", told.status());
    const Completion read = endpoint.Read(kCounter, 8).Wait();
    if (!read.status.ok()) return Fail("read", read.status);
    std::memcpy(&value, read.data.data(),
                8);  // in the order of bytes of this machine, as the adders'
  }
  std::printf("counted to %llu\n", static_cast<unsigned long long>(end));
  return 0;
}

int Add(Endpoint& endpoint, const Peer& owner, std::uint64_t count) {
  percs::client::AtomicUpdate update;
  update.op = percs::client::AtomicOp::kAdd;
  update.size = 8;
  update.fetch = true;
  update.address = kCounter;
  update.operand = 1;
  std::deque<Pending> under_way;
  std::uint64_t last = 0, got = 0;
  while (got < count) {
    while (under_way.size() < kUnderWay && got + under_way.size() < count) {
      under_way.push_back(endpoint.Atomic(owner, update, /*notify=*/true));
    }
    const Completion done = under_way.front().Wait();
    under_way.pop_front();
    if (!done.status.ok()) return Fail("add", done.status);
    last = done.values.at(0);
    ++got;
  }
  std::printf("%llu numbers, the last %llu\n", static_cast<unsigned long long>(got),
              static_cast<unsigned long long>(last));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool own = argc == 6 && std::strcmp(argv[4], "own") == 0;
  const bool add = argc == 8 && std::strcmp(argv[4], "add") == 0;
  if (!own && !add) {
    std::fprintf(stderr,
                 "counter CONTROLLER HUB WINDOW own COUNT | counter CONTROLLER HUB WINDOW add HUB "
                 "WINDOW COUNT\n");
    return 2;
  }
  EndpointOptions options;
  options.controller = argv[1];
  options.hub = argv[2];
  options.window = static_cast<percs::client::WindowId>(std::atoi(argv[3]));
  options.name = argv[4];
  const auto endpoint = Endpoint::Attach(options);
  if (!endpoint.ok()) return Fail("attach", endpoint.status());
  if (own) return Own(**endpoint, std::strtoull(argv[5], nullptr, 10));
  const auto node = (*endpoint)->FindNode(argv[5]);
  if (!node.ok()) return Fail(argv[5], node.status());
  return Add(**endpoint, {*node, static_cast<percs::client::WindowId>(std::atoi(argv[6]))},
             std::strtoull(argv[7], nullptr, 10));
}
