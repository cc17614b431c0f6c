#include "emulator/base/reduce_op.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {
namespace {

constexpr std::array<std::string_view, kSoftwareReduceOps> kOpNames{
    "nop", "sum", "prod", "min", "max", "and", "or", "xor", "maxloc", "minloc"};
constexpr std::array<std::string_view, kOperandTypes> kTypeNames{"int32",  "uint32", "int64",
                                                                 "uint64", "float",  "double"};

template <typename Enum, std::size_t kSize>
std::optional<Enum> Parse(const std::array<std::string_view, kSize>& names, std::string_view name) {
  for (std::size_t i = 0; i < kSize; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// Fixed point wraps around: computed without sign.
template <typename T>
T Apply(ReduceOp op, T a, T b) {
  if (op == ReduceOp::kMin) return b < a ? b : a;
  if (op == ReduceOp::kMax) return a < b ? b : a;
  if constexpr (std::is_floating_point_v<T>) {
    return op == ReduceOp::kSum ? a + b : a * b;
  } else {
    using U = std::make_unsigned_t<T>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    switch (op) {
      case ReduceOp::kSum:
        return static_cast<T>(x + y);
      case ReduceOp::kProd:
        return static_cast<T>(x * y);
      case ReduceOp::kAnd:
        return static_cast<T>(x & y);
      case ReduceOp::kOr:
        return static_cast<T>(x | y);
      default:
        return static_cast<T>(x ^ y);
    }
  }
}

template <typename T>
void CombinePairs(bool largest, std::size_t pairs, const char* source, char* target) {
  for (std::size_t i = 0; i < pairs; ++i, source += 2 * sizeof(T), target += 2 * sizeof(T)) {
    T theirs[2], ours[2];
    std::memcpy(theirs, source, sizeof(theirs));
    std::memcpy(ours, target, sizeof(ours));
    const bool better = largest ? theirs[0] > ours[0] : theirs[0] < ours[0];
    if (better || (theirs[0] == ours[0] && theirs[1] < ours[1]))
      std::memcpy(target, source, sizeof(theirs));
  }
}

template <typename T>
void CombineAs(ReduceOp op, std::size_t count, const void* from, void* into) {
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(into);
  if (IsOfPairs(op)) return CombinePairs<T>(op == ReduceOp::kMaxLoc, count / 2, source, target);
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, target + i * sizeof(T), sizeof(T));
    std::memcpy(&b, source + i * sizeof(T), sizeof(T));
    a = Apply(op, a, b);
    std::memcpy(target + i * sizeof(T), &a, sizeof(T));
  }
}

}  // namespace

std::string_view OpName(ReduceOp op) { return kOpNames[static_cast<std::size_t>(op)]; }
std::string_view TypeName(OperandType type) { return kTypeNames[static_cast<std::size_t>(type)]; }
std::optional<ReduceOp> ParseOp(std::string_view name) { return Parse<ReduceOp>(kOpNames, name); }
std::optional<OperandType> ParseType(std::string_view name) {
  return Parse<OperandType>(kTypeNames, name);
}

absl::Status CheckReduction(ReduceOp op, OperandType type) {
  const bool bitwise = op == ReduceOp::kAnd || op == ReduceOp::kOr || op == ReduceOp::kXor;
  const bool floating = type == OperandType::kFloat || type == OperandType::kDouble;
  if (bitwise && floating) {
    return absl::InvalidArgumentError(fmt::format(
        "{} of {} operands does not exist; bitwise operations need int32, uint32, int64 or uint64",
        OpName(op), TypeName(type)));
  }
  return absl::OkStatus();
}

void Combine(ReduceOp op, OperandType type, std::size_t count, const void* from, void* into) {
  if (op == ReduceOp::kNop) return;
  switch (type) {
    case OperandType::kInt32:
      return CombineAs<std::int32_t>(op, count, from, into);
    case OperandType::kUint32:
      return CombineAs<std::uint32_t>(op, count, from, into);
    case OperandType::kInt64:
      return CombineAs<std::int64_t>(op, count, from, into);
    case OperandType::kUint64:
      return CombineAs<std::uint64_t>(op, count, from, into);
    case OperandType::kFloat:
      return CombineAs<float>(op, count, from, into);
    case OperandType::kDouble:
      return CombineAs<double>(op, count, from, into);
  }
  PERCS_CHECK(false);
}

}  // namespace percs
