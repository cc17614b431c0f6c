"""percsctl ping and perf between hubs: every format, with figures that follow from the parameters.

Method: as test_cli.py. One hop over an LL link with the default parameters takes, for 8 bytes, what
docs/hfi.md adds up; the tables have the layouts that readers of the OSU and Intel MPI benchmarks
know, so each is compared line by line.
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.distributed import test_cli  # noqa: E402

BAD_INPUT, USAGE = test_cli.BAD_INPUT, test_cli.USAGE
HERE, NEXT = "sn0-d0-h0", "sn0-d0-h1"
# HFI port, ISR, link and wire, ISR, HFI port.
LINK_PS = 5334 + 50000 + 5334 + 5000 + 50000 + 5334
LATENCY_PS = {
    "immediate": 150000 + LINK_PS + 15000 + 200000,
    "fifo": 500000 + 15000 + 80000 + LINK_PS + 15000 + 200000,
    "rdma": 500000 + 15000 + 80000 + LINK_PS + 15000 + 50000 + 200000,
}
NUMBER = r"\d+\.\d\d"


class PerfTest(test_cli.CliTest):
    def perf(self, *arguments):
        return self.good("perf", HERE, NEXT, "--iterations", 2, *arguments)

    def test_latency_is_the_sum_of_the_parameters(self):
        for mode, latency in LATENCY_PS.items():
            report = self.good_json("perf", HERE, NEXT, "--mode", mode, "--bytes", "8",
                                    "--iterations", 2)
            self.assertEqual((HERE, NEXT, mode), (report["from"], report["to"], report["mode"]))
            (size,) = report["sizes"]
            self.assertEqual([latency] * 3,
                             [size[f"latency{part}_ps"] for part in ("", "_min", "_max")])

    def test_bandwidth_saturates_at_what_the_parameters_allow(self):
        file = self.write("slow.yaml", "topology: {supernodes: 1, drawers: 1, hubs: 2}\n")
        for setting, limit in ((None, 24e9), ("parameters.windows.rate=3GB/s", 3e9),
                               ("parameters.windows.packet_time=1us", 2048 / 1e-6),
                               ("parameters.ll.rate=2GB/s", 2e9)):
            flags = ("--set", setting) if setting else ()
            report = self.good_json("perf", HERE, NEXT, "--bytes", "1MiB", "--iterations", 5,
                                    "--scenario", file, *flags)
            rate = report["sizes"][0]["bytes_per_second"]
            self.assertTrue(0.97 * limit < rate <= 1.001 * limit, f"{setting}: {rate}")

    def test_table_has_a_line_for_each_size(self):
        lines = self.perf("--bytes", "8,1KiB,64KiB").splitlines()
        self.assertEqual(f"{HERE} to {NEXT} by rdma", lines[0])
        self.assertEqual(["bytes", "latency ns (virtual)", "bandwidth MB/s", "both ways MB/s",
                          "messages/s"], re.split(r"\s{2,}", lines[1].strip()))
        self.assertEqual(["8", "1,024", "65,536"], [line.split()[0] for line in lines[2:]])
        self.assertIn(" 981.002 ", lines[2])
        table = self.perf("--bytes", "8,1KiB,64KiB", "--format", "table")
        self.assertEqual(lines, table.splitlines())

    def test_osu_layout(self):
        text = self.perf("--bytes", "8", "--bytes", "64KiB", "--format", "osu")
        tables = [table.splitlines() for table in text.strip().split("\n\n")]
        heads = [("Latency", "Latency (us)"), ("Bandwidth", "Bandwidth (MB/s)"),
                 ("Bi-Directional Bandwidth", "Bandwidth (MB/s)"), ("Message Rate", "Messages/s")]
        self.assertEqual(len(heads), len(tables))
        for (title, unit), lines in zip(heads, tables):
            self.assertEqual(f"# PERCS rdma {title} Test, columns as osu_*", lines[0])
            self.assertEqual(f"# {'Size':<8}{unit:>18}", lines[1])
            self.assertEqual(["8", "65536"], [line.split()[0] for line in lines[2:]])
            for line in lines[2:]:
                self.assertRegex(line, rf"^\d+ +{NUMBER}$")
                self.assertEqual(28, len(line))
        self.assertEqual(f"{8:<10}{0.98:>18.2f}", tables[0][2])

    def test_imb_layout(self):
        text = self.perf("--bytes", "8,64KiB", "--mode", "rdma", "--format", "imb")
        ping_pong, bands = (part.splitlines() for part in text.strip().split("\n\n"))
        self.assertEqual("# Benchmarking PingPong, PERCS rdma, columns as IMB", ping_pong[1])
        self.assertEqual("# #processes = 2", ping_pong[2])
        self.assertEqual(["#bytes", "#repetitions", "t[usec]", "Mbytes/sec"], ping_pong[4].split())
        self.assertEqual(["8", "2", "0.98", "8.15"], ping_pong[5].split())
        self.assertEqual(7, len(ping_pong))
        self.assertEqual("# Benchmarking Uniband and Biband, PERCS rdma", bands[1])
        self.assertEqual("#bytes Mbytes/sec both ways Msg/sec".split(), bands[3].split())
        self.assertEqual(["8", "65536"], [line.split()[0] for line in bands[4:]])

    def test_what_cannot_be_measured_is_refused(self):
        self.bad(BAD_INPUT, 'percsctl perf: no packet format "tcp"; formats: immediate, fifo, rdma',
                 "perf", HERE, NEXT, "--mode", "tcp")
        done = self.ctl("perf", HERE, NEXT, "--bytes", "8,many")
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn('"many"', done.stderr)
        done = self.ctl("perf", HERE, NEXT, "--mode", "immediate", "--bytes", "128")
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn("127", done.stderr)


class PingTest(test_cli.CliTest):
    def test_tells_every_round_trip_and_their_summary(self):
        trip = 2 * LATENCY_PS["immediate"]
        cold = trip + 2 * (500000 - 15000)  # the first packets miss in both NMMUs
        lines = self.good("ping", HERE, NEXT, "--count", 3).splitlines()
        self.assertEqual([f"PING {NEXT} from {HERE}: 64 bytes by immediate",
                          f"64 bytes from {NEXT}: seq=1 time=1.942us virtual",
                          f"64 bytes from {NEXT}: seq=2 time=972.004ns virtual",
                          f"64 bytes from {NEXT}: seq=3 time=972.004ns virtual",
                          "3 round trips, min/avg/max = 972.004ns/1.295us/1.942us virtual"], lines)
        report = self.good_json("ping", HERE, NEXT, "--count", 3)
        self.assertEqual([cold, trip, trip], report["round_trips_ps"])
        self.assertEqual([trip, (cold + 2 * trip) // 3, cold],
                         [report[f"{name}_ps"] for name in ("min", "mean", "max")])

    def test_takes_sizes_with_units_and_other_formats(self):
        options = ("--bytes", "2KiB", "--mode", "fifo", "--count", 1)
        report = self.good_json("ping", HERE, "sn1-d3-h7", *options)
        self.assertEqual(2048, report["bytes"])
        near = self.good_json("ping", HERE, NEXT, *options)
        self.assertLess(near["mean_ps"], report["mean_ps"])
        self.bad(USAGE, "percsctl ping: a ping has one size; write for example --bytes 64",
                 "ping", HERE, NEXT, "--bytes", "8..64")
        done = self.ctl("ping", HERE, HERE)
        self.assertEqual(BAD_INPUT, done.returncode)


if __name__ == "__main__":
    unittest.main()
