// The visible table of commands, and what is the same for all of them.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "client/percsctl/command.h"
#include "client/percsctl/command_line.h"
#include "client/percsctl/complete.h"
#include "client/percsctl/screen.h"
#include "proto/process/out_of_memory.h"
#include "proto/process/printable.h"

namespace percs {
namespace {

constexpr const char* kInProcess = "In this process";
constexpr const char* kLocal = "Local fabrics (daemons on this machine)";
constexpr const char* kControl = "Control a running fabric";
constexpr const char* kElsewhere = "Remote fabrics";
constexpr const char* kOther = "Other";

constexpr Command kCommands[] = {
    {"run", kInProcess, "Run a scenario from start to end and report",
     R"(  percsctl run deploy/scenarios/supernode-alltoall.yaml
  percsctl run deploy/scenarios/link-failure.yaml --threads 2 --format json
  percsctl run deploy/scenarios/two-hubs.yaml --seed 7 --set topology.hubs=4)",
     AddRun},
    {"check", kInProcess, "Check scenario files and report every error",
     R"(  percsctl check deploy/scenarios/*.yaml)", AddCheck},
    {"schema", kInProcess, "Print the JSON Schema of scenario files, for editors",
     R"(  percsctl schema > percs-scenario.schema.json)", AddSchema},
    {"collective", kInProcess,
     "Measure a collective among tasks on nodes, or the SPEs of a Cell blade",
     R"(  percsctl collective allreduce --nodes 32 --tasks 32 --algorithm hybrid:p2p
  percsctl collective broadcast --nodes 2 --tasks 32 --size 8..64KiB \
      --format osu
  percsctl collective alltoall --nodes 8 --algorithm p2p:bruck --size 64
  percsctl collective broadcast --nodes 1 --tasks 32 --smt 4 \
      --algorithm shm:one-buffer --every-root
  percsctl collective barrier --blade QS20
  percsctl collective broadcast --blade QS20 --bytes 16384 \
      --algorithm "TTBcastB_Opt D2")",
     AddCollective},
    {"ping", kInProcess, "Send packets back and forth between windows of two hubs",
     R"(  percsctl ping sn0-d0-h0 sn1-d0-h0
  percsctl ping sn0-d0-h0 sn0-d0-h1 --count 10 --bytes 2048 --mode fifo)",
     AddPing},
    {"perf", kInProcess, "Measure messages between windows of two hubs, or two SPEs of Roadrunner",
     R"(  percsctl perf sn0-d0-h0 sn1-d0-h0 --format osu
  percsctl perf sn0-d0-h0 sn0-d0-h1 --mode fifo --bytes 8,2KiB
  percsctl perf triblade0:spe0 triblade0:spe8
  percsctl perf 0 6400 --bytes 0,128,131072
  percsctl perf 0 1 --protocol sender --format json)",
     AddPerf},
    {"sweep", kInProcess, "Run a grid of scenarios, as one table",
     R"(  percsctl sweep deploy/scenarios/latency-load.yaml -o out --repeat 3 \
      --over workload.pattern.load=0.05..0.45:0.05 \
      --over routing.mode=hw_direct,hw_indirect --jobs 2 --plot
  percsctl sweep deploy/scenarios/supernode-alltoall.yaml -o sizes \
      --over workload.all_to_all.bytes=4KiB,16KiB,64KiB)",
     AddSweep},
    {"view", kInProcess, "Write a run as a page that opens in any browser, with a time line",
     R"(  percsctl view deploy/scenarios/link-failure.yaml -o failure.html
  percsctl view ~/.local/state/percs/default --run 2 -o run2.html
  percsctl run FILE --format json > a.json
  percsctl view FILE --result a.json -o a.html)",
     AddView},
    {"mpirun", kInProcess, "Run an unmodified MPI program (Open MPI) on an emulated machine",
     R"(  percsctl mpirun -n 2 -- NPopenmpi -u 65536
  percsctl mpirun -n 32 deploy/scenarios/four-supernodes.yaml --map-by hub \
      -- lmp -in in.lj
  percsctl mpirun -n 64 --map-by node:2 --compute cpu:1.0 \
      -- python3 script.py)",
     AddMpirun},
    {"sweep3d", kInProcess, "Measure the weak scaling of Sweep3D on Roadrunner",
     R"(  percsctl sweep3d --cus 1,2,4
  percsctl sweep3d --cus 17 --format json)",
     AddSweep3d},
    {"validate", kInProcess, "Compare emulated figures with published ones",
     R"(  percsctl validate cell
  percsctl validate p7ih --only P7IH-02
  percsctl validate p7ih --only fig13.hybrid.1MB --without two-transports
  percsctl validate roadrunner --only RR-03
  percsctl validate all --format html > fidelity.html
  percsctl validate p7ih --withhold figures.csv)",
     AddValidate},
    {"up", kLocal, "Start a controller and daemons",
     R"(  percsctl up
  percsctl up deploy/scenarios/four-supernodes.yaml --name lab --daemons 4
  percsctl up --name other --daemons 8 --tcp)",
     AddUp},
    {"down", kLocal, "Stop what `up` started; clean up after a crash",
     R"(  percsctl down
  percsctl down --name lab
  percsctl down --all)",
     AddDown},
    {"ps", kLocal, "List local fabrics and their processes",
     R"(  percsctl ps
  percsctl ps --format json)",
     AddPs},
    {"process", kLocal,
     "Kill, stop, continue and restart processes of a local fabric; break streams of any",
     R"(  percsctl process kill d3
  percsctl process stop d0 --name lab
  percsctl process break d1
  percsctl process restart controller)",
     AddProcess},
    {"apply", kControl, "Build a scenario's machine on the daemons and start it",
     R"(  percsctl apply deploy/scenarios/supernode-alltoall.yaml --wait
  percsctl apply deploy/scenarios/trace-replay.yaml --name lab \
      --placement 8,8,8,8 --wait
  percsctl apply deploy/scenarios/link-failure.yaml --pace 10us/s --hold)",
     AddApply},
    {"status", kControl, "Show the state of the fabric and its daemons",
     R"(  percsctl status
  percsctl status --controller 127.0.0.1:18515 --format json)",
     AddStatus},
    {"top", kControl, "Watch hubs, links and drops, refreshed; cut links by key",
     R"(  percsctl top --name lab
  percsctl top --interval wall:200ms --sort drops)",
     AddTop},
    {"result", kControl, "Print the report of the last run",
     R"(  percsctl result
  percsctl result --run 3 --format json)",
     AddResult},
    {"links", kControl, "List links: up or down, flits, utilisation",
     R"(  percsctl links
  percsctl links sn0-d1-h3
  percsctl links --down)",
     AddLinks},
    {"graph", kControl, "Draw the machine, with the load of its links",
     R"(  percsctl graph --name lab -o lab.svg
  percsctl graph deploy/scenarios/one-drawer.yaml -o machine.dot
  percsctl graph --type matrix -o loads.svg)",
     AddGraph},
    {"plot", kControl, "Draw loads, latencies and ranks as pictures",
     R"(  percsctl plot links --name lab -o links.png
  percsctl run FILE --format json > a.json
  percsctl plot latency a.json -o latency.svg
  percsctl plot curves direct=a.json direct=b.json indirect=c.json -o curves.svg
  percsctl plot load trace.json -o load.png)",
     AddPlot},
    {"routes", kControl, "Show the routes between two hubs; dump, load and compare route tables",
     R"(  percsctl routes sn0-d0-h0 sn0-d3-h7
  percsctl routes sn0-d0-h0 sn1-d0-h0 --mode hw_indirect --middle 2
  percsctl routes dump -o tables.json
  percsctl routes load tables.json
  percsctl routes diff tables.json)",
     AddRoutes},
    {"fault", kControl, "Create, preview, list and delete faults; take links down and up",
     R"(  percsctl fault create cut --kind link_down --link sn0-d0-h0:LR0
  percsctl fault preview cut --kind hub_down --in sn0-d0-h3
  percsctl fault list
  percsctl fault delete cut
  percsctl fault link-down sn0-d0-h0/sn0-d1-h0
  percsctl fault link-up sn0-d0-h0:LR0 --at 80us
  percsctl fault link-down sn0-d0-h0:LL2 --at wall:5s
  percsctl fault link-errors sn0-d0-h0:LR0 --flit-rate 1e-3
  percsctl fault lanes sn0-d0-h0:D0 --lost 3)",
     AddFault},
    {"fabric", kControl, "Reset round-robin arbiters; run the workload again",
     R"(  percsctl fabric reset-arbiters
  percsctl fabric repeat)",
     AddFabric},
    {"pause", kControl, "Pause virtual time; commands are still accepted", "  percsctl pause",
     AddPause},
    {"resume", kControl, "Resume virtual time", "  percsctl resume", AddResume},
    {"pace", kControl, "Set how fast virtual time passes; `max`: without limit",
     R"(  percsctl pace 20us/s
  percsctl pace max)",
     AddPace},
    {"step", kControl, "Advance virtual time by an amount, then pause", "  percsctl step 10us",
     AddStep},
    {"replay", kControl, "Run a journal again and compare the digest",
     R"(  percsctl replay ~/.local/state/percs/default
  percsctl replay journal --run 2 --threads 2
  percsctl replay journal --distributed)",
     AddReplay},
    {"checkpoint", kControl, "Save a run's position and the commands that led to it",
     R"(  percsctl checkpoint lab-40us
  percsctl checkpoint lab-40us --controller 127.0.0.1:18515 \
      --journal /var/lib/percs)",
     AddCheckpoint},
    {"restore", kInProcess, "Re-run to a checkpoint, verify it, continue",
     R"(  percsctl restore lab-40us --threads 2
  percsctl restore lab-40us --distributed)",
     AddRestore},
    {"events", kControl, "Show events: faults, alerts, reroutes, trees",
     R"(  percsctl events
  percsctl events --follow --format json)",
     AddEvents},
    {"health", kControl, "Show problems in a running fabric",
     R"(  percsctl health
  percsctl health --format json)",
     AddHealth},
    {"counters", kControl, "Show counters of a hub, or of the whole machine",
     R"(  percsctl counters
  percsctl counters sn0-d1-h3
  percsctl counters sn0-d1-h3 --vc
  percsctl counters --per-node --format json)",
     AddCounters},
    {"trace", kControl, "Follow packets hop by hop, and explain every wait",
     R"(  percsctl trace deploy/scenarios/four-supernodes.yaml --from sn0-d0-h0 \
      --packet 20
  percsctl trace deploy/scenarios/supernode-alltoall.yaml --from sn0-d0-h0 \
      --packet 100 --every 50 --count 4
  percsctl trace deploy/scenarios/supernode-alltoall.yaml --apply --name lab \
      --from sn0-d0-h0 --format json
  percsctl trace --name lab --to sn0-d1-h3 --count 2
  percsctl trace deploy/scenarios/hfi-rdma.yaml --count 100 \
      --format pcapng -o rdma.pcapng
  percsctl trace deploy/scenarios/service-port.yaml --kind management \
      --format pcapng |
    tshark -X lua_script:deploy/wireshark/percs.lua -r - -Y percs.drop
  percsctl trace deploy/scenarios/supernode-alltoall.yaml --every 50 \
      --count 20 --format perfetto -o alltoall.perfetto-trace)",
     AddTrace},
    {"tree", kControl, "Create, list and delete trees of Collective Acceleration Units",
     R"(  percsctl tree list
  percsctl tree create world --members all --fan-out 4
  percsctl tree list world
  percsctl tree delete world)",
     AddTree},
    {"observe", kControl, "Set log level and metrics detail",
     R"(  percsctl observe --log-level debug
  percsctl observe sn0-d1-h3 sn0-d1-h4 --metrics-detail vc)",
     AddObserve},
    {"tun", kControl, "Create a network interface of this machine for a hub (needs CAP_NET_ADMIN)",
     R"(  percsctl tun sn0-d0-h0
  unshare --net percsctl tun sn0-d1-h0 --device percs1 --name lab)",
     AddTun},
    {"stop", kControl, "End workloads that run until stopped, and drain the fabric",
     R"(  percsctl stop --wait)", AddStop},
    {"context", kElsewhere, "Save the address of a remote fabric and the identity to use there",
     R"(  docker compose run --rm certs percsctl context export /tls/operator |
    percsctl context import compose --controller 127.0.0.1:18515
  percsctl status --name compose
  percsctl context list
  percsctl context delete compose)",
     AddContext},
    {"ca", kElsewhere, "Create a certificate authority and an identity for every role",
     R"(  percsctl ca ./tls
  percs-controller --listen tcp --tls ./tls/controller
  percsd --controller host:18515 --listen host:0 --tls ./tls/daemon
  percsctl status --controller host:18515 --tls ./tls/operator)",
     AddCa},
    {"help", kOther, "Show the help of percsctl or of a command",
     R"(  percsctl help
  percsctl help run
  percsctl help fault create)",
     AddHelp},
    {"version", kOther, "Print versions: software, wire, file format, model",
     R"(  percsctl version --format json)", AddVersion},
    {"completion", kOther, "Print a completion script for a shell",
     R"(  source <(percsctl completion bash)
  percsctl completion zsh > ~/.zfunc/_percsctl
  percsctl completion fish > ~/.config/fish/completions/percsctl.fish)",
     AddCompletion},
};

constexpr const char* kFooter =
    R"(Times are virtual (of the emulated machine) unless written wall:30s.
Exit codes: 0 success, 1 failure, 2 wrong command line, 3 wrong scenario, trace, link or )"
    R"(hub, 4 no controller answers, 5 the emulated fabric is deadlocked, 6 a checker found a )"
    R"(violation, 7 certificate or role refused, 130 interrupted.
`percsctl COMMAND --help` shows examples.)";

int UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const std::string path = CommandPath(app);
  const std::string text =
      fmt::format("{}: {}", path, Printable(UsageMessage(app, error), Lines::kSeveral));
  fmt::print(stderr, "{}\nSee `{} --help`.\n", Hanging(text, 0, Screen::OfErrors()), path);
  return static_cast<int>(ExitCode::kUsage);
}

constexpr std::size_t kMessageMax = 64 << 10;  // of an error, which may quote what is wrong

int Finish(const std::string& command, const Outcome& outcome) {
  std::fflush(stdout);
  if (!outcome.message.empty()) {
    std::string text = Printable(outcome.message, Lines::kSeveral);
    if (text.size() > kMessageMax) text = text.substr(0, kMessageMax) + " ...";
    text = fmt::format("percsctl {}: {}", command, text);
    fmt::print(stderr, "{}\n", Hanging(text, 0, Screen::OfErrors()));
  }
  return static_cast<int>(outcome.code);
}

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }

void AddFormatOption(CLI::App& app, std::string& format) {
  format = "human";
  app.add_option("--format", format, "human or json")
      ->check(CLI::IsMember({"human", "json"}))
      ->capture_default_str();
}

std::vector<CommandBody> DeclareCommands(CLI::App& app) {
  app.name("percsctl");
  app.description("PERCS network emulator: run scenarios, start fabrics, watch and break them.");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.formatter(HelpFormatter());  // of all commands below, too
  app.set_version_flag("--version", VersionText, "Print versions and exit");
  std::vector<CommandBody> bodies;
  for (const Command& command : Commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->group(command.group);
    sub->footer(fmt::format("Examples:\n{}", command.examples));
    bodies.push_back(command.add(*sub));
  }
  return bodies;
}

int RunPercsctl(int argc, const char* const* argv) {
  EndWhenOutOfMemory("percsctl");
  // Our own messages say what failed; gRPC's would say it again with its source lines.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  CLI::App app;
  const std::vector<CommandBody> bodies = DeclareCommands(app);
  if (argc > 1 && argv[1] == std::string_view(kCompleteCommand)) {
    for (const std::string& line : Complete(app, std::vector<std::string>(argv + 2, argv + argc)))
      fmt::print("{}\n", line);
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error);
  }
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Command& command = Commands()[i];
    if (app.got_subcommand(command.name)) return Finish(command.name, bodies[i]());
  }
  return static_cast<int>(ExitCode::kUsage);
}

}  // namespace percs
