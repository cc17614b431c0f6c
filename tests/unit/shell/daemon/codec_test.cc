// Batches of the Link stream. Method: random outboxes survive a round trip; every prefix and every
// single-bit change of a valid batch is decoded without harm; named errors for named faults.
#include "daemon/link/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "emulator/base/random.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

absl::Span<const std::uint8_t> Span(const std::string& s) {
  return absl::MakeConstSpan(reinterpret_cast<const std::uint8_t*>(s.data()), s.size());
}

PacketHeader RandomHeader(RandomStream* random) {
  PacketHeader h;
  h.source = random->Below(1000);
  h.destination = random->Below(1000);
  h.source_window = static_cast<WindowId>(random->Below(512));
  h.destination_window = static_cast<WindowId>(random->Below(512));
  h.bytes = static_cast<std::uint16_t>(random->Below(kPacketBytesMax + 1));
  h.flits = static_cast<std::uint8_t>(FlitsFor(h.bytes));
  h.kind = static_cast<PacketKind>(random->Below(3));
  h.position = static_cast<Position>(random->Below(6)) + kInjected;
  h.hops = static_cast<std::uint8_t>(random->Below(5));
  h.middle = static_cast<std::uint16_t>(random->Below(513));
  h.epoch = random->Below(9);
  h.sequence = random->Next();
  h.created = static_cast<Time>(random->Next() >> 20);
  h.path = random->Next();
  if (h.kind != PacketKind::kRaw) {
    h.flow_sequence = random->Below(1u << 30);
    h.flow_base = random->Below(1u << 30);
    h.message = random->Below(1u << 20);
    h.tag = random->Below(100);
    h.message_bytes = random->Next();
    h.offset = random->Next();
    h.message_created = static_cast<Time>(random->Next() >> 20);
  }
  return h;
}

FlitRun MakeRun(const PacketHeader& h, int first, int count, Time arrival) {
  FlitRun run;
  run.arrival = arrival;
  run.spacing = 5334;
  run.node = 7;
  run.port = 12;
  run.vc = 1;
  run.first = static_cast<std::uint8_t>(first);
  run.count = static_cast<std::uint8_t>(count);
  run.tail = first + count == h.flits;
  run.generation = 3;
  run.header = h;
  return run;
}

bool SameHeader(const PacketHeader& a, const PacketHeader& b) {
  return a.source == b.source && a.destination == b.destination &&
         a.source_window == b.source_window && a.destination_window == b.destination_window &&
         a.bytes == b.bytes && a.flits == b.flits && a.kind == b.kind && a.mode == b.mode &&
         a.position == b.position && a.hops == b.hops && a.middle == b.middle &&
         a.epoch == b.epoch && a.sequence == b.sequence && a.created == b.created &&
         a.path == b.path && a.flow_sequence == b.flow_sequence && a.flow_base == b.flow_base &&
         a.message == b.message && a.tag == b.tag && a.message_bytes == b.message_bytes &&
         a.offset == b.offset && a.message_created == b.message_created;
}

TEST(CodecTest, RandomHeadersComeBackAsTheyWere) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "codec");
  Outbox sent;
  for (int i = 0; i < 500; ++i) {
    const PacketHeader h = RandomHeader(&random);
    sent.flits.push_back(MakeRun(h, 0, h.flits, static_cast<Time>(random.Next() >> 20)));
  }
  std::string bytes;
  EncodeOutbox(sent, &bytes);
  Outbox got;
  OutboxDecoder decoder(10);
  ASSERT_TRUE(decoder.Decode(Span(bytes), &got).ok());
  ASSERT_EQ(got.flits.size(), sent.flits.size());
  for (std::size_t i = 0; i < got.flits.size(); ++i) {
    const FlitRun &a = sent.flits[i], &b = got.flits[i];
    EXPECT_TRUE(SameHeader(a.header, b.header)) << i;
    EXPECT_EQ(a.arrival, b.arrival);
    EXPECT_EQ(a.spacing, b.spacing);
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.tail, b.tail);
    EXPECT_EQ(a.generation, b.generation);
    EXPECT_EQ(b.node, 7u);
    EXPECT_EQ(b.port, 12);
    EXPECT_EQ(b.vc, 1);
  }
}

TEST(CodecTest, CreditsMarksAndControlItemsComeBackAsTheyWere) {
  Outbox sent;
  sent.credits.push_back({123456, 5334, 4, 46, 1, 16, 2});
  sent.marks.push_back({99999, 5, 3, 2, 17, 1ull << 60, 4});
  ControlItem item;
  item.kind = ControlItem::Kind::kAlert;
  item.target = kManagerNode;
  item.source = 31;
  item.port = 9;
  item.up = true;
  item.epoch = 6;
  item.arrival = 1'000'000;
  item.raised = 50;
  item.hash = 0x8000000000000001ull;
  sent.control.push_back(item);
  std::string bytes;
  EncodeOutbox(sent, &bytes);
  Outbox got;
  OutboxDecoder decoder(10);
  ASSERT_TRUE(decoder.Decode(Span(bytes), &got).ok());
  ASSERT_EQ(got.credits.size(), 1u);
  EXPECT_EQ(got.credits[0].arrival, 123456);
  EXPECT_EQ(got.credits[0].count, 16);
  EXPECT_EQ(got.credits[0].port, 46);
  EXPECT_EQ(got.credits[0].generation, 2u);
  ASSERT_EQ(got.marks.size(), 1u);
  EXPECT_EQ(got.marks[0].sequence, 1ull << 60);
  EXPECT_EQ(got.marks[0].source, 17u);
  ASSERT_EQ(got.control.size(), 1u);
  EXPECT_EQ(got.control[0].target, kManagerNode);
  EXPECT_EQ(got.control[0].raised, 50);
  EXPECT_EQ(got.control[0].hash, item.hash);
  EXPECT_TRUE(got.control[0].up);
}

TEST(CodecTest, TreesComeBackAsTheyWereAndAPlanIsWrittenOnce) {
  auto plan = std::make_shared<TreePlan>();
  plan->id = 9;
  plan->generation = 3;
  plan->order = OperandOrder::kArrival;
  plan->vertices = {{4, kNoVertex, false}, {4, 0, true}, {17, 0, true}};
  Outbox sent;
  for (const NodeId hub : {4u, 17u}) {
    ControlItem item;
    item.kind = ControlItem::Kind::kTreeSet;
    item.source = kManagerNode;
    item.target = hub;
    item.tree = 9;
    item.problem = {TreeProblem::Code::kSizes, CauOperation::kReduce, 7, 4, 17};
    item.plan = plan;
    item.arrival = 5'000;
    sent.control.push_back(item);
  }
  std::string bytes;
  EncodeOutbox(sent, &bytes);
  Outbox got;
  OutboxDecoder decoder(10);
  ASSERT_TRUE(decoder.Decode(Span(bytes), &got).ok());
  ASSERT_EQ(got.control.size(), 2u);
  EXPECT_EQ(got.control[0].tree, 9);
  EXPECT_EQ(got.control[1].problem.code, TreeProblem::Code::kSizes);
  EXPECT_EQ(got.control[1].problem.sequence, 7u);
  EXPECT_EQ(got.control[1].problem.b, 17u);
  ASSERT_TRUE(got.control[0].plan);
  EXPECT_EQ(got.control[0].plan->vertices, plan->vertices);
  EXPECT_EQ(got.control[0].plan->generation, 3u);
  EXPECT_EQ(got.control[0].plan->order, OperandOrder::kArrival);
  EXPECT_EQ(got.control[0].plan, got.control[1].plan);
}

TEST(CodecTest, RunsOfOnePacketShareOnePayloadBlock) {
  PacketHeader h;
  h.source = 3;
  h.sequence = 44;
  h.bytes = 2000;
  h.flits = 16;
  h.payload = PayloadRef::Make();
  for (int i = 0; i < h.bytes; ++i) h.payload.bytes()[i] = static_cast<std::uint8_t>(i * 7);
  OutboxDecoder decoder(10);
  PayloadRef payload;
  for (const auto& [first, count] : {std::pair{0, 5}, {5, 1}, {6, 10}}) {
    Outbox sent, got;
    sent.flits.push_back(MakeRun(h, first, count, 1000));
    if (first > 0) sent.flits[0].header.bytes = 0;  // only a head is sure to know it
    std::string bytes;
    EncodeOutbox(sent, &bytes);
    EXPECT_LT(bytes.size(), static_cast<std::size_t>(count * kFlitBytes + 64));
    ASSERT_TRUE(decoder.Decode(Span(bytes), &got).ok());
    payload = got.flits[0].header.payload;
    ASSERT_TRUE(payload);
  }
  EXPECT_EQ(std::memcmp(payload.bytes(), h.payload.bytes(), h.bytes), 0);
  EXPECT_EQ(decoder.open_packets(), 0u);
}

TEST(CodecTest, FlitsWithoutTheirHeadAreRefused) {
  PacketHeader h;
  h.source = 3;
  h.sequence = 44;
  h.bytes = 2048;
  h.flits = 16;
  h.payload = PayloadRef::Make();
  std::memset(h.payload.bytes(), 0, kPacketBytesMax);
  Outbox sent, got;
  sent.flits.push_back(MakeRun(h, 4, 2, 1000));
  std::string bytes;
  EncodeOutbox(sent, &bytes);
  OutboxDecoder decoder(10);
  const absl::Status status = decoder.Decode(Span(bytes), &got);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("flits 4 on of packet (3, 44) whose head did not come this way"));
}

TEST(CodecTest, MoreOpenPacketsThanVcsAreRefused) {
  PacketHeader h;
  h.bytes = 2048;
  h.flits = 16;
  h.payload = PayloadRef::Make();
  std::memset(h.payload.bytes(), 0, kPacketBytesMax);
  Outbox sent, got;
  for (int vc = 0; vc < 3; ++vc) {
    sent.flits.push_back(MakeRun(h, 0, 2, 1000));
    sent.flits.back().vc = static_cast<VcId>(vc);
  }
  std::string bytes;
  EncodeOutbox(sent, &bytes);
  OutboxDecoder decoder(2);
  EXPECT_THAT(std::string(decoder.Decode(Span(bytes), &got).message()),
              HasSubstr("more than 2 packets are open at once"));
}

std::string MixedBatch(RandomStream* random) {
  Outbox sent;
  for (int i = 0; i < 3; ++i) {
    PacketHeader h = RandomHeader(random);
    h.bytes = 300;
    h.flits = 3;
    if (i == 1) {
      h.payload = PayloadRef::Make();
      std::memset(h.payload.bytes(), i, kPacketBytesMax);
    }
    sent.flits.push_back(MakeRun(h, 0, 3, 1000 * i));
  }
  sent.credits.push_back({123456, 5334, 4, 46, 1, 16, 2});
  sent.marks.push_back({99999, 5, 3, 2, 17, 5, 4});
  sent.control.emplace_back();
  std::string bytes;
  EncodeOutbox(sent, &bytes);
  return bytes;
}

TEST(CodecTest, EveryPrefixOfABatchIsRefused) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "prefix");
  const std::string bytes = MixedBatch(&random);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    Outbox got;
    OutboxDecoder decoder(10);
    const absl::Status status = decoder.Decode(Span(bytes.substr(0, n)), &got);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << n;
  }
  Outbox got;
  OutboxDecoder decoder(10);
  EXPECT_THAT(std::string(decoder.Decode(Span(bytes + "x"), &got).message()),
              HasSubstr("1 bytes too many"));
}

TEST(CodecTest, ChangedBytesAreDecodedOrRefusedButDoNoHarm) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "flip");
  const std::string bytes = MixedBatch(&random);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    Outbox got;
    OutboxDecoder decoder(10);
    if (decoder.Decode(Span(changed), &got).ok()) {
      for (const FlitRun& run : got.flits) {
        EXPECT_LT(run.port, kPorts);
        EXPECT_LE(run.vc, kServiceVc);
        EXPECT_GE(run.arrival, 0);
      }
    }
  }
}

TEST(CodecTest, ACountThatCannotFitIsRefusedBeforeMemoryIsTaken) {
  const std::string bytes("\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00\x00", 13);
  Outbox got;
  OutboxDecoder decoder(10);
  EXPECT_THAT(std::string(decoder.Decode(Span(bytes), &got).message()),
              HasSubstr("flit runs do not fit into the 3 bytes left"));
  EXPECT_EQ(got.flits.capacity(), 0u);
}

}  // namespace
}  // namespace percs
