// What the ranks of an MPI program called, as bytes: fields that are not zero, as variable-length
// integers, times as differences to the rank's record before. A message of 8 bytes takes about 60,
// with its receive and the waiting of both ranks.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/mpi/transport.h"
#include "client/ofi/channel.h"

namespace percs::mpi {

struct LoggedCall {
  Record record;
  Bytes bytes;  // record.payload of them
};

class CallLog {
 public:
  explicit CallLog(std::size_t ranks) : last_(ranks) {}

  void Add(std::uint32_t rank, const Record& record, const Bytes& bytes);
  // Bytes of what was added since Take.
  std::size_t size() const { return text_.size(); }
  std::string Take();

 private:
  struct Last {
    std::int64_t at = 0, computed = 0;
  };
  std::vector<Last> last_;  // by rank
  std::string text_;
};

// By rank, in the order of its calls. `parts`: what Take returned, one after the other. DATA_LOSS.
absl::StatusOr<std::vector<std::deque<LoggedCall>>> ReadCalls(
    std::size_t ranks, const std::vector<std::string>& parts);

}  // namespace percs::mpi
