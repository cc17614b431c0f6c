// The embedded database of a controller's state directory (`state.db`, SQLite): the daemons that
// joined, the run in progress and its position, the steps of network management in it, and earlier
// runs. Changes between Begin and Commit are saved as a whole or not at all, also if the process is
// killed in the middle.
//
// What windows change is only appended to a file beside the database (WindowLog), and the database
// has the state before that.
//
// A commit says what it survives. To sync each window's progress would make windows as slow as the
// disk, so most commits survive the end of this process only: after a failure of the machine the
// database is a little older, but whole.
//
// THREAD: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/controller/store/window_log.h"
#include "percs/v1/control.pb.h"
#include "percs/v1/state.pb.h"
#include "proto/scenario/disk.h"
#include "proto/scenario/state_format.h"

struct sqlite3;
struct sqlite3_stmt;

namespace percs {

// A run as the database has it.
struct KeptRun {
  std::uint64_t number = 0;
  std::string name;
  std::string state;          // going_on, finished, failed
  v1::ApplyRequest request;   // of the run in progress
  v1::SavedRun saved;         // likewise; empty until it was saved first
  v1::GetResultReply result;  // of one that has finished
  std::uint32_t code = 0;     // absl::StatusCode of one that has failed
  std::string error;          // likewise
};

struct KeptState {
  std::uint64_t fabric = 0;  // its nonce; 0: nothing was kept yet
  std::uint32_t places = 0;
  std::vector<std::pair<std::uint32_t, v1::SavedMember>> members;
  std::vector<KeptRun> runs;           // in order
  std::vector<v1::ManagerStep> steps;  // of the run in progress
  // What has happened since then to it and to the sessions; one for each Append, in order.
  std::vector<v1::SavedSteps> windows;
};

// The failure that a commit survives once it has returned. A commit that survives the machine is
// synced, and with it every earlier commit.
enum class Survives { kProcess, kMachine };

class StateStore {
 public:
  // The disk lives as long as this.
  explicit StateStore(Disk* disk = &Disk::Real()) : disk_(disk), log_(disk) {}
  ~StateStore() { Close(); }
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  // No other process can open it until Close. DATA_LOSS if the database is damaged,
  // FAILED_PRECONDITION for a newer format, and, while it has a run in progress, for another wire
  // or model; UNAVAILABLE if the folder cannot be written to, or another controller has it.
  absl::Status Open(const std::string& folder);
  bool is_open() const { return database_ != nullptr; }
  void Close();
  absl::StatusOr<KeptState> Load();

  // Begins the changes up to Commit, which returns their errors: RESOURCE_EXHAUSTED when the disk
  // is full, UNAVAILABLE for other errors. After an error nothing was kept, and the same may be
  // tried again.
  void Begin(Survives survives);
  void PutFabric(std::uint64_t fabric, std::uint32_t places);
  void PutMember(std::uint32_t place, const v1::SavedMember& member);
  void RemoveMember(std::uint32_t place);
  // Before all are put: now and then, rows that were large before, as of a daemon that is told its
  // tables, get to share pages again. SQLite writes whole pages, and does not join them itself.
  void PackMembers();
  void PutRun(std::uint64_t number, const std::string& name, const v1::ApplyRequest& request);
  // Sets `log`.
  void PutSaved(v1::SavedRun* saved);
  void PutStep(std::uint64_t run, std::uint64_t number, const v1::ManagerStep& step);
  // Deletes what only a run in progress needs. What the next one needs is put after it.
  void EndRun(std::uint64_t number, const absl::StatusOr<v1::GetResultReply>& result);
  absl::Status Commit();
  // A commit of its own, for less than the others cost: only steps since the last one. False if
  // they could not be written; then the whole state is to be put. REQUIRES: the last commit with a
  // PutSaved was not an error. Sets `after`.
  bool Append(v1::SavedSteps* steps);
  // Steps were appended since the last commit.
  bool has_appended() const { return !log_.empty(); }

 private:
  class Statement;
  absl::Status CreateTables();
  absl::Status CheckVersions();
  absl::Status Check(int code, const std::string& what) const;
  absl::Status Run(const std::string& sql);
  std::optional<std::string> Meta(const std::string& key);
  void Put(const char* sql, const std::function<void(Statement&)>& bind);
  void PutMeta(const std::string& key, const std::string& value);
  absl::Status LoadRuns(KeptState* state);

  Disk* disk_;
  std::string path_;
  sqlite3* database_ = nullptr;
  std::map<std::string_view, sqlite3_stmt*> statements_;  // by their texts, which are literals
  absl::Status trouble_;                                  // of the transaction
  Survives survives_ = Survives::kMachine;
  std::uint64_t packs_ = 0;   // calls of PackMembers
  std::uint32_t opened_ = 0;  // how often, this time included
  WindowLog log_;
};

}  // namespace percs
