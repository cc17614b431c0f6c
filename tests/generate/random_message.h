// Draws messages from their descriptors: every field that people can write, with values from its
// documented range, its boundaries more often than anything else. A field that is added to a
// message is drawn without a change here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/base/random.h"
#include "google/protobuf/message.h"

namespace percs::generate {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// What random choices go by. Shares are probabilities.
struct DrawSettings {
  double optional = 0.3;    // that a field is set which need not be
  double boundary = 0.3;    // that a number is at or next to an end of its range, or its default
  double least = 0.02;      // that all numbers of a message and of those in it are at their least
  double large = 0.02;      // that a number of things, of bytes or a time may be as large as its
                            // range allows; else it stays small, so that a run takes milliseconds
  int elements = 3;         // of a list, at most
  int depth = 8;            // of messages in messages
  bool hidden_too = false;  // fields that files cannot have, as in messages between programs
};

class MessageDraw {
 public:
  // Names that texts may refer to, by what the schema says that they name.
  struct Names {
    // Of the machine; may be empty. A node is a hub as a rule.
    std::function<std::string(RandomStream&)> node, blade, link;
    std::vector<std::string> declared;  // by what was drawn so far
    std::string file;                   // that a field called `file` names
    std::string permutation;            // likewise of `permutation_file`
  };

  MessageDraw(RandomStream* random, DrawSettings settings)
      : random_(*random), settings_(settings) {}

  // Fields that are set already stay as they are.
  void Draw(Message* message) { Draw(message, settings_.depth); }
  // Sets the field, or appends an element.
  void DrawField(Message* message, const FieldDescriptor* field) {
    DrawField(message, field, settings_.depth);
  }
  Names& names() { return names_; }

 private:
  void Draw(Message* message, int depth);
  void DrawField(Message* message, const FieldDescriptor* field, int depth);
  void DrawValue(Message* message, const FieldDescriptor* field);
  void SetWhole(Message* message, const FieldDescriptor* field, __int128 value);
  __int128 Whole(const FieldDescriptor* field);
  __int128 Boundary(const FieldDescriptor* field, __int128 min, __int128 max);
  double Fraction(const FieldDescriptor* field);
  bool IsWanted(const FieldDescriptor* field);
  std::string Text(const FieldDescriptor* field);
  std::string Mutated(std::string text);
  std::string WithPlaces(const std::string& example);
  std::string PlaceLike(const std::string& token);
  bool Chance(double share) { return random_.Unit() <= share; }

  RandomStream& random_;
  const DrawSettings settings_;
  Names names_;
  int named_ = 0;
  bool least_ = false;  // numbers of the message that is being drawn are at their least
};

}  // namespace percs::generate
