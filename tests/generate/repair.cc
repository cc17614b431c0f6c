#include "tests/generate/repair.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>

#include "proto/scenario/fields.h"

namespace percs::generate {
namespace {

constexpr int kTriesInside = 4;  // with one error, before its place goes
constexpr int kMendsMax = 60;    // of a scenario; then what is wrong goes at once
constexpr int kListMax = 8;      // of a list, counting what is added

bool IsSet(const Place& place) {
  const auto* reflection = place.message->GetReflection();
  return place.field->is_repeated()
             ? place.index >= 0 && place.index < reflection->FieldSize(*place.message, place.field)
             : reflection->HasField(*place.message, place.field);
}

// The message at the place. REQUIRES: it is set and a message.
Message* At(const Place& place) {
  const auto* reflection = place.message->GetReflection();
  return place.field->is_repeated()
             ? reflection->MutableRepeatedMessage(place.message, place.field, place.index)
             : reflection->MutableMessage(place.message, place.field);
}

// `name[index]`, the first step of a path, which it leaves with the rest.
Place TakeStep(Message* message, std::string* path) {
  const std::size_t dot = std::min(path->find('.'), path->size());
  std::string name = path->substr(0, dot);
  *path = dot < path->size() ? path->substr(dot + 1) : "";
  Place place{message, nullptr, -1};
  if (const std::size_t bracket = name.find('['); bracket != std::string::npos) {
    std::from_chars(name.data() + bracket + 1, name.data() + name.size(), place.index);
    name.resize(bracket);
  }
  place.field = message->GetDescriptor()->FindFieldByName(name);
  return place;
}

// The places that a path leads through, as far as there is something.
std::vector<Place> Places(Message* message, std::string path) {
  std::vector<Place> places;
  while (!path.empty() && message != nullptr) {
    Place place = TakeStep(message, &path);
    if (place.field == nullptr) break;
    places.push_back(place);
    // A message that a list stands for has the list's path.
    if (!place.field->is_repeated() && place.index >= 0 && place.field->message_type() != nullptr &&
        IsSet(place)) {
      Message* inner = At(place);
      if (const FieldDescriptor* list = ListOf(inner->GetDescriptor())) {
        place = {inner, list, place.index};
        places.push_back(place);
      }
    }
    if (place.field->message_type() == nullptr) break;
    message = IsSet(place) ? At(place) : nullptr;
  }
  return places;
}

template <typename In>
std::vector<std::string> Words(const std::string& text, In in_word) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (in_word(c)) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

bool InName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool InValue(char c) { return InName(c) || c == ':' || c == '-'; }

// What comes behind the path.
std::string Said(const std::string& line) {
  const std::size_t first = line.find(": ");
  const std::size_t second = first == line.npos ? line.npos : line.find(": ", first + 2);
  return second == line.npos ? line : line.substr(second + 2);
}

void AddNamed(Message* message, const std::vector<std::string>& words, std::vector<Place>* named) {
  for (const FieldDescriptor* field : VisibleFields(message->GetDescriptor())) {
    if (field->is_repeated()) continue;
    if (std::find(words.begin(), words.end(), field->name()) != words.end())
      named->push_back({message, field, -1});
  }
}

}  // namespace

bool Remove(const Place& place) {
  const auto* reflection = place.message->GetReflection();
  if (!place.field->is_repeated()) {
    if (!reflection->HasField(*place.message, place.field)) return false;
    reflection->ClearField(place.message, place.field);
    return true;
  }
  const int size = reflection->FieldSize(*place.message, place.field);
  if (size == 0) return false;
  const int index = place.index >= 0 && place.index < size ? place.index : size - 1;
  for (int i = index; i + 1 < size; ++i)
    reflection->SwapElements(place.message, place.field, i, i + 1);
  reflection->RemoveLast(place.message, place.field);
  return true;
}

bool Repair::Follow(const std::string& error) {
  const std::string line = error.substr(0, error.find('\n'));
  const bool mends = mends_ < kMendsMax && ++tries_[line] <= kTriesInside;
  const std::size_t begin = line.find(": ");
  std::vector<Place> places;
  if (begin != line.npos)
    places = Places(&scenario_, line.substr(begin + 2, line.find(": ", begin + 2) - begin - 2));
  if (mends && (places.empty() ? AddToScenario(line) : Mend(places, line))) {
    ++mends_;
    return true;
  }
  while (!places.empty() && !Remove(places.back())) places.pop_back();
  return !places.empty() || RemoveAny();
}

bool Repair::Mend(const std::vector<Place>& places, const std::string& error) {
  const Place& last = places.back();
  if (Chance(0.3) && AddToScenario(error)) return true;
  if (!IsSet(last)) {
    if (last.field->is_repeated()) return false;
    draw_.DrawField(last.message, last.field);
    return true;
  }
  if (last.field->message_type() == nullptr) return MendValue(places, error);
  return MendMessage(At(last), last.message == &scenario_ ? nullptr : last.message, error);
}

bool Repair::MendValue(const std::vector<Place>& places, const std::string& error) {
  const Place& last = places.back();
  if (PutBefore(places, error)) return true;
  if (last.field->is_repeated() || Chance(0.2)) return false;
  if (last.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && Chance(0.5)) {
    // It may be one of those that the error lists.
    const auto words = Words(Said(error), InValue);
    if (words.empty()) return false;
    last.message->GetReflection()->SetString(last.message, last.field, words[Below(words.size())]);
    return true;
  }
  Change(last);
  return true;
}

// Draws again what is set, or leaves it out; draws what is not.
void Repair::Change(const Place& place) {
  const bool was = IsSet(place);
  place.message->GetReflection()->ClearField(place.message, place.field);
  if (was && !RulesOf(place.field).required() && Chance(0.6)) return;
  draw_.DrawField(place.message, place.field);
}

bool Repair::MendMessage(Message* message, Message* around, const std::string& error) {
  const auto words = Words(Said(error), InName);
  std::vector<const FieldDescriptor*> set;
  message->GetReflection()->ListFields(*message, &set);
  std::vector<Place> named;
  AddNamed(message, words, &named);
  for (const FieldDescriptor* field : set) {
    if (!field->is_repeated() && field->message_type() != nullptr)
      AddNamed(message->GetReflection()->MutableMessage(message, field), words, &named);
  }
  if (around != nullptr) AddNamed(around, words, &named);
  std::erase_if(named, [&](const Place& place) {  // not what the error is about itself
    return place.message == around && place.field->message_type() == message->GetDescriptor();
  });
  if (!named.empty() && Chance(0.9)) {
    Change(named[Below(named.size())]);
    return true;
  }
  if (set.empty()) return false;
  const FieldDescriptor* field = set[Below(set.size())];
  if (field->is_repeated()) return Remove({message, field, -1});
  Change({message, field, -1});
  return true;
}

// What the scenario lacks and the error asks for: `add clock: {}`, "but the scenario has no tree".
bool Repair::AddToScenario(const std::string& error) {
  const auto words = Words(Said(error), InName);
  std::vector<const FieldDescriptor*> lacking;
  for (const FieldDescriptor* field : VisibleFields(scenario_.GetDescriptor())) {
    if (field->message_type() == nullptr) continue;
    const auto* reflection = scenario_.GetReflection();
    if (field->is_repeated() ? reflection->FieldSize(scenario_, field) >= kListMax
                             : reflection->HasField(scenario_, field)) {
      continue;
    }
    const bool asked = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return field->name() == word || (field->is_repeated() && field->name() == word + "s");
    });
    if (asked) lacking.push_back(field);
  }
  if (lacking.empty()) return false;
  draw_.DrawField(&scenario_, lacking[Below(lacking.size())]);
  return true;
}

// "put a link_down before it": the same element of the list, with that choice, at half the time.
bool Repair::PutBefore(const std::vector<Place>& places, const std::string& error) {
  const std::size_t put = error.find("put a "), before = error.find(" before it");
  if (put == error.npos || before == error.npos || places.size() < 2) return false;
  const Place& element = places[places.size() - 2];
  const Place& choice = places.back();
  if (!element.field->is_repeated() || choice.message != At(element)) return false;
  const Descriptor* type = choice.message->GetDescriptor();
  const FieldDescriptor* other = type->FindFieldByName(error.substr(put + 6, before - put - 6));
  const FieldDescriptor* at = type->FindFieldByName("at");
  if (other == nullptr || at == nullptr || other->cpp_type() != choice.field->cpp_type())
    return false;
  std::unique_ptr<Message> copy(choice.message->New());
  copy->CopyFrom(*choice.message);
  const auto* reflection = copy->GetReflection();
  reflection->SetString(copy.get(), other, reflection->GetString(*choice.message, choice.field));
  reflection->SetInt64(copy.get(), at, reflection->GetInt64(*choice.message, at) / 2);
  if (const FieldDescriptor* id = type->FindFieldByName("id"))
    reflection->ClearField(copy.get(), id);
  element.message->GetReflection()->AddMessage(element.message, element.field)->CopyFrom(*copy);
  return true;
}

// Takes out any part: the error does not say which one is to blame.
bool Repair::RemoveAny() {
  std::vector<const FieldDescriptor*> fields;
  scenario_.GetReflection()->ListFields(scenario_, &fields);
  std::erase_if(fields, [](const FieldDescriptor* f) { return f->message_type() == nullptr; });
  if (fields.empty()) return false;
  const auto* field = fields[Below(fields.size())];
  if (!field->is_repeated() && Chance(0.5)) {  // only a part of it
    Message* part = scenario_.GetReflection()->MutableMessage(&scenario_, field);
    std::vector<const FieldDescriptor*> inside;
    part->GetReflection()->ListFields(*part, &inside);
    if (!inside.empty()) return Remove({part, inside[Below(inside.size())]});
  }
  return Remove({&scenario_, field});
}

}  // namespace percs::generate
