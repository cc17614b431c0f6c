#include "emulator/roadrunner/sweep_timing.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace percs::roadrunner {

NearCosts::NearCosts(const RoadrunnerParameters& p) {
  const cell::BladeParameters& b = p.blade;
  put_start = b.issue + b.command + b.coherence + b.dma_done;
  get_start = put_start + b.memory_latency;
  across = b.link.latency;
  atomic = 2 * b.atomic_travel + b.atomic_service;
  spin = p.cml.spin;
  match = p.cml.match;
  call = p.cml.call;
  chip_rate = cell::kBeatBytes * 1000.0 / static_cast<double>(b.eib.cycle);
  across_rate = cell::kLineBytes * 1000.0 / static_cast<double>(b.link.single_line_time);
}

Time NearCosts::Put(std::uint64_t bytes, bool far) const {
  return put_start + TransferTime(bytes, far ? across_rate : chip_rate) + (far ? across : 0);
}
// Data and flag are commands one behind the other, the flag fenced.
Time NearCosts::Message(std::uint64_t bytes, bool far) const {
  return (bytes > 0 ? Put(bytes, far) : 0) + Put(16, far);
}
Time NearCosts::Get(std::uint64_t bytes) const {
  return get_start + TransferTime(bytes, chip_rate);
}
Time NearCosts::FarReceive() const { return call + atomic + Put(64, false); }
Time NearCosts::FarSend(std::uint64_t bytes) const {
  return call + atomic + Put(bytes, false) + Put(64, false);
}

SweepProblem WeakScalingProblem(const RankGrid& grid) {
  SweepProblem p;
  p.i = 5 * grid.px;
  p.j = 5 * grid.py;
  p.k = 400;
  p.k_block = 20;
  p.cell_angle = kCellAngleOfPowerXCell;
  return p;
}

namespace {

constexpr int kReceiveX = 0, kSendX = 2, kPhases = 4;  // each followed by the same along y

class TimingMachine {
 public:
  TimingMachine(const RoadrunnerParameters& parameters, const SweepProblem& problem,
                const RankGrid& grid, int ranks, bool ideal, IbTree tree)
      : p_(parameters),
        problem_(problem),
        grid_(grid),
        ideal_(ideal),
        costs_(parameters),
        host_(parameters, std::move(tree)),
        ranks_(static_cast<std::size_t>(ranks)),
        ppe_free_(
            static_cast<std::size_t>(host_.network().tree().triblades() * kCellsPerTriblade)) {}

  absl::StatusOr<SweepTimingResult> Run(const ShareObserver& progress);

 private:
  // What happens next, in order of time, then of what it is about.
  enum class What : std::uint64_t { kGo, kSendReady, kForward, kArrived, kAtPpe, kDescriptor };
  struct Entry {
    Time time;
    std::uint64_t key;  // what, in the highest bits; sender of the message, or rank
    bool operator>(const Entry& o) const { return time != o.time ? time > o.time : key > o.key; }
  };
  struct RankState {
    std::int32_t step = 0;
    std::int8_t phase = kReceiveX;
    bool receiving = false, sending = false;    // waits in its phase
    Rank peer = -1;                             // of the pending receive or send
    Time since = 0;                             // call of the pending send or receive
    Time posted = 0;                            // the descriptor is where it is looked at
    bool arrived_x = false, arrived_y = false;  // far messages that came before their receive
  };

  void Push(Time at, What what, std::uint64_t about) {
    queue_.push({at, static_cast<std::uint64_t>(what) << 56 | about});
  }
  std::uint64_t Bytes(Rank rank, bool x) const {
    const int across = x ? PartOf(problem_.j, grid_.py, grid_.y(rank)).size
                         : PartOf(problem_.i, grid_.px, grid_.x(rank)).size;
    return static_cast<std::uint64_t>(problem_.angle_block * problem_.k_block * across) * 8;
  }
  Time Work(Rank rank) const {
    return problem_.cell_angle * PartOf(problem_.i, grid_.px, grid_.x(rank)).size *
           PartOf(problem_.j, grid_.py, grid_.y(rank)).size * problem_.k_block *
           problem_.angle_block;
  }
  RankState& At(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  // The neighbour of a phase, -1 at the edge.
  Rank Peer(Rank rank, const SweepStep& step, int phase) const;
  void Advance(Rank rank, Time now);
  void Exchange(Rank rank, Rank peer, Time now);
  void Near(Rank sender, Rank receiver);
  Time TakePpe(Rank rank, Time cost, Time now) {
    Time& free = ppe_free_[static_cast<std::size_t>(CellOf(rank))];
    return free = std::max(free, now) + cost;
  }
  void OnSendReady(Rank sender, Time now);
  bool OnForward(Rank from, Rank to, Rank sender, bool answer, Time now);
  void OnAtPpe(Rank sender, bool answer, Time now);
  void Deliver(Rank sender, Rank receiver, Time ready);

  const RoadrunnerParameters& p_;
  const SweepProblem& problem_;
  const RankGrid grid_;
  const bool ideal_;
  const NearCosts costs_;
  HostPath host_;
  std::vector<RankState> ranks_;
  std::vector<Time> ppe_free_;  // by Cell
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  absl::Status status_;
  SweepTimingResult result_;
  std::uint64_t steps_done_ = 0;  // of all ranks
  DigestStream digest_;
};

constexpr std::uint64_t kEventsPerReport = 1 << 16;

constexpr std::uint64_t kAnswer = std::uint64_t{1} << 40;  // beside the sender: the way back

Rank TimingMachine::Peer(Rank rank, const SweepStep& step, int phase) const {
  const bool x = phase == kReceiveX || phase == kSendX, against = step.octant & (x ? 1 : 2);
  const int d = (phase < kSendX) == against ? 1 : -1;
  const int px = grid_.x(rank), py = grid_.y(rank);
  return x ? grid_.At(px + d, py) : grid_.At(px, py + d);
}

// Continues from the rank's phase until it has to wait or is done.
void TimingMachine::Advance(Rank rank, Time now) {
  RankState& r = At(rank);
  while (r.step < problem_.steps()) {
    const SweepStep step = StepAt(problem_, r.step);
    for (; r.phase < kPhases; ++r.phase) {
      if (r.phase == kSendX) now += Work(rank);
      const Rank peer = Peer(rank, step, r.phase);
      if (peer >= 0) return Exchange(rank, peer, now);
    }
    r.phase = kReceiveX;
    ++r.step;
    ++steps_done_;
  }
  result_.time = std::max(result_.time, now);
  digest_.Add(static_cast<std::uint64_t>(now));
  digest_.Add(static_cast<std::uint64_t>(rank));
}

void TimingMachine::Exchange(Rank rank, Rank peer, Time now) {
  RankState& r = At(rank);
  r.peer = peer;
  r.since = now;
  const bool send = r.phase >= kSendX;
  (send ? r.sending : r.receiving) = true;
  result_.messages += send;
  if (ideal_ || BladeOf(rank) == BladeOf(peer)) {
    RankState& other = At(peer);
    if (send ? other.receiving && other.peer == rank : other.sending && other.peer == rank) {
      send ? Near(rank, peer) : Near(peer, rank);
    }
    return;
  }
  if (send) {
    ++result_.far_messages;
    const bool x = r.phase == kSendX;
    Push(now + costs_.FarSend(Bytes(rank, x)), What::kSendReady, static_cast<std::uint64_t>(rank));
  } else {
    Push(now + costs_.FarReceive(), What::kDescriptor, static_cast<std::uint64_t>(rank));
  }
}

// Both have arrived: the later one decides when data move.
void TimingMachine::Near(Rank sender, Rank receiver) {
  RankState& s = At(sender);
  RankState& r = At(receiver);
  s.sending = r.receiving = false;
  Time sent = std::max(s.since, r.since), received = sent;
  if (!ideal_) {
    const bool across = CellOf(sender) != CellOf(receiver);
    const Time found =
        std::max(s.since + costs_.call, r.since + costs_.call + costs_.Put(64, across)) +
        costs_.spin + costs_.match;
    sent = found + costs_.Message(Bytes(sender, s.phase == kSendX), across);
    received = sent + costs_.spin;
  }
  ++s.phase;
  ++r.phase;
  Push(sent, What::kGo, static_cast<std::uint64_t>(sender));
  Push(received, What::kGo, static_cast<std::uint64_t>(receiver));
}

void TimingMachine::OnSendReady(Rank sender, Time now) {
  const RankState& s = At(sender);
  const Time given = TakePpe(sender, p_.cml.ppe_handle + p_.dacs.overhead, now);
  const Time there = host_.DacsUp(CellOf(sender), Bytes(sender, s.phase == kSendX), given);
  Push(there, What::kForward, static_cast<std::uint64_t>(sender));
}

// At the Opteron of `from`, the message of `sender` or, back again, the answer to it.
bool TimingMachine::OnForward(Rank from, Rank to, Rank sender, bool answer, Time now) {
  const std::uint64_t bytes = answer ? 0 : Bytes(sender, At(sender).phase == kSendX);
  const auto there = host_.Mpi(CellOf(from), CellOf(to), bytes, now);
  if (!there.ok()) {
    status_ = there.status();
    return false;
  }
  result_.network_messages += NodeOf(from) != NodeOf(to) && !answer;
  Push(*there, What::kArrived, static_cast<std::uint64_t>(sender) | (answer ? kAnswer : 0));
  return true;
}

void TimingMachine::OnAtPpe(Rank sender, bool answer, Time now) {
  const Time cost = p_.cml.ppe_handle + p_.dacs.overhead;
  if (answer) {
    const Time told = TakePpe(sender, cost + p_.cml.ppe_store, now);
    RankState& s = At(sender);
    s.sending = false;
    ++s.phase;
    Push(told + costs_.spin, What::kGo, static_cast<std::uint64_t>(sender));
    return;
  }
  const Rank receiver = At(sender).peer;
  RankState& r = At(receiver);
  const Time taken = TakePpe(receiver, cost, now);
  if (r.receiving && r.peer == sender && r.posted > 0 && r.posted <= taken) {
    Deliver(sender, receiver, taken);
  } else {
    (At(sender).phase == kSendX ? r.arrived_x : r.arrived_y) = true;
  }
}

void TimingMachine::Deliver(Rank sender, Rank receiver, Time ready) {
  RankState& r = At(receiver);
  const std::uint64_t bytes = Bytes(sender, At(sender).phase == kSendX);
  const Time stored = TakePpe(receiver, p_.cml.ppe_store, ready);
  const Time got = stored + costs_.spin + (bytes > p_.cml.copy_bytes_max ? costs_.Get(bytes) : 0);
  r.receiving = false;
  r.posted = 0;
  ++r.phase;
  Push(got, What::kGo, static_cast<std::uint64_t>(receiver));
  const Time answered = TakePpe(receiver, p_.dacs.overhead, stored);
  const Time there = host_.DacsUp(CellOf(receiver), 0, answered);
  Push(there, What::kForward, static_cast<std::uint64_t>(sender) | kAnswer);
}

absl::StatusOr<SweepTimingResult> TimingMachine::Run(const ShareObserver& progress) {
  const double all = static_cast<double>(ranks_.size()) * problem_.steps();
  for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) {
    result_.computation = std::max(result_.computation, Work(rank) * problem_.steps());
    Push(0, What::kGo, static_cast<std::uint64_t>(rank));
  }
  while (!queue_.empty()) {
    const Entry e = queue_.top();
    queue_.pop();
    ++result_.events;
    if (progress && result_.events % kEventsPerReport == 0)
      progress(static_cast<double>(steps_done_) / all);
    const bool answer = e.key & kAnswer;
    const Rank rank = static_cast<Rank>(e.key & 0xffffffff);
    switch (static_cast<What>(e.key >> 56)) {
      case What::kGo:
        Advance(rank, e.time);
        break;
      case What::kSendReady:
        OnSendReady(rank, e.time);
        break;
      case What::kForward: {
        const Rank peer = At(rank).peer;
        if (!OnForward(answer ? peer : rank, answer ? rank : peer, rank, answer, e.time))
          return status_;
        break;
      }
      case What::kArrived: {
        const Rank peer = At(rank).peer, to = answer ? rank : peer, from = answer ? peer : rank;
        const std::uint64_t bytes = answer ? 0 : Bytes(rank, At(rank).phase == kSendX);
        Push(host_.DacsDown(CellOf(from), CellOf(to), bytes, e.time), What::kAtPpe,
             static_cast<std::uint64_t>(rank) | (answer ? kAnswer : 0));
        break;
      }
      case What::kAtPpe:
        OnAtPpe(rank, answer, e.time);
        break;
      case What::kDescriptor: {
        RankState& r = At(rank);
        const Time seen = TakePpe(rank, p_.cml.ppe_handle, e.time);
        r.posted = seen;
        bool& arrived = r.phase == kReceiveX ? r.arrived_x : r.arrived_y;
        if (std::exchange(arrived, false)) Deliver(r.peer, rank, seen);
        break;
      }
    }
  }
  result_.ranks = static_cast<int>(ranks_.size());
  result_.grid = grid_;
  result_.network = host_.network().stats();
  result_.digest = digest_.Finish();
  for (const RankState& r : ranks_) {
    if (r.step < problem_.steps()) return absl::InternalError("a rank of the sweep never ended");
  }
  return result_;
}

}  // namespace

absl::StatusOr<SweepTimingResult> SweepTiming(const RoadrunnerParameters& parameters,
                                              const SweepProblem& problem, int ranks, bool ideal,
                                              const ShareObserver& progress) {
  if (absl::Status s = CheckParameters(parameters); !s.ok()) return s;
  const auto grid = RankGrid::ForRanks(ranks);
  if (!grid.ok()) return grid.status();
  if (absl::Status s = CheckProblem(problem, *grid); !s.ok()) return s;
  if (parameters.cml.send_slots < cell::kSpesPerCell ||
      parameters.cml.receive_slots < cell::kSpesPerCell) {
    return absl::InvalidArgumentError(
        "the timing form has no stalls: give PPE queues 8 slots or more");
  }
  auto tree = IbTree::WithTriblades((ranks + kSpesPerTriblade - 1) / kSpesPerTriblade);
  if (!tree.ok()) return tree.status();
  return TimingMachine(parameters, problem, *grid, ranks, ideal, *std::move(tree)).Run(progress);
}

}  // namespace percs::roadrunner
