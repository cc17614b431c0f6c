#include "client/percsctl/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>

#include "emulator/metrics/path_trace.h"
#include "emulator/packet/packet_bytes.h"

namespace percs {
namespace {

constexpr std::uint8_t kFrameVersion = 1, kNoVc = 255;
enum class FrameEvent : std::uint8_t { kCreated, kSent, kDelivered, kDropped };
constexpr std::uint8_t kDropFlag = 1, kDeliveredFlag = 2, kPartFlag = 4;
constexpr std::size_t kFrameNumbers = 88;  // bytes before the names

// One record: what happened, where and when, and to which packet.
struct Frame {
  const v1::TracedPacket* packet = nullptr;
  FrameEvent event = FrameEvent::kCreated;
  std::string node, input, output, reason;
  std::size_t hop = 0;
  std::uint32_t vc = kNoVc, input_vc = kNoVc, flits = 0, grants = 0;
  std::int64_t time = 0, until = 0, arrived = 0;
  std::array<std::int64_t, kWaits> waited{};

  std::string interface() const {
    return event == FrameEvent::kSent ? fmt::format("{}:{}", node, output) : node;
  }
};

template <typename T>
void Append(T value, std::string* out) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out->push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

void AppendName(const std::string& name, std::string* out) {
  Append(static_cast<std::uint8_t>(std::min<std::size_t>(name.size(), 255)), out);
  out->append(name, 0, 255);
}

std::string FrameHeader(const Frame& f) {
  const v1::TracedPacket& p = *f.packet;
  std::string names;
  for (const std::string* name :
       {&f.node, &f.input, &f.output, &p.source(), &p.destination(), &f.reason})
    AppendName(*name, &names);
  std::string out;
  Append(kFrameVersion, &out);
  Append(static_cast<std::uint8_t>(f.event), &out);
  Append(static_cast<std::uint16_t>(kFrameNumbers + names.size()), &out);
  Append(static_cast<std::uint8_t>((f.event == FrameEvent::kDropped ? kDropFlag : 0) |
                                   (f.event == FrameEvent::kDelivered ? kDeliveredFlag : 0) |
                                   (f.flits < p.flits() ? kPartFlag : 0)),
         &out);
  Append(static_cast<std::uint8_t>(f.hop), &out);
  Append(static_cast<std::uint8_t>(f.vc), &out);
  Append(static_cast<std::uint8_t>(f.input_vc), &out);
  Append(f.time, &out);
  Append(f.until, &out);
  Append(f.arrived, &out);
  Append(static_cast<std::uint8_t>(f.flits), &out);
  Append(static_cast<std::uint8_t>(f.grants), &out);
  out.append(40 - out.size(), '\0');
  for (const std::int64_t waited : f.waited) Append(waited, &out);
  return out + names;
}

// What an output sent of a packet, in any number of runs.
Frame SentFrame(const v1::TracedPacket& p, const v1::TracedHop& hop, std::size_t number) {
  Frame f;
  f.packet = &p;
  f.event = FrameEvent::kSent;
  f.node = hop.node();
  f.input = hop.input();
  f.output = hop.output();
  f.hop = number;
  f.vc = hop.output_vc();
  f.input_vc = hop.input_vc();
  f.arrived = hop.arrived();
  f.time = hop.grants(0).at();
  f.grants = static_cast<std::uint32_t>(hop.grants_size());
  for (const v1::TracedGrant& g : hop.grants()) {
    f.until = g.until();
    f.flits += g.flits();
    for (std::size_t w = 0; w < kWaits; ++w) {
      const auto it = g.waited().find(WaitName(static_cast<Wait>(w)));
      if (it != g.waited().end()) f.waited[w] += it->second;
    }
  }
  return f;
}

Frame AtNode(const v1::TracedPacket& p, FrameEvent event, const std::string& node, std::int64_t at,
             std::uint32_t flits) {
  Frame f;
  f.packet = &p;
  f.event = event;
  f.node = node;
  f.hop = static_cast<std::size_t>(event == FrameEvent::kCreated ? 0 : p.hops_size());
  f.flits = flits;
  f.time = f.until = f.arrived = at;
  return f;
}

// The hop on which it was lost, if it had reached that hub's switch.
void AddPlace(const v1::TracedDrop& drop, Frame* f) {
  for (int h = f->packet->hops_size(); h-- > 0;) {
    const v1::TracedHop& hop = f->packet->hops(h);
    if (hop.node() != drop.node() || hop.arrived() > drop.at()) continue;
    f->hop = static_cast<std::size_t>(h);
    f->arrived = hop.arrived();
    f->input = hop.input();
    f->output = hop.output();
    f->input_vc = hop.input_vc();
    f->vc = hop.output_vc();
    return;
  }
}

std::vector<Frame> FramesOf(const TracedPackets& packets) {
  std::vector<Frame> frames;
  for (const v1::TracedPacket& p : packets) {
    frames.push_back(AtNode(p, FrameEvent::kCreated, p.source(), p.created(), p.flits()));
    std::size_t number = 0;
    for (const v1::TracedHop& hop : p.hops()) {
      if (hop.grants_size() > 0) frames.push_back(SentFrame(p, hop, number));
      ++number;
    }
    for (const v1::TracedDelivery& d : p.deliveries())
      frames.push_back(AtNode(p, FrameEvent::kDelivered, d.node(), d.at(), p.flits()));
    for (const v1::TracedDrop& d : p.drops()) {
      frames.push_back(AtNode(p, FrameEvent::kDropped, d.node(), d.at(), d.flits()));
      frames.back().reason = d.reason();
      AddPlace(d, &frames.back());
    }
  }
  std::stable_sort(frames.begin(), frames.end(),
                   [](const Frame& a, const Frame& b) { return a.time < b.time; });
  return frames;
}

// Blocks of pcapng, little-endian.
constexpr std::uint32_t kSectionBlock = 0x0a0d0d0a, kInterfaceBlock = 1, kPacketBlock = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kLinkTypeUser0 = 147;
constexpr std::uint16_t kEndOption = 0, kCommentOption = 1, kNameOption = 2, kDescriptionOption = 3,
                        kApplicationOption = 4, kResolutionOption = 9;
constexpr char kPicoseconds = 12;  // if_tsresol: 10^-12 s

void Pad(std::string* out) { out->append((4 - out->size() % 4) % 4, '\0'); }

void AppendOption(std::uint16_t code, std::string_view value, std::string* out) {
  Append(code, out);
  Append(static_cast<std::uint16_t>(value.size()), out);
  out->append(value);
  Pad(out);
}

void AppendBlock(std::uint32_t type, const std::string& body, std::string* out) {
  const auto size = static_cast<std::uint32_t>(body.size() + 12);
  Append(type, out);
  Append(size, out);
  out->append(body);
  Append(size, out);
}

std::string SectionBody() {
  std::string body;
  Append(kByteOrderMagic, &body);
  Append(std::uint16_t{1}, &body);
  Append(std::uint16_t{0}, &body);
  Append(~std::uint64_t{0}, &body);  // the section's length is not given
  AppendOption(kCommentOption, "times are virtual picoseconds since the run began", &body);
  AppendOption(kApplicationOption, "percsctl trace (PERCS network emulator)", &body);
  AppendOption(kEndOption, "", &body);
  return body;
}

std::string InterfaceBody(const std::string& name, bool link) {
  std::string body;
  Append(kLinkTypeUser0, &body);
  Append(std::uint16_t{0}, &body);
  Append(std::uint32_t{0}, &body);  // no limit
  AppendOption(kNameOption, name, &body);
  AppendOption(
      kDescriptionOption,
      link ? "what this port sends" : "packets that this node created, delivered or dropped",
      &body);
  AppendOption(kResolutionOption, std::string_view(&kPicoseconds, 1), &body);
  AppendOption(kEndOption, "", &body);
  return body;
}

std::string PacketBody(const Frame& f, std::uint32_t interface) {
  const std::string header = FrameHeader(f);
  const std::string& content = f.packet->content();
  std::string body;
  Append(interface, &body);
  Append(static_cast<std::uint32_t>(static_cast<std::uint64_t>(f.time) >> 32), &body);
  Append(static_cast<std::uint32_t>(f.time), &body);
  Append(static_cast<std::uint32_t>(header.size() + content.size()), &body);
  Append(static_cast<std::uint32_t>(header.size() + kPacketHeaderBytes + f.packet->bytes()), &body);
  body += header;
  body += content;
  Pad(&body);
  return body;
}

}  // namespace

std::string PcapngWriter::Add(const TracedPackets& packets) {
  const std::vector<Frame> frames = FramesOf(packets);
  std::string out;
  if (interfaces_.empty()) AppendBlock(kSectionBlock, SectionBody(), &out);
  std::set<std::string> names;
  for (const Frame& f : frames) names.insert(f.interface());
  for (const std::string& name : names) {
    const auto number = static_cast<std::uint32_t>(interfaces_.size());
    if (!interfaces_.emplace(name, number).second) continue;
    AppendBlock(kInterfaceBlock, InterfaceBody(name, name.find(':') != std::string::npos), &out);
  }
  for (const Frame& f : frames)
    AppendBlock(kPacketBlock, PacketBody(f, interfaces_.at(f.interface())), &out);
  return out;
}

}  // namespace percs
