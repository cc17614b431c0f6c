#include "client/lib/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace percs {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(10);

void Reap(int pid) { waitpid(pid, nullptr, WNOHANG); }  // ours only; fails harmlessly on others

bool Executable(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

std::vector<ProcessId> Running(const std::vector<ProcessId>& processes) {
  std::vector<ProcessId> running;
  std::copy_if(processes.begin(), processes.end(), std::back_inserter(running), IsRunning);
  return running;
}

// Waits until none of `processes` runs or `limit` has passed; returns those that still do.
std::vector<ProcessId> AwaitEnd(std::vector<ProcessId> processes, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    processes = Running(processes);
    if (processes.empty() || std::chrono::steady_clock::now() >= deadline) return processes;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

absl::StatusOr<ProcessId> IdentifyProcess(int pid) {
  Reap(pid);
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // The command name is in parentheses and may hold anything, so fields are counted after the last
  // one.
  const std::size_t end = line.rfind(')');
  if (pid <= 0 || end == std::string::npos) {
    return absl::NotFoundError(fmt::format("no process has pid {}", pid));
  }
  std::istringstream fields(line.substr(end + 1));
  std::string state, skipped;
  fields >> state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  ProcessId process{pid, 0};
  if (!(fields >> process.start) || state == "Z" || state == "X") {
    return absl::NotFoundError(fmt::format("no process has pid {}", pid));
  }
  return process;
}

bool IsRunning(const ProcessId& process) {
  const auto now = IdentifyProcess(process.pid);
  return now.ok() && *now == process;
}

absl::StatusOr<ProcessId> StartDetached(const std::vector<std::string>& command,
                                        const std::string& log) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t no_signals;
  sigemptyset(&no_signals);
  posix_spawnattr_setsigmask(&attributes, &no_signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  int pid = 0;
  const int error =
      posix_spawn(&pid, command[0].c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::UnavailableError(fmt::format("cannot start {} with its log in {}: {}", command[0],
                                              log, std::strerror(error)));
  }
  auto process = IdentifyProcess(pid);
  if (!process.ok()) {
    return absl::UnavailableError(
        fmt::format("{} exited at once; its log says:\n{}", command[0], LastLines(log, 5)));
  }
  return process;
}

StopResult StopProcesses(const std::vector<ProcessId>& processes, std::chrono::milliseconds grace) {
  const std::vector<ProcessId> running = Running(processes);
  for (const ProcessId& process : running) kill(process.pid, SIGTERM);
  const std::vector<ProcessId> stubborn = AwaitEnd(running, grace);
  for (const ProcessId& process : stubborn) kill(process.pid, SIGKILL);
  AwaitEnd(stubborn, std::chrono::seconds(10));
  return {static_cast<int>(running.size() - stubborn.size()), static_cast<int>(stubborn.size())};
}

std::string LastLines(const std::string& path, int lines) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(line);
    if (static_cast<int>(last.size()) > lines) last.pop_front();
  }
  return fmt::format("{}", fmt::join(last, "\n"));
}

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = self.parent_path() / name;
  if (!error && Executable(beside)) return beside.string();
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto candidate = std::filesystem::path(folder) / name;
    if (!folder.empty() && Executable(candidate)) return candidate.string();
  }
  return absl::NotFoundError(
      fmt::format("{} is neither beside {} nor on PATH; build or install it", name, self.string()));
}

}  // namespace percs
