// Programs of windows: from a scenario, and their results on the wire.
#pragma once

#include "emulator/hfi/window_program.h"
#include "emulator/topology/topology.h"
#include "percs/v1/windows.pb.h"
#include "proto/scenario/errors.h"

namespace percs {

WindowWorkload BuildWindows(const v1::WindowPrograms& message, const Topology& topology,
                            ErrorList* errors);

void WindowProgramToProto(const WindowProgramResult& result, v1::WindowProgramResult* message);
WindowProgramResult WindowProgramFromProto(const v1::WindowProgramResult& message);

}  // namespace percs
