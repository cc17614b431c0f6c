#include "daemon/link/link_transport.h"

#include "percs/v1/link.grpc.pb.h"
#include "proto/security/channel.h"

namespace percs {
namespace {

class GrpcLinkLine final : public LinkLine {
 public:
  GrpcLinkLine(ProcessLock* lock, const std::string& address, const Credentials& credentials)
      : lock_(lock), stub_(v1::Link::NewStub(MakeChannel(address, credentials, Role::kDaemon))) {}

  Stream* Open(bool wait) override {
    auto* stream = new ClientStream<v1::LinkMessage, v1::LinkMessage>(lock_);
    stream->context()->set_wait_for_ready(wait);
    stub_->async()->Exchange(stream->context(), stream);
    return stream;
  }

 private:
  ProcessLock* lock_;
  std::unique_ptr<v1::Link::Stub> stub_;
};

class GrpcLinkTransport final : public LinkTransport {
 public:
  std::unique_ptr<LinkLine> LineTo(ProcessLock* lock, const std::string& address,
                                   const Credentials& credentials) override {
    return std::make_unique<GrpcLinkLine>(lock, address, credentials);
  }
};

}  // namespace

LinkTransport& LinkTransport::Real() {
  static GrpcLinkTransport transport;
  return transport;
}

}  // namespace percs
