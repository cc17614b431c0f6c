// The files of a state directory: journal, payloads, and through SQLite its database. The machine's
// disk, or the simulator's, which fills up, fails and loses what was not synced. Errors are
// errno's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace percs {

class Disk {
 public:
  class File {
   public:
    virtual ~File() = default;
    // All of `bytes`, or an error; then some of them may be there.
    virtual int Write(const std::string& bytes, std::uint64_t at) = 0;
    // Makes the written bytes durable after a failure of the machine.
    virtual int Sync() = 0;
    virtual int Truncate(std::uint64_t size) = 0;
  };
  struct Opened {
    std::unique_ptr<File> file;
    int error = 0;
    bool ok() const { return file != nullptr; }
  };
  virtual ~Disk() = default;

  // For the owner alone, and those above it. UNAVAILABLE if it cannot be made.
  virtual absl::Status MakeFolder(const std::string& folder) = 0;
  virtual bool IsFolder(const std::string& path) = 0;
  // Names and sizes of the files in it.
  virtual std::vector<std::pair<std::string, std::uint64_t>> List(const std::string& folder) = 0;
  // Errors as ReadWholeFile.
  virtual absl::StatusOr<std::string> Read(const std::string& path) = 0;
  // For writing, by the owner alone; made if it is not there. `empty`: drops its content.
  virtual Opened Open(const std::string& path, bool empty) = 0;
  virtual int Rename(const std::string& from, const std::string& to) = 0;
  virtual void Remove(const std::string& path) = 0;
  // Makes files that were created or renamed in it durable after a failure of the machine.
  virtual void SyncFolder(const std::string& folder) = 0;
  // The name of SQLite's VFS for this disk; null: its default.
  virtual const char* vfs() const = 0;

  // The machine's.
  static Disk& Real();
};

}  // namespace percs
