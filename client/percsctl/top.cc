// percsctl top: a running fabric on the terminal, refreshed, with keys that act
// on it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "client/lib/interrupt.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/terminal.h"
#include "client/percsctl/top_view.h"
#include "percs/v1/scenario.pb.h"

namespace percs {
namespace {

using Clock = std::chrono::steady_clock;

struct TopArguments {
  FabricOptions fabric;
  std::string interval = "wall:1s", sort = "load";
};

absl::StatusOr<TopSample> Look(FabricClient &client) {
  TopSample sample;
  auto status = client.Status();
  if (!status.ok()) return status.status();
  sample.status = *std::move(status);
  if (sample.status.run() == 0) return sample;
  // A run may end, or another begin, between these calls: missing data are there next time.
  if (auto links = client.ListLinks(""); links.ok()) sample.links = *std::move(links);
  if (auto counters = client.GetCounters("", /*per_node=*/true); counters.ok())
    sample.counters = *std::move(counters);
  return sample;
}

class Top {
 public:
  Top(FabricClient &client, Terminal &terminal, TopScreen screen,
      std::chrono::milliseconds interval)
      : client_(client), terminal_(terminal), screen_(std::move(screen)), interval_(interval) {}

  Outcome Run() {
    Clock::time_point next = Clock::now();
    while (!InterruptGuard::raised()) {
      if (Clock::now() >= next) {
        auto sample = Look(client_);
        if (!sample.ok()) return FromStatus(sample.status());
        Take(*std::move(sample));
        next = Clock::now() + interval_;
      }
      Draw();
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now());
      const KeyPress key =
          terminal_.Wait(static_cast<int>(std::max<std::int64_t>(left.count(), 1)));
      if (key.key == Key::kOther && key.letter == 'q' && asked_.empty()) break;
      if (key.key != Key::kNone && key.key != Key::kResized) Press(key, &next);
    }
    return Outcome::Ok();
  }

 private:
  void Take(TopSample sample) {
    const std::string selected = ChosenLink();
    state_ = CompareTop(last_ ? &*last_ : nullptr, sample);
    last_ = std::move(sample);
    Sort(selected);
  }
  // The selection stays on its link.
  void Sort(const std::string &selected) {
    SortTop(screen_.sort, &state_);
    screen_.selected = 0;
    for (std::size_t i = 0; i < state_.links.size(); ++i)
      if (state_.links[i].name == selected) screen_.selected = i;
  }
  // Until a key has chosen one, the first link is selected.
  std::string ChosenLink() const { return chosen_ && Selected() ? Selected()->name : ""; }
  const TopLink *Selected() const {
    return screen_.selected < state_.links.size() ? &state_.links[screen_.selected] : nullptr;
  }
  void Draw() {
    screen_.width = terminal_.width();
    screen_.height = terminal_.height();
    terminal_.Draw(TopLines(state_, screen_));
  }
  void Press(const KeyPress &key, Clock::time_point *next) {
    if (!asked_.empty()) {
      const std::string link = std::exchange(asked_, "");
      screen_.message = key.letter == 'y' ? CutLink(link) : "";
      *next = Clock::now();
      return;
    }
    screen_.message.clear();
    chosen_ |= key.key == Key::kUp || key.key == Key::kDown || key.letter == 'c';
    if (key.key == Key::kUp && screen_.selected > 0) --screen_.selected;
    if (key.key == Key::kDown && screen_.selected + 1 < state_.links.size()) ++screen_.selected;
    if (key.letter == 's') {
      screen_.sort = static_cast<TopSort>((static_cast<int>(screen_.sort) + 1) % kTopSorts);
      Sort(ChosenLink());
    }
    if (key.letter == 'p') screen_.message = PauseOrResume();
    if (key.letter == 'c' && Selected() != nullptr) screen_.message = CutOrRestore(*Selected());
    if (key.letter == 'p' || key.letter == 'c') *next = Clock::now();
  }

  std::string PauseOrResume() {
    const bool paused = state_.status.state() == v1::FABRIC_STATE_PAUSED;
    const auto reply = paused ? client_.Resume() : client_.Pause();
    return reply.ok() ? (paused ? "resumed" : "paused") : Text(reply.status());
  }
  // One fault for each link, by which it is found again.
  static std::string FaultOf(std::string link) {
    std::replace(link.begin(), link.end(), ':', '-');
    return "top-" + link;
  }
  static v1::Fault CutOf(const std::string &link) {
    v1::Fault fault;
    fault.set_id(FaultOf(link));
    fault.mutable_inject()->set_kind(v1::FAULT_KIND_LINK_DOWN);
    fault.mutable_inject()->mutable_select()->set_link(link);
    return fault;
  }
  // Restores a link that was cut here; asks before it cuts one.
  std::string CutOrRestore(const TopLink &link) {
    if (!link.up) {
      const auto reply = client_.DeleteFault(FaultOf(link.name));
      return reply.ok() ? link.name + " is restored" : Text(reply.status());
    }
    const auto preview = client_.PreviewFault(CutOf(link.name));
    if (!preview.ok()) return Text(preview.status());
    asked_ = link.name;
    const v1::FaultPreview &p = preview->preview();
    return fmt::format("cut {}? {} of hubs with a route over it, {} with no other way. y: yes",
                       link.name, Counted(p.pairs(), "pair"), FormatCount(p.pairs_unreachable()));
  }
  std::string CutLink(const std::string &link) {
    const auto reply = client_.CreateFault(CutOf(link));
    return reply.ok() ? link + " is cut; c restores it" : Text(reply.status());
  }

  FabricClient &client_;
  Terminal &terminal_;
  TopScreen screen_;
  const std::chrono::milliseconds interval_;
  std::optional<TopSample> last_;
  TopState state_;
  std::string asked_;    // the link that is cut if the next key is y
  bool chosen_ = false;  // a link, by a key
};

Outcome RunTop(const TopArguments &a) {
  const auto interval = ParseWallTime(a.interval);
  if (!interval.ok())
    return Outcome::Fail(ExitCode::kUsage, "--interval: " + Text(interval.status()));
  return WithFabric(a.fabric, [&](FabricClient &client) {
    // Errors of the fabric are printed after the terminal is restored.
    if (auto status = client.Status(); !status.ok()) return FromStatus(status.status());
    auto terminal = Terminal::Open();
    if (!terminal.ok()) return FromStatus(terminal.status());
    InterruptGuard interrupt;
    TopScreen screen;
    screen.fabric = a.fabric.controller.empty() ? a.fabric.name : a.fabric.controller;
    screen.sort = a.sort == "drops"  ? TopSort::kDrops
                  : a.sort == "name" ? TopSort::kName
                                     : TopSort::kLoad;
    return Top(client, **terminal, screen, std::max(*interval, std::chrono::milliseconds(100)))
        .Run();
  });
}

}  // namespace

CommandBody AddTop(CLI::App &app) {
  auto a = std::make_shared<TopArguments>();
  app.add_option("--interval", a->interval, "Wall time between two updates, at least wall:100ms")
      ->capture_default_str();
  app.add_option("--sort", a->sort, "Order of the hubs and links: load, drops or name")
      ->check(CLI::IsMember({"load", "drops", "name"}))
      ->capture_default_str();
  AddNameOption(app, a->fabric.name);
  AddControllerOptions(app, a->fabric);
  return [a] { return RunTop(*a); };
}

}  // namespace percs
