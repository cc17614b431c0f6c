#include "proto/scenario/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "proto/process/folders.h"
#include "proto/scenario/file.h"

namespace percs {
namespace {

namespace fs = std::filesystem;

class RealFile final : public Disk::File {
 public:
  explicit RealFile(int file) : file_(file) {}
  ~RealFile() override { close(file_); }

  int Write(const std::string& bytes, std::uint64_t at) override {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t written =
          pwrite(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return written < 0 ? errno : ENOSPC;
      done += static_cast<std::size_t>(written);
    }
    return 0;
  }
  int Sync() override { return fdatasync(file_) == 0 ? 0 : errno; }
  int Truncate(std::uint64_t size) override {
    return ftruncate(file_, static_cast<off_t>(size)) == 0 ? 0 : errno;
  }

 private:
  const int file_;
};

class RealDisk final : public Disk {
 public:
  absl::Status MakeFolder(const std::string& folder) override {
    return percs::MakeFolder(folder, kPrivateFolder);
  }
  bool IsFolder(const std::string& path) override {
    std::error_code error;
    return fs::is_directory(path, error);
  }
  std::vector<std::pair<std::string, std::uint64_t>> List(const std::string& folder) override {
    std::vector<std::pair<std::string, std::uint64_t>> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::uint64_t size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
      files.emplace_back(entry.path().filename().string(), size);
    }
    return files;
  }
  absl::StatusOr<std::string> Read(const std::string& path) override { return ReadWholeFile(path); }
  Opened Open(const std::string& path, bool empty) override {
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (empty ? O_TRUNC : 0);
    const int file = open(path.c_str(), flags, kPrivateFile);
    if (file < 0) return {nullptr, errno};
    fchmod(file, kPrivateFile);
    return {std::make_unique<RealFile>(file), 0};
  }
  int Rename(const std::string& from, const std::string& to) override {
    return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }
  void Remove(const std::string& path) override { unlink(path.c_str()); }
  void SyncFolder(const std::string& folder) override {
    const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return;
    fsync(file);
    close(file);
  }
  const char* vfs() const override { return nullptr; }
};

}  // namespace

Disk& Disk::Real() {
  static RealDisk disk;
  return disk;
}

}  // namespace percs
