// What programs at windows may cost a percsd and each other: bytes, messages, attempts. Method: a
// fabric in this process, the client library, and plain gRPC streams that do what the library would
// not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "fmt/format.h"
#include "proto/window/endpoint_codec.h"
#include "tests/distributed/endpoint_fixture.h"

namespace percs::test {
namespace {

using ::testing::HasSubstr;

// A program without the library, in a window of its own.
class PlainProgram {
 public:
  PlainProgram(const std::string& daemon, const std::string& hub, WindowId window)
      : stub_(v1::Endpoint::NewStub(MakeChannel(daemon, {}, Role::kDaemon))),
        stream_(stub_->Attach(&context_)) {
    v1::FromProgram message;
    v1::EndpointHello* hello = message.mutable_hello();
    hello->set_version(kEndpointVersion);
    hello->set_token(fmt::format("plain {:010}", window));
    hello->set_hub(hub);
    hello->set_job(1);
    hello->set_window(window);
    hello->set_mode(v1::ATTACH_MODE_SHARED);
    stream_->Write(message);
    v1::FromHub answer;
    while (stream_->Read(&answer) && !answer.has_attached()) {
    }
    EXPECT_TRUE(answer.has_attached());
  }
  v1::EndpointOperation* Add(v1::FromProgram* message, WindowOp op) {
    WindowOperation operation;
    operation.op = op;
    operation.id = ++last_;
    v1::EndpointOperation* added = message->add_operations();
    OperationToProto(operation, added);
    return added;
  }
  bool Say(v1::FromProgram message) {
    message.set_sequence(++sequence_);
    return stream_->Write(message);
  }
  // Until so many operations have ended, or nothing comes any more.
  std::size_t Ended(std::size_t wanted) {
    std::size_t ended = 0;
    v1::FromHub answer;
    while (ended < wanted && stream_->Read(&answer)) {
      for (const v1::EndpointEvent& event : answer.events())
        ended += event.kind() == v1::EndpointEvent::KIND_COMPLETION;
      ended += static_cast<std::size_t>(answer.refusals_size());
    }
    return ended;
  }
  grpc::Status Finish() {
    v1::FromHub answer;
    while (stream_->Read(&answer)) {
    }
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::Endpoint::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::FromProgram, v1::FromHub>> stream_;
  std::uint64_t last_ = 0, sequence_ = 0;
};

using EndpointLimits = EndpointTest;

TEST_F(EndpointLimits, MoreThanMayBeUnderWayIsWrittenAndReadAllTheSame) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  const EndpointPtr a = Attach(kHub0, 0);
  ASSERT_TRUE(a);
  constexpr std::size_t kSize = (64 << 20) + 12'345;
  const Bytes data = Pattern(kSize, 1);
  ASSERT_TRUE(a->Register(kHere, kSize).Wait().status.ok());
  const Completion written = a->Write(kHere, data).Wait(Duration(60'000));
  ASSERT_TRUE(written.status.ok()) << written.status;
  const Completion read = a->Read(kHere, kSize).Wait(Duration(60'000));
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_TRUE(read.data == data);
  EXPECT_TRUE(a->status().ok()) << a->status();
}

TEST_F(EndpointLimits, WhatAProgramSaysOfTheJournalIsNotInIt) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  PlainProgram program(cluster_.daemon_address(0), kHub0, 4);
  v1::FromProgram message;
  v1::EndpointOperation* operation = program.Add(&message, WindowOp::kRegister);
  operation->set_address(kHere);
  operation->set_bytes(4096);
  operation->set_data_hash(1);  // there is no such payload
  ASSERT_TRUE(program.Say(message));
  EXPECT_EQ(program.Ended(1), 1u);
  const auto live = StopAndWait();
  ASSERT_TRUE(live.ok()) << live.status();
  CheckReplays(live->result().digest());
}

TEST_F(EndpointLimits, AHoldEndsHoweverMuchOthersAskForMeanwhile) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  PlainProgram busy(cluster_.daemon_address(0), kHub0, 4);
  EndpointOptions options = At(kHub0, 5);
  options.mode = Mode::kExclusive;
  const EndpointPtr slow = Attach(options);
  ASSERT_TRUE(slow);
  while (cluster_.Status().programs_owing() != 1) WaitABit();
  constexpr std::size_t kMessages =
      1500;  // more than a daemon keeps for a controller that does not acknowledge
  for (std::size_t i = 0; i < kMessages; ++i) {
    v1::FromProgram message;
    busy.Add(&message, WindowOp::kReadMemory)->set_bytes(1);
    ASSERT_TRUE(busy.Say(message));
  }
  auto ended = std::async(std::launch::async, [&] { return busy.Ended(kMessages); });
  EXPECT_EQ(slow->Receive(Duration(200)).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ended.get(), kMessages);
}

TEST_F(EndpointLimits, AttemptsThatWereGivenUpDoNotCountAsPrograms) {
  v1::ApplyRequest request = TwoHubs();
  request.set_wait_endpoints(2);
  ASSERT_TRUE(cluster_.Apply(request).ok());
  EndpointOptions hasty = At(kHub0, 7);
  hasty.deadline = Duration(300);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client::Endpoint::Attach(hasty).status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(cluster_.Status().virtual_time(), 0);
  auto first = std::async(std::launch::async, [this] { return Attach(kHub0, 0); });
  auto second = std::async(std::launch::async, [this] { return Attach(kHub1, 0); });
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
}

TEST_F(EndpointLimits, AMessageHasOnlySoManyOperationsAndAnOperationOnlySoManyParts) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  PlainProgram many(cluster_.daemon_address(0), kHub0, 4);
  v1::FromProgram message;
  for (std::size_t i = 0; i < kProgramOperationsMax + 1; ++i) many.Add(&message, WindowOp::kFence);
  many.Say(message);
  const grpc::Status ended = many.Finish();
  EXPECT_EQ(ended.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(ended.error_message(), HasSubstr("4097 operations in one message"));
  const EndpointPtr a = Attach(kHub0, 0);
  ASSERT_TRUE(a);
  const Completion parts = a->ReceiveIp(std::vector<client::MemorySegment>(1000)).Wait();
  EXPECT_EQ(parts.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(parts.status.message()),
              HasSubstr("segments has 1000 entries in one operation"));
}

TEST_F(EndpointLimits, WhoWaitsMayDoSoLongerThanTheEndpointIsThere) {
  ASSERT_TRUE(cluster_.Apply(TwoHubs()).ok());
  EndpointPtr a = Attach(kHub0, 0);
  ASSERT_TRUE(a);
  const client::Pending never = a->ReceiveIp({{a->context(), client::kFifoAddress, 2048}});
  EXPECT_EQ(never.Wait(Duration(20)).status.code(), absl::StatusCode::kDeadlineExceeded);
  std::vector<std::future<Completion>> waiting;
  for (int i = 0; i < 4; ++i)
    waiting.push_back(std::async(std::launch::async, [never] { return never.Wait(kSoon); }));
  std::this_thread::sleep_for(Duration(50));
  a.reset();
  for (auto& one : waiting) EXPECT_EQ(one.get().status.code(), absl::StatusCode::kAborted);
  never.Cancel();
  EXPECT_TRUE(never.done());
}

}  // namespace
}  // namespace percs::test
