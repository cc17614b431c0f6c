// One direction of the coherent link that joins the buses of the two Cells. It has room for some
// lines, sends them in order at its rate, and delivers each a latency later.
#pragma once

#include "emulator/cell/blade_context.h"
#include "emulator/cell/eib.h"

namespace percs::cell {

class ChipLink {
 public:
  ChipLink(int from_cell, BladeContext* context, Eib* far)
      : context_(context),
        far_(far),
        from_cell_(from_cell),
        line_time_(context->parameters.link.line_time),
        single_line_time_(context->parameters.link.single_line_time) {}

  // From when on another line would find room.
  Time room_at() const { return free_ - context_->parameters.link.buffer_lines * line_time_; }

  // A line that has arrived here by `arrival`.
  void Send(Transfer* transfer, int beats, bool last, Time arrival);
  void OnArrival(Transfer* transfer, int beats, bool last) {
    far_->RequestLine(transfer, beats, last);
  }

  // Leaves this share of the rate, above 0 and at most 1.
  void Degrade(double share);

 private:
  BladeContext* const context_;
  Eib* const far_;
  const int from_cell_;
  Time line_time_, single_line_time_;
  Time free_ = 0;  // when everything sent so far is on the wire
};

}  // namespace percs::cell
