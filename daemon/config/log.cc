#include "daemon/config/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "fmt/chrono.h"
#include "fmt/format.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/process/printable.h"
#include "spdlog/details/os.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

using Seconds = std::chrono::seconds;

constexpr std::uint64_t kRepeatsPerSecond = 10;
// Different ones of one second; those beyond are only counted.
constexpr std::size_t kMessagesKnown = 4096;
constexpr char kNoTime[] = "-";

std::atomic<Time> virtual_now{-1};

std::string VirtualText() {
  const Time now = virtual_now.load(std::memory_order_relaxed);
  return now < 0 ? kNoTime : FormatTime(now);
}

// %* of the pattern.
class VirtualFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&,
              spdlog::memory_buf_t& into) override {
    fmt::format_to(std::back_inserter(into), "{}", VirtualText());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<VirtualFlag>();
  }
};

std::unique_ptr<spdlog::formatter> TextFormatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<VirtualFlag>('*').set_pattern(
      "%Y-%m-%d %H:%M:%S.%e [virtual %*] %n %P %l: %v");
  return formatter;
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& into) override {
    const auto second = std::chrono::time_point_cast<Seconds>(line.time);
    const auto millis =
        std::chrono::duration_cast<std::chrono::milliseconds>(line.time - second).count();
    const std::tm utc = spdlog::details::os::gmtime(std::chrono::system_clock::to_time_t(second));
    nlohmann::ordered_json json;
    json["wall"] = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", utc, millis);
    const Time now = virtual_now.load(std::memory_order_relaxed);
    json["virtual_ps"] = now < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(now);
    json["program"] = std::string(line.logger_name.data(), line.logger_name.size());
    json["pid"] = getpid();
    const auto level = spdlog::level::to_string_view(line.level);
    json["level"] = std::string(level.data(), level.size());
    json["message"] = std::string(line.payload.data(), line.payload.size());
    const std::string text =
        json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    into.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

// Passes lines on, but at most ten of the same message in a second. The number of suppressed lines
// is reported when that second is over: with the next line, the next flush (spdlog's own, every
// second), or the end of the process.
class LimitingSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LimitingSink(std::shared_ptr<spdlog::sinks::sink> next) : next_(std::move(next)) {}
  ~LimitingSink() override { SayHowMany(); }

 protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    EndSecondBefore(line.time);
    std::string text =
        Printable(std::string_view(line.payload.data(), line.payload.size()), Lines::kOne);
    const auto known = said_.find(text);
    if (known == said_.end()) {
      if (said_.size() >= kMessagesKnown) {
        ++others_;
        return;
      }
      program_.assign(line.logger_name.data(), line.logger_name.size());
      said_.emplace(text, Said{line.level, 1});
    } else if (++known->second.times > kRepeatsPerSecond) {
      return;
    }
    spdlog::details::log_msg printable = line;
    printable.payload = text;
    next_->log(printable);
  }
  void flush_() override {
    EndSecondBefore(std::chrono::system_clock::now());
    next_->flush();
  }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    next_->set_formatter(std::move(formatter));
  }
  void set_pattern_(const std::string& pattern) override { next_->set_pattern(pattern); }

 private:
  struct Said {
    spdlog::level::level_enum level;
    std::uint64_t times;
  };
  using Second = std::chrono::time_point<std::chrono::system_clock, Seconds>;

  void EndSecondBefore(std::chrono::system_clock::time_point now) {
    const auto second = std::chrono::time_point_cast<Seconds>(now);
    if (second == second_) return;
    second_ = second;
    SayHowMany();
  }
  void SayHowMany() {
    for (const auto& [text, said] : said_) {
      if (said.times <= kRepeatsPerSecond) continue;
      Say(said.level,
          fmt::format("{} more times within a second: {}", said.times - kRepeatsPerSecond, text));
    }
    if (others_ > 0) {
      Say(spdlog::level::warn,
          fmt::format("{} more lines suppressed within a second, after {} different ones", others_,
                      kMessagesKnown));
    }
    said_.clear();
    others_ = 0;
  }
  void Say(spdlog::level::level_enum level, const std::string& text) {
    next_->log(spdlog::details::log_msg(program_, level, text));
  }

  const std::shared_ptr<spdlog::sinks::sink> next_;
  Second second_{};
  std::string program_;
  std::map<std::string, Said> said_;  // of this second
  std::uint64_t others_ = 0;
};

// Lines of libprotobuf become lines of this log.
void LogOfProtobuf(google::protobuf::LogLevel level, const char*, int, const std::string& text) {
  spdlog::log(level >= google::protobuf::LOGLEVEL_ERROR ? spdlog::level::err : spdlog::level::warn,
              "protobuf: {}", text);
}

}  // namespace

void SetUpLog(const char* program) {
  auto sink = std::make_shared<LimitingSink>(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
  logger->set_formatter(TextFormatter());
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  spdlog::flush_every(Seconds(1));
  google::protobuf::SetLogHandler(&LogOfProtobuf);
}

absl::Status SetLogFormat(const std::string& format) {
  if (format != "text" && format != "json") {
    return absl::InvalidArgumentError(
        fmt::format("log format \"{}\": expected text or json", format));
  }
  spdlog::default_logger()->set_formatter(format == "text" ? TextFormatter()
                                                           : std::make_unique<JsonFormatter>());
  return absl::OkStatus();
}

absl::Status SetLogLevel(const std::string& level) {
  for (const auto known : {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                           spdlog::level::err, spdlog::level::off}) {
    const auto name = spdlog::level::to_string_view(known);
    if (level != std::string(name.data(), name.size())) continue;
    spdlog::set_level(known);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("log level \"{}\": expected debug, info, warning, error or off", level));
}

void SetLogTime(Time now) { virtual_now.store(now, std::memory_order_relaxed); }

}  // namespace percs
