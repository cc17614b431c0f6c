"""The Kubernetes manifests, rendered by kubectl, without a cluster.

Method: `kubectl kustomize` renders, `kubectl label --local` turns that into JSON; then what the
objects say of each other has to agree: selectors, ports, places, flags that the programs really
have. Under --full they are also held to the schemas and types of the kubernetes-models packages,
the first for values, the second for fields that do not exist.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
FOLDER = ROOT / "deploy" / "kubernetes"
MODELS = ROOT / "tests" / "engines" / "kubernetes_models"
CUSTOM = {"monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator"}
PROGRAMS = ("percs-controller", "percsd")


def run(command, **options):
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def render(folder, home):
    environment = dict(os.environ, HOME=str(home), KUBECONFIG="/dev/null")
    text = run(["kubectl", "kustomize", folder], env=environment)
    text = run(["kubectl", "label", "--local", "-o", "json", "-f", "-", "no-such-label-"],
               input=text, env=environment)
    decoder, objects, text = json.JSONDecoder(), [], text.strip()
    while text:
        one, end = decoder.raw_decode(text)
        objects.append(one)
        text = text[end:].strip()
    return objects


def selects(selector, labels):
    return bool(selector) and selector.items() <= labels.items()


class KubernetesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("kubectl"):
            raise AssertionError("kubectl is not there; deploy/install --engines installs it")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-kubernetes-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.fabric = render(FOLDER, cls.folder)
        cls.monitoring = render(FOLDER / "monitoring", cls.folder)
        cls.sets = {o["metadata"]["name"]: o for o in cls.fabric if o["kind"] == "StatefulSet"}
        cls.services = {o["metadata"]["name"]: o for o in cls.fabric if o["kind"] == "Service"}

    def pod(self, name):
        return self.sets[name]["spec"]["template"]

    def container(self, name):
        (container,) = self.pod(name)["spec"]["containers"]
        return container

    def ports(self, name):
        return {p["name"]: p["containerPort"] for p in self.container(name)["ports"]}

    def arguments(self, name):
        return " ".join(self.container(name)["args"])

    def test_the_page_names_what_is_rendered_here(self):
        page = (ROOT / "docs" / "deploy.md").read_text()
        (folder,) = re.findall(r"(?m)^    kubectl apply -k (\S+)$", page)
        self.assertEqual(FOLDER, ROOT / folder)

    def test_the_objects_are_those_expected(self):
        self.assertEqual(sorted(PROGRAMS), sorted(self.sets))
        self.assertEqual(sorted(PROGRAMS), sorted(self.services))
        kinds = sorted(o["kind"] for o in self.fabric + self.monitoring)
        self.assertEqual(["Namespace", "NetworkPolicy", "PersistentVolumeClaim", "PodMonitor",
                          "Service", "Service", "StatefulSet", "StatefulSet"], kinds)
        for o in self.fabric + self.monitoring:
            if o["kind"] != "Namespace":
                self.assertEqual("percs", o["metadata"]["namespace"])

    def test_services_find_their_pods_and_sets_their_services(self):
        for name in PROGRAMS:
            spec, labels = self.sets[name]["spec"], self.pod(name)["metadata"]["labels"]
            self.assertTrue(selects(spec["selector"]["matchLabels"], labels))
            self.assertEqual(name, spec["serviceName"])
            service = self.services[name]["spec"]
            self.assertEqual("None", service["clusterIP"], "headless")
            found = [other for other in PROGRAMS if selects(
                service["selector"], self.pod(other)["metadata"]["labels"])]
            self.assertEqual([name], found)
            self.assertEqual(self.ports(name), {p["name"]: p["port"] for p in service["ports"]})
            for port in service["ports"]:
                self.assertIn(port["targetPort"], self.ports(name))

    def test_programs_get_flags_they_have_and_find_each_other(self):
        for name in PROGRAMS:
            known = set(re.findall(r"--[a-z-]+", run([BIN / name, "--help"])))
            used = set(re.findall(r"--[a-z-]+", self.arguments(name)))
            self.assertTrue(used)
            self.assertLessEqual(used, known, name)
            grpc, metrics = self.ports(name)["grpc"], self.ports(name)["metrics"]
            self.assertRegex(self.arguments(name), rf"--listen[ =]\S+:{grpc}\b")
            self.assertRegex(self.arguments(name), rf"--metrics[ =]\S+:{metrics}\b")
        daemons = int(re.search(r"--daemons=(\d+)", self.arguments("percs-controller"))[1])
        self.assertEqual(self.sets["percsd"]["spec"]["replicas"], daemons)
        self.assertEqual(1, self.sets["percs-controller"]["spec"]["replicas"])
        self.assertIn(f"--controller percs-controller:{self.ports('percs-controller')['grpc']} ",
                      self.arguments("percsd"))

    def test_a_pod_that_is_gone_is_declared_lost(self):
        """Not before the kubelet would have started one again that does not answer."""
        deadline = re.search(r"--loss-deadline=(\d+)", self.arguments("percs-controller"))
        probe = self.container("percsd")["livenessProbe"]
        self.assertGreaterEqual(int(deadline[1]),
                                probe["periodSeconds"] * probe["failureThreshold"])

    def test_the_shell_of_percsd_makes_a_place_of_the_name_of_a_pod(self):
        """What sh runs, with a percsd that prints its arguments."""
        fake = self.folder / "percsd"
        fake.write_text('#!/bin/sh\necho "$@"\n')
        fake.chmod(0o755)
        container = self.container("percsd")
        said = run([*container["command"], *container["args"]],
                   env={"PATH": f"{self.folder}:/usr/bin:/bin", "POD_IP": "10.1.2.3",
                        "POD_NAME": "percsd-17"})
        self.assertIn("--listen 10.1.2.3:18516 --metrics 10.1.2.3:9464", said)
        self.assertIn("--name percsd-17 --index 17", said)

    def test_pods_have_few_rights_and_limits(self):
        for name in PROGRAMS:
            pod, container = self.pod(name)["spec"], self.container(name)
            for each in [container, *pod["initContainers"]]:
                self.assertEqual({"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                  "capabilities": {"drop": ["ALL"]}}, each["securityContext"])
                self.assertIn("memory", each["resources"]["limits"])
                self.assertEqual({"cpu", "memory"}, set(each["resources"]["requests"]))
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertEqual({"type": "RuntimeDefault"}, pod["securityContext"]["seccompProfile"])
            self.assertFalse(pod["automountServiceAccountToken"])
            grpc = self.ports(name)["grpc"]
            for probe in ("readinessProbe", "livenessProbe"):
                said = " ".join(container[probe]["exec"]["command"])
                self.assertRegex(said, rf"percsd probe \S+:{grpc}\"? --tls /tls")
        self.assertNotIn("--ready", " ".join(
            self.container("percsd")["livenessProbe"]["exec"]["command"]))

    def test_each_pod_sees_the_identity_of_its_own_role(self):
        """... and the controller's the operator's, for kubectl exec."""
        seen = {"percsd": {"daemon"}, "percs-controller": {"controller", "operator"}}
        for name, roles in seen.items():
            (volume,) = [v["name"] for v in self.pod(name)["spec"]["volumes"]
                         if "persistentVolumeClaim" in v]
            mounts = [m for m in self.container(name)["volumeMounts"] if m["name"] == volume]
            self.assertEqual(roles, {m["subPath"] for m in mounts})
            self.assertTrue(all(m["readOnly"] for m in mounts))
            folders = {m["mountPath"] for m in mounts}
            self.assertIn(re.search(r"--tls[ =](\S+)", self.arguments(name))[1], folders)

    def test_the_network_lets_in_the_fabric_itself_and_prometheus(self):
        (policy,) = [o["spec"] for o in self.fabric if o["kind"] == "NetworkPolicy"]
        grpc = {self.ports(name)["grpc"] for name in PROGRAMS}
        own, prometheus = policy["ingress"]
        for name in PROGRAMS:
            labels = self.pod(name)["metadata"]["labels"]
            self.assertTrue(selects(policy["podSelector"]["matchLabels"], labels))
            self.assertTrue(selects(own["from"][0]["podSelector"]["matchLabels"], labels))
        self.assertEqual(grpc, {p["port"] for p in own["ports"]})
        self.assertEqual([self.ports("percsd")["metrics"]],
                         [p["port"] for p in prometheus["ports"]])
        self.assertEqual({"Ingress", "Egress"}, set(policy["policyTypes"]))

    def test_prometheus_finds_the_pods_both_ways(self):
        (monitor,) = [o["spec"] for o in self.monitoring]
        (endpoint,) = monitor["podMetricsEndpoints"]
        for name in PROGRAMS:
            meta = self.pod(name)["metadata"]
            self.assertTrue(selects(monitor["selector"]["matchLabels"], meta["labels"]))
            self.assertIn(endpoint["port"], self.ports(name))
            self.assertEqual(f"{self.ports(name)['metrics']}",
                             meta["annotations"]["prometheus.io/port"])
        # The rules ask for role="controller".
        self.assertEqual("controller", self.pod("percs-controller")["metadata"]["labels"][
            "app.kubernetes.io/component"])

    @unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "needs npm's registry: --full")
    def test_objects_satisfy_the_schemas_and_types_of_kubernetes_models(self):
        copy = self.folder / "models"
        shutil.copytree(MODELS, copy, ignore=shutil.ignore_patterns("node_modules"))
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=copy)
        objects = self.fabric + self.monitoring
        said = run(["node", "validate.mjs"], cwd=copy, input=json.dumps(objects))
        self.assertEqual(len(objects), len(said.splitlines()), said)
        self.assertEqual("", self.complaints_of_types(copy, objects))
        typo = json.loads(json.dumps(objects))
        typo[-1]["spec"]["podMetricEndpoints"] = []
        self.assertIn("podMetricEndpoints", self.complaints_of_types(copy, typo))

    def complaints_of_types(self, folder, objects):
        lines = []
        for i, o in enumerate(objects):
            package = CUSTOM.get(o["apiVersion"], "kubernetes-models")
            lines.append(f'import type {{ I{o["kind"]} as T{i} }} from '
                         f'"{package}/{o["apiVersion"]}/{o["kind"]}";')
            lines.append(f"export const object{i}: T{i} = {json.dumps(o)};")
        (folder / "objects.ts").write_text("\n".join(lines))
        done = subprocess.run(["node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck",
                               "--module", "nodenext", "objects.ts"], cwd=folder, text=True,
                              capture_output=True)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
