// The disk of a controller, in memory: files of its journal, and a VFS for its SQLite database. It
// knows what a failure of the machine would leave: everything that was synced, and of the rest some
// writes, or parts of them. It fills up, its syncs fail, and a process that dies in the middle of a
// write leaves the first part of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/scenario/disk.h"
#include "tests/simulator/world.h"

struct sqlite3_vfs;

namespace percs::sim {

class SimulatedDisk final : public Disk {
 public:
  explicit SimulatedDisk(World* world);
  ~SimulatedDisk() override;

  // Who writes from now on.
  void Mount(std::shared_ptr<Process> process) { process_ = std::move(process); }
  // Until then nothing grows; or syncs fail.
  void FullUntil(Wall until) { full_until_ = until; }
  void FailSyncsUntil(Wall until) { syncs_fail_until_ = until; }
  bool full() const { return full_until_ > world_->now(); }
  bool troubled() const { return full() || syncs_fail_until_ > world_->now(); }
  // The machine fails: what was not synced is there in parts.
  void LosePower();
  // What a failure of the machine now would leave for certain.
  std::string Durable(const std::string& path) const;

  // For the VFS, too.
  struct Contents {
    std::string now, synced;
    struct Write {
      std::uint64_t at = 0;
      std::string bytes;
      bool truncates = false;  // to `at`
    };
    std::vector<Write> unsynced;
  };
  using FileRef = std::shared_ptr<Contents>;
  FileRef Find(const std::string& path) const;
  FileRef Make(const std::string& path);
  int WriteTo(Contents& file, const char* bytes, std::size_t size, std::uint64_t at);
  int SyncOf(Contents& file);
  int TruncateTo(Contents& file, std::uint64_t size);
  std::uint64_t Draw() { return world_->random().Next(); }

  absl::Status MakeFolder(const std::string& folder) override;
  bool IsFolder(const std::string& path) override;
  std::vector<std::pair<std::string, std::uint64_t>> List(const std::string& folder) override;
  absl::StatusOr<std::string> Read(const std::string& path) override;
  Opened Open(const std::string& path, bool empty) override;
  int Rename(const std::string& from, const std::string& to) override;
  void Remove(const std::string& path) override;
  void SyncFolder(const std::string& folder) override;
  const char* vfs() const override { return vfs_name_.c_str(); }

 private:
  // Of files there are; a rename or removal counts as synced at once, as with a journalled file
  // system whose metadata is in order.
  World* const world_;
  std::shared_ptr<Process> process_;
  std::map<std::string, FileRef> files_;
  Wall full_until_{0}, syncs_fail_until_{0};
  std::string vfs_name_;
  std::unique_ptr<sqlite3_vfs> vfs_;
};

}  // namespace percs::sim
