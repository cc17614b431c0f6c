#include "client/lib/local_fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "client/lib/authority_folder.h"
#include "client/lib/fabric_client.h"
#include "emulator/base/status.h"

namespace percs {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kFabricPoll = std::chrono::milliseconds(20);
constexpr auto kCleanupGrace = std::chrono::milliseconds(3'000);
constexpr std::chrono::milliseconds kShutdownDeadline(2'000);
constexpr int kLogLines = 12;
constexpr auto kLifetime = std::chrono::hours(24 * 365);

// One start in progress: on any error, the destructor undoes it.
class Starter {
 public:
  Starter(const FabricStore& store, const StartOptions& options)
      : store_(store), options_(options), deadline_(Clock::now() + options.timeout) {
    record_.name = options.name;
    record_.transport = options.tcp ? "tcp" : "unix";
    record_.scenario = options.scenario;
    record_.sockets = store.SocketFolderOf(options.name);
  }
  ~Starter() {
    if (done_) return;
    StopProcesses(record_.ids(), kCleanupGrace);
    store_.Remove(record_);
  }

  absl::StatusOr<FabricRecord> Run() {
    std::error_code error;
    fs::create_directories(record_.sockets, error);
    fs::permissions(record_.sockets, fs::perms::owner_all, error);
    for (auto step : {&Starter::MakeIdentities, &Starter::StartController,
                      &Starter::AwaitController, &Starter::StartDaemons, &Starter::AwaitDaemons}) {
      if (absl::Status status = (this->*step)(); !status.ok()) return status;
    }
    done_ = true;
    return record_;
  }

 private:
  absl::Status MakeIdentities() {
    if (!options_.tls) return absl::OkStatus();
    const std::string folder = store_.TlsFolderOf(options_.name);
    record_.tls = RoleFolder(folder, Role::kOperator);
    return MakeAuthorityFolder(folder, kLifetime, /*renew=*/true).status();
  }

  // ... of the controller or a daemon, as options of its program.
  void AddIdentity(Role role, std::vector<std::string>* command) const {
    if (!options_.tls) return;
    command->insert(command->end(), {"--tls", RoleFolder(store_.TlsFolderOf(options_.name), role)});
  }

  absl::Status Start(const std::string& role, std::vector<std::string> command,
                     const std::string& log_name) {
    const auto program = FindProgram(command[0]);
    if (!program.ok()) return program.status();
    command[0] = *program;
    const std::string log = store_.FolderOf(options_.name) + "/" + log_name;
    fs::remove(log);
    const auto process = StartDetached(command, log);
    if (!process.ok()) return process.status();
    record_.processes.push_back({role, *process, log, command});
    return store_.Save(record_);
  }

  absl::Status StartController() {
    // The daemons are new, so none of them can continue what a crash left; the journal
    // stays.
    for (const char* file : {"state.db", "state.db-wal", "state.db-shm", "page.token"}) {
      std::error_code ignored;
      fs::remove(store_.FolderOf(options_.name) + "/" + file, ignored);
    }
    const std::string listen = options_.tcp
                                   ? fmt::format("127.0.0.1:{}", options_.port)
                                   : fmt::format("unix:{}/controller.sock", record_.sockets);
    std::vector<std::string> command = {"percs-controller",
                                        "--listen",
                                        listen,
                                        "--daemons",
                                        fmt::format("{}", options_.daemons),
                                        "--state-dir",
                                        store_.FolderOf(options_.name)};
    if (!options_.metrics.empty()) command.insert(command.end(), {"--metrics", options_.metrics});
    if (!options_.page.empty()) command.insert(command.end(), {"--page", options_.page});
    if (options_.loss_deadline.count() > 0) {
      command.insert(command.end(), {"--loss-deadline",
                                     fmt::format("{}", options_.loss_deadline.count() / 1000.0)});
    }
    AddIdentity(Role::kController, &command);
    return Start("controller", command, "controller.log");
  }

  // The controller's first line of output is `listening ADDRESS`, then `metrics URL` and `page
  // LINK` if it serves them.
  absl::Status AwaitController() {
    while (true) {
      std::ifstream log(record_.processes[0].log);
      for (std::string line; std::getline(log, line) && !log.eof();) {
        TakeWord(line, "listening ", &record_.controller);
        TakeWord(line, "metrics ", &record_.metrics);
        TakeWord(line, "page ", &record_.page);
      }
      if (!record_.controller.empty() && record_.metrics.empty() == options_.metrics.empty() &&
          record_.page.empty() == options_.page.empty()) {
        KeepPorts(&record_.processes[0].command);
        return store_.Save(record_);
      }
      const absl::Status status = Pause("the controller to listen");
      if (!status.ok()) return status;
    }
  }

  // When it is started again, it listens where it did.
  void KeepPorts(std::vector<std::string>* command) const {
    (*command)[2] = record_.controller;
    const auto page = std::find(command->begin(), command->end(), "--page");
    if (page == command->end()) return;
    const std::size_t from = record_.page.find("//") + 2;  // of http://HOST:PORT/#TOKEN
    *std::next(page) = record_.page.substr(from, record_.page.find('/', from) - from);
  }

  static void TakeWord(const std::string& line, const std::string& word, std::string* into) {
    if (line.rfind(word, 0) == 0) *into = line.substr(word.size());
  }

  absl::Status StartDaemons() {
    for (int i = 0; i < options_.daemons; ++i) {
      const std::string listen =
          options_.tcp ? "127.0.0.1:0" : fmt::format("unix:{}/d{}.sock", record_.sockets, i);
      std::vector<std::string> command = {
          "percsd", "--controller",        record_.controller, "--listen",          listen,
          "--name", fmt::format("d{}", i), "--index",          fmt::format("{}", i)};
      if (!options_.metrics.empty()) command.insert(command.end(), {"--metrics", "127.0.0.1:0"});
      AddIdentity(Role::kDaemon, &command);
      const absl::Status status = Start("percsd", command, fmt::format("d{}.log", i));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status AwaitDaemons() {
    Credentials credentials;
    if (options_.tls) {
      const auto loaded = Credentials::Load(record_.tls, RoleSet(Role::kOperator));
      if (!loaded.ok()) return loaded.status();
      credentials = *loaded;
    }
    FabricClient client(record_.controller, credentials);
    while (true) {
      const auto reply = client.Status();
      if (!reply.ok()) return WithLog(record_.processes[0], MessageOf(reply.status()));
      if (reply->state() != v1::FABRIC_STATE_JOINING) return absl::OkStatus();
      const std::string what = fmt::format("all daemons to join ({} of {} have)",
                                           reply->processes_size(), options_.daemons);
      if (absl::Status status = Pause(what); !status.ok()) return status;
    }
  }

  // One step of waiting for `what`; an error if waiting is pointless.
  absl::Status Pause(const std::string& what) {
    for (const FabricProcess& process : record_.processes) {
      if (!IsRunning(process.id))
        return WithLog(process, fmt::format("{} exited at once", process.role));
    }
    if (options_.cancelled && options_.cancelled()) return absl::CancelledError("interrupted");
    if (Clock::now() >= deadline_) {
      return WithLog(record_.processes[0], fmt::format("gave up after {} s waiting for {}",
                                                       options_.timeout.count() / 1000.0, what));
    }
    std::this_thread::sleep_for(kFabricPoll);
    return absl::OkStatus();
  }

  static absl::Status WithLog(const FabricProcess& process, const std::string& what) {
    const std::string lines = LastLines(process.log, kLogLines);
    return absl::AbortedError(
        fmt::format("{}{}{}", what, lines.empty() ? "" : "; its log ends with:\n", lines));
  }

  const FabricStore& store_;
  const StartOptions& options_;
  const Clock::time_point deadline_;
  FabricRecord record_;
  bool done_ = false;
};

// Its controller ends the run and the daemons in good order; one that does not answer is killed
// with them.
void ShutDown(const FabricRecord& record, std::chrono::milliseconds grace) {
  if (record.controller.empty() || record.running() == 0) return;
  Credentials credentials;
  if (!record.tls.empty()) {
    const auto loaded = Credentials::Load(record.tls, RoleSet(Role::kOperator));
    if (!loaded.ok()) return;
    credentials = *loaded;
  }
  FabricClient client(record.controller, credentials);
  client.set_deadline(std::min(grace, kShutdownDeadline));
  client.Shutdown().status().IgnoreError();
}

absl::Status Elsewhere(const FabricRecord& record) {
  return absl::FailedPreconditionError(fmt::format(
      "fabric \"{0}\" is a remote fabric at {1}; `percsctl context delete {0}` deletes the context",
      record.name, record.controller));
}

}  // namespace

absl::StatusOr<FabricRecord> StartFabric(const FabricStore& store, const StartOptions& options) {
  const auto lock = FabricLock::Take(store, options.name);
  if (!lock.ok()) return lock.status();
  const auto old = store.Load(options.name);
  if (old.ok() && old->remote()) return Elsewhere(*old);
  if (old.ok() && old->running() > 0) {
    return absl::AlreadyExistsError(
        fmt::format("fabric \"{0}\" is running already, with {1} processes; `percsctl down --name "
                    "{0}` stops it; another --name starts a second fabric",
                    options.name, old->running()));
  }
  if (old.ok()) store.Remove(*old);  // what a crash left
  return Starter(store, options).Run();
}

absl::StatusOr<StopReport> StopFabric(const FabricStore& store, const std::string& name,
                                      std::chrono::milliseconds grace) {
  const auto known = store.Load(name);  // before the lock, which would make a folder for any name
  if (!known.ok()) return known.status();
  if (known->remote()) return Elsewhere(*known);
  const auto lock = FabricLock::Take(store, name);
  if (!lock.ok()) return lock.status();
  const auto record = store.Load(name);
  if (!record.ok()) return record.status();
  StopReport report;
  const int running = record->running();
  report.gone = static_cast<int>(record->processes.size()) - running;
  ShutDown(*record, grace);
  report.killed = StopProcesses(record->ids(), grace).killed;
  report.stopped = running - report.killed;
  store.Remove(*record);
  return report;
}

}  // namespace percs
