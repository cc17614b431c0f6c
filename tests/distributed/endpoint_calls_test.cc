// What a program at a window has beside messages and RDMA of memory: multicast, datagrams that are
// gathered and scattered, memory of devices, FIFOs as the target of RDMA, notifications as
// callbacks. Method: a controller and two daemons in this process and the client library; programs
// at hubs of both compare what they get byte for byte, each call that cannot be has its error, and
// the journal's replay has the digest of the live run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <utility>

#include "tests/distributed/endpoint_fixture.h"

namespace percs::test {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;
using Status = WindowStatus;

constexpr char kHub2[] = "sn0-d0-h2", kHub3[] = "sn0-d0-h3";
constexpr std::uint64_t kDeviceBytes = 1 << 20;

// Two hubs in each daemon, a group of whom the first hub is the source, and devices at a hub of
// each daemon.
v1::ApplyRequest FourHubs() {
  v1::ApplyRequest request = TwoHubs();
  v1::Scenario* scenario = request.mutable_scenario();
  scenario->mutable_topology()->set_hubs(4);
  v1::MulticastGroup* group = scenario->add_multicast();
  group->set_name("everybody");
  group->set_source(kHub0);
  for (const auto& [hub, port] : {std::pair{kHub0, 1}, std::pair{kHub2, 0}}) {
    v1::PcieDevice* device = scenario->add_pcie();
    device->set_hub(hub);
    device->set_port(port);
    device->set_bytes(kDeviceBytes);
  }
  return request;
}

class EndpointCalls : public EndpointTest {
 protected:
  void SetUp() override { ASSERT_TRUE(cluster_.Apply(FourHubs()).ok()); }
  static void ExpectOk(const client::Pending& pending) {
    const Completion done = pending.Wait();
    EXPECT_TRUE(done.status.ok()) << done.status;
    EXPECT_TRUE(pending.done());
  }
  static void ExpectError(const client::Pending& pending, Status status, Code code) {
    const Completion done = pending.Wait();
    EXPECT_EQ(done.reason, WindowStatusName(status)) << done.status;
    EXPECT_EQ(done.status.code(), code) << done.status;
    EXPECT_THAT(std::string(done.status.message()), HasSubstr(WindowStatusName(status)));
  }
  static client::Packet Next(client::Endpoint& at) {
    auto packet = at.Receive(kSoon);
    EXPECT_TRUE(packet.ok()) << packet.status();
    return packet.ok() ? *std::move(packet) : client::Packet{};
  }
  static Bytes ReadAll(client::Endpoint& at, const std::vector<client::MemorySegment>& segments) {
    Bytes data;
    for (const client::MemorySegment& s : segments) {
      const Completion read = at.Read(s.address, s.bytes).Wait();
      EXPECT_TRUE(read.status.ok()) << read.status;
      data.insert(data.end(), read.data.begin(), read.data.end());
    }
    return data;
  }
  static void WriteAll(client::Endpoint& at, const std::vector<client::MemorySegment>& segments,
                       const Bytes& data) {
    auto from = data.begin();
    for (const client::MemorySegment& s : segments) {
      ExpectOk(at.Write(s.address, Bytes(from, from + s.bytes)));
      from += s.bytes;
    }
  }
  // A place for a datagram that is there when this returns: operations of a program begin in their
  // order.
  static client::Pending Place(client::Endpoint& at, std::vector<client::MemorySegment> segments) {
    client::Pending place = at.ReceiveIp(std::move(segments));
    ExpectOk(at.Fence());
    EXPECT_FALSE(place.done());
    return place;
  }
  void EndAndReplay(const std::vector<client::Endpoint*>& programs) {
    for (client::Endpoint* program : programs) EXPECT_TRUE(program->Detach().ok());
    const auto live = StopAndWait();
    ASSERT_TRUE(live.ok()) << live.status();
    CheckReplays(live->result().digest());
  }
};

TEST_F(EndpointCalls, MulticastReachesTheWindowsThatJoinedUntilTheyLeave) {
  const EndpointPtr source = Attach(kHub0, 0), near = Attach(kHub1, 5), far = Attach(kHub2, 6),
                    alone = Attach(kHub3, 7);
  ASSERT_TRUE(source && near && far && alone);
  const auto group = source->FindNode("everybody");
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(far->FindNode("everybody").value_or(0), *group);
  EXPECT_EQ(far->FindNode(kHub3).value_or(0), alone->node());
  const auto nobody = far->FindNode("sn0-d0-h4");
  EXPECT_EQ(nobody.status().code(), Code::kNotFound);
  EXPECT_THAT(std::string(nobody.status().message()), HasSubstr(kHub0)) << "what is like it";

  ExpectOk(near->JoinMulticast(*group));
  ExpectOk(far->JoinMulticast(*group));
  ExpectOk(far->JoinMulticast(*group));     // once is enough
  ExpectOk(alone->LeaveMulticast(*group));  // who has not joined is not in it either
  for (const std::size_t size : {std::size_t{1}, std::size_t{2048}}) {
    const Bytes data = Pattern(size, size);
    ExpectOk(source->SendIp({*group, 0}, data));
    for (client::Endpoint* member : {near.get(), far.get()}) {
      const client::Packet packet = Next(*member);
      EXPECT_EQ(packet.data, data);
      EXPECT_EQ(packet.format, client::Transfer::kIpSend);
      EXPECT_EQ(packet.peer, source->node());
      EXPECT_EQ(packet.peer_window, source->window());
    }
  }
  ExpectOk(near->LeaveMulticast(*group));
  ExpectOk(near->LeaveMulticast(*group));
  const Bytes later = Pattern(300, 3);
  ExpectOk(source->SendIp({*group, 0}, later));
  EXPECT_EQ(Next(*far).data, later);
  // What comes next at everybody is this, and nothing of the group.
  for (client::Endpoint* member : {near.get(), far.get(), alone.get()}) {
    ExpectOk(source->SendFifo(Of(*member), "only you"));
    EXPECT_EQ(Next(*member).format, client::Transfer::kFifoSend) << member->node();
  }
  ExpectOk(near->JoinMulticast(*group));
  ExpectOk(source->SendIp({*group, 0}, later));
  EXPECT_EQ(Next(*near).data, later) << "back again";

  ExpectError(far->SendIp({*group, 0}, later), Status::kNoRoute,
              Code::kUnavailable);  // only its source sends to a group
  ExpectError(source->SendFifo({*group, 0}, later), Status::kNoSuchNode, Code::kNotFound);
  for (const NodeId wrong : {far->node(), *group + 1}) {
    ExpectError(far->JoinMulticast(wrong), Status::kNoSuchNode, Code::kNotFound);
    ExpectError(far->LeaveMulticast(wrong), Status::kNoSuchNode, Code::kNotFound);
  }
  EndAndReplay({source.get(), near.get(), far.get(), alone.get()});
}

TEST_F(EndpointCalls, DatagramsAreGatheredFromMemoryAndScatteredAtTheOtherDaemon) {
  const EndpointPtr a = Attach(kHub0, 0), b = Attach(kHub3, 2), c = Attach(kHub1, 4);
  ASSERT_TRUE(a && b && c);
  for (client::Endpoint* program : {a.get(), b.get(), c.get()})
    ExpectOk(program->Register(kHere, 1 << 17));
  const auto segments = [](const client::Endpoint& of,
                           std::vector<std::pair<Address, std::uint32_t>> pieces) {
    std::vector<client::MemorySegment> list;
    for (const auto& [at, bytes] : pieces) list.push_back({of.context(), kHere + at, bytes});
    return list;
  };
  const Bytes big = Pattern(65'535, 1);
  const auto from = segments(*a, {{70'000, 35'000}, {10, 1}, {100, 30'534}});
  const auto to = segments(*b, {{5, 3}, {90'000, 40'000}, {100, 25'532}});
  WriteAll(*a, from, big);
  const client::Pending place = Place(*b, to);
  ExpectOk(a->SendIp(Of(*b), from));
  const Completion came = place.Wait(kSoon);
  ASSERT_TRUE(came.status.ok()) << came.status;
  EXPECT_EQ(came.bytes, big.size());
  EXPECT_EQ(came.peer, a->node());
  EXPECT_EQ(came.peer_window, a->window());
  EXPECT_EQ(ReadAll(*b, to), big);
  EXPECT_EQ(b->Read(kHere + 8, 92).Wait().data, Bytes(92, 0)) << "between the places";

  // One that finds no room, as that of the first place is too small, is lost; the next one that
  // fits gets it.
  const auto small = segments(*b, {{60'000, 2'000}, {63'000, 500}});
  const client::Pending little = Place(*b, small);
  ExpectOk(a->SendIp(Of(*b), segments(*a, {{70'000, 2'501}})));
  ExpectOk(a->SendIp(Of(*b), segments(*a, {{70'000, 2'222}})));
  EXPECT_EQ(little.Wait(kSoon).bytes, 2'222u);
  const Bytes head(big.begin(), big.begin() + 2'222);
  Bytes there = ReadAll(*b, small);
  EXPECT_EQ(Bytes(there.begin() + 2'222, there.end()), Bytes(278, 0))
      << "no more than the datagram";
  there.resize(2'222);
  EXPECT_EQ(there, head);
  // One packet by way of the FIFO needs no place.
  const Bytes one = Pattern(2'048, 2);
  ExpectOk(a->SendIp(Of(*b), one));
  const client::Packet packet = Next(*b);
  EXPECT_EQ(packet.data, one);
  EXPECT_EQ(packet.format, client::Transfer::kIpSend);

  // To a group: every member gives a place.
  const NodeId group = a->FindNode("everybody").value_or(0);
  const auto parts = segments(*b, {{0, 5'000}, {9'000, 5'000}});
  std::vector<client::Pending> places;
  for (client::Endpoint* member : {b.get(), c.get()}) {
    ExpectOk(member->JoinMulticast(group));
    std::vector<client::MemorySegment> own = parts;
    for (client::MemorySegment& s : own) s.context = member->context();
    places.push_back(Place(*member, own));
  }
  ExpectOk(a->SendIp({group, 0}, segments(*a, {{70'000, 10'000}})));
  for (const client::Pending& p : places) EXPECT_EQ(p.Wait(kSoon).bytes, 10'000u);
  for (client::Endpoint* member : {b.get(), c.get()}) {
    EXPECT_EQ(ReadAll(*member, parts), Bytes(big.begin(), big.begin() + 10'000)) << member->node();
  }
  EndAndReplay({a.get(), b.get(), c.get()});
}

TEST_F(EndpointCalls, DatagramsThatCannotBeHaveTheirErrors) {
  const EndpointPtr a = Attach(kHub0, 0), b = Attach(kHub3, 2), other = Attach(kHub0, 1, /*job=*/2);
  ASSERT_TRUE(a && b && other);
  const ContextId own = a->context();
  ExpectOk(a->Register(kHere, 1 << 17));
  ExpectOk(a->Register(kHere + (1 << 20), 4'096, /*writable=*/false));
  ExpectOk(other->Register(kHere, 4'096));
  ExpectOk(a->RegisterDevice(1 << 24, 4'096, 1));
  struct Case {
    std::vector<client::MemorySegment> segments;
    Status status;
    Code code;
  };
  const Case cases[] = {
      {{}, Status::kEmpty, Code::kInvalidArgument},
      {{{own, kHere, 8}, {own, kHere, 0}}, Status::kEmpty, Code::kInvalidArgument},
      {{{own, kHere, 65'535}, {own, kHere, 1}}, Status::kTooLarge, Code::kInvalidArgument},
      {std::vector<client::MemorySegment>(65, {own, kHere, 1}), Status::kTooLarge,
       Code::kInvalidArgument},
      {{{own, kHere, 8}, {own, 0x777, 8}}, Status::kNotRegistered, Code::kNotFound},
      {{{own, kHere + (1 << 17) - 4, 8}}, Status::kOutOfRange, Code::kOutOfRange},
      {{{other->context(), kHere, 8}}, Status::kWrongKey, Code::kPermissionDenied},
      {{{own, 1 << 24, 8}}, Status::kOnDevice, Code::kInvalidArgument},
  };
  for (const Case& c : cases) {
    ExpectError(a->SendIp(Of(*b), c.segments), c.status, c.code);
    ExpectError(a->ReceiveIp(c.segments), c.status, c.code);
  }
  ExpectError(a->ReceiveIp({{own, kHere + (1 << 20), 8}}), Status::kReadOnly,
              Code::kPermissionDenied);
  ExpectOk(a->SendIp(Of(*b), std::vector<client::MemorySegment>{{own, kHere + (1 << 20), 8}}));
  ExpectError(a->SendIp(Of(*b), Bytes(2'049)), Status::kTooLarge, Code::kInvalidArgument);
  ExpectError(a->SendIp({99, 0}, Bytes(1)), Status::kNoSuchNode, Code::kNotFound);
  const client::Pending never = a->ReceiveIp({{own, kHere, 8}});
  EXPECT_EQ(a->WaitAll(Duration(50)).code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(never.done());
  EndAndReplay({a.get(), b.get(), other.get()});
  EXPECT_EQ(never.Wait().status.code(), Code::kAborted);
}

TEST_F(EndpointCalls, MemoryOfDevicesMovesBetweenDaemonsAndStaysInTheDevice) {
  const EndpointPtr a = Attach(kHub0, 0), b = Attach(kHub2, 3), other = Attach(kHub2, 4, /*job=*/2);
  ASSERT_TRUE(a && b && other);
  constexpr std::uint64_t kSize = 300'000;
  ExpectOk(a->RegisterDevice(kHere, kSize, 1, 4'096));
  ExpectOk(b->RegisterDevice(kThere, kSize, 0));
  const Bytes data = Pattern(kSize, 1);
  ExpectOk(a->Write(kHere, data));
  ExpectOk(a->RdmaWrite(Of(*b), kThere, kHere, kSize));  // from device to device
  EXPECT_EQ(b->Read(kThere, kSize).Wait().data, data);
  const Bytes more = Pattern(50'000, 2);
  ExpectOk(b->Write(kThere + 7, more));
  ExpectOk(a->RdmaRead(Of(*b), kThere + 7, kHere + 100, more.size()));
  EXPECT_EQ(a->Read(kHere + 100, more.size()).Wait().data, more);
  // The region goes, the bytes stay.
  ExpectOk(a->Deregister(kHere));
  ExpectError(a->Read(kHere, 8), Status::kNotRegistered, Code::kNotFound);
  ExpectOk(a->RegisterDevice(kThere, 1'000, 1, 4'096 + 100));
  EXPECT_EQ(a->Read(kThere, 1'000).Wait().data, Bytes(more.begin(), more.begin() + 1'000));

  ExpectError(a->RegisterDevice(1 << 24, 4'096, 0), Status::kNoDevice,
              Code::kUnavailable);  // nothing was ever there
  ExpectError(a->RegisterDevice(1 << 24, 4'096, 3), Status::kNoDevice, Code::kUnavailable);
  ExpectError(a->RegisterDevice(1 << 24, 2, 1, kDeviceBytes - 1), Status::kOutOfRange,
              Code::kOutOfRange);
  ExpectError(a->RegisterDevice(kThere + 8, 8, 1), Status::kOverlap, Code::kAlreadyExists);
  ExpectError(other->RegisterDevice(kHere, 8, 0, kSize - 1), Status::kWrongKey,
              Code::kPermissionDenied);
  ExpectError(a->Atomic(Of(*b), AddTo(kThere + 8, 1)), Status::kOnDevice, Code::kInvalidArgument);

  v1::CreateFaultRequest unplug;
  unplug.mutable_fault()->set_id("unplug");
  unplug.mutable_fault()->mutable_inject()->set_kind(v1::FAULT_KIND_PCIE_UNPLUGGED);
  unplug.mutable_fault()->mutable_inject()->mutable_select()->set_in(kHub2);
  unplug.mutable_fault()->mutable_inject()->set_pcie_port(0);
  v1::FaultReply fault;
  grpc::Status status = cluster_.Call(&v1::Control::Stub::CreateFault, unplug, &fault);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectOk(a->Register(1 << 25, 4'096));
  ExpectError(b->Read(kThere, 8), Status::kNoDevice, Code::kUnavailable);
  ExpectError(b->RegisterDevice(1 << 24, 8, 0, kSize), Status::kNoDevice, Code::kUnavailable);
  ExpectError(b->RdmaWrite(Of(*a), 1 << 25, kThere, 8), Status::kNoDevice,
              Code::kUnavailable);  // here
  ExpectError(a->RdmaWrite(Of(*b), kThere, 1 << 25, 8), Status::kNoDevice,
              Code::kUnavailable);  // there
  ExpectError(a->RdmaRead(Of(*b), kThere, 1 << 25, 8), Status::kNoDevice, Code::kUnavailable);
  v1::DeleteFaultRequest plug;
  plug.set_id("unplug");
  status = cluster_.Call(&v1::Control::Stub::DeleteFault, plug, &fault);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectOk(a->RdmaRead(Of(*b), kThere + 7, 1 << 25, 4'096));
  EXPECT_EQ(a->Read(1 << 25, 4'096).Wait().data, Bytes(more.begin(), more.begin() + 4'096))
      << "what it had before";
  EndAndReplay({a.get(), b.get(), other.get()});
}

// Packets of one RDMA operation into a FIFO, put together again.
Bytes Together(client::Endpoint& at, std::uint64_t bytes, client::Transfer format,
               const client::Endpoint& peer) {
  Bytes data(bytes);
  for (std::uint64_t left = bytes; left > 0;) {
    const auto packet = at.Receive(kSoon);
    EXPECT_TRUE(packet.ok()) << packet.status();
    if (!packet.ok() || packet->offset + packet->data.size() > bytes || packet->data.size() > left)
      return {};
    EXPECT_EQ(packet->format, format);
    EXPECT_EQ(packet->peer, peer.node());
    EXPECT_EQ(packet->peer_window, peer.window());
    std::copy(packet->data.begin(), packet->data.end(),
              data.begin() + static_cast<std::ptrdiff_t>(packet->offset));
    left -= packet->data.size();
  }
  return data;
}

TEST_F(EndpointCalls, RdmaIntoFifosBringsPacketsOrSaysThatThereWasNoRoom) {
  EndpointOptions few = At(kHub3, 1), none = At(kHub3, 2);
  few.receive_slots = 2;
  none.send_slots = none.receive_slots = 0;
  const EndpointPtr a = Attach(kHub0, 0), b = Attach(kHub2, 3), little = Attach(few),
                    bare = Attach(none);
  ASSERT_TRUE(a && b && little && bare);
  constexpr std::uint64_t kSize =
      32 * 2'048;  // half of the FIFO, which is free when all that came was received
  const Bytes data = Pattern(kSize, 5);
  ExpectOk(a->Register(kHere, kSize));
  ExpectOk(a->Write(kHere, data));
  for (const std::uint64_t bytes : {kSize - 3'000, kSize, kSize - 2'048, kSize}) {
    const Bytes head(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(bytes));
    ExpectOk(b->Fence());  // slots that it gave back are free by now
    ExpectOk(a->RdmaWrite(Of(*b), 0, kHere, bytes, {.to_fifo = true, .cached = true}));
    EXPECT_EQ(Together(*b, bytes, client::Transfer::kRdmaWrite, *a), head);
    ExpectOk(b->RdmaRead(Of(*a), kHere, 0, bytes, {.to_fifo = true}));
    EXPECT_EQ(Together(*b, bytes, client::Transfer::kRdmaRead, *a), head);
  }

  ExpectError(a->RdmaWrite(Of(*little), 0, kHere, 3 * 2'048, {.to_fifo = true}),
              Status::kReceiveFifoFull, Code::kResourceExhausted);
  for (int i = 0; i < 2; ++i) {
    const client::Packet packet = Next(*little);
    const auto at = data.begin() + static_cast<std::ptrdiff_t>(packet.offset);
    EXPECT_EQ(packet.data, Bytes(at, at + 2'048)) << "those that had room";
  }
  ExpectError(a->RdmaWrite(Of(*bare), 0, kHere, 8, {.to_fifo = true}), Status::kNotConfigured,
              Code::kFailedPrecondition);
  ExpectError(bare->RdmaRead(Of(*a), kHere, 0, 8, {.to_fifo = true}), Status::kNotConfigured,
              Code::kFailedPrecondition);
  ExpectError(bare->SendFifo(Of(*a), "no send FIFO"), Status::kNotConfigured,
              Code::kFailedPrecondition);
  ExpectError(a->RdmaRead(Of(*b), 0x777, 0, 8, {.to_fifo = true}), Status::kNotRegistered,
              Code::kNotFound);
  EndAndReplay({a.get(), b.get(), little.get(), bare.get()});
}

TEST_F(EndpointCalls, NotificationsAreCalledBackOnceEachWithThoseThatWaited) {
  const EndpointPtr a = Attach(kHub0, 1), b = Attach(kHub3, 3);
  ASSERT_TRUE(a && b);
  ExpectOk(a->Register(kHere, 1 << 16));
  ExpectOk(b->Register(kThere, 1 << 16));
  const Bytes data = Pattern(10'000, 4);
  ExpectOk(a->Write(kHere, data));
  ExpectOk(b->Write(kThere + 32'768, Bytes(64, 0)));
  const Peer to_b = Of(*b);
  const Address counter = kThere + 32'768;
  ExpectOk(a->RdmaWrite(to_b, kThere, kHere, 5'000, {.notify = true}));
  ExpectOk(b->Fence());  // b has heard of it, and nobody listens yet
  std::promise<void> all;
  std::vector<client::Notification> heard;
  b->OnNotification([&](client::Notification notification) {
    heard.push_back(notification);
    if (heard.size() == 4) all.set_value();
  });
  ExpectOk(a->RdmaWrite(to_b, kThere + 5'000, kHere + 5'000, 4'000));  // asks for none
  ExpectError(a->RdmaWrite(to_b, kThere + (1 << 16) - 4, kHere, 8, {.notify = true}),
              Status::kOutOfRange, Code::kOutOfRange);
  const std::vector<client::AtomicUpdate> group = {AddTo(counter, 1), AddTo(counter + 8, 2)};
  EXPECT_TRUE(a->Atomic(to_b, AddTo(counter, 1), /*notify=*/true).Wait().status.ok());
  EXPECT_EQ(a->PackedAtomics(to_b, group, /*notify=*/true).Wait().values,
            (std::vector<std::uint64_t>{1, 0}));
  ExpectOk(a->Fence());
  ExpectOk(a->RdmaWrite(to_b, kThere + 9'000, kHere + 9'000, 1'000, {.notify = true}));
  ASSERT_EQ(all.get_future().wait_for(kSoon), std::future_status::ready);
  // The operations followed each other.
  const client::Transfer expected[] = {client::Transfer::kRdmaWrite, client::Transfer::kAtomic,
                                       client::Transfer::kAtomic, client::Transfer::kRdmaWrite};
  Time last = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(heard[i].op, expected[i]) << i;
    EXPECT_EQ(heard[i].peer, a->node()) << i;
    EXPECT_EQ(heard[i].peer_window, a->window()) << i;
    EXPECT_GT(heard[i].at, last) << i;
    last = heard[i].at;
  }
  EXPECT_EQ(heard[0].bytes, 5'000u);
  EXPECT_EQ(heard[3].bytes, 1'000u);
  EXPECT_GE(b->now(), last);
  EXPECT_EQ(b->Read(kThere, data.size()).Wait().data, data) << "all of it is there";
  EXPECT_EQ(b->WaitNotification(Duration(20)).status().code(), Code::kDeadlineExceeded)
      << "they were called back";
  EndAndReplay({a.get(), b.get()});
  EXPECT_EQ(heard.size(), 4u) << "and no other";
}

}  // namespace
}  // namespace percs::test
