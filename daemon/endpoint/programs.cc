#include "daemon/endpoint/programs.h"

#include <algorithm>
#include <chrono>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "proto/process/printable.h"
#include "proto/scenario/commands.h"
#include "proto/window/endpoint_codec.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

// Limit of one process; each program has a stream and unread events.
constexpr std::size_t kProgramsMax = 256;
constexpr std::size_t kNameMax = 64, kTokenBytes = 16;
constexpr std::uint64_t kKeepMaxMs = 60'000;
constexpr std::size_t kFindMax = 4096;
// Of one message to the controller; what is beyond goes with the next one.
constexpr std::uint64_t kReportBytes = 32 << 20;
constexpr std::chrono::milliseconds kLookForRoom(20);

}  // namespace

Programs::Programs(ProcessLock* lock, Events events)
    : lock_(lock),
      events_(std::move(events)),
      ranks_(lock, {[this] { OnRanks(); }, events_.admit}),
      ended_(absl::FailedPreconditionError("no scenario is applied")),
      again_(lock) {}

// --- Attaching -----------------------------------------------------------------------------------

absl::Status Programs::CheckRunning() const { return fabric_ ? absl::OkStatus() : ended_; }

std::vector<std::string> Programs::HubNames() const {
  std::vector<std::string> names;
  for (const NodeId node : fabric_->local_nodes()) {
    if (node < fabric_->topology().leaves()) names.push_back(fabric_->topology().NodeName(node));
  }
  return names;
}

absl::StatusOr<ProgramIdentity> Programs::Admit(const v1::EndpointHello& hello) const {
  if (hello.version() != kEndpointVersion) {
    return absl::FailedPreconditionError(
        fmt::format("the program uses version {} of the Endpoint protocol, this percsd version {}",
                    hello.version(), kEndpointVersion));
  }
  if (hello.token().size() != kTokenBytes) {
    return absl::InvalidArgumentError(fmt::format(
        "the token has {} bytes; it needs {} random bytes", hello.token().size(), kTokenBytes));
  }
  if (absl::Status status = CheckRunning(); !status.ok()) return status;
  const auto local = fabric_->local_nodes();
  const auto hubs = HubNames();
  if (hubs.empty()) return absl::NotFoundError("this percsd has no hubs with windows");
  const auto node = hello.hub().empty() ? absl::StatusOr<NodeId>(local.front())
                                        : fabric_->topology().ParseNode(hello.hub());
  if (!node.ok()) return absl::NotFoundError(node.status().message());
  if (*node >= fabric_->topology().leaves() ||
      std::find(local.begin(), local.end(), *node) == local.end()) {
    return absl::NotFoundError(fmt::format("{} is not a hub with windows of this percsd; it has {}",
                                           hello.hub(), fmt::join(hubs, ", ")));
  }
  if (hello.job() < 1 || hello.job() > 0xffff) {
    return absl::InvalidArgumentError(fmt::format("job is {}; write 1 to 65535", hello.job()));
  }
  if (hello.has_window() && hello.window() >= kAnyWindow) {
    return absl::InvalidArgumentError(
        fmt::format("window is {}; write 0 to 2 x windows_per_hfi - 1", hello.window()));
  }
  if (hello.mode() != v1::ATTACH_MODE_SHARED && hello.mode() != v1::ATTACH_MODE_EXCLUSIVE) {
    return absl::InvalidArgumentError("mode: write shared or exclusive");
  }
  if (hello.name().size() > kNameMax || hello.keep_wall_ms() > kKeepMaxMs) {
    return absl::InvalidArgumentError(fmt::format(
        "the name has {} bytes (at most {}) and the window is kept for {} ms (at most {})",
        hello.name().size(), kNameMax, hello.keep_wall_ms(), kKeepMaxMs));
  }
  if (absl::Status status = CheckName(hello.name()); !status.ok()) return status;
  if (programs_.size() >= kProgramsMax) {
    return absl::ResourceExhaustedError(fmt::format(
        "{} programs are attached to this percsd, which is the maximum", programs_.size()));
  }
  ProgramIdentity identity;
  identity.token = hello.token();
  identity.name = hello.name();
  identity.node = *node;
  identity.hub = fabric_->topology().NodeName(*node);
  identity.job = static_cast<JobKey>(hello.job());
  identity.window = hello.has_window() ? static_cast<WindowId>(hello.window()) : kAnyWindow;
  identity.exclusive = hello.mode() == v1::ATTACH_MODE_EXCLUSIVE;
  identity.keep = std::chrono::milliseconds(hello.keep_wall_ms());
  return identity;
}

absl::Status Programs::OnHello(ProgramListener* listener, const v1::EndpointHello& hello) {
  if (leaving_) return absl::UnavailableError("the percsd is shutting down");
  if (Program* program = FindToken(hello.token())) {
    program->Offer(listener, hello);
    return absl::OkStatus();
  }
  auto identity = hello.resume() ? absl::NotFoundError(
                                       "no program has this token: its window was released, or it "
                                       "belongs to another percsd")
                                 : Admit(hello);
  if (!identity.ok()) {
    ++stats_.refused[static_cast<std::size_t>(EndpointRefusal::kAttach)];
    return identity.status();
  }
  identity->number = ++last_program_;
  ++arrived_;
  const auto program = std::make_shared<Program>(this, lock_, *std::move(identity));
  programs_[program->identity().number] = program;
  program->Offer(listener, hello);
  Submit();
  return absl::OkStatus();
}

Program* Programs::Find(std::uint64_t number) const {
  const auto found = programs_.find(number);
  return found == programs_.end() ? nullptr : found->second.get();
}

Program* Programs::FindToken(const std::string& token) const {
  for (const auto& [number, program] : programs_) {
    if (program->identity().token == token) return program.get();
  }
  return nullptr;
}

void Programs::OnOpen(const Program& program, v1::EndpointAttached* attached) {
  owners_[{program.identity().node, program.window()}] = program.identity().number;
  attached->set_run(run_);
  for (std::string& name : HubNames()) attached->add_hubs(std::move(name));
}

void Programs::OnClosed(const Program& program) {
  const auto owner = owners_.find({program.identity().node, program.window()});
  if (owner != owners_.end() && owner->second == program.identity().number) owners_.erase(owner);
}

void Programs::OnGivenUp() {
  if (arrived_ > 0) --arrived_;
}

void Programs::Remove(std::uint64_t number) {
  const auto found = programs_.find(number);
  if (found == programs_.end()) return;
  const std::shared_ptr<Program> program = found->second;
  programs_.erase(found);
  program->Forget();
}

// --- To the controller and back ------------------------------------------------------------------

void Programs::Begin(std::uint64_t run, Fabric* fabric) {
  run_ = run;
  fabric_ = fabric;
  arrived_ = last_submission_ = window_asked_ = 0;
  ranks_.Begin(run, fabric);
  told_attached_ = told_owing_ = told_arrived_ = 0;
  in_window_ = false;
}

void Programs::End(const absl::Status& why) {
  fabric_ = nullptr;
  again_.Cancel();
  ended_ = why;
  ranks_.End(why);
  kept_.clear();
  owners_.clear();
  in_window_ = false;
  const auto programs = programs_;
  for (const auto& [number, program] : programs) {
    program->Finish(why);
    program->Tell();
    if (!program->has_stream()) Remove(number);
  }
}

void Programs::FillReport(v1::DaemonMessage* message) {
  v1::EndpointReport report;
  if (MakeReport(&report)) message->mutable_endpoints()->Swap(&report);
}

bool Programs::MakeReport(v1::EndpointReport* report) {
  if (!fabric_ || (programs_.empty() && ranks_.empty() && told_attached_ == 0)) return false;
  std::uint64_t attached = ranks_.attached(), owing = ranks_.owing(), bytes = 0;
  const std::uint64_t arrived = arrived_ + ranks_.arrived();
  for (const auto& [number, program] : programs_) {
    attached += program->attached();
    owing += program->owes();
    if (!program->has_asked() || bytes > kReportBytes) continue;
    Submission asked = program->TakeAsked();
    bytes += asked.bytes;
    asked.message.set_number(++last_submission_);
    kept_[last_submission_] = {asked.message.node(), std::move(asked.operations)};
    *report->add_submissions() = std::move(asked.message);
  }
  AskForWindow(report);
  const bool news = attached != told_attached_ || owing != told_owing_ || arrived != told_arrived_;
  if (!news && report->submissions().empty()) return false;
  told_attached_ = attached;
  told_owing_ = owing;
  told_arrived_ = arrived;
  report->set_run(run_);
  report->set_attached(static_cast<std::uint32_t>(attached));
  report->set_owing(static_cast<std::uint32_t>(owing));
  report->set_arrived(arrived);
  return true;
}

// A submission without operations: its grant says when the window begins.
void Programs::AskForWindow(v1::EndpointReport* report) {
  const std::vector<NodeId> nodes = fabric_->local_nodes();
  if (window_asked_ != 0 || nodes.empty() || !ranks_.WantWindow()) return;
  window_asked_ = ++last_submission_;
  v1::EndpointSubmission* submission = report->add_submissions();
  submission->set_number(window_asked_);
  submission->set_node(nodes.front());
  kept_[window_asked_].node = submission->node();
}

void Programs::OnRanks() {
  if (!in_window_) {
    ranks_.Hear();
    Submit();
  }
  events_.ranks();
}

void Programs::Submit() {
  again_.Cancel();
  while (fabric_ && !in_window_) {
    // The controller takes what it can keep, and no other program may submit until then.
    if (!events_.room()) return again_.Set(kLookForRoom, [this] { Submit(); });
    v1::EndpointReport report;
    if (!MakeReport(&report)) return;
    auto message = events_.prepare();
    message->mutable_endpoints()->Swap(&report);
    events_.send(std::move(message));
  }
}

absl::Status Programs::Issue(const v1::EndpointGrant& grant) {
  if (grant.has_whole()) return IssueSubmission(grant.whole(), *fabric_, grant.at(), nullptr);
  auto kept = kept_.extract(grant.number());
  if (kept.empty()) {
    return absl::DataLossError(
        fmt::format("submission {} of programs takes effect now, but this percsd does not have it",
                    grant.number()));
  }
  if (grant.number() == window_asked_) {
    window_asked_ = 0;
    ranks_.OnWindow(grant.at());
  }
  std::uint64_t last = 0;
  stats_.operations += kept.mapped().operations.size();
  for (WindowOperation& operation : kept.mapped().operations) {
    last = operation.id;
    absl::Status status =
        fabric_->Issue(kept.mapped().node, grant.at(), std::move(operation), this);
    if (!status.ok()) return status;
  }
  if (Program* program = Find(Program::ProgramOf(last))) program->OnIssued(last, grant.at());
  return absl::OkStatus();
}

void Programs::Refuse(const v1::EndpointRefused& message) {
  const auto kept = kept_.extract(message.number());
  if (kept.empty()) return;  // of a run that is over
  const absl::Status why(static_cast<absl::StatusCode>(message.code()), message.message());
  if (message.number() == window_asked_) {
    window_asked_ = 0;
    return ranks_.OnRefused(why);
  }
  const std::uint64_t number = Program::ProgramOf(kept.mapped().operations.front().id);
  Program* program = Find(number);
  if (program == nullptr) return;
  for (const WindowOperation& operation : kept.mapped().operations)
    program->OnRefused(operation.id, why);
  program->Tell();
  if (program->over() && !program->has_stream()) Remove(number);
  Submit();
}

void Programs::OnWindowEvent(const WindowEvent& event) {
  std::uint64_t number = Program::ProgramOf(event.id);
  if (event.kind != WindowEvent::Kind::kCompletion) {
    const auto owner = owners_.find({event.node, event.window});
    if (owner == owners_.end()) return;
    number = owner->second;
  }
  if (Program* program = Find(number)) program->OnEvent(event);
}

void Programs::TellAll() {
  if (programs_.empty()) return Submit();
  for (const auto& [number, program] : programs_) program->Tell();
  // Programs that got their last message but are disconnected.
  std::vector<std::uint64_t> gone;
  for (const auto& [number, program] : programs_) {
    if (program->over() && !program->has_stream()) gone.push_back(number);
  }
  for (const std::uint64_t number : gone) Remove(number);
  Submit();
}

EndpointStats Programs::Stats() const {
  EndpointStats stats = stats_;
  for (const auto& [number, program] : programs_) {
    stats.programs += program->attached();
    stats.owing += program->owes();
  }
  stats.programs += ranks_.attached();
  stats.owing += ranks_.owing();
  return stats;
}

void Programs::Leave() {
  leaving_ = true;
  ranks_.Leave();
  End(absl::UnavailableError("the percsd is shutting down"));
  const auto programs = std::exchange(programs_, {});
  for (const auto& [number, program] : programs) program->Forget();
}

// --- The service ---------------------------------------------------------------------------------

grpc::ServerBidiReactor<v1::FromProgram, v1::FromHub>* Programs::Service::Attach(
    grpc::CallbackServerContext* context) {
  return Open<v1::FromHub, v1::FromProgram>(context, kAttachPath);
}

grpc::ServerUnaryReactor* Programs::Service::ListWindows(grpc::CallbackServerContext* context,
                                                         const v1::ListWindowsRequest*,
                                                         v1::ListWindowsReply* reply) {
  return Answer(context, [this, reply]() PERCS_LOCKED { return owner_->List(reply); });
}

grpc::ServerUnaryReactor* Programs::Service::Detach(grpc::CallbackServerContext* context,
                                                    const v1::DetachRequest* request,
                                                    v1::DetachReply*) {
  return Answer(context,
                [this, request]() PERCS_LOCKED { return owner_->DetachByToken(request->token()); });
}

grpc::ServerUnaryReactor* Programs::Service::FindNodes(grpc::CallbackServerContext* context,
                                                       const v1::FindNodesRequest* request,
                                                       v1::FindNodesReply* reply) {
  return Answer(context, [this, request, reply]()
                             PERCS_LOCKED { return owner_->FindNodes(*request, reply); });
}

absl::Status Programs::List(v1::ListWindowsReply* reply) const {
  if (absl::Status status = CheckRunning(); !status.ok()) return status;
  reply->set_virtual_time(fabric_->now());
  for (const auto& [number, program] : programs_) {
    if (program->over() || program->window() == kAnyWindow) continue;
    v1::EndpointWindow* window = reply->add_windows();
    window->set_hub(program->identity().hub);
    window->set_window(program->window());
    window->set_job(program->identity().job);
    window->set_name(program->identity().name);
    window->set_mode(program->identity().exclusive ? v1::ATTACH_MODE_EXCLUSIVE
                                                   : v1::ATTACH_MODE_SHARED);
    window->set_connected(program->connected());
    window->set_waits(program->waits());
    window->set_operations(program->operations());
    window->set_events(program->events());
  }
  return absl::OkStatus();
}

absl::Status Programs::DetachByToken(const std::string& token) {
  Program* program = token.empty() ? nullptr : FindToken(token);
  if (program == nullptr) return absl::NotFoundError("no program has this token");
  program->Release(absl::CancelledError("the window was detached by token"));
  Submit();
  return absl::OkStatus();
}

absl::Status Programs::FindNodes(const v1::FindNodesRequest& request,
                                 v1::FindNodesReply* reply) const {
  if (absl::Status status = CheckRunning(); !status.ok()) return status;
  if (static_cast<std::size_t>(request.names_size()) > kFindMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} names; at most {} at once", request.names_size(), kFindMax));
  }
  for (const std::string& name : request.names()) {
    const auto node = fabric_->topology().ParseDestination(name);
    if (!node.ok()) return absl::NotFoundError(node.status().message());
    reply->add_nodes(*node);
  }
  return absl::OkStatus();
}

}  // namespace percs
