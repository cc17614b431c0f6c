"""The reference of the messages and services, from what protoc reads in proto/."""

import importlib
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

NAMES = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32",
         8: "bool", 9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64",
         17: "sint32", 18: "sint64"}
MESSAGE, ENUM = 11, 14


def read(folder):
    """What protoc reads, with comments."""
    files = sorted(str(f.relative_to(folder)) for f in (folder / "percs/v1").glob("*.proto"))
    with tempfile.TemporaryDirectory() as temporary:
        out = pathlib.Path(temporary) / "set"
        subprocess.run(["protoc", "-I", folder, "--include_source_info",
                        f"--descriptor_set_out={out}", *files], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file


class Page:
    def __init__(self, file, options):
        self.file, self.options = file, options
        self.comments = {tuple(at.path): self.plain(at.leading_comments or at.trailing_comments)
                         for at in file.source_code_info.location}

    @staticmethod
    def plain(text):
        return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")

    def comment(self, path, extra=""):
        found = self.comments.get(tuple(path), "")
        return " ".join(part for part in (self.plain(extra), found) if part)

    def type_of(self, field, message):
        entry = next((inner for inner in message.nested_type if inner.options.map_entry
                      and field.type_name.endswith(f".{message.name}.{inner.name}")), None)
        if entry:
            key, value = (self.type_of(part, entry) for part in entry.field)
            return f"map of {key} to {value}"
        name = NAMES.get(field.type) or field.type_name.removeprefix(".percs.v1.")
        if field.type in (MESSAGE, ENUM) and field.type_name.startswith(".percs.v1."):
            name = f"[{name}]({anchor(name)})"
        return f"repeated {name}" if field.label == field.LABEL_REPEATED else name

    def message(self, message, path, prefix):
        name = prefix + message.name
        about = message.options.Extensions[self.options.about]
        yield from (f"({anchor(name)})=", f"### {name}", "", self.comment(path, about), "")
        if message.field:
            yield from ("| field | type | meaning |", "| --- | --- | --- |")
        for index, field in enumerate(message.field):
            doc = field.options.Extensions[self.options.field].doc
            yield (f"| `{field.name}` = {field.number} | {self.type_of(field, message)} | "
                   f"{self.comment([*path, 2, index], doc)} |")
        yield ""
        for index, inner in enumerate(message.nested_type):
            if not inner.options.map_entry:
                yield from self.message(inner, [*path, 3, index], f"{name}.")
        for index, inner in enumerate(message.enum_type):
            yield from self.enum(inner, [*path, 4, index], f"{name}.")

    def enum(self, enum, path, prefix=""):
        name = prefix + enum.name
        yield from (f"({anchor(name)})=", f"### {name}", "", self.comment(path), "",
                    "| value | meaning |", "| --- | --- |")
        for index, value in enumerate(enum.value):
            meaning = value.options.Extensions[self.options.meaning]
            yield (f"| `{value.name}` = {value.number} | "
                   f"{self.comment([*path, 2, index], meaning)} |")
        yield ""

    def service(self, service, path):
        yield from (f"### Service {service.name}", "", self.comment(path), "",
                    "| call | request | answer | meaning |", "| --- | --- | --- | --- |")
        for index, call in enumerate(service.method):
            ends = []
            for stream, name in ((call.client_streaming, call.input_type),
                                 (call.server_streaming, call.output_type)):
                name = name.removeprefix(".percs.v1.")
                ends.append(f"{'stream of ' if stream else ''}[{name}]({anchor(name)})")
            yield (f"| `{call.name}` | {ends[0]} | {ends[1]} | "
                   f"{self.comment([*path, 2, index])} |")
        yield ""

    def lines(self):
        yield from (f"## {self.file.name}", "", self.comment([12]), "")
        for index, service in enumerate(self.file.service):
            yield from self.service(service, [6, index])
        for index, message in enumerate(self.file.message_type):
            yield from self.message(message, [4, index], "")
        for index, enum in enumerate(self.file.enum_type):
            yield from self.enum(enum, [5, index])


def anchor(name):
    return "proto-" + name.lower().replace(".", "-").replace("_", "-")


def page(folder, package):
    sys.path.insert(0, str(package))
    options = importlib.import_module("percs.v1.options_pb2")
    lines = ["# Messages and services", "", "Package `percs.v1` of `proto/`. Times are in "
             "picoseconds of virtual time unless a name says otherwise. "
             "[Other languages](../docs/other_languages.md) shows how to call a service.", ""]
    for file in sorted(read(folder), key=lambda file: (not file.service, file.name)):
        if file.name.startswith("percs/"):
            lines += Page(file, options).lines()
    return "\n".join(lines) + "\n"
