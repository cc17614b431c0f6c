#include "client/mpi/launch.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace percs::mpi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kComponent = "mca_coll_percs.so";

absl::StatusOr<std::string> FindOnPath(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (access(program.c_str(), X_OK) == 0) return program;
    return absl::NotFoundError(fmt::format("{} is no program that can be started", program));
  }
  const char* path = std::getenv("PATH");
  const std::vector<std::string> folders = absl::StrSplit(path != nullptr ? path : "", ':');
  for (const std::string& folder : folders) {
    const std::string file = folder + "/" + program;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return absl::NotFoundError(fmt::format("no program {} on PATH", program));
}

template <typename T>
bool At(const std::string& file, std::uint64_t offset, T* to) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(to, file.data() + offset, sizeof(T));
  return true;
}

// What a dynamic object needs; `dynamic` is false for a static one, and for what is no ELF file of
// 64 bits, `elf` is.
struct Linkage {
  bool elf = false, dynamic = false;
  std::vector<std::string> libraries;
};

Linkage LinkageOf(const std::string& file) {
  Linkage linkage;
  Elf64_Ehdr header;
  if (!At(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return linkage;
  linkage.elf = true;
  std::vector<Elf64_Phdr> loads;
  Elf64_Phdr dynamic{};
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!At(file, header.e_phoff + static_cast<std::uint64_t>(i) * sizeof(part), &part)) break;
    if (part.p_type == PT_LOAD) loads.push_back(part);
    if (part.p_type == PT_INTERP) linkage.dynamic = true;
    if (part.p_type == PT_DYNAMIC) dynamic = part;
  }
  std::vector<std::uint64_t> names;
  std::uint64_t strings = 0;
  Elf64_Dyn entry;
  for (std::uint64_t at = 0; at < dynamic.p_filesz; at += sizeof(entry)) {
    if (!At(file, dynamic.p_offset + at, &entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
  }
  for (const Elf64_Phdr& load : loads) {
    if (strings < load.p_vaddr || strings - load.p_vaddr >= load.p_filesz) continue;
    const std::uint64_t base = strings - load.p_vaddr + load.p_offset;
    for (const std::uint64_t name : names) {
      if (base + name < file.size()) linkage.libraries.emplace_back(file.c_str() + base + name);
    }
  }
  return linkage;
}

bool Needs(const Linkage& linkage, const std::string& prefix) {
  return std::any_of(linkage.libraries.begin(), linkage.libraries.end(),
                     [&](const std::string& name) { return name.starts_with(prefix); });
}

}  // namespace

namespace {

// Where another MPI is installed, too, `mpirun` may be its own.
std::string MpirunName() { return FindOnPath("mpirun.openmpi").ok() ? "mpirun.openmpi" : "mpirun"; }

}  // namespace

absl::Status CheckOpenMpi() {
  if (FindOnPath(MpirunName()).ok()) return absl::OkStatus();
  return absl::NotFoundError(
      "cannot start Open MPI's mpirun: no such program on PATH; `deploy/install --mpi` installs "
      "it");
}

std::vector<std::string> OpenMpiCommand(const LaunchOptions& options) {
  // mpirun itself loads the library for the names of processes (client/ofi/names.cc). Two programs
  // have the same name, so each needs a folder for the sockets of Open MPI. Only that of mpirun
  // itself: its daemons on other machines, which may share one file system, and ranks keep theirs.
  const std::string clock = fmt::format("LD_PRELOAD={}/libpercs-clock.so", options.libraries);
  const std::string folder = fs::path(options.socket).parent_path();
  std::vector<std::string> command = {"env", clock};
  if (!folder.empty()) command.push_back("TMPDIR=" + folder);
  command.insert(command.end(), {MpirunName(), "-n", fmt::format("{}", options.ranks)});
  const auto add = [&command](std::initializer_list<std::string> words) {
    command.insert(command.end(), words);
  };
  add({"--oversubscribe", "--bind-to", "none"});
  if (geteuid() == 0) add({"--allow-run-as-root"});
  add({"--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "percs"});
  // A rank that waits sleeps in the provider.
  add({"--mca", "btl", "self", "--mca", "mpi_yield_when_idle", "0"});
  if (options.collectives)
    add({"--mca", "mca_base_component_path", options.libraries + ":SYS_DEFAULT:USER_DEFAULT"});
  const char* const temporary = std::getenv("TMPDIR");
  if (!folder.empty()) add({"-x", fmt::format("TMPDIR={}", temporary ? temporary : "/tmp")});
  add({"-x", "FI_PROVIDER=percs", "-x", "FI_PROVIDER_PATH=" + options.libraries});
  add({"-x", fmt::format("{}={}", kSocketVariable, options.socket)});
  add({"-x", clock});
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  command.insert(command.end(), options.program.begin(), options.program.end());
  return command;
}

absl::StatusOr<std::string> FindRankLibraries(bool collectives) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = self.parent_path().parent_path() / "lib" / "percs";
  for (const char* name : {"libpercs-fi.so", "libpercs-clock.so"}) {
    if (!fs::exists(folder / name, error))
      return absl::NotFoundError(fmt::format("no {} in {}", name, folder.string()));
  }
  if (collectives && !fs::exists(folder / kComponent, error)) {
    return absl::NotFoundError(
        fmt::format("no {} in {}: install the package percs-mpi, or build where Open MPI's headers "
                    "are (libopenmpi-dev); or use --collectives p2p",
                    kComponent, folder.string()));
  }
  return folder.string();
}

absl::Status CheckProgram(const std::string& program) {
  const auto path = FindOnPath(program);
  if (!path.ok()) return path.status();
  std::ifstream stream(*path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  const Linkage linkage = LinkageOf(text.str());
  if (!linkage.elf) return absl::OkStatus();
  if (!linkage.dynamic) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is linked statically, so it can load neither the provider nor virtual clocks; link it "
        "with Open MPI's shared libraries",
        *path));
  }
  if (Needs(linkage, "libmpich") ||
      (Needs(linkage, "libmpi.so.12") && !Needs(linkage, "libmpi.so.40"))) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is linked with MPICH, which does not use libfabric here; build it with Open MPI "
        "(mpicc.openmpi)",
        *path));
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<std::vector<NodeId>> HubsOfFile(const std::string& name, std::uint32_t ranks,
                                               const Topology& topology) {
  std::ifstream file(name);
  if (!file)
    return absl::NotFoundError(
        fmt::format("--map-by {}: no such file; else it is hub, or node:K", name));
  std::vector<NodeId> hubs;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto hub = topology.ParseNode(line);
    if (!hub.ok())
      return absl::InvalidArgumentError(name + ": " + std::string(hub.status().message()));
    hubs.push_back(*hub);
  }
  if (hubs.size() >= ranks) return hubs;
  return absl::InvalidArgumentError(
      fmt::format("{} names hubs for {} ranks, and there are {}", name, hubs.size(), ranks));
}

}  // namespace

absl::StatusOr<std::vector<RankPlace>> PlaceRanks(const std::string& map_by, std::uint32_t ranks,
                                                  const Topology& topology, int windows_per_hfi,
                                                  int first_window) {
  std::vector<NodeId> hubs;
  std::uint32_t per_node = 0;
  if (map_by.starts_with("node:")) {
    if (!absl::SimpleAtoi(map_by.substr(5), &per_node) || per_node == 0)
      return absl::InvalidArgumentError(fmt::format("--map-by {}: K is 1 or more", map_by));
    if (ranks > topology.leaves() * per_node) {
      return absl::InvalidArgumentError(
          fmt::format("--map-by {}: {} ranks need {} hubs, and there "
                      "are {}",
                      map_by, ranks, (ranks + per_node - 1) / per_node, topology.leaves()));
    }
    for (std::uint32_t r = 0; r < ranks; ++r) hubs.push_back(r / per_node);
  } else if (map_by == "hub") {
    for (std::uint32_t r = 0; r < ranks; ++r) hubs.push_back(r % topology.leaves());
  } else {
    auto named = HubsOfFile(map_by, ranks, topology);
    if (!named.ok()) return named.status();
    hubs = *std::move(named);
  }
  std::vector<RankPlace> places;
  std::map<NodeId, int> used;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const int local = first_window + used[hubs[r]]++;
    if (local >= kHfisPerHub * windows_per_hfi) {
      return absl::InvalidArgumentError(fmt::format(
          "rank {} is one too many for {}, which has {} windows; use more hubs, or raise "
          "parameters.windows_per_hfi",
          r, topology.NodeName(hubs[r]), kHfisPerHub * windows_per_hfi));
    }
    // Round robin over the HFIs.
    const int window = local % kHfisPerHub * windows_per_hfi + local / kHfisPerHub;
    places.push_back({hubs[r], static_cast<WindowId>(window)});
  }
  return places;
}

}  // namespace percs::mpi
