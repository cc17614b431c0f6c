#include "client/percsctl/sweep_slurm.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "proto/process/replace_file.h"

namespace percs {
namespace {

struct Answer {
  int status = 0;
  std::string text;
};

// The output of a shell command, standard error included.
Answer AskShell(const std::string& command) {
  Answer answer;
  std::FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return {-1, "cannot start a shell"};
  char bytes[4096];
  for (std::size_t n = 0; (n = std::fread(bytes, 1, sizeof(bytes), pipe)) > 0;)
    answer.text.append(bytes, n);
  answer.status = pclose(pipe);
  while (!answer.text.empty() && answer.text.back() == '\n') answer.text.pop_back();
  return answer;
}

std::string ShellQuoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// The same for the same folder, so that a second command finds the array of the first one, also
// after a crash between the submission and its answer.
std::string JobName(const std::string& folder) {
  std::error_code error;
  const auto path = std::filesystem::canonical(folder, error);
  return fmt::format("percs-sweep-{:016x}",
                     std::hash<std::string>{}(error ? folder : path.string()));
}

std::string ArrayScript(const std::string& folder) { return folder + "/slurm/script"; }
bool HasSlurm() { return std::system("command -v sbatch squeue >/dev/null 2>&1") == 0; }

}  // namespace

absl::StatusOr<SweepPart> ParseSweepPart(const std::string& text) {
  SweepPart part;
  const char *at = text.data(), *end = at + text.size();
  const auto index = std::from_chars(at, end, part.index);
  if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
    const auto count = std::from_chars(index.ptr + 1, end, part.count);
    if (count.ec == std::errc() && count.ptr == end && part.index < part.count) return part;
  }
  return absl::InvalidArgumentError(
      fmt::format("--part {}: I/N with I from 0 to N - 1, for example 0/4", text));
}

absl::StatusOr<std::string> SweepArrayOf(const std::string& folder) {
  if (!std::filesystem::exists(ArrayScript(folder)) || !HasSlurm()) return "";
  const Answer answer = AskShell("squeue --me --noheader --format=%F --name=" + JobName(folder));
  if (answer.status != 0) return absl::UnavailableError("squeue: " + answer.text);
  return answer.text.substr(0, answer.text.find('\n'));
}

absl::StatusOr<std::string> SubmitSweepArray(const std::string& folder,
                                             const std::vector<std::string>& command,
                                             std::size_t tasks, int threads) {
  if (!HasSlurm()) {
    return absl::UnavailableError(
        "no sbatch and squeue on the PATH; without --slurm the points "
        "are run in this process");
  }
  std::error_code error;
  std::filesystem::create_directories(folder + "/slurm", error);
  std::string script = "#!/bin/sh\nexec";
  for (const std::string& word : command) script += " " + ShellQuoted(word);
  script += fmt::format(" --part \"$SLURM_ARRAY_TASK_ID/{}\"\n", tasks);
  const std::string file = ArrayScript(folder);
  if (auto status = ReplaceFile(file, script); !status.ok()) return status;
  const Answer answer = AskShell(
      fmt::format("sbatch --parsable --job-name={} --array=0-{} --cpus-per-task={} --output={} {}",
                  JobName(folder), tasks - 1, threads, ShellQuoted(folder + "/slurm/%A_%a.log"),
                  ShellQuoted(file)));
  if (answer.status != 0) return absl::UnavailableError(answer.text);
  return answer.text.substr(0, answer.text.find(';'));  // a cluster may follow
}

std::string SweepLog(const std::string& folder, const std::string& job, std::size_t task) {
  return fmt::format("{}/slurm/{}_{}.log", folder, job, task);
}

}  // namespace percs
