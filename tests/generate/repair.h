// Makes a drawn scenario legal: does what the errors of the check say, as far as it can be read out
// of them, and takes out what stays wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "percs/v1/scenario.pb.h"
#include "tests/generate/random_message.h"

namespace percs::generate {

// A field of a message, or an element of it.
struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;
  int index = -1;
};

// False if there is nothing there to take out.
bool Remove(const Place& place);

class Repair {
 public:
  // `draw` knows the names of the machine.
  Repair(v1::Scenario* scenario, MessageDraw* draw, RandomStream* random)
      : scenario_(*scenario), draw_(*draw), random_(*random) {}

  // Changes something that may be to blame. An error about a place first draws there what it says
  // is missing, and takes out or draws again what it names; then the place goes. False: nothing is
  // left.
  bool Follow(const std::string& error);

 private:
  bool Mend(const std::vector<Place>& places, const std::string& error);
  bool MendValue(const std::vector<Place>& places, const std::string& error);
  bool MendMessage(Message* message, Message* around, const std::string& error);
  bool AddToScenario(const std::string& error);
  bool PutBefore(const std::vector<Place>& places, const std::string& error);
  void Change(const Place& place);
  bool RemoveAny();
  bool Chance(double share) { return random_.Unit() <= share; }
  std::size_t Below(std::size_t count) { return random_.Below(static_cast<std::uint32_t>(count)); }

  v1::Scenario& scenario_;
  MessageDraw& draw_;
  RandomStream& random_;
  std::map<std::string, int> tries_;  // by error
  int mends_ = 0;
};

}  // namespace percs::generate
