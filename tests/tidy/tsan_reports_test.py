"""tests/support/tsan_reports.py: what is ours stays, what goes through a library's hands does not.

The reports are real ones, shortened to the frames that decide.
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import tsan_reports  # noqa: E402

LINE = "=" * 18 + "\n"


def report(*paragraphs, kind="data race"):
    body = "\n\n".join(paragraphs)
    return f"{LINE}WARNING: ThreadSanitizer: {kind} (pid=7)\n{body}\n{LINE}"


UNLOCKED_SCRAPE = """\
  Read of size 8 at 0x7bc000013990 by thread T11:
    #0 percs::StateOf(percs::Fabric const&) ../daemon/metrics/node_state.cc:6 (percsd+0xf80a4)
    #1 percs::Host::State() const ../daemon/node/host.cc:319 (percsd+0xbfd7e)
    #2 CivetServer::requestHandler(mg_connection*, void*) <null> (libcivetweb-cpp.so.1+0x639a)"""
DELIVERY = """\
  Previous write of size 8 at 0x7bc000013990 by thread T7 (mutexes: write M844):
    #0 percs::Hub::Deliver(percs::PacketHeader const&) ../emulator/node/hub.cc:196 (percsd+0x36a22b)
    #1 percs::Hub::OnDelivered(percs::Packet*) ../emulator/node/hub.cc:177 (percsd+0x360d72)"""
ACCESSOR = """\
  Read of size 8 at 0x7b4400020388 by thread T7:
    #0 percs::v1::Grant::window() const proto_gen/percs/v1/sync.pb.h:5480 (percsd+0xf803f)
    #1 percs::Host::Grant(percs::v1::Grant*) ../daemon/node/host.cc:130 (percsd+0xf8030)"""
PARSER = """\
  Previous write of size 8 at 0x7b4400020388 by thread T8:
    #0 percs::v1::LinkMessage::_InternalParse() proto_gen/percs/v1/link.pb.cc:603 (percsd+0x1)
    #1 grpc::GenericDeserialize<A>() /usr/include/grpcpp/impl/proto_utils.h:8 (percsd+0x2)"""
ALLOCATION = """\
  Previous write of size 8 at 0x7b4400020388 by thread T8 (mutexes: write M901):
    #0 operator new(unsigned long) libsanitizer/tsan_new_delete.cpp:64 (libtsan.so.2+0x8)
    #1 percs::Membership::Service::Session(A*) ../daemon/controller/membership.cc:103 (x+0x1)
    #2 grpc::Server::CallbackRequest::Run() <null> (libgrpc++.so.1.51+0xaf911)"""
FIRST_USE = """\
  Read of size 8 at 0x7b4400020388 by thread T7:
    #0 percs::ServerStream<A>::OnReadDone(bool) ../daemon/stream/streams.h:94 (percsd+0xf803f)
    #1 std::function<A>::operator() /usr/include/c++/12/bits/std_function.h:591 (x+0xe)
    #2 grpc::internal::Tag::Run(bool) /usr/include/grpcpp/support/callback_common.h:212 (x+0xe)"""
DELETION = """\
  Write of size 8 at 0x7b080004d668 by thread T8:
    #0 operator delete(void*, unsigned long) libsanitizer/tsan_new_delete.cpp:150 (libtsan.so.2+0x8)
    #1 ~Meter ../daemon/stream/call_meter.cc:46 (x+0x2)
    #2 grpc::ServerContextBase::~ServerContextBase() <null> (libgrpc++.so.1.51+0xb34a6)
    #3 grpc::Call::MaybeDone(bool) /usr/include/grpcpp/server_callback.h:102 (x+0x1)"""
CALL = """\
  Previous read of size 8 at 0x7b080004d668 by thread T9 (mutexes: write M1080):
    #0 percs::CallRecord::Sent() ../daemon/stream/call_meter.h:53 (x+0x2303cb)
    #1 Intercept ../daemon/stream/call_meter.cc:54 (x+0x2303cb)
    #2 grpc::Info::RunInterceptor(A*) /usr/include/grpcpp/support/server_interceptor.h:1 (x+0x3)
    #3 percs::Controller::OnConfigured(A const&) ../daemon/controller/controller.cc:305 (x+0x6)"""
CONSTRUCTION = """\
  Previous write of size 8 at 0x7b7000060030 by main thread:
    #0 percs::test::PlayedRunTest::PlayedRunTest(percs::WallClock*) <null> (shell_test+0x20ae65)
    #1 __libc_start_call_main ../sysdeps/nptl/libc_start_call_main.h:58 (libc.so.6+0x27249)"""
LOCK = """\
  Atomic read of size 1 at 0x7b7000060030 by thread T9:
    #0 pthread_mutex_lock libsanitizer/interceptors.inc:4324 (libtsan.so.2+0x558e1)
    #1 percs::ProcessMutex::lock() ../daemon/stream/process_lock.h:35 (shell_test+0x6f03b1)
    #2 grpc::internal::AlarmImpl::Set(A) /usr/include/grpcpp/alarm.h:1 (shell_test+0x6)"""
SHARE = """\
  Previous atomic write of size 4 at 0x7b080001c048 by thread T9 (mutexes: write M903):
    #0 __gnu_cxx::__exchange_and_add(int volatile*, int) /usr/include/c++/12/ext/a.h:6 (percsd+0x8)
    #1 std::shared_ptr<grpc::ChannelInterface>::~shared_ptr() /usr/include/c++/12/b.h:5 (percsd+0x8)
    #2 percs::LinkPeer::~LinkPeer() ../daemon/link/link_peer.h:52 (percsd+0x1b37f7)"""
LAST_SHARE = """\
  Write of size 8 at 0x7b080001c048 by thread T8:
    #0 operator delete(void*, unsigned long) libsanitizer/tsan_new_delete.cpp:150 (libtsan.so.2+0x8)
    #1 percs::ClientStream<A>::~ClientStream() ../daemon/stream/streams.h:44 (percsd+0x1b1594)
    #2 grpc::internal::Impl<A>::MaybeFinish(bool) /usr/include/grpcpp/callback.h:1 (percsd+0x7)"""
LEAK = """\
  Thread T7 'nexting_thread' (tid=24347, finished) created by main thread at:
    #0 pthread_create libsanitizer/tsan_interceptors_posix.cpp:1001 (libtsan.so.2+0x5e686)
    #1 grpc_core::Thread::Thread(char const*) <null> (libgpr.so.29+0xb0cb)
    #2 percs::Daemon::Listen() ../daemon/node/daemon.cc:59 (percsd+0xa6eb7)"""


class ReportsTest(unittest.TestCase):
    def test_two_accesses_of_ours_are_a_race_of_ours(self):
        for pair in ((UNLOCKED_SCRAPE, DELIVERY), (ACCESSOR, DELIVERY)):
            self.assertEqual(1, len(tsan_reports.ours(report(*pair))))

    def test_what_a_library_wrote_or_passed_on_is_explained(self):
        for pair in ((ACCESSOR, PARSER), (UNLOCKED_SCRAPE, PARSER), (FIRST_USE, ALLOCATION)):
            self.assertEqual([], tsan_reports.ours(report(*pair)))

    def test_an_object_that_no_library_passed_on_is_not_excused_by_being_new(self):
        self.assertEqual(1, len(tsan_reports.ours(report(UNLOCKED_SCRAPE, ALLOCATION))))

    def test_what_a_library_deletes_and_calls_is_the_librarys_to_order(self):
        self.assertEqual([], tsan_reports.ours(report(DELETION, CALL)))
        otherwise = DELETION.replace("../", "")
        self.assertEqual([], tsan_reports.ours(report(otherwise, CALL)))
        self.assertEqual(1, len(tsan_reports.ours(report(otherwise.replace("~", ""), CALL))))
        alone = CALL.replace("    #2 grpc::Info::RunInterceptor(A*) "
                             "/usr/include/grpcpp/support/server_interceptor.h:1 (x+0x3)\n", "")
        self.assertNotEqual(CALL, alone)
        elsewhere = CALL.replace("../daemon/stream/call_meter.h", "../daemon/stream/streams.h")
        used = DELETION.replace("~Meter", "percs::Meter::Intercept()")
        for pair in ((DELETION, alone), (DELETION, elsewhere), (used, CALL)):
            self.assertEqual(1, len(tsan_reports.ours(report(*pair))), pair)

    def test_a_lock_in_what_a_library_was_given_is_explained_and_another_use_is_not(self):
        self.assertEqual([], tsan_reports.ours(report(LOCK, CONSTRUCTION)))
        used = LOCK.replace("pthread_mutex_lock libsan", "percs::Host::Grant() ../daemon/libsan")
        without = LOCK.replace("/usr/include/grpcpp/alarm.h", "../daemon/alarm.h")
        method = CONSTRUCTION.replace("PlayedRunTest(percs", "Play(percs")
        for pair in ((used, CONSTRUCTION), (without, CONSTRUCTION), (LOCK, method)):
            self.assertEqual(1, len(tsan_reports.ours(report(*pair))), pair)

    def test_the_last_share_of_a_librarys_object_is_given_up_by_the_library(self):
        self.assertEqual([], tsan_reports.ours(report(LAST_SHARE, SHARE)))
        own = SHARE.replace("grpc::ChannelInterface", "percs::LinkPeer")
        used = LAST_SHARE.replace("operator delete(void*, unsigned long) lib",
                                  "percs::Use() ../daemon/lib")
        for pair in ((LAST_SHARE, own), (used, SHARE)):
            self.assertEqual(1, len(tsan_reports.ours(report(*pair))), pair)

    def test_a_leaked_thread_belongs_to_who_started_it(self):
        self.assertEqual([], tsan_reports.ours(report(LEAK, kind="thread leak")))
        ours = LEAK.replace("grpc_core::Thread::Thread(char const*) <null> (libgpr.so.29+0xb0cb)",
                            "percs::Watch::Watch() ../daemon/config/signals.cc:30 (percsd+0x1)")
        self.assertEqual(1, len(tsan_reports.ours(report(ours, kind="thread leak"))))

    def test_every_report_of_a_log_is_read(self):
        log = "\n".join(report(*pair) for pair in (
            (ACCESSOR, PARSER), (UNLOCKED_SCRAPE, DELIVERY), (FIRST_USE, ALLOCATION)))
        self.assertEqual(3, len(tsan_reports.reports(log)))
        self.assertEqual(1, len(tsan_reports.ours(log)))


if __name__ == "__main__":
    unittest.main()
