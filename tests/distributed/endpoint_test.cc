// Programs outside that use windows of a running fabric. Method: a controller and two daemons in
// this process, the client library and, where something has to be wrong, plain gRPC streams; what
// arrives is compared byte for byte, and the journal's replay, in process and over the daemons, has
// to have the digest of the live run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "fmt/format.h"
#include "proto/security/certificate.h"
#include "proto/window/endpoint_codec.h"
#include "tests/distributed/endpoint_fixture.h"
#include "tests/distributed/proxy.h"
#include "tests/support/seed.h"
#include "tests/support/temporary_folder.h"

namespace percs::test {
namespace {

using ::testing::HasSubstr;

void Exchange(client::Endpoint& a, client::Endpoint& b, const Peer& to_a, const Peer& to_b) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{127}}) {
    ASSERT_TRUE(a.SendImmediate(to_b, Pattern(size, size)).Wait().status.ok());
    const auto packet = b.Receive(kSoon);
    ASSERT_TRUE(packet.ok()) << packet.status();
    EXPECT_EQ(packet->data, Pattern(size, size));
    EXPECT_EQ(packet->format, client::Transfer::kImmediateSend);
    EXPECT_EQ(packet->peer, a.node());
    EXPECT_EQ(packet->peer_window, a.window());
  }
  // More than the FIFO has slots: the library gives them back.
  for (std::uint64_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(b.SendFifo(to_a, Pattern(2048, i)).Wait().status.ok());
    const auto packet = a.Receive(kSoon);
    ASSERT_TRUE(packet.ok()) << i << ": " << packet.status();
    EXPECT_EQ(packet->data, Pattern(2048, i)) << i;
  }
}

TEST_F(EndpointTest, ProgramsAtTwoDaemonsExchangeMessagesRdmaAndAtomicsAndTheJournalReplays) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  const EndpointPtr a = Attach(kHub0, 0), b = Attach(kHub1, 3);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->FindNode(kHub1).value_or(99), b->node());
  const Peer to_a = Of(*a), to_b = Of(*b);
  Exchange(*a, *b, to_a, to_b);

  constexpr std::size_t kSize =
      3 << 20;  // three pieces on the wire, and payloads beside the journal
  const Bytes data = Pattern(kSize, 7);
  ASSERT_TRUE(a->Register(kHere, kSize).Wait().status.ok());
  ASSERT_TRUE(b->Register(kThere, kSize).Wait().status.ok());
  ASSERT_TRUE(a->Write(kHere, data).Wait().status.ok());
  const Completion put = a->RdmaWrite(to_b, kThere, kHere, kSize, {.notify = true}).Wait();
  ASSERT_TRUE(put.status.ok()) << put.status;
  const auto told = b->WaitNotification(kSoon);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->bytes, kSize);
  EXPECT_EQ(told->peer, a->node());
  EXPECT_EQ(b->Read(kThere, kSize).Wait().data, data);
  const Bytes other = Pattern(5000, 8);
  ASSERT_TRUE(b->Write(kThere + 100, other).Wait().status.ok());
  ASSERT_TRUE(a->RdmaRead(to_b, kThere + 100, kHere, other.size()).Wait().status.ok());
  EXPECT_EQ(a->Read(kHere, other.size()).Wait().data, other);

  ASSERT_TRUE(b->Write(kThere, Bytes(32, 0)).Wait().status.ok());
  std::vector<client::Pending> adds;
  for (int i = 0; i < 50; ++i) adds.push_back(a->Atomic(to_b, AddTo(kThere, 1)));
  for (std::uint64_t i = 0; i < adds.size(); ++i) {
    const Completion add = adds[i].Wait();
    ASSERT_TRUE(add.status.ok()) << add.status;
    EXPECT_EQ(add.values, std::vector<std::uint64_t>{i});
  }
  const std::vector<client::AtomicUpdate> group = {AddTo(kThere, 5), AddTo(kThere + 8, 6),
                                                   AddTo(kThere, 7)};
  EXPECT_EQ(a->PackedAtomics(to_b, group).Wait().values, (std::vector<std::uint64_t>{50, 0, 55}));
  EXPECT_TRUE(a->Fence().Wait().status.ok());
  EXPECT_TRUE(a->Detach().ok());
  EXPECT_TRUE(b->Detach().ok());
  const auto live = StopAndWait();
  ASSERT_TRUE(live.ok()) << live.status();
  CheckReplays(live->result().digest());
}

TEST_F(EndpointTest, AProgramThatDiesLeavesTheOtherWithAnErrorAndTheFabricRunning) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  const EndpointPtr a = Attach(kHub0, 0);
  ASSERT_TRUE(a);
  // One that says nothing when it goes.
  const auto stub =
      v1::Endpoint::NewStub(MakeChannel(cluster_.daemon_address(1), {}, Role::kDaemon));
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  v1::FromProgram hello;
  hello.mutable_hello()->set_version(kEndpointVersion);
  hello.mutable_hello()->set_token("one that says no");
  hello.mutable_hello()->set_hub(kHub1);
  hello.mutable_hello()->set_job(1);
  hello.mutable_hello()->set_window(0);
  hello.mutable_hello()->set_mode(v1::ATTACH_MODE_SHARED);
  ASSERT_TRUE(stream->Write(hello));
  v1::FromHub message;
  while (stream->Read(&message) && !message.has_attached()) {
  }
  ASSERT_TRUE(message.has_attached());
  ASSERT_EQ(Windows(1).windows_size(), 1);
  ASSERT_TRUE(a->Register(kHere, 4096).Wait().status.ok());
  EXPECT_TRUE(a->Write(kHere, Bytes(8, 1)).Wait().status.ok());
  EXPECT_EQ(a->RdmaWrite({1, 0}, kThere, kHere, 8).Wait().reason,
            WindowStatusName(WindowStatus::kNotRegistered))
      << "it is there";
  context.TryCancel();
  while (Windows(1).windows_size() > 0) WaitABit();
  const Completion late = a->RdmaWrite({1, 0}, kThere, kHere, 8).Wait();
  EXPECT_EQ(late.reason, WindowStatusName(WindowStatus::kRemoteWindowClosed));
  EXPECT_EQ(late.status.code(), absl::StatusCode::kFailedPrecondition) << late.status;
  EXPECT_THAT(std::string(late.status.message()),
              HasSubstr("its program has not started, or has ended"));
  EXPECT_TRUE(a->status().ok());
  const EndpointPtr next = Attach(kHub1, 0);
  ASSERT_TRUE(next);
  EXPECT_TRUE(a->SendFifo(Of(*next), Pattern(10, 1)).Wait().status.ok());
  const auto packet = next->Receive(kSoon);
  EXPECT_TRUE(packet.ok()) << packet.status();
  EXPECT_TRUE(StopAndWait().ok());
}

// A daemon that says nothing for so long is lost.
class LosingTest : public EndpointTest {
 protected:
  LosingTest() : EndpointTest(std::chrono::milliseconds(3'000)) {}
};

TEST_F(LosingTest, ADaemonThatIsLostIsNamedToItsProgramsAndUnreachableToOthers) {
  v1::ApplyRequest request = TwoHubs();
  request.mutable_scenario()->mutable_parameters()->set_retransmit_timeout(10 * kMicrosecond);
  request.mutable_scenario()->mutable_parameters()->set_detect(kMicrosecond);
  request.mutable_scenario()->mutable_parameters()->set_plan(4 * kMicrosecond);
  request.mutable_scenario()->mutable_parameters()->set_install(4 * kMicrosecond);
  ASSERT_TRUE(cluster_.Apply(request).ok());
  const EndpointPtr a = Attach(kHub0, 0), b = Attach(kHub1, 0);
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(a->Register(kHere, 64).Wait().status.ok());
  const Peer to_b = Of(*b);
  cluster_.KillDaemon(1);
  const auto nothing = b->Receive(kSoon);
  EXPECT_EQ(nothing.status().code(), absl::StatusCode::kUnavailable) << nothing.status();
  EXPECT_THAT(std::string(nothing.status().message()), HasSubstr(kHub1));
  EXPECT_EQ(b->Fence().Wait().status.code(), absl::StatusCode::kUnavailable)
      << "and so is every call from now on";
  const Completion put = a->RdmaWrite(to_b, kThere, kHere, 64).Wait(Duration(60'000));
  EXPECT_EQ(put.status.code(), absl::StatusCode::kUnavailable) << put.status;
  EXPECT_TRUE(a->status().ok());
  const auto refused = client::Endpoint::Attach(At(kHub1, 1));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << refused.status();
}

TEST_F(EndpointTest, JobsOnOneHubCannotReachEachOther) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  const EndpointPtr mine = Attach(kHub0, 0, 1), other = Attach(kHub0, 1, 2),
                    far = Attach(kHub1, 0, 1);
  ASSERT_TRUE(mine && other && far);
  ASSERT_TRUE(other->Register(kHere, 4096).Wait().status.ok());
  const Bytes secret = Pattern(64, 3);
  ASSERT_TRUE(other->Write(kHere, secret).Wait().status.ok());
  ASSERT_TRUE(mine->Register(kHere, 4096).Wait().status.ok())
      << "the same addresses, in a context of its own";
  ASSERT_TRUE(far->Register(kHere, 4096).Wait().status.ok());
  const auto refused = [](const Completion& done) {
    return done.reason == WindowStatusName(WindowStatus::kWrongKey);
  };
  const Peer theirs = Of(*other);
  for (client::Endpoint* from : {mine.get(), far.get()}) {
    EXPECT_TRUE(refused(from->RdmaRead(theirs, kHere, kHere, 64).Wait()));
    EXPECT_TRUE(refused(from->RdmaWrite(theirs, kHere, kHere, 64).Wait()));
    EXPECT_TRUE(refused(from->Atomic(theirs, AddTo(kHere, 1)).Wait()));
    EXPECT_TRUE(refused(
        from->RdmaRead({theirs.node, mine->window(), theirs.context}, kHere, kHere, 64).Wait()))
        << "by way of a window of its own job";
    EXPECT_EQ(from->Read(kHere, 64).Wait().data, Bytes(64, 0));
  }
  // A program that says it is in their context, and one that takes their window.
  EndpointOptions options = At(kHub0, 2, 1);
  options.context = theirs.context;
  options.send_slots = options.receive_slots = 0;
  const EndpointPtr intruder = Attach(options);
  ASSERT_TRUE(intruder);
  EXPECT_EQ(intruder->Read(kHere, 64).Wait().status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(refused(intruder->Write(kHere, Bytes(1, 1)).Wait()));
  EXPECT_TRUE(refused(intruder->Register(kThere, 64).Wait()));
  EXPECT_TRUE(refused(intruder->Deregister(kHere).Wait()));
  EXPECT_EQ(client::Endpoint::Attach(At(kHub0, 1, 1)).status().code(),
            absl::StatusCode::kAlreadyExists);
  // Packets of another job are dropped, which their sender does not hear, and not received.
  EXPECT_TRUE(mine->SendFifo(theirs, secret).Wait().status.ok());
  EXPECT_EQ(other->Receive(Duration(200)).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(other->Read(kHere, 64).Wait().data, secret) << "nothing of all that did anything";
  const v1::ListWindowsReply list = Windows(0);
  EXPECT_EQ(list.windows_size(), 3);
}

struct Wrong {
  const char* what;
  Completion done;
  WindowStatus status;
  absl::StatusCode code;
};

TEST_F(EndpointTest, EveryWrongOperationHasAnErrorOfItsOwn) {
  v1::ApplyRequest request = TwoHubs();
  request.mutable_scenario()->mutable_parameters()->set_windows_per_hfi(1);
  ASSERT_TRUE(cluster_.Apply(request).ok());
  const EndpointPtr a = Attach(kHub0, 0), b = Attach(kHub1, 1), c = Attach(kHub0, 1, 2);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(client::Endpoint::Attach(At(kHub0, kAnyWindow)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(client::Endpoint::Attach(At(kHub0, 2)).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(client::Endpoint::Attach(At("sn0-d0-h7", 0)).status().code(),
            absl::StatusCode::kNotFound);
  const Peer to_b = Of(*b);
  ASSERT_TRUE(a->Register(kHere, 4096).Wait().status.ok());
  ASSERT_TRUE(b->Register(kThere, 4096).Wait().status.ok());
  ASSERT_TRUE(b->Register(kThere + 8192, 4096, /*writable=*/false).Wait().status.ok());
  client::AtomicUpdate crooked = AddTo(kThere + 3, 1), odd = AddTo(kThere, 1);
  odd.size = 3;
  const std::vector<client::AtomicUpdate> five(5, AddTo(kThere, 1));
  using S = WindowStatus;
  using C = absl::StatusCode;
  const Wrong wrong[] = {
      {"immediate of a cache line", a->SendImmediate(to_b, Bytes(128)).Wait(), S::kTooLarge,
       C::kInvalidArgument},
      {"more than a packet", a->SendFifo(to_b, Bytes(2049)).Wait(), S::kTooLarge,
       C::kInvalidArgument},
      {"unaligned atomic", a->Atomic(to_b, crooked).Wait(), S::kUnaligned, C::kInvalidArgument},
      {"atomic of three bytes", a->Atomic(to_b, odd).Wait(), S::kBadSize, C::kInvalidArgument},
      {"five atomics", a->PackedAtomics(to_b, five).Wait(), S::kBadSize, C::kInvalidArgument},
      {"not registered here", a->RdmaWrite(to_b, kThere, 0x777, 8).Wait(), S::kNotRegistered,
       C::kNotFound},
      {"not registered there", a->RdmaWrite(to_b, 0x777, kHere, 8).Wait(), S::kNotRegistered,
       C::kNotFound},
      {"beyond the end", a->RdmaWrite(to_b, kThere + 4090, kHere, 8).Wait(), S::kOutOfRange,
       C::kOutOfRange},
      {"read-only", a->RdmaWrite(to_b, kThere + 8192, kHere, 8).Wait(), S::kReadOnly,
       C::kPermissionDenied},
      {"foreign key", a->RdmaWrite(Of(*c), kThere, kHere, 8).Wait(), S::kWrongKey,
       C::kPermissionDenied},
      {"nobody there", a->RdmaWrite({1, 0}, kThere, kHere, 8).Wait(), S::kRemoteWindowClosed,
       C::kFailedPrecondition},
      {"no such hub", a->RdmaWrite({77, 0}, kThere, kHere, 8).Wait(), S::kNoSuchNode, C::kNotFound},
      {"overlap", a->Register(kHere + 64, 64).Wait(), S::kOverlap, C::kAlreadyExists},
      {"no bytes", a->RdmaWrite(to_b, kThere, kHere, 0).Wait(), S::kEmpty, C::kInvalidArgument},
  };
  for (const Wrong& w : wrong) {
    EXPECT_EQ(w.done.reason, WindowStatusName(w.status)) << w.what << ": " << w.done.status;
    EXPECT_EQ(w.done.status.code(), w.code) << w.what << ": " << w.done.status;
    EXPECT_THAT(std::string(w.done.status.message()), HasSubstr(WindowStatusName(w.status)))
        << w.what;
  }
  EXPECT_EQ(a->Read(kHere, 5 << 20).Wait().reason, WindowStatusName(S::kOutOfRange))
      << "in pieces, of which the first is wrong";
  ASSERT_TRUE(a->Detach().ok());
  EXPECT_EQ(a->SendFifo(to_b, "late").Wait().status.code(), C::kAborted) << "closed window";
  EndpointOptions nonsense = At(kHub0, 0, 0);
  EXPECT_EQ(client::Endpoint::Attach(nonsense).status().code(), C::kInvalidArgument);
}

constexpr char kAnyToken[] = "any";  // another one each time

// What a plain stream is told when it ends.
grpc::Status Say(const std::string& address, const std::vector<v1::FromProgram>& messages) {
  const auto stub = v1::Endpoint::NewStub(MakeChannel(address, {}, Role::kDaemon));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSoon);
  const auto stream = stub->Attach(&context);
  v1::FromHub answer;
  bool first = true;
  static int said = 0;
  for (v1::FromProgram message : messages) {
    if (message.has_hello() && message.hello().token() == kAnyToken) {
      message.mutable_hello()->set_token(fmt::format("{:016}", ++said));
    }
    if (!stream->Write(message)) break;
    // The window first, so that what follows is of a program that has one.
    while (std::exchange(first, false) && message.has_hello() && stream->Read(&answer) &&
           !answer.has_attached()) {
    }
  }
  while (stream->Read(&answer)) {
  }
  return stream->Finish();
}

TEST_F(EndpointTest, MalformedStreamsAreToldWhyAndTheDaemonGoesOn) {
  const std::string daemon = cluster_.daemon_address(0);
  v1::FromProgram good;
  good.mutable_hello()->set_version(kEndpointVersion);
  good.mutable_hello()->set_token(kAnyToken);
  good.mutable_hello()->set_hub(kHub0);
  good.mutable_hello()->set_job(1);
  good.mutable_hello()->set_mode(v1::ATTACH_MODE_SHARED);
  ASSERT_TRUE(cluster_.WaitUntilJoined());
  EXPECT_EQ(Say(daemon, {good}).error_code(), grpc::FAILED_PRECONDITION) << "nothing is applied";
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  const auto with = [&good](auto change) {
    v1::FromProgram message = good;
    change(*message.mutable_hello());
    return message;
  };
  using H = v1::EndpointHello;
  const std::pair<v1::FromProgram, grpc::StatusCode> hellos[] = {
      {{}, grpc::FAILED_PRECONDITION},
      {with([](H& h) { h.set_job(0); }), grpc::INVALID_ARGUMENT},
      {with([](H& h) { h.set_job(70'000); }), grpc::INVALID_ARGUMENT},
      {with([](H& h) { h.set_window(0xffff); }), grpc::INVALID_ARGUMENT},
      {with([](H& h) { h.set_mode(v1::ATTACH_MODE_UNSPECIFIED); }), grpc::INVALID_ARGUMENT},
      {with([](H& h) { h.set_name(std::string(65, 'x')); }), grpc::INVALID_ARGUMENT},
      {with([](H& h) { h.set_version(99); }), grpc::FAILED_PRECONDITION},
      {with([](H& h) { h.set_hub("sn0-d0-h9"); }), grpc::NOT_FOUND},
      {with([](H& h) { h.set_hub(kHub1); }), grpc::NOT_FOUND},
      {with([](H& h) { h.set_resume(true); }), grpc::NOT_FOUND},
      {with([](H& h) { h.set_token("short"); }), grpc::INVALID_ARGUMENT},
  };
  for (const auto& [hello, code] : hellos) {
    const grpc::Status status = Say(daemon, {hello});
    EXPECT_EQ(status.error_code(), code) << hello.ShortDebugString() << status.error_message();
    EXPECT_NE(status.error_message(), "");
  }
  v1::FromProgram out_of_turn;
  out_of_turn.set_sequence(1);
  out_of_turn.add_operations()->set_id(2);
  EXPECT_EQ(Say(daemon, {good, out_of_turn}).error_code(), grpc::INVALID_ARGUMENT);
  v1::FromProgram knows_too_much;
  knows_too_much.set_sequence(1);
  knows_too_much.set_waits_after(1'000);
  EXPECT_EQ(Say(daemon, {good, knows_too_much}).error_code(), grpc::INVALID_ARGUMENT);
  v1::FromProgram gap;
  gap.set_sequence(5);
  EXPECT_EQ(Say(daemon, {good, gap}).error_code(), grpc::DATA_LOSS);
  while (Windows(0).windows_size() > 0) WaitABit();
  EXPECT_TRUE(Attach(kHub0, 0));
}

TEST_F(EndpointTest, VirtualTimeWaitsForProgramsAndRunsAreRepeatable) {
  std::string digest;
  for (int round = 0; round < 2; ++round) {
    v1::ApplyRequest request = Traffic(1, 2, 0.01);
    request.set_hold(false);
    request.set_wait_endpoints(2);
    ASSERT_TRUE(cluster_.Apply(request).ok());
    EndpointOptions options = At(kHub0, 0);
    options.mode = Mode::kExclusive;
    auto first = std::async(std::launch::async, [&] { return Attach(options); });
    while (cluster_.Status().programs() < 1) WaitABit();
    EXPECT_EQ(cluster_.Status().virtual_time(), 0) << "one is missing";
    EndpointOptions others = At(kHub1, 0);
    others.mode = Mode::kExclusive;
    auto second = std::async(std::launch::async, [&] { return Attach(others); });
    const EndpointPtr a = first.get(), b = second.get();
    ASSERT_TRUE(a && b);
    auto echo = std::async(std::launch::async, [&] {
      for (int i = 0; i < 20; ++i) {
        const auto packet = b->Receive(kSoon);
        if (!packet.ok()) return packet.status();
        b->SendFifo(Of(*a), packet->data);
      }
      if (absl::Status status = b->WaitAll(kSoon); !status.ok())
        return status;  // detaching would end the last one
      return b->Detach();
    });
    for (std::uint64_t i = 0; i < 20; ++i) {
      a->SendFifo(Of(*b), Pattern(100, i));
      const auto back = a->Receive(kSoon);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(back->data, Pattern(100, i));
      if (i != 10) continue;
      // It owes its next call, though there is traffic.
      while (cluster_.Status().programs_owing() != 1) WaitABit();
      const Time stands = cluster_.Status().virtual_time();
      for (int look = 0; look < 50; ++look) EXPECT_EQ(cluster_.Status().virtual_time(), stands);
    }
    EXPECT_TRUE(a->Detach().ok());
    EXPECT_TRUE(echo.get().ok());
    const auto live = StopAndWait();
    ASSERT_TRUE(live.ok()) << live.status();
    const auto run = ReadJournalledRun(folder_, 0);
    ASSERT_TRUE(run.ok()) << run.status();
    // Stop and detaching are at times of the wall, so what the programs did is compared.
    std::string commands;
    for (const v1::JournalRecord& record : run->commands) {
      for (const auto& o : record.endpoint().operations()) {
        if (o.op() == v1::EndpointOperation::OP_RELEASE) continue;
        commands += fmt::format("{}: {} {} {}\n", record.at(), record.endpoint().node(), o.window(),
                                static_cast<int>(o.op()));
      }
    }
    if (round > 0) {
      EXPECT_EQ(commands, digest);
    }
    digest = commands;
    CheckReplays(live->result().digest());
  }
}

TEST_F(EndpointTest, StreamsThatBreakCostNothing) {
  PERCS_TRACE_SEED();
  ProxyOptions broken;
  broken.seed = Seed();
  broken.reset_within_bytes = 20'000;
  broken.resets_max = 15;
  Proxy proxy(broken);
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  EndpointOptions options = At(kHub0, 0);
  options.controller = "";
  options.daemon = proxy.AddressFor(cluster_.daemon_address(0));
  options.reattach = Duration(20'000);
  const EndpointPtr a = Attach(options), b = Attach(kHub1, 0);
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(b->Register(kThere, 4096).Wait().status.ok());
  ASSERT_TRUE(b->Write(kThere, Bytes(8, 0)).Wait().status.ok());
  constexpr std::uint64_t kRounds = 400;
  std::vector<client::Pending> adds;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    adds.push_back(a->Atomic(Of(*b), AddTo(kThere, 1)));
    a->SendFifo(Of(*b), Pattern(500, i));
    const auto packet = b->Receive(kSoon);
    ASSERT_TRUE(packet.ok()) << i << ": " << packet.status();
    EXPECT_EQ(packet->data, Pattern(500, i)) << i;
    b->SendFifo(Of(*a), Pattern(500, i + kRounds));
    const auto back = a->Receive(kSoon);
    ASSERT_TRUE(back.ok()) << i << ": " << back.status();
    EXPECT_EQ(back->data, Pattern(500, i + kRounds)) << i;
  }
  for (const client::Pending& add : adds) EXPECT_TRUE(add.Wait().status.ok());
  const Bytes sum = b->Read(kThere, 8).Wait().data;
  EXPECT_EQ(sum.at(0) + 256 * sum.at(1), static_cast<int>(kRounds)) << "each once";
  EXPECT_GT(proxy.resets(), 3);
  EXPECT_GE(a->reconnects(), static_cast<std::uint64_t>(proxy.resets()) / 2);
}

TEST_F(EndpointTest, CallbacksDeadlinesAndCancellation) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  const EndpointPtr a = Attach(kHub0, 0), b = Attach(kHub1, 0);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(b->Receive(Duration(50)).status().code(), absl::StatusCode::kDeadlineExceeded);
  std::promise<std::vector<std::string>> all;
  std::promise<absl::Status> in_callback;
  std::vector<std::string> heard;
  b->OnPacket([&](client::Packet packet) {
    heard.emplace_back(packet.data.begin(), packet.data.end());
    if (heard.size() == 1) in_callback.set_value(b->WaitNotification(Duration(10)).status());
    if (heard.size() == 3) all.set_value(heard);
  });
  std::promise<absl::Status> sent;
  a->SendFifo(Of(*b), "one").Then([&](const Completion& done) { sent.set_value(done.status); });
  EXPECT_TRUE(sent.get_future().get().ok());
  EXPECT_EQ(in_callback.get_future().get().code(), absl::StatusCode::kFailedPrecondition);
  a->SendFifo(Of(*b), "two");
  a->SendFifo(Of(*b), "three");
  auto future = all.get_future();
  ASSERT_EQ(future.wait_for(kSoon), std::future_status::ready);
  EXPECT_THAT(future.get(), ::testing::UnorderedElementsAre("one", "two", "three"));
  const client::Pending never = a->ReceiveIp({{a->context(), client::kFifoAddress, 2048}});
  EXPECT_EQ(never.Wait(Duration(50)).status.code(), absl::StatusCode::kDeadlineExceeded);
  never.Cancel();
  EXPECT_EQ(never.Wait().status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(a->WaitAll().ok());
}

TEST(EndpointSecurity, WindowsAreForTheRolesEndpointAndOperator) {
  const TemporaryFolder tls;
  const auto identities = IssueIdentities(std::chrono::hours(24), {});
  ASSERT_TRUE(identities.ok()) << identities.status();
  for (const auto& [role, identity] : *identities) {
    ASSERT_TRUE(WriteIdentity(tls.path() + "/" + RoleName(role), identity).ok());
  }
  ClusterOptions cluster_options;
  cluster_options.tcp = true;
  cluster_options.tls = tls.path();
  Cluster cluster(cluster_options);
  ASSERT_TRUE(cluster.Apply(TwoHubs()).ok());
  WindowId window = 0;
  for (const Role role : {Role::kEndpoint, Role::kOperator, Role::kViewer, Role::kDaemon}) {
    EndpointOptions options;
    options.controller = cluster.controller_address();
    options.tls = tls.path() + "/" + RoleName(role);
    options.hub = kHub1;
    options.window = window++;
    const auto endpoint = client::Endpoint::Attach(options);
    if (role == Role::kEndpoint || role == Role::kOperator) {
      EXPECT_TRUE(endpoint.ok()) << RoleName(role) << ": " << endpoint.status();
    } else {
      EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kPermissionDenied) << RoleName(role);
    }
  }
}

}  // namespace
}  // namespace percs::test
