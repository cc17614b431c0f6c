// The place of each field of a scenario in its file, and all errors found.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace percs {

struct Mark {
  int line = 0, column = 0;  // from 1; 0 = unknown
};

// Places of fields by path, `faults[0].link_down`. A scenario that came over the wire has none.
class SourceMarks {
 public:
  explicit SourceMarks(std::string name = "scenario") : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  void Set(const std::string& path, Mark mark) { marks_[path] = mark; }
  // The field comes from `setting` of the command line, `--set path=value`, and not from the file.
  void SetFrom(const std::string& path, std::string setting) {
    settings_[path] = std::move(setting);
  }
  // Where an error of this path comes from: `a.yaml:3:5`, a setting, or both.
  std::string Origin(const std::string& path, Mark mark) const;
  // The place of the field, or of the nearest one around it that has a place.
  Mark Find(std::string path) const;

 private:
  std::string name_;
  std::map<std::string, Mark> marks_;
  std::map<std::string, std::string> settings_;
};

class ErrorList {
 public:
  explicit ErrorList(const SourceMarks* marks) : marks_(marks) {}
  void Add(const std::string& path, std::string what) {
    Add(marks_->Find(path), path, std::move(what));
  }
  void Add(Mark mark, const std::string& path, std::string what);
  // A message that begins with its field: "topology.dims: 1 is outside 2..4096".
  void AddNamed(const std::string& message);
  bool empty() const { return errors_.empty(); }
  // Whether the field or one inside it is already known to be wrong; more errors would only
  // confuse.
  bool Has(const std::string& path) const;
  // Whether the field itself is known to be wrong, so that nothing inside it can be checked.
  bool HasExactly(const std::string& path) const;
  // OK, or INVALID_ARGUMENT with one `file:line:column: path: what` per line in the order of the
  // file.
  absl::Status ToStatus() const;

 private:
  struct Error {
    Mark mark;
    std::string path, what;
  };
  const SourceMarks* marks_;
  std::vector<Error> errors_;
};

}  // namespace percs
