"""percsctl check says what run and apply would refuse, and they do."""

import unittest

from test_cli import BAD_INPUT, ENDLESS, TINY, CliTest


class CheckCommandTest(CliTest):
    def test_check_refuses_what_run_or_apply_would(self):
        short = self.write("short.yaml", TINY + "parameters: {ll: {wire: 0ps}, "
                           "credit_processing: 19ns}\n")
        done = self.ctl("check", short)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn("short.yaml: refused by `apply`: the lookahead of a distributed run is 19ns",
                      done.stderr)
        self.good("check", "--for", "run", short)
        self.good("run", short)
        (self.folder / "two.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 1\n}\n")
        endless = self.write("endless.yaml", "topology: {supernodes: 1, drawers: 1, hubs: 2}\n"
                             "workload: {trace: {file: two.goal}, background: {load: 0.1}}\n")
        done = self.ctl("check", endless)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn("endless.yaml: refused by `run`: this workload runs until it is stopped; "
                      "limit it with `--set workload.background.count=1000`", done.stderr)
        self.assertEqual(BAD_INPUT, self.ctl("run", endless).returncode)
        self.good("check", "--for", "apply", endless)

    def test_names_are_short_and_printable(self):
        self.good("up", "--daemons", 1)
        self.good("apply", self.write("endless.yaml", ENDLESS))
        for name, what in (("a\x1b[2Jb", r'the name "a\\x1b\[2Jb" has a control character'),
                           ("x" * 200, 'the name "x{32}\\.\\.\\." has 200 bytes; at most 128')):
            done = self.ctl("fault", "create", name, "--kind", "link_down", "--link",
                            "sn0-d0-h0:LL0")
            self.assertEqual(BAD_INPUT, done.returncode, done.stderr)
            self.assertRegex(done.stderr, "^percsctl fault: " + what)
            done = self.ctl("check", self.write("name.yaml", TINY.replace("tiny", f'"{name}"'
                                                .replace("\x1b", "\\e"))))
            self.assertEqual(BAD_INPUT, done.returncode, done.stderr)
            self.assertRegex(done.stderr, what)
        self.good("stop", "--wait")


if __name__ == "__main__":
    unittest.main()
