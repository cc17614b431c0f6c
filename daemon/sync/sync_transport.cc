#include "daemon/sync/sync_transport.h"

#include <chrono>
#include <utility>

#include "percs/v1/sync.grpc.pb.h"
#include "proto/process/grpc_status.h"
#include "proto/security/channel.h"

namespace percs {
namespace {

constexpr std::chrono::seconds kJoinDeadline(5);

struct JoinCall {
  grpc::ClientContext context;
  v1::JoinRequest request;
  v1::JoinReply reply;
};

class GrpcSyncTransport final : public SyncTransport {
 public:
  GrpcSyncTransport(ProcessLock* lock, const std::string& controller,
                    const Credentials& credentials)
      : lock_(lock),
        stub_(v1::Sync::NewStub(MakeChannel(controller, credentials, Role::kController))) {}

  void Join(const v1::JoinRequest& request, Joined done) PERCS_LOCKED override {
    auto call = std::make_shared<JoinCall>();
    call->request = request;
    call->context.set_deadline(std::chrono::system_clock::now() + kJoinDeadline);
    lock_->Add();
    stub_->async()->Join(
        &call->context, &call->request, &call->reply,
        [lock = lock_, call, done = std::move(done)](const grpc::Status& status) mutable {
          const LockGuard guard(lock->mutex());
          done(FromGrpc(status), call->reply);
          call.reset();  // its context has a share in the channel, as ClientStream's
          lock->Remove();
        });
  }

  Stream* Open() override {
    auto* stream = new ClientStream<v1::DaemonMessage, v1::ControllerMessage>(lock_);
    stub_->async()->Session(stream->context(), stream);
    return stream;
  }

 private:
  ProcessLock* lock_;
  std::unique_ptr<v1::Sync::Stub> stub_;
};

}  // namespace

std::unique_ptr<SyncTransport> SyncTransport::Real(ProcessLock* lock, const std::string& controller,
                                                   const Credentials& credentials) {
  return std::make_unique<GrpcSyncTransport>(lock, controller, credentials);
}

}  // namespace percs
