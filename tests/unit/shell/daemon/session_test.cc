// Sessions that outlive their streams. Method: two sessions joined by a fake wire that is cut and
// mended at random moments; every message must arrive once and in order.
#include "daemon/stream/session.h"

#include <gtest/gtest.h>

#include <deque>

#include "emulator/base/random.h"
#include "percs/v1/link.pb.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

using FlitMessage = v1::LinkMessage;

// One side: what its stream has taken but not yet delivered.
struct Side : StreamPort<FlitMessage> {
  Session<FlitMessage, FlitMessage> session{1000};
  std::deque<FlitMessage> wire;
  bool writing = false;
  std::vector<std::uint64_t> got;

  void Write(const FlitMessage& message) override {
    EXPECT_FALSE(writing) << "a second write before the first completed";
    writing = true;
    wire.push_back(message);
  }
  void Cancel() override {}
  void Say(std::uint64_t what) {
    auto message = session.Prepare();
    message->set_batch(std::to_string(what));
    session.Send(std::move(message));
  }
  void Complete() {
    if (!writing) return;
    writing = false;
    session.Written();
  }
  void Hear(const FlitMessage& message) {
    const auto fresh = session.Receive(message);
    ASSERT_TRUE(fresh.ok()) << fresh.status();
    if (*fresh) got.push_back(std::stoull(message.batch()));
    session.AcknowledgeIfDue();
  }
};

void Deliver(Side* from, Side* to) {
  if (from->wire.empty()) return;
  const FlitMessage message = from->wire.front();
  from->wire.pop_front();
  to->Hear(message);
}

void Cut(Side* side) {
  side->session.Broken();
  side->wire.clear();
  side->writing = false;
  side->session.Closed();
}

void Mend(Side* a, Side* b) {
  const std::uint64_t a_has = a->session.received(), b_has = b->session.received();
  ASSERT_TRUE(a->session.Attach(a, b_has).ok());
  ASSERT_TRUE(b->session.Attach(b, a_has).ok());
}

TEST(SessionTest, EveryMessageArrivesOnceAndInOrderOverBrokenStreams) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "session");
  Side a, b;
  std::uint64_t said_a = 0, said_b = 0;
  Mend(&a, &b);
  for (int step = 0; step < 20'000; ++step) {
    switch (random.Below(9)) {
      case 0:
        if (a.session.sent() - b.session.received() < 500) a.Say(++said_a);
        break;
      case 1:
        if (random.Below(4) == 0) b.Say(++said_b);
        break;
      case 2:
      case 3:
        Deliver(&a, &b);
        break;
      case 4:
      case 5:
        Deliver(&b, &a);
        break;
      case 6:
        a.Complete();
        break;
      case 7:
        b.Complete();
        break;
      default:
        if (random.Below(100) != 0) break;
        Cut(&a);
        Cut(&b);
        Mend(&a, &b);
    }
  }
  for (int i = 0; i < 5000; ++i) {
    Deliver(&a, &b);
    Deliver(&b, &a);
    a.Complete();
    b.Complete();
  }
  ASSERT_EQ(b.got.size(), said_a);
  ASSERT_EQ(a.got.size(), said_b);
  for (std::size_t i = 0; i < b.got.size(); ++i) EXPECT_EQ(b.got[i], i + 1);
  for (std::size_t i = 0; i < a.got.size(); ++i) EXPECT_EQ(a.got[i], i + 1);
  EXPECT_GT(said_a, 100u);
  EXPECT_GT(said_b, 100u);
}

TEST(SessionTest, AGapIsAnError) {
  Side a;
  FlitMessage message;
  message.set_sequence(2);
  EXPECT_EQ(a.session.Receive(message).status().message(),
            "message 2 follows message 0: the messages between them are lost");
}

TEST(SessionTest, AcknowledgingWhatWasNeverSentIsAnError) {
  Side a;
  FlitMessage message;
  message.set_acknowledged(3);
  EXPECT_EQ(a.session.Receive(message).status().message(),
            "the peer acknowledges message 3, but only 0 were sent");
  EXPECT_FALSE(a.session.Attach(&a, 1).ok());
}

// What waits to be sent has its number already, but the peer means what it heard before.
TEST(SessionTest, APeerThatHasMoreThanARestoredSessionKnowsIsAnError) {
  Side a;
  a.session.Restore(0, 3, 3, {});
  a.Say(4);
  EXPECT_EQ(a.session.Attach(&a, 4),
            absl::DataLossError("the peer acknowledges message 4, but only 3 were sent"));
  EXPECT_EQ(a.session.Attach(&a, 3), absl::OkStatus());
}

TEST(SessionTest, ARestoredSessionWhoseMessagesMayAllHaveLeftTakesAPeerThatHasThem) {
  Side a;
  a.session.Restore(0, 3, 3, {});
  a.session.HoldBack();
  a.Say(4);  // what was decided after the state was saved is decided again
  a.session.LeftBefore();
  EXPECT_EQ(a.session.sent_since(), 1u);
  EXPECT_EQ(a.session.received_since(), 0u);
  EXPECT_EQ(a.session.Attach(&a, 4), absl::OkStatus());
  EXPECT_TRUE(a.session.all_acknowledged());
  a.session.Release();
  EXPECT_EQ(a.session.sent_since(), 0u);
}

// The last that any stream took is a part of the state: a message that none took is saved as one
// that may have left before the first stream takes it.
TEST(SessionTest, ARestoredSessionRefusesAPeerThatHasMoreThanAStreamTook) {
  Side a;
  std::vector<std::unique_ptr<FlitMessage>> waiting;
  for (std::uint64_t sequence : {3, 4}) {
    waiting.push_back(a.session.Prepare());
    waiting.back()->set_sequence(sequence);
  }
  a.session.Restore(0, 4, 3, std::move(waiting));
  a.session.HoldBack();
  EXPECT_EQ(a.session.left(), 3u);
  EXPECT_EQ(a.session.Attach(&a, 4),
            absl::DataLossError("the peer acknowledges message 4, but only 3 were sent"));
  EXPECT_FALSE(a.session.sends_held_back());
  ASSERT_EQ(a.session.Attach(&a, 2), absl::OkStatus());
  a.Complete();
  ASSERT_EQ(a.wire.size(), 1u) << "a stream took it before, and it is saved";
  EXPECT_TRUE(a.session.sends_held_back());
  EXPECT_EQ(a.session.left(), 4u);
  a.session.Release();
  ASSERT_EQ(a.wire.size(), 2u);
  EXPECT_EQ(a.wire.back().sequence(), 4u);
  Cut(&a);
  EXPECT_EQ(a.session.left(), 4u);
  EXPECT_EQ(a.session.Attach(&a, 4), absl::OkStatus());
}

TEST(SessionTest, APeerThatHasLessThanItHasAcknowledgedIsAnError) {
  Side a, b;
  Mend(&a, &b);
  a.Say(1);
  a.Complete();
  Deliver(&a, &b);
  b.Say(1);
  b.Complete();
  Deliver(&b, &a);
  ASSERT_TRUE(a.session.all_acknowledged());
  a.Say(2);
  Cut(&a);
  EXPECT_EQ(a.session.Attach(&a, 0),
            absl::DataLossError("the peer has 0 messages, but it had acknowledged 1"));
  EXPECT_EQ(a.session.Attach(&a, 1), absl::OkStatus());
}

TEST(SessionTest, SilentReceiversAcknowledgeNowAndThen) {
  Side a, b;
  Mend(&a, &b);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    a.Say(i);
    a.Complete();
    Deliver(&a, &b);
    b.Complete();
    Deliver(&b, &a);
  }
  EXPECT_TRUE(b.session.all_acknowledged());
  EXPECT_EQ(b.got.size(), 100u);
  EXPECT_GT(a.session.received() + b.session.received(), 99u);
}

TEST(SessionTest, WhatIsHeldBackLeavesWhenItIsReleased) {
  Side a, b;
  EXPECT_FALSE(a.session.attached());
  Mend(&a, &b);
  EXPECT_TRUE(a.session.attached());
  a.Say(1);
  EXPECT_FALSE(a.session.sends_held_back()) << "nothing is held back yet";
  a.Complete();
  a.wire.clear();
  a.session.HoldBack();
  a.Say(2);
  EXPECT_TRUE(a.session.sends_held_back());
  EXPECT_TRUE(a.wire.empty());
  a.session.Release();
  EXPECT_FALSE(a.session.sends_held_back());
  EXPECT_FALSE(a.session.changed());
  EXPECT_EQ(a.wire.size(), 1u);
  FlitMessage message;
  message.set_sequence(1);
  ASSERT_TRUE(a.session.Receive(message).ok());
  EXPECT_TRUE(a.session.changed());
  EXPECT_EQ(a.session.keepable(), 0u) << "the other side keeps what is not saved here";
  a.session.Release();
  EXPECT_EQ(a.session.keepable(), 1u);
  Cut(&a);
  EXPECT_FALSE(a.session.attached());
}

// Numbers of messages have 64 bits.
TEST(SessionTest, ASessionOfManyMessagesGoesOnOverAnotherStream) {
  constexpr std::uint64_t kMany = 70'000;
  Side a, b;
  Mend(&a, &b);
  for (std::uint64_t i = 1; i <= kMany; ++i) {
    a.Say(i);
    a.Complete();
    Deliver(&a, &b);
    b.Complete();
    Deliver(&b, &a);
    if (i != kMany / 2 && i != kMany - 1) continue;
    Cut(&a), Cut(&b);
    Mend(&a, &b);
  }
  EXPECT_EQ(a.session.sent(), kMany);
  EXPECT_EQ(b.session.received(), kMany);
  ASSERT_EQ(b.got.size(), kMany);
  EXPECT_EQ(b.got.back(), kMany);
  EXPECT_LT(a.session.unacknowledged(), 16u);
}

}  // namespace
}  // namespace percs
