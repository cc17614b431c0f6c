#include "proto/scenario/record_frame.h"

#include <zlib.h>

namespace percs {
namespace {

constexpr std::size_t kFrameSize = 8;

}  // namespace

void AddNumber(std::uint32_t value, std::string* to) {
  for (int shift = 0; shift < 32; shift += 8)
    to->push_back(static_cast<char>(value >> shift & 0xff));
}

std::uint32_t NumberAt(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  return value;
}

std::uint32_t Crc(const char* bytes, std::size_t size) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes), static_cast<uInt>(size)));
}

void AddFrame(const google::protobuf::MessageLite& message, std::string* to) {
  const std::size_t begin = to->size();
  to->append(kFrameSize, '\0');
  message.AppendToString(to);
  const std::size_t size = to->size() - begin - kFrameSize;
  std::string head;
  AddNumber(static_cast<std::uint32_t>(size), &head);
  AddNumber(Crc(to->data() + begin + kFrameSize, size), &head);
  to->replace(begin, kFrameSize, head);
}

bool ReadFrame(const std::string& bytes, std::size_t* at, google::protobuf::MessageLite* message) {
  if (bytes.size() - *at < kFrameSize) return false;
  const std::uint32_t size = NumberAt(bytes, *at);
  if (size > kFrameMax || bytes.size() - *at - kFrameSize < size) return false;
  const char* record = bytes.data() + *at + kFrameSize;
  if (Crc(record, size) != NumberAt(bytes, *at + 4) ||
      !message->ParseFromArray(record, static_cast<int>(size)))
    return false;
  *at += kFrameSize + size;
  return true;
}

}  // namespace percs
