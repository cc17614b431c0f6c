"""What is shipped for running elsewhere has what the documents say, wherever no engine runs it.

Method: the Compose file with its anchors put in, and the units of systemd, as text.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HARDENING = ("NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict",
             "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes", "RestrictNamespaces=yes",
             "MemoryDenyWriteExecute=yes", "SystemCallFilter=@system-service", "UMask=0077")


def blocks(text, indent):
    """Of keys at that indent: name and text."""
    heads = list(re.finditer(rf"^{' ' * indent}([a-z][a-z-]*):", text, re.M))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: text[head.start():end] for head, end in zip(heads, ends)}


class ComposeTest(unittest.TestCase):
    def setUp(self):
        text = re.sub(r"^ *#.*$", "", (ROOT / "docker-compose.yml").read_text(), flags=re.M)
        top = blocks(text, 0)
        anchors = {f"*{name.removeprefix('x-')}": body for name, body in top.items()}
        self.services = blocks(top["services"], 2)
        anchors["*hub"] = self.services["hub"]
        for _ in range(2):  # a blade is a hub, which is one of ours
            for name, body in self.services.items():
                for anchor, put_in in anchors.items():
                    body = body.replace(f"<<: {anchor}\n", put_in.partition("\n")[2])
                self.services[name] = body

    def test_every_service_is_bounded_and_ends_in_order(self):
        self.assertEqual({"certs", "controller", "hub", "blade", "prometheus", "grafana"},
                         set(self.services))
        for name, body in self.services.items():
            for wanted in ("mem_limit:", "logging:", "stop_grace_period:", "restart:",
                           "cap_drop: [ALL]", "no-new-privileges:true"):
                self.assertIn(wanted, body, name)
            for unwanted in ("container_name:", "privileged:", "cap_add:", "network_mode:"):
                self.assertNotIn(unwanted, body, name)
            self.assertEqual(name != "certs", "healthcheck:" in body, name)

    def test_only_loopback_of_the_host_is_published_and_nothing_of_a_hub(self):
        for name, body in self.services.items():
            ports = re.findall(r"^ *ports: *(.*)$", body, re.M)
            if name in ("certs", "hub", "blade"):
                self.assertEqual([], ports, name)
            for port in ports:
                self.assertRegex(port, r'^\["127\.0\.0\.1:', name)

    def test_what_outlives_a_container_is_in_volumes(self):
        self.assertIn("journal:/var/lib/percs", self.services["controller"])
        self.assertIn("--state-dir /var/lib/percs", self.services["controller"])


class SystemdTest(unittest.TestCase):
    def test_units_have_few_rights(self):
        units = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
        self.assertEqual(2, len(units))
        for unit in units:
            lines = unit.read_text().splitlines()
            for line in HARDENING:
                self.assertIn(line, lines, unit.name)
            self.assertIn("User=percs", lines, unit.name)


if __name__ == "__main__":
    unittest.main()
