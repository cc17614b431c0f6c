"""The committed dashboards: a walk over their queries, and what each must say.

A query is worked out twice: by Prometheus, from what it scraped, and here, by `evaluate`, from
what percsctl says. `evaluate` knows just the PromQL that the dashboards use; what it does not know
is an error.
"""

import dataclasses
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "grafana" / "dashboards"
# Added by Prometheus, so no part of what a query says about the fabric.
TARGET_LABELS = {"__name__", "job", "instance", "role"}
SELECTOR = re.compile(r"(?<![\w:{])((?:percs|process|grpc_server)_\w+|ALERTS|\w+:\w+:\w+)"
                      r"(\{[^}]*\})?")
MATCHER = re.compile(r'(\w+)(!=|=~|=)"([^"]*)"')


@dataclasses.dataclass
class Query:
    """One query of one panel or annotation."""

    where: str  # dashboard, panel and letter, for messages
    expr: str
    legend: str
    unit: str = ""
    annotation: bool = False
    table: bool = False  # shows labels in columns instead of a legend

    def expanded(self, variables):
        expr = self.expr
        for name, value in variables.items():
            expr = re.sub(rf"\${name}\b", value, expr)
        return expr


def load():
    """File name to dashboard."""
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels(dashboard):
    return [p for p in dashboard["panels"] if p["type"] not in ("row", "text")]


def queries(dashboard):
    title = dashboard["title"]
    for mark in dashboard["annotations"].get("list", []):
        yield Query(f"{title}, mark {mark['name']}", mark["expr"], mark["titleFormat"],
                    annotation=True)
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield Query(f"{title}, {panel['title']}, {target['refId']}", target["expr"],
                        target["legendFormat"], panel["fieldConfig"]["defaults"]["unit"],
                        table=target.get("format") == "table")


def names(expr):
    """Every metric and recording rule that an expression speaks of."""
    return {match[1] for match in SELECTOR.finditer(expr)}


def bare(labels):
    return tuple(sorted((k, v) for k, v in labels.items() if k not in TARGET_LABELS))


class Vector:
    """Samples by their labels, with the arithmetic of PromQL between vectors of the same labels."""

    def __init__(self, samples):
        self.samples = samples  # tuple of (label, value) pairs -> number

    def apply(self, other, operation):
        if not isinstance(other, Vector):
            return Vector({k: operation(v, other) for k, v in self.samples.items()})
        return Vector({k: operation(v, other.samples[k]) for k, v in self.samples.items()
                       if k in other.samples})

    def __sub__(self, other):
        return self.apply(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self.apply(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self.apply(other, lambda a, b: a * b)

    def __truediv__(self, other):
        return self.apply(other, lambda a, b: a / b)

    def __rtruediv__(self, other):
        return self.apply(other, lambda a, b: b / a)

    def __eq__(self, number):
        return Vector({k: v for k, v in self.samples.items() if v == number})

    def __gt__(self, number):
        return Vector({k: v for k, v in self.samples.items() if v > number})

    def __or__(self, other):
        return Vector({**other.samples, **self.samples})

    def __matmul__(self, info):
        """* on (hub, port) group_left (peer)"""
        peers = {(dict(k)["hub"], dict(k)["port"]): dict(k)["peer"] for k in info.samples}
        return Vector({bare({**dict(k), "peer": peers[dict(k)["hub"], dict(k)["port"]]}): v
                       for k, v in self.samples.items()})


def aggregated(fold, labels, vector):
    groups = {}
    for key, value in vector.samples.items():
        group = bare({k: v for k, v in key if k in labels})
        groups.setdefault(group, []).append(value)
    return Vector({group: fold(values) for group, values in groups.items()})


def evaluate(expr, truth):
    """The samples of `expr`; `truth` has for each metric a list of (labels, value)."""
    def select(name, matchers):
        tests = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b,
                 "=~": lambda a, b: re.fullmatch(b, a) is not None}
        return Vector({bare(labels): value for labels, value in truth[name]
                       if all(tests[op](labels.get(label, ""), wanted)
                              for label, op, wanted in MATCHER.findall(matchers))})

    def selector(match):
        return f"select({match[1]!r}, {match[2] or ''!r})"

    code = re.sub(r" \* on \(hub, port\) group_left \(peer\) ", " @ ", expr)
    code = SELECTOR.sub(selector, code)
    code = re.sub(r"\b(sum|max|min|count)(?: by \(([^)]*)\) )?\(",
                  lambda m: f"fold({m[1]!r}, {(m[2] or '').split(', ')!r}, ", code)
    code = code.replace(" or ", " | ")
    folds = {"sum": sum, "max": max, "min": min, "count": len}
    known = {"__builtins__": {}, "select": select,
             "fold": lambda name, labels, vector: aggregated(folds[name], labels, vector)}
    return eval(code, known).samples  # text of this repository


def is_rate(expr):
    """Says how fast something goes, so it can only be compared while it goes."""
    return "[" in expr or any(":" in name for name in names(expr))
