#include "daemon/controller/store/state_store.h"

#include <sqlite3.h>

#include "fmt/format.h"
#include "proto/process/version.h"

namespace percs {
namespace {

// Other connections only read; the controller is the only writer.
constexpr int kBusyMilliseconds = 2'000;
constexpr char kGoingOn[] = "going_on";
constexpr std::uint64_t kPackedEach = 64;

// As text in `meta`.
std::uint32_t Number(const std::string& text) {
  return static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

// What changes with every window is in one table, without the request, which may be large: SQLite
// writes whole pages, and few daemons and the progress of the run share one. `place` is that of a
// daemon, or -1 for the progress of the run.
constexpr char kTables[] = R"sql(
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS current(place INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS run(number INTEGER PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL,
                               request BLOB, result BLOB, code INTEGER, error TEXT);
CREATE TABLE IF NOT EXISTS step(
  run INTEGER, number INTEGER, step BLOB NOT NULL, PRIMARY KEY(run, number))
  WITHOUT ROWID;
)sql";

// Formats 1 and 2 had two tables for it; in format 1, only a run that has ended can be read.
constexpr std::uint32_t kFormatWithTwoTables = 2;
constexpr char kJoinTables[] = R"sql(
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS member(place INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS progress(run INTEGER PRIMARY KEY, saved BLOB NOT NULL);
INSERT OR REPLACE INTO current SELECT place, state FROM member;
INSERT OR REPLACE INTO current SELECT -1, saved FROM progress ORDER BY run;
DROP TABLE member;
DROP TABLE progress;
COMMIT;
)sql";

}  // namespace

// One use of a statement. Its text is compiled once, as some are used in every window.
class StateStore::Statement {
 public:
  Statement(StateStore* store, const char* sql) {
    sqlite3_stmt*& statement = store->statements_[sql];
    if (statement == nullptr) {
      code_ = sqlite3_prepare_v3(store->database_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement,
                                 nullptr);
    }
    statement_ = statement;
  }
  ~Statement() {
    if (statement_ == nullptr) return;
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Number(std::uint64_t value) {
    if (code_ == SQLITE_OK)
      code_ = sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(value));
    return *this;
  }
  Statement& Text(const std::string& value) {
    if (code_ == SQLITE_OK) {
      code_ = sqlite3_bind_text(statement_, ++bound_, value.data(), static_cast<int>(value.size()),
                                SQLITE_TRANSIENT);
    }
    return *this;
  }
  Statement& Bytes(const google::protobuf::MessageLite& message) {
    const std::string bytes = message.SerializeAsString();
    if (code_ == SQLITE_OK)
      code_ =
          sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
    return *this;
  }
  // True while there is a row.
  bool Step() {
    if (code_ == SQLITE_OK || code_ == SQLITE_ROW) code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }
  int code() const { return code_; }
  bool failed() const { return code_ != SQLITE_OK && code_ != SQLITE_ROW && code_ != SQLITE_DONE; }
  std::uint64_t NumberAt(int column) const {
    return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
  }
  std::string At(int column) const {
    const void* bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr
               ? std::string()
               : std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

void StateStore::Close() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  statements_.clear();
  if (database_ != nullptr) sqlite3_close(database_);
  database_ = nullptr;
  log_.Close();
}

absl::Status StateStore::Check(int code, const std::string& what) const {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return absl::OkStatus();
  const std::string text = fmt::format("{}: {}: {}", path_, what, sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          text + "; move it away to start without its runs (the journal beside it stays)");
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return absl::ResourceExhaustedError(text +
                                          "; free some space: virtual time is blocked until then");
    default:
      return absl::UnavailableError(text);
  }
}

absl::Status StateStore::Run(const std::string& sql) {
  return Check(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr), "opening it");
}

absl::Status StateStore::Open(const std::string& folder) {
  Close();
  path_ = folder + "/state.db";
  if (absl::Status status = disk_->MakeFolder(folder); !status.ok()) return status;
  // SQLite gives the files beside it the same rights. It has the nonce of the fabric.
  disk_->Open(path_, /*empty=*/false);
  const int code = sqlite3_open_v2(path_.c_str(), &database_,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, disk_->vfs());
  absl::Status status = Check(code, "opening it");
  if (status.ok()) {
    sqlite3_busy_timeout(database_, kBusyMilliseconds);
    survives_ = Survives::kMachine;
    status =
        Run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;");
  }
  if (status.ok()) {
    Statement check(this, "PRAGMA quick_check(1)");
    const bool whole = check.Step() && check.At(0) == "ok";
    if (!whole) status = Check(check.failed() ? check.code() : SQLITE_CORRUPT, "checking it");
  }
  if (status.ok()) status = CreateTables();
  if (status.ok()) status = log_.Open(folder, opened_);
  if (!status.ok()) Close();
  return status;
}

absl::Status StateStore::CreateTables() {
  if (absl::Status status = Run(kTables); !status.ok()) return status;
  if (absl::Status status = CheckVersions(); !status.ok()) return status;
  if (const auto format = Meta("format"); format && Number(*format) <= kFormatWithTwoTables) {
    if (absl::Status status = Run(kJoinTables); !status.ok()) return status;
  }
  opened_ = Number(Meta("opened").value_or("0")) + 1;
  Begin(Survives::kMachine);
  PutMeta("format", fmt::format("{}", kStateFormat));
  PutMeta("opened", fmt::format("{}", opened_));
  PutMeta("wire", fmt::format("{}", kWireVersion));
  PutMeta("model", fmt::format("{}", kModelVersion));
  PutMeta("software", kSoftwareVersion);
  return Commit();
}

std::optional<std::string> StateStore::Meta(const std::string& key) {
  Statement statement(this, "SELECT value FROM meta WHERE key = ?");
  if (!statement.Text(key).Step()) return std::nullopt;
  return statement.At(0);
}

absl::Status StateStore::CheckVersions() {
  const auto format = Meta("format");
  if (!format) return absl::OkStatus();
  if (Number(*format) > kStateFormat) {
    return absl::FailedPreconditionError(
        fmt::format("{} has format {}, and this software reads formats up to {}", path_, *format,
                    kStateFormat));
  }
  Statement going_on(this, "SELECT number FROM run WHERE state = 'going_on'");
  if (!going_on.Step()) return absl::OkStatus();
  const auto same = [&](const char* what, std::uint32_t ours) -> absl::Status {
    const std::string theirs = Meta(what).value_or("0");
    if (theirs == fmt::format("{}", ours)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{}: run {} is in progress, started by {} {}; this software has {} {} and "
                    "cannot continue it: use the software that started it, or replay the journal",
                    path_, going_on.NumberAt(0), what, theirs, what, ours));
  };
  if (absl::Status status = same("wire", kWireVersion); !status.ok()) return status;
  return same("model", kModelVersion);
}

absl::StatusOr<KeptState> StateStore::Load() {
  KeptState state;
  state.fabric = std::strtoull(Meta("fabric").value_or("0").c_str(), nullptr, 16);
  state.places = Number(Meta("places").value_or("0"));
  const auto damaged = [this](const char* what) {
    return Check(SQLITE_CORRUPT, fmt::format("reading a {}", what));
  };
  Statement members(this, "SELECT place, state FROM current WHERE place >= 0 ORDER BY place");
  while (members.Step()) {
    v1::SavedMember member;
    if (!member.ParseFromString(members.At(1)) || members.NumberAt(0) >= state.places)
      return damaged("daemon");
    state.members.emplace_back(static_cast<std::uint32_t>(members.NumberAt(0)), std::move(member));
  }
  if (members.failed()) return Check(members.code(), "reading daemons");
  if (absl::Status status = LoadRuns(&state); !status.ok()) return status;
  if (state.runs.empty() || state.runs.back().state != kGoingOn) return state;
  Statement steps(this, "SELECT step FROM step WHERE run = ? ORDER BY number");
  steps.Number(state.runs.back().number);
  while (steps.Step()) {
    if (!state.steps.emplace_back().ParseFromString(steps.At(0))) return damaged("step");
  }
  if (steps.failed()) return Check(steps.code(), "reading steps");
  if (state.steps.size() != state.runs.back().saved.steps())
    return damaged("step that is not there");
  auto windows = log_.Read(state.runs.back().saved.log());
  if (!windows.ok()) return windows.status();
  state.windows = *std::move(windows);
  return state;
}

absl::Status StateStore::LoadRuns(KeptState* state) {
  Statement runs(
      this,
      "SELECT number, name, run.state, request, current.state, result, code, error FROM run "
      "LEFT JOIN current ON current.place = -1 ORDER BY number");
  while (runs.Step()) {
    KeptRun& run = state->runs.emplace_back();
    run.number = runs.NumberAt(0);
    run.name = runs.At(1);
    run.state = runs.At(2);
    run.code = static_cast<std::uint32_t>(runs.NumberAt(6));
    run.error = runs.At(7);
    if (!run.request.ParseFromString(runs.At(3)) || !run.saved.ParseFromString(runs.At(4)) ||
        !run.result.ParseFromString(runs.At(5))) {
      return Check(SQLITE_CORRUPT, fmt::format("reading run {}", run.number));
    }
    if (run.saved.number() != run.number) run.saved.Clear();
  }
  return Check(runs.code(), "reading runs");
}

void StateStore::Begin(Survives survives) {
  if (survives != survives_) {
    // NORMAL writes to the log without a sync, FULL syncs it at the end of each transaction.
    const char* sql =
        survives == Survives::kMachine ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL";
    trouble_ = Check(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr), "writing");
    if (!trouble_.ok()) return;
    survives_ = survives;
  }
  trouble_ = absl::OkStatus();
  Put("BEGIN IMMEDIATE", [](Statement&) {});
}

void StateStore::Put(const char* sql, const std::function<void(Statement&)>& bind) {
  if (!trouble_.ok()) return;
  Statement statement(this, sql);
  bind(statement);
  statement.Step();
  trouble_ = Check(statement.code(), "writing");
}

void StateStore::PutMeta(const std::string& key, const std::string& value) {
  Put("INSERT OR REPLACE INTO meta VALUES(?, ?)", [&](Statement& s) { s.Text(key).Text(value); });
}

void StateStore::PutFabric(std::uint64_t fabric, std::uint32_t places) {
  PutMeta("fabric", fmt::format("{:016x}", fabric));
  PutMeta("places", fmt::format("{}", places));
}

void StateStore::PutMember(std::uint32_t place, const v1::SavedMember& member) {
  Put("INSERT OR REPLACE INTO current VALUES(?, ?)",
      [&](Statement& s) { s.Number(place).Bytes(member); });
}

void StateStore::RemoveMember(std::uint32_t place) {
  Put("DELETE FROM current WHERE place = ?", [&](Statement& s) { s.Number(place); });
}

void StateStore::PackMembers() {
  if (packs_++ % kPackedEach == 0) Put("DELETE FROM current WHERE place >= 0", [](Statement&) {});
}

void StateStore::PutRun(std::uint64_t number, const std::string& name,
                        const v1::ApplyRequest& request) {
  Put("INSERT OR REPLACE INTO run(number, name, state, request) VALUES(?, ?, 'going_on', ?)",
      [&](Statement& s) { s.Number(number).Text(name).Bytes(request); });
}

void StateStore::PutSaved(v1::SavedRun* saved) {
  saved->set_log(log_.NextState());
  Put("INSERT OR REPLACE INTO current VALUES(-1, ?)", [&](Statement& s) { s.Bytes(*saved); });
}

void StateStore::PutStep(std::uint64_t run, std::uint64_t number, const v1::ManagerStep& step) {
  Put("INSERT OR REPLACE INTO step VALUES(?, ?, ?)",
      [&](Statement& s) { s.Number(run).Number(number).Bytes(step); });
}

void StateStore::EndRun(std::uint64_t number, const absl::StatusOr<v1::GetResultReply>& result) {
  Put("DELETE FROM step WHERE run = ?", [&](Statement& s) { s.Number(number); });
  Put("DELETE FROM current WHERE place = -1", [](Statement&) {});
  Put("UPDATE run SET state = ?, request = NULL, result = ?, code = ?, error = ? WHERE number = ?",
      [&](Statement& s) {
        s.Text(result.ok() ? "finished" : "failed")
            .Bytes(result.ok() ? *result : v1::GetResultReply());
        s.Number(static_cast<std::uint64_t>(result.status().raw_code()))
            .Text(std::string(result.status().message()));
        s.Number(number);
      });
}

absl::Status StateStore::Commit() {
  Put("COMMIT", [](Statement&) {});
  if (!trouble_.ok()) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  log_.Committed(trouble_.ok());
  return trouble_;
}

bool StateStore::Append(v1::SavedSteps* steps) { return log_.Append(steps); }

}  // namespace percs
