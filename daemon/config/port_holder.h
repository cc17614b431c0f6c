// The process that has a TCP port on this host, from /proc: so that "address in use" names it.
#pragma once

namespace percs {

bool TcpPortTaken(int port);
// Its pid, or 0 if there is none that we may look at.
int TcpPortHolder(int port);

}  // namespace percs
