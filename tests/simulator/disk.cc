#include "tests/simulator/disk.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs::sim {
namespace {

void Apply(const SimulatedDisk::Contents::Write& write, std::size_t bytes, std::string* to) {
  if (write.truncates) return to->resize(write.at);
  if (to->size() < write.at + bytes) to->resize(write.at + bytes);
  std::memcpy(to->data() + write.at, write.bytes.data(), bytes);
}

// --- SQLite's side.

struct VfsFile {
  sqlite3_file base;
  SimulatedDisk* disk;
  SimulatedDisk::FileRef* file;
};

SimulatedDisk::Contents& Of(sqlite3_file* file) { return **reinterpret_cast<VfsFile*>(file)->file; }
SimulatedDisk& DiskOf(sqlite3_file* file) { return *reinterpret_cast<VfsFile*>(file)->disk; }
SimulatedDisk& DiskOf(sqlite3_vfs* vfs) { return *static_cast<SimulatedDisk*>(vfs->pAppData); }

int Close(sqlite3_file* file) {
  delete reinterpret_cast<VfsFile*>(file)->file;
  return SQLITE_OK;
}
int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  const std::string& bytes = Of(file).now;
  const auto wanted = static_cast<std::size_t>(size), from = static_cast<std::size_t>(at);
  const std::size_t there = from < bytes.size() ? std::min(wanted, bytes.size() - from) : 0;
  std::memcpy(to, bytes.data() + std::min(from, bytes.size()), there);
  std::memset(static_cast<char*>(to) + there, 0, wanted - there);
  return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}
int Write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  const int error =
      DiskOf(file).WriteTo(Of(file), static_cast<const char*>(from), static_cast<std::size_t>(size),
                           static_cast<std::uint64_t>(at));
  return error == 0 ? SQLITE_OK : error == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return DiskOf(file).TruncateTo(Of(file), static_cast<std::uint64_t>(size)) == 0
             ? SQLITE_OK
             : SQLITE_IOERR_TRUNCATE;
}
int Sync(sqlite3_file* file, int) {
  return DiskOf(file).SyncOf(Of(file)) == 0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(Of(file).now.size());
  return SQLITE_OK;
}
int Lock(sqlite3_file*, int) { return SQLITE_OK; }
int CheckReserved(sqlite3_file*, int* reserved) {
  *reserved = 0;
  return SQLITE_OK;
}
int Control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return 4096; }
int Characteristics(sqlite3_file*) { return 0; }

const sqlite3_io_methods kMethods = {
    1,       Close,         Read,    Write,      Truncate,        Sync,    FileSize, Lock,
    Lock,    CheckReserved, Control, SectorSize, Characteristics, nullptr, nullptr,  nullptr,
    nullptr, nullptr,       nullptr};

int OpenFile(sqlite3_vfs* vfs, const char* name, sqlite3_file* to, int flags, int* out) {
  auto* file = reinterpret_cast<VfsFile*>(to);
  file->base.pMethods = nullptr;
  SimulatedDisk& disk = DiskOf(vfs);
  const std::string path = name ? name : "temporary";
  auto found = disk.Find(path);
  if (!found && (flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
  if (!found) found = disk.Make(path);
  if (!found) return SQLITE_CANTOPEN;
  file->disk = &disk;
  file->file = new SimulatedDisk::FileRef(std::move(found));
  file->base.pMethods = &kMethods;
  if (out) *out = flags;
  return SQLITE_OK;
}
int Delete(sqlite3_vfs* vfs, const char* name, int) {
  DiskOf(vfs).Remove(name);
  return SQLITE_OK;
}
int Access(sqlite3_vfs* vfs, const char* name, int, int* there) {
  *there = DiskOf(vfs).Find(name) != nullptr;
  return SQLITE_OK;
}
int FullPath(sqlite3_vfs*, const char* name, int size, char* to) {
  return std::snprintf(to, static_cast<std::size_t>(size), "%s", name) < size ? SQLITE_OK
                                                                              : SQLITE_CANTOPEN;
}
int Randomness(sqlite3_vfs* vfs, int size, char* to) {
  for (int i = 0; i < size; ++i) to[i] = static_cast<char>(DiskOf(vfs).Draw());
  return size;
}
int Sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
int CurrentTime(sqlite3_vfs*, double* time) {
  *time = 2'460'000;
  return SQLITE_OK;
}
int LastError(sqlite3_vfs*, int, char*) { return 0; }

// --- The journal's.

class JournalFileHere final : public Disk::File {
 public:
  JournalFileHere(SimulatedDisk* disk, SimulatedDisk::FileRef file)
      : disk_(disk), file_(std::move(file)) {}
  int Write(const std::string& bytes, std::uint64_t at) override {
    return disk_->WriteTo(*file_, bytes.data(), bytes.size(), at);
  }
  int Sync() override { return disk_->SyncOf(*file_); }
  int Truncate(std::uint64_t size) override { return disk_->TruncateTo(*file_, size); }

 private:
  SimulatedDisk* disk_;
  SimulatedDisk::FileRef file_;
};

}  // namespace

SimulatedDisk::SimulatedDisk(World* world) : world_(world), vfs_(std::make_unique<sqlite3_vfs>()) {
  static std::atomic<std::uint64_t> disks{0};
  vfs_name_ = fmt::format("simulated-{}", ++disks);
  *vfs_ = {};
  vfs_->iVersion = 1;
  vfs_->szOsFile = sizeof(VfsFile);
  vfs_->mxPathname = 512;
  vfs_->zName = vfs_name_.c_str();
  vfs_->pAppData = this;
  vfs_->xOpen = OpenFile;
  vfs_->xDelete = Delete;
  vfs_->xAccess = Access;
  vfs_->xFullPathname = FullPath;
  vfs_->xRandomness = Randomness;
  vfs_->xSleep = Sleep;
  vfs_->xCurrentTime = CurrentTime;
  vfs_->xGetLastError = LastError;
  PERCS_CHECK(sqlite3_vfs_register(vfs_.get(), 0) == SQLITE_OK);
}

SimulatedDisk::~SimulatedDisk() { sqlite3_vfs_unregister(vfs_.get()); }

SimulatedDisk::FileRef SimulatedDisk::Find(const std::string& path) const {
  const auto it = files_.find(path);
  return it == files_.end() ? nullptr : it->second;
}

SimulatedDisk::FileRef SimulatedDisk::Make(const std::string& path) {
  if (!process_->Affects()) return nullptr;
  return files_.try_emplace(path, std::make_shared<Contents>()).first->second;
}

int SimulatedDisk::WriteTo(Contents& file, const char* bytes, std::size_t size, std::uint64_t at) {
  if (!process_->alive()) return EIO;
  std::size_t there = size;
  int error = 0;
  if (full() && at + size > file.now.size()) {
    there = at < file.now.size() ? file.now.size() - at : 0;
    error = ENOSPC;
  }
  if (!process_->Affects()) {  // dies in this write
    there = world_->random().Below(static_cast<std::uint32_t>(there) + 1);
    error = EIO;
  }
  if (there > 0) {
    file.unsynced.push_back({at, std::string(bytes, there), false});
    sim::Apply(file.unsynced.back(), there, &file.now);
  }
  return error;
}

int SimulatedDisk::TruncateTo(Contents& file, std::uint64_t size) {
  if (!process_->Affects()) return EIO;
  file.unsynced.push_back({size, {}, true});
  file.now.resize(size);
  return 0;
}

int SimulatedDisk::SyncOf(Contents& file) {
  if (!process_->Affects()) return EIO;
  if (syncs_fail_until_ > world_->now()) return EIO;
  for (const Contents::Write& write : file.unsynced)
    sim::Apply(write, write.bytes.size(), &file.synced);
  file.unsynced.clear();
  return 0;
}

void SimulatedDisk::LosePower() {
  world_->Log("the controller's machine loses power");
  for (auto& [path, file] : files_) {
    for (const Contents::Write& write : file->unsynced) {
      const std::uint32_t fate = world_->random().Below(3);  // gone, there, or a part of it
      if (fate == 0) continue;
      const auto whole = static_cast<std::uint32_t>(write.bytes.size());
      sim::Apply(write, fate == 1 ? whole : world_->random().Below(whole + 1), &file->synced);
    }
    file->unsynced.clear();
    file->now = file->synced;
  }
}

std::string SimulatedDisk::Durable(const std::string& path) const {
  const FileRef file = Find(path);
  return file ? file->synced : "";
}

absl::Status SimulatedDisk::MakeFolder(const std::string&) { return absl::OkStatus(); }

bool SimulatedDisk::IsFolder(const std::string& path) {
  const auto it = files_.lower_bound(path + "/");
  return it != files_.end() && it->first.rfind(path + "/", 0) == 0;
}

std::vector<std::pair<std::string, std::uint64_t>> SimulatedDisk::List(const std::string& folder) {
  std::vector<std::pair<std::string, std::uint64_t>> list;
  for (const auto& [path, file] : files_) {
    if (path.rfind(folder + "/", 0) == 0)
      list.emplace_back(path.substr(folder.size() + 1), file->now.size());
  }
  return list;
}

absl::StatusOr<std::string> SimulatedDisk::Read(const std::string& path) {
  const FileRef file = Find(path);
  if (!file) return absl::NotFoundError(path + ": cannot be opened: No such file or directory");
  return file->now;
}

Disk::Opened SimulatedDisk::Open(const std::string& path, bool empty) {
  const FileRef file = Make(path);
  if (!file) return {nullptr, EIO};
  if (empty && TruncateTo(*file, 0) != 0) return {nullptr, EIO};
  return {std::make_unique<JournalFileHere>(this, file), 0};
}

int SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  if (!process_->Affects()) return EIO;
  const auto it = files_.find(from);
  if (it == files_.end()) return ENOENT;
  files_[to] = it->second;
  files_.erase(it);
  return 0;
}

void SimulatedDisk::Remove(const std::string& path) {
  if (process_->Affects()) files_.erase(path);
}

void SimulatedDisk::SyncFolder(const std::string&) { process_->Affects(); }

}  // namespace percs::sim
