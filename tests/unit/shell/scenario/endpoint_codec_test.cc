// Operations and events of windows on the wire. Method: random ones there and back; numbers that no
// field holds; every status has words of its own.
#include "proto/window/endpoint_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "emulator/base/random.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

std::vector<std::uint8_t> RandomBytes(RandomStream& random, std::size_t most) {
  std::vector<std::uint8_t> bytes(random.Below(most + 1));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.Below(256));
  return bytes;
}

WindowOperation RandomOperation(RandomStream& random) {
  WindowOperation o;
  o.op = static_cast<WindowOp>(random.Below(kWindowOps));
  o.id = random.Next();
  o.window = static_cast<WindowId>(random.Below(0x10000));
  o.job = static_cast<JobKey>(random.Below(0x10000));
  o.context = static_cast<ContextId>(random.Below(0x10000));
  o.address = random.Next();
  o.bytes = random.Below(kOperationBytesMax + 1);
  o.writable = random.Below(2) == 0;
  o.device = static_cast<int>(random.Below(5)) - 1;
  o.device_offset = random.Next();
  if (o.op == WindowOp::kConfigure) {
    o.send_fifo = {random.Next(), static_cast<std::uint32_t>(random.Below(1000))};
    o.receive_fifo = {random.Next(), static_cast<std::uint32_t>(random.Below(1000))};
  }
  o.cached = random.Below(2) == 0;
  o.data = RandomBytes(random, 3000);
  for (std::uint64_t i = random.Below(4); i > 0; --i) {
    o.segments.push_back({static_cast<ContextId>(random.Below(0x10000)), random.Next(),
                          static_cast<std::uint32_t>(random.Below(1 << 20))});
  }
  o.count = static_cast<std::uint32_t>(random.Below(1000));
  o.node = static_cast<NodeId>(random.Below(1 << 20));
  o.peer_window = static_cast<WindowId>(random.Below(0x10000));
  o.peer_context = static_cast<ContextId>(random.Below(0x10000));
  o.peer_address = random.Next();
  o.to_fifo = random.Below(2) == 0;
  o.notify = random.Below(2) == 0;
  for (std::uint64_t i = random.Below(6); i > 0; --i) {
    AtomicUpdate& update = o.updates.emplace_back();
    update.op = static_cast<AtomicOp>(random.Below(kAtomicOps));
    update.size = static_cast<std::uint8_t>(random.Below(256));
    update.fetch = random.Below(2) == 0;
    update.address = random.Next();
    update.operand = random.Next();
    update.compare = random.Next();
  }
  o.fence_writes = random.Below(2) == 0;
  o.fence_reads = random.Below(2) == 0;
  return o;
}

TEST(EndpointCodec, OperationsComeBackAsTheyWere) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "endpoint_codec");
  for (int i = 0; i < 2000; ++i) {
    const WindowOperation operation = RandomOperation(random);
    v1::EndpointOperation message;
    OperationToProto(operation, &message);
    const auto back = OperationFromProto(message);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, operation) << message.ShortDebugString();
  }
}

TEST(EndpointCodec, NumbersThatNoFieldHoldsAreNamed) {
  v1::EndpointOperation good;
  WindowOperation fence;
  fence.op = WindowOp::kFence;
  OperationToProto(fence, &good);
  ASSERT_TRUE(OperationFromProto(good).ok());
  const auto wrong = [&](auto change) {
    v1::EndpointOperation message = good;
    change(message);
    return OperationFromProto(message).status();
  };
  using M = v1::EndpointOperation;
  const std::pair<absl::Status, const char*> cases[] = {
      {wrong([](M& m) { m.set_op(M::OP_UNSPECIFIED); }), "op"},
      {wrong([](M& m) { m.set_op(static_cast<M::Op>(19)); }), "op"},
      {wrong([](M& m) { m.set_window(0x10000); }), "window"},
      {wrong([](M& m) { m.set_job(0x10000); }), "job"},
      {wrong([](M& m) { m.set_context(0x10000); }), "context"},
      {wrong([](M& m) { m.set_peer_window(0x10000); }), "peer_window"},
      {wrong([](M& m) { m.set_peer_context(0x10000); }), "peer_context"},
      {wrong([](M& m) { m.add_segments()->set_context(0x10000); }), "segments.context"},
      {wrong([](M& m) { m.add_updates()->set_size(8); }), "updates.operation"},
      {wrong([](M& m) {
         m.add_updates()->set_operation(v1::ATOMIC_OPERATION_ADD);
         m.mutable_updates(0)->set_size(256);
       }),
       "updates.size"},
  };
  for (const auto& [status, field] : cases) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
  const absl::Status large =
      wrong([](M& m) { m.set_data(std::string(kOperationBytesMax + 1, 'x')); });
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted) << large;
  const absl::Status greedy = wrong([](M& m) {
    m.set_op(M::OP_READ_MEMORY);
    m.set_bytes(kOperationBytesMax + 1);
  });
  EXPECT_EQ(greedy.code(), absl::StatusCode::kResourceExhausted) << greedy;
}

TEST(EndpointCodec, EventsComeBackAsTheyWere) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "endpoint_codec_events");
  for (int i = 0; i < 500; ++i) {
    WindowEvent e;
    e.kind = static_cast<WindowEvent::Kind>(random.Below(3));
    e.at = static_cast<Time>(random.Below(1'000'000'000));
    e.id = random.Next();
    e.op = static_cast<WindowOp>(random.Below(kWindowOps));
    e.status = static_cast<WindowStatus>(random.Below(kWindowStatuses));
    e.peer = static_cast<NodeId>(random.Below(1 << 20));
    e.peer_window = static_cast<WindowId>(random.Below(0x10000));
    e.address = random.Next();
    e.bytes = random.Next();
    e.offset = random.Next();
    e.data = RandomBytes(random, 3000);
    for (std::uint64_t v = random.Below(5); v > 0; --v) e.values.push_back(random.Next());
    v1::EndpointEvent message;
    EventToProto(e, &message);
    const auto back = EventFromProto(message);
    ASSERT_TRUE(back.ok()) << back.status();
    v1::EndpointEvent again;
    EventToProto(*back, &again);
    EXPECT_EQ(again.SerializeAsString(), message.SerializeAsString());
    EXPECT_EQ(back->data, e.data);
    EXPECT_EQ(back->values, e.values);
  }
}

TEST(EndpointCodec, EveryStatusTellsWhatWouldBeRight) {
  EXPECT_TRUE(ToStatus(WindowOp::kFence, WindowStatus::kOk).ok());
  std::set<std::string> texts;
  for (int i = 1; i < kWindowStatuses; ++i) {
    const auto window_status = static_cast<WindowStatus>(i);
    const absl::Status status = ToStatus(WindowOp::kRdmaWrite, window_status);
    EXPECT_FALSE(status.ok()) << WindowStatusName(window_status);
    EXPECT_NE(status.code(), absl::StatusCode::kUnknown) << WindowStatusName(window_status);
    const std::string text(status.message());
    EXPECT_EQ(text.rfind(std::string("rdma_write: ") + WindowStatusName(window_status), 0), 0u)
        << text;
    EXPECT_TRUE(texts.insert(text).second) << text;
  }
}

TEST(EndpointCodec, LongDataIsKeptBesideTheJournalOnce) {
  v1::EndpointSubmission submission;
  submission.add_operations()->set_data("short");
  EXPECT_FALSE(HasLongData(submission));
  const std::string data(kJournalledBytesMax + 1, 'x');
  submission.add_operations()->set_data(data);
  submission.add_operations()->set_data(data);
  EXPECT_TRUE(HasLongData(submission));
  const v1::EndpointSubmission before = submission;
  std::map<std::uint64_t, std::string> payloads;
  const auto store = [&](const std::string& bytes) -> absl::StatusOr<std::uint64_t> {
    payloads[77] = bytes;
    return 77;
  };
  ASSERT_TRUE(StoreData(&submission, store).ok());
  EXPECT_EQ(payloads.size(), 1u);
  EXPECT_LT(submission.ByteSizeLong(), 200u);
  const auto find = [&](std::uint64_t name) -> absl::StatusOr<std::string> {
    return payloads.at(name);
  };
  ASSERT_TRUE(FindData(&submission, find).ok());
  EXPECT_EQ(submission.SerializeAsString(), before.SerializeAsString());
  submission.mutable_operations(1)->set_data_hash(5);
  const auto nothing = [](std::uint64_t) -> absl::StatusOr<std::string> {
    return absl::NotFoundError("gone");
  };
  EXPECT_EQ(FindData(&submission, nothing).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace percs
