#include "proto/scenario/impairments.h"

#include "fmt/format.h"

namespace percs {
namespace {

// The ends that send: both, or the one that is named.
absl::StatusOr<std::vector<LinkEnd>> Senders(const std::string& link, const std::string& from,
                                             const Topology& topology) {
  const auto end = topology.ParseLink(link);
  if (!end.ok()) return end.status();
  const LinkEnd ends[] = {*end, topology.Peer(end->node, end->port)};
  if (from.empty()) return std::vector<LinkEnd>{ends[0], ends[1]};
  const auto node = topology.ParseNode(from);
  if (!node.ok()) return node.status();
  for (const LinkEnd& sender : ends) {
    if (sender.node == *node) return std::vector<LinkEnd>{sender};
  }
  return absl::InvalidArgumentError(fmt::format("{} is not an end of {}; write {} or {}", from,
                                                link, topology.NodeName(ends[0].node),
                                                topology.NodeName(ends[1].node)));
}

LinkImpairment BuildErrors(const v1::LinkErrors& errors) {
  LinkImpairment impairment;
  switch (errors.kind_case()) {
    case v1::LinkErrors::kCorruptNext:
      impairment.kind = LinkImpairment::Kind::kCorruptNext;
      impairment.count = static_cast<std::uint32_t>(errors.corrupt_next());
      break;
    case v1::LinkErrors::kBitErrorRate:
      impairment.flit_error_rate = FlitErrorRate(errors.bit_error_rate());
      break;
    default:
      impairment.flit_error_rate = errors.flit_error_rate();
      break;
  }
  return impairment;
}

}  // namespace

bool IsLinkImpairment(const v1::Fault& fault) {
  return fault.has_link_errors() || fault.has_lanes_lost();
}

absl::StatusOr<std::vector<LinkImpairment>> BuildLinkImpairments(const v1::Fault& fault,
                                                                 const Topology& topology,
                                                                 const P7ihParameters& parameters) {
  const v1::LinkErrors& errors = fault.link_errors();
  const v1::LanesLost& lanes = fault.lanes_lost();
  LinkImpairment impairment;
  if (fault.has_lanes_lost()) {
    impairment.kind = LinkImpairment::Kind::kLanesLost;
    impairment.count = static_cast<std::uint32_t>(lanes.count());
  } else if (errors.kind_case() != v1::LinkErrors::KIND_NOT_SET) {
    impairment = BuildErrors(errors);
  } else {
    return absl::InvalidArgumentError(
        "link errors without a kind; write exactly one of flit_error_rate, bit_error_rate, "
        "corrupt_next");
  }
  impairment.at = fault.at();
  const auto senders = fault.has_lanes_lost() ? Senders(lanes.link(), lanes.from(), topology)
                                              : Senders(errors.link(), errors.from(), topology);
  if (!senders.ok()) return senders.status();
  std::vector<LinkImpairment> all;
  for (const LinkEnd& sender : *senders) {
    impairment.sender = sender;
    if (absl::Status status = CheckImpairment(impairment, topology, parameters); !status.ok()) {
      return status;
    }
    all.push_back(impairment);
  }
  return all;
}

std::string DescribeLinkImpairments(const std::vector<LinkImpairment>& impairments,
                                    const Topology& topology) {
  const LinkImpairment& first = impairments.front();
  const std::string ways = impairments.size() > 1 ? ", both ways" : "";
  const std::string link = topology.LinkName(first.sender) + ways;
  switch (first.kind) {
    case LinkImpairment::Kind::kErrorRate:
      return fmt::format("{}: flit error rate {}", link, first.flit_error_rate);
    case LinkImpairment::Kind::kCorruptNext:
      return fmt::format("{}: the next {} flits corrupted", link, first.count);
    case LinkImpairment::Kind::kLanesLost:
      return fmt::format("{}: {} lanes lost", link, first.count);
    case LinkImpairment::Kind::kLatency:
      return fmt::format("{}: {} of added latency", link, FormatTime(first.latency));
  }
  return link;
}

}  // namespace percs
