// How records lie in a file: each is a length and a CRC (4 bytes each, little-endian) and a
// message. A frame that was not written as a whole is not taken for a record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "google/protobuf/message_lite.h"

namespace percs {

// Bytes of a record.
inline constexpr std::uint32_t kFrameMax = 64 << 20;

void AddNumber(std::uint32_t value, std::string* to);
// REQUIRES: at + 4 <= bytes.size().
std::uint32_t NumberAt(const std::string& bytes, std::size_t at);
std::uint32_t Crc(const char* bytes, std::size_t size);

// REQUIRES: the message has at most kFrameMax bytes.
void AddFrame(const google::protobuf::MessageLite& message, std::string* to);
// Reads the record at `*at` and moves `*at` behind it. False if there is no whole record.
bool ReadFrame(const std::string& bytes, std::size_t* at, google::protobuf::MessageLite* message);

}  // namespace percs
