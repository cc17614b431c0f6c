#include "emulator/cell/mfc.h"

#include <algorithm>

#include "emulator/cell/spe.h"

namespace percs::cell {

Mfc::Mfc(Spe* spe, BladeContext* context, std::array<Eib*, kCells> buses, MainMemory* memory)
    : spe_(spe),
      context_(context),
      buses_(buses),
      memory_(memory),
      cell_(spe->index() / kSpesPerCell),
      unit_(kUnitOfSpe[spe->index() % kSpesPerCell]),
      slots_(static_cast<std::size_t>(context->parameters.queue_depth)) {
  order_.reserve(slots_.size());
  for (std::size_t i = slots_.size(); i-- > 0;) free_.push_back(static_cast<std::uint8_t>(i));
}

void Mfc::Enqueue(const DmaCommand& command, Time issued) {
  PERCS_CHECK(!full());
  const int slot = free_.back();
  free_.pop_back();
  order_.push_back(static_cast<std::uint8_t>(slot));
  slots_[slot] = {command, issued, false, 0, 0, command.ls, {}, 0, 0};
  if (per_tag_[command.tag]++ == 0) outstanding_ |= 1u << command.tag;
  if (command.order != DmaOrder::kNone) ++ordered_;
  if (ordered_ == 0) {
    Start(slot, issued);
  } else {
    StartWhatMay();
  }
}

bool Mfc::MayStart(std::size_t position) const {
  const DmaCommand& command = slots_[order_[position]].command;
  for (std::size_t i = 0; i < position; ++i) {
    const DmaCommand& earlier = slots_[order_[i]].command;
    if (earlier.tag != command.tag) continue;
    if (command.order != DmaOrder::kNone || earlier.order == DmaOrder::kBarrier) return false;
  }
  return true;
}

void Mfc::StartWhatMay() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Slot& slot = slots_[order_[i]];
    if (!slot.started && MayStart(i)) Start(order_[i], std::max(slot.issued, context_->now));
  }
}

void Mfc::Start(int index, Time at) {
  Slot& slot = slots_[index];
  slot.started = true;
  slot.begun = std::max(at, take_up_free_);
  take_up_free_ = slot.begun + context_->parameters.command;
  slot.elements_left = slot.command.elements();
  const bool list = slot.command.is_list();
  StartElement(index, take_up_free_ + (list ? context_->parameters.list_element : 0));
}

// Until the request of a transfer reaches the bus.
Time Mfc::CommandPhase(const Transfer& t) const {
  const bool from_memory = !t.is_signal && !t.is_put && t.ea < kLocalStoreBase;
  return context_->parameters.coherence + (from_memory ? context_->parameters.memory_latency : 0);
}

void Mfc::StartElement(int index, Time at) {
  Transfer* const t = MakeTransfer(index);
  context_->queue.Push(at + CommandPhase(*t),
                       EventKey(EventClass::kTimer, spe_->index(), 0,
                                static_cast<std::uint64_t>(BladeTimer::kRequest)),
                       EventData(t));
}

void Mfc::Locate(EffectiveAddress ea, std::uint8_t* cell, std::uint8_t* unit) const {
  if (ea < kLocalStoreBase) {
    *cell = static_cast<std::uint8_t>(memory_->cell_of(ea));
    *unit = kUnitMic;
    return;
  }
  const int spe = static_cast<int>((ea - kLocalStoreBase) / kLocalStoreStride);
  *cell = static_cast<std::uint8_t>(spe / kSpesPerCell);
  *unit = kUnitOfSpe[spe % kSpesPerCell];
}

DmaListElement Mfc::Element(const DmaCommand& command, std::uint32_t index) const {
  return spe_->local_store().Load<DmaListElement>(
      command.list + index * static_cast<std::uint32_t>(sizeof(DmaListElement)));
}

Transfer* Mfc::MakeTransfer(int index) {
  Slot& slot = slots_[index];
  const DmaCommand& c = slot.command;
  Transfer* const t = context_->transfers.Take();
  *t = Transfer{};
  t->mfc = this;
  t->command = static_cast<std::uint8_t>(index);
  t->is_signal = c.kind == DmaCommand::Kind::kSignal;
  t->is_put = c.kind == DmaCommand::Kind::kPut || c.kind == DmaCommand::Kind::kPutList;
  t->ls = slot.next_ls;
  t->ea = c.ea;
  t->bytes = c.size;
  if (t->is_signal) {
    t->signal_register = c.signal_register;
    t->target_spe = c.target_spe;
    t->bytes = c.value;
    t->ea = LocalStoreAddress(c.target_spe, 0);
  } else if (c.is_list()) {
    const DmaListElement e = Element(c, slot.next_element++);
    t->ea = (c.ea & ~EffectiveAddress{0xffffffff}) | e.eal;
    t->bytes = e.size;
    slot.next_ls = (slot.next_ls + e.size + 15) / 16 * 16;
  }
  std::uint8_t far_cell, far_unit;
  Locate(t->ea, &far_cell, &far_unit);
  const auto own_cell = static_cast<std::uint8_t>(cell_),
             own_unit = static_cast<std::uint8_t>(unit_);
  const bool out = t->is_put || t->is_signal;
  slot.last_move = {far_cell, far_unit, out, 1};
  if (!t->is_signal) slot.bytes += t->bytes;
  t->source_cell = out ? own_cell : far_cell;
  t->source_unit = out ? own_unit : far_unit;
  t->target_cell = out ? far_cell : own_cell;
  t->target_unit = out ? far_unit : own_unit;
  return t;
}

void Mfc::OnRequest(Transfer* t) {
  if (spe_->state() == Processor::State::kDown) {
    context_->transfers.Give(t);
    return;
  }
  const Slot& slot = slots_[t->command];
  if (slot.command.is_list() && slot.next_element < slot.command.elements()) {
    StartElement(t->command, context_->now - CommandPhase(*t) + context_->parameters.list_element);
  }
  buses_[t->source_cell]->Request(t);
}

void Mfc::OnLastBeat(Transfer* t, Time arrival) {
  const BladeParameters& p = context_->parameters;
  context_->queue.Push(arrival + (t->is_signal ? p.signal_set : p.dma_done),
                       EventKey(EventClass::kFlit, spe_->index(), 0, t->command), EventData(t));
}

void Mfc::CopyData(const Transfer& t) {
  std::uint8_t* const own = spe_->local_store().at(t.ls);
  if (t.ea < kLocalStoreBase) {
    t.is_put ? memory_->Write(t.ea, own, t.bytes) : memory_->Read(t.ea, own, t.bytes);
  } else {
    const EffectiveAddress offset = t.ea - kLocalStoreBase;
    Spe& far = spe_->other(static_cast<int>(offset / kLocalStoreStride));
    std::uint8_t* const there =
        far.local_store().at(static_cast<LsAddress>(offset % kLocalStoreStride));
    std::memcpy(t.is_put ? there : own, t.is_put ? own : there, t.bytes);
    if (t.is_put) far.OnStored();
  }
  context_->Fold((static_cast<std::uint64_t>(spe_->index()) << 32) | t.bytes, t.ea);
  context_->digest.Add(HashBytes(own, t.bytes));
  context_->stats.dma_bytes += t.bytes;
}

void Mfc::OnDone(Transfer* t) {
  if (t->is_signal) {
    ++context_->stats.signals;
    context_->Fold((std::uint64_t{0x300} + t->target_spe) << 8 | t->signal_register, t->bytes);
    spe_->other(t->target_spe).OnSignal(t->signal_register, t->bytes);
  } else {
    CopyData(*t);
  }
  const int slot = t->command;
  context_->transfers.Give(t);
  if (spe_->state() == Processor::State::kDown) return;
  if (--slots_[slot].elements_left == 0) Complete(slot);
}

void Mfc::Log(const Slot& slot) const {
  static constexpr const char* kKinds[] = {"put", "get", "put list", "get list", "signal"};
  context_->dma.Add({static_cast<std::uint8_t>(spe_->index()),
                     kKinds[static_cast<int>(slot.command.kind)], slot.bytes, slot.last_move.cell,
                     slot.last_move.unit, slot.issued, slot.begun, context_->now});
}

void Mfc::Complete(int slot) {
  const DmaCommand& command = slots_[slot].command;
  if (context_->dma.keeps()) Log(slots_[slot]);
  if (command.kind != DmaCommand::Kind::kSignal) ++context_->stats.dma_commands;
  if (--per_tag_[command.tag] == 0) outstanding_ &= ~(1u << command.tag);
  const bool others_waited = ordered_ > 0;
  if (command.order != DmaOrder::kNone) --ordered_;
  order_.erase(std::find(order_.begin(), order_.end(), static_cast<std::uint8_t>(slot)));
  free_.push_back(static_cast<std::uint8_t>(slot));
  if (others_waited) StartWhatMay();
  spe_->OnCommandComplete();
}

SpeInFlight Mfc::InFlight() const {
  SpeInFlight all{static_cast<std::uint8_t>(spe_->index())};
  for (const std::uint8_t number : order_) {
    const Slot& slot = slots_[number];
    if (!slot.started) {
      ++all.queued;
      continue;
    }
    const DmaMove& move = slot.last_move;
    const auto same = std::find_if(all.moves.begin(), all.moves.end(), [&move](const DmaMove& m) {
      return m.cell == move.cell && m.unit == move.unit && m.out == move.out;
    });
    if (same == all.moves.end()) {
      all.moves.push_back(move);
    } else {
      ++same->commands;
    }
  }
  return all;
}

void Mfc::GoDown() {
  for (std::size_t i = order_.size(); i-- > 0;) free_.push_back(order_[i]);
  order_.clear();
  per_tag_.fill(0);
  outstanding_ = 0;
  ordered_ = 0;
}

}  // namespace percs::cell
