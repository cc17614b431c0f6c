#include "proto/scenario/topology_kind.h"

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/topology/link_list.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
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
    std::vector<const char*> others = OfPercs();
    for (const char* field : OfGraphs()) others.push_back(field);
    Refuse(others, "dragonfly", "a, g, h and p");
    if (!Need(message_.has_a(), "a", "dragonfly", "8") |
        !Need(message_.has_g(), "g", "dragonfly", "33") |
        !Need(message_.has_h(), "h", "dragonfly", "4") |
        !Need(message_.has_p(), "p", "dragonfly", "4")) {
      return;
    }
    Shape({message_.a(), message_.g(), message_.h(), message_.p()}, spec);
  }
  void FullMesh(TopologySpec* spec) {
    std::vector<const char*> others = OfPercs();
    for (const char* field : Given({"g", "h"})) others.push_back(field);
    for (const char* field : OfGraphs()) others.push_back(field);
    Refuse(others, "full_mesh", "a and p");
    if (!Need(message_.has_a(), "a", "full_mesh", "8")) return;
    Shape({message_.a(), 1, 0, message_.has_p() ? message_.p() : 1}, spec);
  }
  void Grid(GraphSpec::Kind kind, const char* name, TopologySpec* spec) {
    std::vector<const char*> others = OfPercs();
    for (const char* field : Given({"a", "g", "h", "levels", "radix", "taper", "links_file"}))
      others.push_back(field);
    Refuse(others, name, "dims and p");
    if (!Need(message_.has_dims(), "dims", name, "4x4")) return;
    auto dims = ParseDims(message_.dims());
    if (!dims.ok()) return errors_.Add("topology.dims", std::string(dims.status().message()));
    Use({.kind = kind, .dims = *std::move(dims)}, spec);
  }
  void FatTree(TopologySpec* spec) {
    std::vector<const char*> others = OfPercs();
    for (const char* field : Given({"a", "g", "h", "dims", "links_file"})) others.push_back(field);
    Refuse(others, "fat_tree", "levels, radix, taper and p");
    GraphSpec graph{.kind = GraphSpec::Kind::kFatTree};
    if (message_.has_levels()) graph.levels = message_.levels();
    if (message_.has_radix()) graph.radix = message_.radix();
    if (message_.has_taper()) graph.taper = message_.taper();
    Use(graph, spec);
  }
  void Listed(const std::string& directory, TopologySpec* spec) {
    std::vector<const char*> others = OfPercs();
    for (const char* field : Given({"a", "g", "h", "dims", "levels", "radix", "taper"}))
      others.push_back(field);
    Refuse(others, "file", "links_file and p");
    const bool given = !message_.links_file().empty() || message_.has_inline_links();
    if (!Need(given, "links_file", "file", "ring.txt")) return;
    const auto text = ReadLinkListFile(message_, directory);
    const auto graph = text.ok() ? ParseLinkList(*text) : absl::StatusOr<GraphSpec>(text.status());
    if (graph.ok()) return Use(*graph, spec);
    errors_.Add("topology.links_file", (text.ok() ? message_.links_file() + ", " : "") +
                                           std::string(graph.status().message()));
  }
  void Preset(const char* name, const Sizes& sizes, TopologySpec* spec) {
    std::vector<const char*> others = OfPercs();
    for (const char* field : OfOthers()) others.push_back(field);
    Refuse(others, name, "its own sizes, so nothing else");
    Shape(sizes, spec);
  }
  void Percs(TopologySpec* spec) {
    Refuse(OfOthers(), "percs", "supernodes, drawers, hubs and d_links_per_pair");
    if (message_.has_supernodes()) spec->supernodes = message_.supernodes();
    if (message_.has_drawers()) spec->drawers = message_.drawers();
    if (message_.has_hubs()) spec->hubs = message_.hubs();
    if (message_.has_d_links_per_pair()) spec->d_links_per_pair = message_.d_links_per_pair();
  }

 private:
  // Those of these fields that the message has.
  std::vector<const char*> Given(std::initializer_list<const char*> names) const {
    std::vector<const char*> given;
    for (const char* name : names) {
      const auto* const field = message_.GetDescriptor()->FindFieldByName(name);
      if (message_.GetReflection()->HasField(message_, field)) given.push_back(name);
    }
    return given;
  }
  // Only one kind has them, or the other ones.
  std::vector<const char*> OfPercs() const {
    return Given({"supernodes", "drawers", "hubs", "d_links_per_pair", "infiniband"});
  }
  std::vector<const char*> OfGraphs() const {
    return Given({"dims", "levels", "radix", "taper", "links_file"});
  }
  std::vector<const char*> OfOthers() const {
    std::vector<const char*> fields = Given({"a", "g", "h", "p"});
    for (const char* field : OfGraphs()) fields.push_back(field);
    return fields;
  }
  void Use(const GraphSpec& graph, TopologySpec* spec) {
    if (absl::Status used = spec->UseGraph(graph); !used.ok())
      errors_.Add("topology", std::string(used.message()));
    spec->endpoints = message_.has_p() ? message_.p() : 1;
  }
  void Refuse(const std::vector<const char*>& fields, const char* kind, const char* what) {
    for (const char* field : fields) {
      errors_.Add(fmt::format("topology.{}", field),
                  fmt::format("not a size of kind {}, which has {}; remove it", kind, what));
    }
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
