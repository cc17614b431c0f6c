// Arbitrary bytes as a journal on disk. The first byte decides whether they are a whole file, or
// what follows is put into records with the right lengths and checksums, so that what is in a
// record is reached, too. What is read is records, then at most one end that a crash left; anything
// else is refused.
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/base/check.h"
#include "fmt/format.h"
#include "proto/scenario/journal_file.h"

namespace {

constexpr std::size_t kRecordBytes = 64;

void AddNumber(std::uint32_t value, std::string* to) {
  for (int shift = 0; shift < 32; shift += 8)
    to->push_back(static_cast<char>(value >> shift & 0xff));
}

std::uint32_t Crc(const std::string& bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

std::string Framed(const std::string& bytes) {
  std::string file = "PERCSJNL";
  AddNumber(percs::kJournalFormat, &file);
  AddNumber(Crc(file), &file);
  for (std::size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    const std::string record = bytes.substr(at, kRecordBytes);
    AddNumber(static_cast<std::uint32_t>(record.size()), &file);
    AddNumber(Crc(record), &file);
    file += record;
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string file = data[0] % 2 == 0 ? rest : Framed(rest);
  static const int memory = memfd_create("journal", MFD_CLOEXEC);
  PERCS_CHECK(ftruncate(memory, 0) == 0);
  PERCS_CHECK(pwrite(memory, file.data(), file.size(), 0) == static_cast<ssize_t>(file.size()));
  const auto journal = percs::ReadJournal(fmt::format("/proc/self/fd/{}", memory));
  if (!journal.ok()) {
    PERCS_CHECK(!journal.status().message().empty());
    return 0;
  }
  PERCS_CHECK(journal->whole + journal->cut_off == file.size());
  return 0;
}
