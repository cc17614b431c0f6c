// Method: loops whose time a formula gives, and the same loop with one mechanism's parameter
// changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/experiments/collective_measure.h"

namespace percs {
namespace {

CollectiveWorkload Loop(Operation operation, const char* algorithm, std::uint32_t nodes,
                        std::uint32_t tasks, std::uint64_t bytes) {
  CollectiveWorkload w;
  w.operation = operation;
  w.algorithm = algorithm;
  w.placement = {nodes, tasks, 2, ThreadMapping::kCore};
  w.bytes = bytes;
  w.verified = false;
  w.warm_up = 4;
  w.iterations = 8;
  return w;
}

double Microseconds(const CollectiveWorkload& w) {
  const auto result = MeasureCollective(w);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->collective.Nanoseconds() / 1000 : 0;
}

constexpr std::uint64_t kKib = 1024, kMib = 1024 * 1024;

// One task streams to another one, message after message.
double MicrosecondsOfAMib(HostParameters host) {
  const auto time = [&host](std::uint64_t bytes) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, "p2p:binomial", 2, 1, bytes);
    w.host = host;
    return Microseconds(w);
  };
  return time(2 * kMib) - time(kMib);
}

TEST(TransportTest, EachStreamsAtItsRate) {
  HostParameters fifo;
  fifo.eager_limit = fifo.leader_eager_limit;
  EXPECT_NEAR(MicrosecondsOfAMib(fifo), 1.024 * 335, 8);
  fifo.fifo_per_kib *= 2;
  EXPECT_NEAR(MicrosecondsOfAMib(fifo), 2.048 * 335, 8);
  HostParameters rdma;
  rdma.rdma_per_kib = 400 * kNanosecond;
  EXPECT_NEAR(MicrosecondsOfAMib(rdma), 1.024 * 400, 8);
}

// Copies into the FIFO and out of it run beside the stream, but for the first segment and the last.
TEST(TransportTest, CopiesThroughFifosOverlapTheStream) {
  CollectiveWorkload w = Loop(Operation::kBroadcast, "p2p:binomial", 2, 1, kMib);
  w.host.eager_limit = kMib;
  const double usual = Microseconds(w);
  w.host.write_per_kib *= 2;
  const double slow = Microseconds(w);
  EXPECT_GT(slow, usual);
  EXPECT_LT(slow, usual + 0.02 * 1024);            // of 295 us that the two copies take longer
  w.host.write_per_kib = 2 * w.host.fifo_per_kib;  // now they are the bottleneck
  EXPECT_GT(Microseconds(w), 1.9 * usual);
}

TEST(TransportTest, OnlyRdmaWaitsForRegistrations) {
  const auto time = [](std::uint64_t leader_eager_limit, Time registration) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, "hybrid:p2p", 4, 4, 64 * kKib);
    w.host.leader_eager_limit = leader_eager_limit;
    w.host.network_registration = registration;
    return Microseconds(w);
  };
  const Time twenty = 20 * kMicrosecond;
  EXPECT_EQ(time(kMib, twenty), time(kMib, 0));
  EXPECT_GT(time(0, twenty), time(0, 0) + 40);
}

// 31 readers ask for more than the node's memory does: then its rate is theirs together.
TEST(MemoryServerTest, ReadersOfABufferShareTheNodesMemory) {
  constexpr double kBytes = 200000;
  const auto time = [](Time node_per_kib, std::uint32_t tasks) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, "shm:one-buffer", 1, tasks, 200000);
    w.host.node_per_kib = node_per_kib;
    return Microseconds(w);
  };
  const double together = 31 * kBytes / 1024 * 0.020;
  EXPECT_NEAR(time(40 * kNanosecond, 32) - time(20 * kNanosecond, 32), together, 0.03 * together);
  EXPECT_EQ(time(40 * kNanosecond, 4), time(0, 4));  // few ask for less than there is
}

// A core's tasks read through one cache: two on each of 16 cores ask for what 16 alone do.
TEST(MemoryServerTest, TasksOfACoreFetchABufferOnce) {
  CollectiveWorkload w = Loop(Operation::kBroadcast, "shm:one-buffer", 1, 32, 200000);
  w.host.node_per_kib = 40 * kNanosecond;
  w.host.smt = 0;
  const double spread = Microseconds(w);
  w.placement.mapping = ThreadMapping::kCpu;
  EXPECT_LT(Microseconds(w), 0.75 * spread);
}

TEST(SmtTest, SoftwareSlowsOnACoreThatOtherTasksShare) {
  const auto time = [](std::uint32_t tasks, int smt) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, "p2p", 1, tasks, 8);
    w.host.smt = smt;
    return Microseconds(w);
  };
  EXPECT_EQ(time(32, 0), time(32, 100));  // one task per core
  EXPECT_GT(time(64, 100), 1.4 * time(64, 0));
}

// A broadcast of one message: the other task of the core polls while one copies.
TEST(SmtTest, ACopyIsSlowerOnlyBesideABusyTask) {
  const auto time = [](const char* algorithm, std::uint32_t tasks, int smt) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, algorithm, 1, tasks, 200000);
    w.placement.mapping = ThreadMapping::kCpu;
    w.host.collective_entry = w.host.local_send = w.host.local_receive = kNanosecond;
    w.host.smt = smt;
    return Microseconds(w);
  };
  EXPECT_NEAR(time("p2p:binomial", 2, 100), time("p2p:binomial", 2, 0), 1);
  EXPECT_GT(time("shm:one-buffer", 4, 100), 1.1 * time("shm:one-buffer", 4, 0));
}

// The window takes the next packet when the neighbours of its CAU have acknowledged the last one.
TEST(CauCreditTest, ABroadcastWithOneRootIsPacedByTheRoundTripOfATreeLink) {
  const auto paced = [](Time cau_send) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, "cau", 8, 1, 8);
    w.iterations = 100;
    w.host.cau_send = cau_send;
    return Microseconds(w);
  };
  const P7ihParameters parameters;
  const double fire = static_cast<double>(parameters.cau_pass_through) / kMicrosecond;
  const double port = static_cast<double>(parameters.cau_port_time) / kMicrosecond;
  const double interval = paced(0);
  EXPECT_GT(interval, fire + 8 * port);  // in, and seven packets out
  EXPECT_LT(interval, fire + 8 * port + 1);
  EXPECT_NEAR(paced(kMicrosecond), interval, 0.05);  // the software of a call runs meanwhile
  EXPECT_GE(paced(3 * kMicrosecond), 3);
}

// Four tasks with direct access to each other's memory, on cores with caches of their own.
TEST(OwnCacheTest, ALoopFindsWhatNobodyWritesInItsOwnCache) {
  const auto time = [](Operation operation, std::uint64_t own_cache, std::uint64_t bytes) {
    CollectiveWorkload w = Loop(operation, "smartmap", 1, 4, bytes);
    w.placement.threads_per_core = 1;
    w.rotate_root = true;
    w.host.own_cache = own_cache;
    return Microseconds(w);
  };
  const HostParameters host;
  const double copy = static_cast<double>(host.copy_per_kib) / kMicrosecond;
  const double saved = copy - static_cast<double>(host.own_per_kib) / kMicrosecond;
  // One copy of 64 KiB, and the warm-up has read it.
  const auto broadcast = [&](std::uint64_t own_cache) {
    return time(Operation::kBroadcast, own_cache, 64 * kKib);
  };
  EXPECT_NEAR(broadcast(0) - broadcast(kMib), 64 * saved, 1);
  EXPECT_NEAR(broadcast(kKib), broadcast(0) + 64 * saved, 1) << "too small: it misses twice";
  // Each reduces a quarter, four times; the result is where it was.
  const auto reduce = [&](std::uint64_t own_cache) {
    return time(Operation::kReduce, own_cache, 64 * kKib);
  };
  EXPECT_NEAR(reduce(0) - reduce(kMib), 64 * saved, 2);
  // The result of a reduce is written again before each broadcast, which so misses.
  const auto allreduce = [&](std::uint64_t own_cache) {
    return time(Operation::kAllreduce, own_cache, 64 * kKib);
  };
  EXPECT_LT(allreduce(0) - allreduce(kMib), 64 * saved);
}

TEST(RendezvousTest, TheSenderReadsItsEndFromAFlag) {
  const auto time = [](Time receive) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, "p2p:binomial-only", 1, 2, 64);
    w.placement.threads_per_core = 1;
    w.host.eager_limit = 0;
    w.host.registration = 0;
    w.host.local_receive = receive;
    return Microseconds(w);
  };
  // The receiver has the request before the root begins again; the end is no message.
  EXPECT_NEAR(time(3 * kMicrosecond) - time(kMicrosecond), 2, 0.1);
}

// Two tasks; the times are added up by hand, in microseconds.
TEST(FragmentTest, CopiesOfLongMessagesOverlapInFragmentsOfSharedMemory) {
  const auto time = [](std::uint64_t bytes, std::uint64_t fragment) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, "p2p:binomial-only", 1, 2, bytes);
    w.placement.threads_per_core = 1;
    w.rotate_root = true;  // so that no call begins before the last one has ended
    w.host = {};
    w.host.eager_limit = 4 * kKib;
    w.host.local_fragment = fragment;
    w.host.write_per_kib = w.host.copy_per_kib = 400 * kNanosecond;
    w.host.node_per_kib = 0;
    return Microseconds(w);
  };
  const HostParameters host;
  const double line = static_cast<double>(host.line_same_chip) / kMicrosecond;
  const double ends = static_cast<double>(host.local_send + host.local_receive) / kMicrosecond;
  const double entry = static_cast<double>(host.collective_entry) / kMicrosecond;
  const double message = ends + line;
  // Request with 4 KiB, answer, and 16 KiB, each copied twice, one copy after the other.
  EXPECT_NEAR(time(20 * kKib, 16 * kKib), entry + 3 * message + 20 * 0.8, 0.3);
  // Four times as much: while the receiver reads a fragment the sender fills the next one.
  const double more = time(84 * kKib, 16 * kKib) - time(20 * kKib, 16 * kKib);
  EXPECT_NEAR(more, 64 * 0.4 + 4 * ends, 3);
  // As one fragment they do not overlap.
  EXPECT_NEAR(time(84 * kKib, 128 * kKib), entry + 3 * message + 84 * 0.8, 0.3);
  // A short message is not affected, but for what the sender reads of its return.
  EXPECT_NEAR(time(4 * kKib, 16 * kKib), time(4 * kKib, 0), 1.1 * line);
}

TEST(CombineTest, AReductionsArithmeticTakesItsTimeInMessagesAndInDirectAccess) {
  const auto time = [](const char* algorithm, Time combine) {
    CollectiveWorkload w = Loop(Operation::kReduce, algorithm, 1, 4, 64 * kKib);
    w.placement.threads_per_core = 1;
    w.host.combine_per_kib = combine;
    return Microseconds(w);
  };
  const auto dearer = [&](const char* algorithm) {
    return time(algorithm, kMicrosecond) - time(algorithm, 0);
  };
  EXPECT_NEAR(dearer("p2p:binomial"), 2 * 64, 8);       // the root's two children, one by one
  EXPECT_NEAR(dearer("smartmap:serial"), 3 * 64, 1);    // one task after the other
  EXPECT_NEAR(dearer("smartmap:parallel"), 3 * 16, 1);  // of a quarter of the data
}

// P7IH-014 against P7IH-018, for every root and not only for task 0.
TEST(FlatBroadcastTest, EveryFixedRootIsAheadOfARotatingOne) {
  CollectiveWorkload w = Loop(Operation::kBroadcast, "shm:one-buffer", 1, 32, 8);
  w.placement.threads_per_core = 4;
  w.iterations = 64;
  w.rotate_root = true;
  const double rotating = Microseconds(w);
  w.rotate_root = false;
  double least = 1e9, most = 0;
  for (w.root = 0; w.root < 32; ++w.root) {
    const double fixed = Microseconds(w);
    least = std::min(least, fixed);
    most = std::max(most, fixed);
  }
  EXPECT_LT(most, 0.8 * rotating);
  EXPECT_LT(most, 1.15 * least);
}

}  // namespace
}  // namespace percs
