// What libmicrohttpd calls for the page's server, in its own thread.
#pragma once

#include <microhttpd.h>

#include <cstdarg>
#include <cstddef>

namespace percs {

struct PageRequests {
  static void OnLog(void* server, const char* format, va_list arguments);
  // Called for the head of a request, for each part of its body, and for the answer.
  static MHD_Result OnRequest(void* server, MHD_Connection* connection, const char* path,
                              const char* method, const char* version, const char* body,
                              std::size_t* body_bytes, void** request);
  static void OnCompleted(void* server, MHD_Connection* connection, void** request,
                          MHD_RequestTerminationCode why);
};

}  // namespace percs
