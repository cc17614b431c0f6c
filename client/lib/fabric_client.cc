#include "client/lib/fabric_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/impl/client_unary_call.h>

#include <atomic>
#include <climits>
#include <thread>

#include "client/lib/interrupt.h"
#include "fmt/format.h"
#include "proto/process/grpc_status.h"
#include "proto/security/channel.h"

namespace percs {
namespace {

constexpr double kWatchIntervalSeconds = 0.2;

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(INT_MAX);  // counters of a large machine
  arguments.SetMaxSendMessageSize(INT_MAX);     // a scenario with its trace
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, credentials.ForChannel(Role::kController, &arguments),
                                   arguments);
}

}  // namespace

FabricClient::FabricClient(std::string address, const Credentials& credentials)
    : address_(std::move(address)),
      channel_(OpenChannel(address_, credentials)),
      stub_(v1::Control::NewStub(channel_)) {}

template <typename Reply, typename Request>
absl::StatusOr<Reply> FabricClient::Call(
    grpc::Status (v1::Control::Stub::*call)(grpc::ClientContext*, const Request&, Reply*),
    const Request& request, Duration deadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  Reply reply;
  const grpc::Status status = (stub_.get()->*call)(&context, request, &reply);
  if (!status.ok()) return ControllerError(status, address_);
  return reply;
}

absl::Status FabricClient::CallMethod(const google::protobuf::MethodDescriptor& method,
                                      const google::protobuf::Message& request,
                                      google::protobuf::Message* reply) {
  using google::protobuf::Message;
  const std::string path = fmt::format("/{}/{}", method.service()->full_name(), method.name());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline_);
  const grpc::internal::RpcMethod unary(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall<Message, Message, google::protobuf::MessageLite,
                                        google::protobuf::MessageLite>(channel_.get(), unary,
                                                                       &context, request, reply);
  return ControllerError(status, address_);
}

absl::StatusOr<v1::VersionReply> FabricClient::Version() {
  return Call(&v1::Control::Stub::Version, v1::VersionRequest(), deadline_);
}

absl::StatusOr<v1::StatusReply> FabricClient::Status() {
  return Call(&v1::Control::Stub::Status, v1::StatusRequest(), deadline_);
}

absl::StatusOr<v1::ApplyReply> FabricClient::Apply(const v1::ApplyRequest& request,
                                                   Duration deadline) {
  if (const std::size_t bytes = request.ByteSizeLong(); bytes > kMessageBytesMax) {
    return absl::ResourceExhaustedError(fmt::format(
        "the scenario has {} bytes with its trace and its commands, and a request at most {} "
        "({} MiB); shorten the trace",
        bytes, kMessageBytesMax, kMessageBytesMax >> 20));
  }
  return Call(&v1::Control::Stub::Apply, request, deadline);
}

absl::StatusOr<v1::GetResultReply> FabricClient::WatchRun(
    std::uint64_t run, const std::function<bool(const v1::RunProgress&)>& progress) {
  grpc::ClientContext context;  // no deadline: a run lasts as long as it lasts
  v1::WatchRunRequest request;
  request.set_run(run);
  request.set_wall_interval_seconds(kWatchIntervalSeconds);
  const auto stream = stub_->WatchRun(&context, request);
  absl::StatusOr<v1::GetResultReply> result =
      absl::InternalError("the controller ended the answer without a result");
  bool left = false;
  for (v1::RunEvent event; stream->Read(&event);) {
    if (event.has_result()) result = std::move(*event.mutable_result());
    if (event.has_progress() && !left && !progress(event.progress())) {
      left = true;
      context.TryCancel();
    }
  }
  const grpc::Status status = stream->Finish();
  if (left) return absl::CancelledError("no longer watching; the run continues");
  if (!status.ok()) return ControllerError(status, address_);
  return result;
}

absl::StatusOr<v1::GetResultReply> FabricClient::GetResult(std::uint64_t run) {
  v1::GetResultRequest request;
  request.set_run(run);
  return Call(&v1::Control::Stub::GetResult, request, deadline_);
}

absl::StatusOr<v1::StopReply> FabricClient::Stop() {
  return Call(&v1::Control::Stub::Stop, v1::StopRequest(), deadline_);
}

absl::StatusOr<v1::ResetReply> FabricClient::Reset() {
  return Call(&v1::Control::Stub::Reset, v1::ResetRequest(), deadline_);
}

absl::StatusOr<v1::ObserveReply> FabricClient::Observe(const v1::ObserveRequest& request) {
  return Call(&v1::Control::Stub::Observe, request, deadline_);
}

absl::StatusOr<v1::FindHubReply> FabricClient::FindHub(const std::string& hub) {
  v1::FindHubRequest request;
  request.set_hub(hub);
  return Call(&v1::Control::Stub::FindHub, request, deadline_);
}

absl::StatusOr<v1::ShutdownReply> FabricClient::Shutdown() {
  return Call(&v1::Control::Stub::Shutdown, v1::ShutdownRequest(), deadline_);
}

absl::StatusOr<v1::ListLinksReply> FabricClient::ListLinks(const std::string& node) {
  v1::ListLinksRequest request;
  request.set_node(node);
  return Call(&v1::Control::Stub::ListLinks, request, deadline_);
}

absl::StatusOr<v1::GetRoutesReply> FabricClient::GetRoutes(const v1::GetRoutesRequest& request) {
  return Call(&v1::Control::Stub::GetRoutes, request, deadline_);
}

absl::StatusOr<v1::DumpRoutesReply> FabricClient::DumpRoutes(const std::string& node) {
  v1::DumpRoutesRequest request;
  request.set_node(node);
  return Call(&v1::Control::Stub::DumpRoutes, request, deadline_);
}

absl::StatusOr<v1::LoadRoutesReply> FabricClient::LoadRoutes(const v1::LoadRoutesRequest& request) {
  return Call(&v1::Control::Stub::LoadRoutes, request, deadline_);
}

absl::StatusOr<v1::GetCountersReply> FabricClient::GetCounters(const std::string& node,
                                                               bool per_node) {
  v1::GetCountersRequest request;
  request.set_node(node);
  request.set_per_node(per_node);
  return Call(&v1::Control::Stub::GetCounters, request, deadline_);
}

absl::StatusOr<v1::InjectLinkFaultReply> FabricClient::InjectLinkFault(const std::string& link,
                                                                       bool up, std::int64_t at) {
  v1::InjectLinkFaultRequest request;
  request.set_link(link);
  request.set_up(up);
  if (at >= 0) request.set_at(at);
  return Call(&v1::Control::Stub::InjectLinkFault, request, deadline_);
}

absl::StatusOr<v1::InjectFaultReply> FabricClient::InjectFault(
    const v1::InjectFaultRequest& request) {
  return Call(&v1::Control::Stub::InjectFault, request, deadline_);
}

absl::StatusOr<v1::FaultReply> FabricClient::CreateFault(const v1::Fault& fault, Duration lease) {
  v1::CreateFaultRequest request;
  request.set_lease_wall_ms(static_cast<std::uint64_t>(lease.count()));
  *request.mutable_fault() = fault;
  return Call(&v1::Control::Stub::CreateFault, request, deadline_);
}

absl::StatusOr<v1::HoldFaultReply> FabricClient::HoldFault(const std::string& id) {
  v1::HoldFaultRequest request;
  request.set_id(id);
  return Call(&v1::Control::Stub::HoldFault, request, deadline_);
}

absl::StatusOr<v1::PauseReply> FabricClient::Pause() {
  return Call(&v1::Control::Stub::Pause, v1::PauseRequest(), deadline_);
}

absl::StatusOr<v1::PauseReply> FabricClient::Resume() {
  return Call(&v1::Control::Stub::Resume, v1::ResumeRequest(), deadline_);
}

absl::StatusOr<v1::PauseReply> FabricClient::StepTime(std::int64_t by) {
  v1::StepTimeRequest request;
  request.set_by(by);
  return Call(&v1::Control::Stub::StepTime, request, deadline_);
}

absl::StatusOr<v1::PauseReply> FabricClient::SetPace(std::int64_t pace) {
  v1::SetPaceRequest request;
  request.set_pace(pace);
  return Call(&v1::Control::Stub::SetPace, request, deadline_);
}

absl::StatusOr<v1::FaultReply> FabricClient::UpdateFault(const v1::Fault& fault) {
  v1::UpdateFaultRequest request;
  *request.mutable_fault() = fault;
  return Call(&v1::Control::Stub::UpdateFault, request, deadline_);
}

absl::StatusOr<v1::FaultReply> FabricClient::DeleteFault(const std::string& id) {
  v1::DeleteFaultRequest request;
  request.set_id(id);
  return Call(&v1::Control::Stub::DeleteFault, request, deadline_);
}

absl::StatusOr<v1::ListFaultsReply> FabricClient::ListFaults(const std::string& id) {
  v1::ListFaultsRequest request;
  request.set_id(id);
  return Call(&v1::Control::Stub::ListFaults, request, deadline_);
}

absl::StatusOr<v1::ResetFaultsReply> FabricClient::ResetFaults() {
  return Call(&v1::Control::Stub::ResetFaults, v1::ResetFaultsRequest(), deadline_);
}

absl::StatusOr<v1::BreakStreamsReply> FabricClient::BreakStreams(const std::string& process) {
  v1::BreakStreamsRequest request;
  request.set_process(process);
  return Call(&v1::Control::Stub::BreakStreams, request, deadline_);
}

absl::Status FabricClient::WatchEvents(std::uint64_t after, bool follow,
                                       const std::function<bool(const v1::EventBatch&)>& batch) {
  constexpr Duration kLookEvery(20);
  grpc::ClientContext context;  // no deadline: it follows until the caller stops
  v1::WatchEventsRequest request;
  request.set_after(after);
  request.set_follow(follow);
  const auto stream = stub_->WatchEvents(&context, request);
  std::atomic<bool> left = false, ended = false;
  const auto leave = [&] {
    left = true;
    context.TryCancel();
  };
  // The stream may be silent for long, and an interrupt has to end it all the same.
  std::thread looking([&] {
    for (; follow && !left && !ended; std::this_thread::sleep_for(kLookEvery)) {
      if (InterruptGuard::raised()) leave();
    }
  });
  for (v1::EventBatch message; stream->Read(&message);) {
    if (!left && !batch(message)) leave();
  }
  const grpc::Status status = stream->Finish();
  ended = true;
  looking.join();
  if (left) return absl::CancelledError("no longer following events");
  return ControllerError(status, address_);
}

absl::StatusOr<v1::HealthReply> FabricClient::GetHealth() {
  return Call(&v1::Control::Stub::GetHealth, v1::GetHealthRequest(), deadline_);
}

absl::StatusOr<v1::PreviewFaultReply> FabricClient::PreviewFault(const v1::Fault& fault) {
  v1::PreviewFaultRequest request;
  *request.mutable_fault() = fault;
  return Call(&v1::Control::Stub::PreviewFault, request, deadline_);
}

absl::StatusOr<v1::TraceReply> FabricClient::Trace(const v1::TraceSelection& selection) {
  v1::TraceRequest request;
  *request.mutable_selection() = selection;
  return Call(&v1::Control::Stub::Trace, request, deadline_);
}

absl::StatusOr<v1::GetTraceReply> FabricClient::GetTrace() {
  return Call(&v1::Control::Stub::GetTrace, v1::GetTraceRequest(), deadline_);
}

absl::StatusOr<v1::CreateTreeReply> FabricClient::CreateTree(const v1::CreateTreeRequest& request) {
  return Call(&v1::Control::Stub::CreateTree, request, deadline_);
}

absl::StatusOr<v1::DeleteTreeReply> FabricClient::DeleteTree(const std::string& name) {
  v1::DeleteTreeRequest request;
  request.set_name(name);
  return Call(&v1::Control::Stub::DeleteTree, request, deadline_);
}

absl::StatusOr<v1::ListTreesReply> FabricClient::ListTrees(const std::string& name) {
  v1::ListTreesRequest request;
  request.set_name(name);
  return Call(&v1::Control::Stub::ListTrees, request, deadline_);
}

}  // namespace percs
