// What `percsctl up` remembers about the processes it started, and `percsctl context` about fabrics
// elsewhere, under ${XDG_STATE_HOME:-~/.local/state}/percs/<name>/fabric.json, so that a later
// percsctl finds them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/lib/process.h"
#include "proto/process/replace_file.h"

namespace percs {

struct FabricProcess {
  std::string role;  // controller, percsd
  ProcessId id;
  std::string log;
  std::vector<std::string> command = {};  // that started it

  // controller, d0, d1, ...: that of its log.
  std::string name() const;
};

inline constexpr char kRemote[] = "remote";

struct FabricRecord {
  std::string name;
  std::string transport;   // unix, tcp, or remote: others started it, elsewhere
  std::string controller;  // its address as gRPC takes it; "" until it is known
  std::string metrics;     // URL of the controller's metrics, or ""
  std::string page;        // link to the page of the fabric, or ""
  std::string scenario;    // file it was sized from, or ""
  std::string sockets;     // folder of the Unix sockets
  std::string tls;         // folder of the identity that percsctl shows, or "": plaintext
  std::vector<FabricProcess> processes;  // the controller first

  bool remote() const { return transport == kRemote; }
  int running() const;
  std::vector<ProcessId> ids() const;
};

// INVALID_ARGUMENT unless 1 to 32 letters, digits, dots, dashes and underscores, not led by a dot.
absl::Status CheckFabricName(const std::string& name);

class FabricStore {
 public:
  // At the user's state directory. FAILED_PRECONDITION if neither XDG_STATE_HOME nor HOME is set.
  static absl::StatusOr<FabricStore> Open();
  explicit FabricStore(std::string root) : root_(std::move(root)) {}

  std::string FolderOf(const std::string& name) const { return root_ + "/" + name; }
  // Folder for sockets: the fabric's own, or a short one in the temporary directory where a
  // socket's path would not fit into the 107 bytes the kernel allows.
  std::string SocketFolderOf(const std::string& name) const;
  std::vector<std::string> Names() const;
  // Where identities of a fabric are kept.
  std::string TlsFolderOf(const std::string& name) const { return FolderOf(name) + "/tls"; }
  // NOT_FOUND names the fabrics there are.
  absl::StatusOr<FabricRecord> Load(const std::string& name) const;
  // Replaces the file in one step: a crash leaves the old or the new one.
  absl::Status Save(const FabricRecord& record) const;
  // Sockets, identities and record go; logs stay until the next `up`.
  void Remove(const FabricRecord& record) const;

 private:
  std::string root_;
};

// Held while a fabric of this name is brought up or down; ABORTED if another percsctl holds it.
class FabricLock {
 public:
  static absl::StatusOr<FabricLock> Take(const FabricStore& store, const std::string& name);

 private:
  FabricLock() = default;
  LockFile file_;
};

}  // namespace percs
