#include "proto/scenario/topology_kind.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/topology/link_list.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/link_list_file.h"

namespace percs {
namespace {

constexpr int kDrawersMax = 4, kHubsMax = 8;

// The fewest drawers of equally many hubs that a group of `switches` can be; 0: none.
int DrawersOf(int switches) {
  for (int drawers = 1; drawers <= kDrawersMax; ++drawers) {
    if (switches % drawers == 0 && switches / drawers <= kHubsMax) return drawers;
  }
  return 0;
}

// Sizes of a dragonfly, or of a full mesh, which is one group of it.
struct Sizes {
  int a = 0, g = 1, h = 0, p = 1;
};

class KindBuilder {
 public:
  KindBuilder(const v1::Topology& message, ErrorList* errors)
      : message_(message), errors_(*errors) {}

  void Dragonfly(TopologySpec* spec) {
    Only("dragonfly", {"a", "g", "h", "p"}, "a, g, h and p");
    if (!Need(message_.has_a(), "a", "dragonfly", "8") |
        !Need(message_.has_g(), "g", "dragonfly", "33") |
        !Need(message_.has_h(), "h", "dragonfly", "4") |
        !Need(message_.has_p(), "p", "dragonfly", "4")) {
      return;
    }
    Shape({message_.a(), message_.g(), message_.h(), message_.p()}, spec);
  }
  void FullMesh(TopologySpec* spec) {
    Only("full_mesh", {"a", "p"}, "a and p");
    if (!Need(message_.has_a(), "a", "full_mesh", "8")) return;
    Shape({message_.a(), 1, 0, message_.has_p() ? message_.p() : 1}, spec);
  }
  void Grid(GraphSpec::Kind kind, const char* name, TopologySpec* spec) {
    Only(name, {"dims", "p"}, "dims and p");
    if (!Need(message_.has_dims(), "dims", name, "4x4")) return;
    auto dims = ParseDims(message_.dims());
    if (!dims.ok()) return errors_.Add("topology.dims", std::string(dims.status().message()));
    Use({.kind = kind, .dims = *std::move(dims)}, spec);
  }
  void FatTree(TopologySpec* spec) {
    Only("fat_tree", {"levels", "radix", "taper", "p"}, "levels, radix, taper and p");
    GraphSpec graph{.kind = GraphSpec::Kind::kFatTree};
    if (message_.has_levels()) graph.levels = message_.levels();
    if (message_.has_radix()) graph.radix = message_.radix();
    if (message_.has_taper()) graph.taper = message_.taper();
    Use(graph, spec);
  }
  void Listed(const std::string& directory, TopologySpec* spec) {
    Only("file", {"links_file", "p"}, "links_file and p");
    const bool given = !message_.links_file().empty() || message_.has_inline_links();
    if (!Need(given, "links_file", "file", "ring.txt")) return;
    const auto text = ReadLinkListFile(message_, directory);
    const auto graph = text.ok() ? ParseLinkList(*text) : absl::StatusOr<GraphSpec>(text.status());
    if (graph.ok()) return Use(*graph, spec);
    errors_.Add("topology.links_file", (text.ok() ? message_.links_file() + ", " : "") +
                                           std::string(graph.status().message()));
  }
  void Preset(const char* name, const Sizes& sizes, TopologySpec* spec) {
    Only(name, {}, "its own sizes, so nothing else");
    Shape(sizes, spec);
  }
  void Percs(TopologySpec* spec) {
    Only("percs", {"supernodes", "drawers", "hubs", "d_links_per_pair", "infiniband"},
         "supernodes, drawers, hubs and d_links_per_pair");
    if (message_.has_supernodes()) spec->supernodes = message_.supernodes();
    if (message_.has_drawers()) spec->drawers = message_.drawers();
    if (message_.has_hubs()) spec->hubs = message_.hubs();
    if (message_.has_d_links_per_pair()) spec->d_links_per_pair = message_.d_links_per_pair();
  }

 private:
  // An error for each field that the message has and that is neither `own` nor of every kind.
  void Only(const char* kind, std::initializer_list<std::string_view> own, const char* what) {
    std::vector<const FieldDescriptor*> given;
    message_.GetReflection()->ListFields(message_, &given);
    for (const FieldDescriptor* field : given) {
      if (Hidden(field) || field->number() == v1::Topology::kKindFieldNumber) continue;
      if (std::find(own.begin(), own.end(), field->name()) != own.end()) continue;
      errors_.Add(fmt::format("topology.{}", field->name()),
                  fmt::format("not a size of kind {}, which has {}; remove it", kind, what));
    }
  }
  void Use(const GraphSpec& graph, TopologySpec* spec) {
    if (absl::Status used = spec->UseGraph(graph); !used.ok())
      errors_.AddNamed(std::string(used.message()));
    spec->endpoints = message_.has_p() ? message_.p() : 1;
  }
  bool Need(bool given, const char* field, const char* kind, const char* example) {
    if (given) return true;
    errors_.Add(fmt::format("topology.{}", field),
                fmt::format("kind {} needs it; write for example `{}: {}`", kind, field, example));
    return false;
  }

  void Shape(const Sizes& s, TopologySpec* spec) {
    const int drawers = DrawersOf(s.a);
    if (drawers == 0) {
      std::vector<int> possible;
      for (int a = 1; a <= kDrawersMax * kHubsMax; ++a) {
        if (DrawersOf(a) > 0) possible.push_back(a);
      }
      errors_.Add("topology.a",
                  fmt::format("{} switches are not 1 to 4 drawers of equally many, at "
                              "most 8; write one of {}",
                              s.a, fmt::join(possible, ", ")));
      return;
    }
    spec->supernodes = s.g;
    spec->drawers = drawers;
    spec->hubs = s.a / drawers;
    spec->endpoints = s.p;
    if (s.g == 1) return;
    spec->d_links_per_pair = s.a * s.h / (s.g - 1);
    if (spec->d_links_per_pair > 0) return;
    errors_.Add("topology.g", fmt::format("{} other groups, but a x h = {} x {} = {} global links "
                                          "per group; write g at most {}, or raise a or h",
                                          s.g - 1, s.a, s.h, s.a * s.h, s.a * s.h + 1));
    spec->supernodes = 1;  // so that no error follows from this one
    spec->d_links_per_pair = 1;
  }

  const v1::Topology& message_;
  ErrorList& errors_;
};

}  // namespace

TopologySpec BuildTopology(const v1::Topology& message, const std::string& directory,
                           ErrorList* errors) {
  TopologySpec spec;
  KindBuilder build(message, errors);
  switch (message.kind()) {
    case v1::TOPOLOGY_KIND_DRAGONFLY:
      build.Dragonfly(&spec);
      break;
    case v1::TOPOLOGY_KIND_FULL_MESH:
      build.FullMesh(&spec);
      break;
    case v1::TOPOLOGY_KIND_DRAGONFLY_1056:
      build.Preset("dragonfly_1056", {.a = 8, .g = 33, .h = 4, .p = 4}, &spec);
      break;
    case v1::TOPOLOGY_KIND_TORUS:
      build.Grid(GraphSpec::Kind::kTorus, "torus", &spec);
      break;
    case v1::TOPOLOGY_KIND_HYPERX:
      build.Grid(GraphSpec::Kind::kHyperx, "hyperx", &spec);
      break;
    case v1::TOPOLOGY_KIND_FAT_TREE:
      build.FatTree(&spec);
      break;
    case v1::TOPOLOGY_KIND_FILE:
      build.Listed(directory, &spec);
      break;
    default:
      build.Percs(&spec);
  }
  if (message.has_infiniband()) {
    spec.infiniband.emplace();
    if (message.infiniband().has_cus()) spec.infiniband->cus = message.infiniband().cus();
    spec.infiniband->gateway = message.infiniband().gateway();
  }
  return spec;
}

}  // namespace percs
