"""Scenarios drawn from the schema, run by real processes over random placements: the same digest as
in one process, and as their journal gives.
"""

import json
import os
import random
import subprocess
import unittest

from fabric import BIN, FabricTest, percsctl

SEED = int(os.environ.get("PERCS_SEED") or 20110823)
SCENARIOS = 60 if os.environ.get("PERCS_FULL") == "1" else 10
TRIED_MAX = 20 * SCENARIOS
DAEMONS = 3
DEADLOCK = 5  # the exit code of percsctl when nothing moves any more
UNEXPECTED = 6  # the exit code when a drawn program expects another result than it has


def placement(rng, hubs):
    """Contiguous blocks of random sizes, at least one hub each."""
    cuts = sorted(rng.sample(range(1, hubs), DAEMONS - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, hubs])]


class CampaignTest(FabricTest):
    def run_here(self):
        """None if it ends with an error, as scenarios do whose programs wait in vain or expect what
        does not happen."""
        done = percsctl("run", self.file, "--format", "json", check=False)
        self.assertIn(done.returncode, (0, DEADLOCK, UNEXPECTED), done.stderr)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def write(self, number):
        """Whether percsctl runs it, by its own word, in one process and over daemons."""
        text = subprocess.run([BIN / "scenario_campaign", "--print", str(number)], check=True,
                              text=True, stdout=subprocess.PIPE).stdout
        self.file.write_text(text)
        return percsctl("check", self.file, check=False).returncode == 0

    def test_scenarios_from_the_schema_give_the_same_over_any_placement(self):
        rng = random.Random(SEED)
        fabric = self.open_fabric(DAEMONS)
        compared = 0
        for number in range(SEED, SEED + TRIED_MAX):
            if compared == SCENARIOS:
                break
            if not self.write(number):
                continue
            with self.subTest(number=number, see=f"scenario_campaign --print {number}"):
                here = self.run_here()
                if here is None:
                    continue
                places = placement(rng, here["nodes"]) if here["nodes"] >= DAEMONS else None
                options = ["--placement", ",".join(map(str, places))] if places else []
                fabric.ctl("apply", self.file, *options)
                there = fabric.result()
                self.assertEqual(here["digest"], there["digest"], fabric.logs())
                self.assertEqual(here["measured"], there["measured"])
                self.check_replay(fabric, there)
                compared += 1
        self.assertEqual(compared, SCENARIOS)


if __name__ == "__main__":
    unittest.main()
