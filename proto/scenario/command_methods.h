// The methods of the Control service whose requests are commands, by their options
// (percs/v1/options.proto), and what the journal has of a request.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "percs/v1/control.pb.h"
#include "percs/v1/options.pb.h"

namespace percs {

// Every method of the Control service with the option `command`.
std::vector<const google::protobuf::MethodDescriptor*> CommandMethods();
const v1::CommandRules& CommandRulesOf(const google::protobuf::MethodDescriptor& method);
// What the journal has of a request. REQUIRES: a method with the option `command`.
v1::JournalRecord CommandRecord(const google::protobuf::MethodDescriptor& method,
                                const google::protobuf::Message& request);
// For people: "delete_tree world".
std::string DescribeCommand(const v1::JournalRecord& record);

}  // namespace percs
