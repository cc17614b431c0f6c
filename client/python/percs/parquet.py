"""Tables as Apache Parquet files. Debian 12 packages no library that writes them.

A file has one row group and a page per column: no compression, plain values, and a bit per row
that says whether there is one. The format is that of parquet-format 2.10, with headers in Thrift's
compact protocol.
"""

from __future__ import annotations

import pathlib
import struct
from typing import Any, List, Sequence, Tuple, Union

import numpy as np
import pandas as pd

from percs import errors

_MAGIC = b"PAR1"
# Of parquet.thrift: types of values, and how text is stored.
_BOOLEAN, _INT64, _DOUBLE, _BYTE_ARRAY = 0, 2, 5, 6
_UTF8 = 0
_OPTIONAL = 1
_PLAIN, _RLE = 0, 3
# Of Thrift's compact protocol: types of fields.
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _integer(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _binary(value: bytes) -> bytes:
    return _varint(len(value)) + value


def _list(kind: int, values: Sequence[bytes]) -> bytes:
    few = len(values) < 15
    head = bytes([len(values) << 4 | kind]) if few else bytes([0xF0 | kind]) + _varint(len(values))
    return head + b"".join(values)


def _struct(*fields: Tuple[int, int, bytes]) -> bytes:
    """Of fields as number, type and encoded value, in order of their numbers."""
    out, last = bytearray(), 0
    for number, kind, value in fields:
        out.append((number - last) << 4 | kind)  # numbers grow by less than 16 here
        out += value
        last = number
    return bytes(out) + b"\0"


class _Column:
    """One column: its place in the schema and its page."""

    def __init__(self, name: str, values: "pd.Series[Any]") -> None:
        self.name = name.encode()
        there = values.notna().to_numpy(dtype=bool)
        kind = values.infer_objects().dropna().infer_objects()
        self.text = False
        if pd.api.types.is_bool_dtype(kind.dtype) and len(kind) > 0:
            self.type = _BOOLEAN
            data = np.packbits(kind.to_numpy(dtype=bool), bitorder="little").tobytes()
        elif pd.api.types.is_integer_dtype(kind.dtype):
            if len(kind) > 0 and int(kind.max()) >= 1 << 63:
                raise errors.FieldError(name, int(kind.max()), "too large a whole number",
                                        "at most 2^63 - 1")
            self.type, data = _INT64, kind.to_numpy(dtype="<i8").tobytes()
        elif pd.api.types.is_float_dtype(kind.dtype):
            self.type, data = _DOUBLE, kind.to_numpy(dtype="<f8").tobytes()
        else:
            self.type, self.text = _BYTE_ARRAY, True
            data = b"".join(struct.pack("<I", len(text)) + text
                            for text in (str(value).encode() for value in kind))
        # One run of single bits, in groups of eight.
        bits = np.packbits(there, bitorder="little").tobytes()
        levels = _varint(len(bits) << 1 | 1) + bits
        body = struct.pack("<I", len(levels)) + levels + data
        self.rows = len(values)
        header = _struct(
            (1, _I32, _integer(0)),
            (2, _I32, _integer(len(body))),
            (3, _I32, _integer(len(body))),
            (5, _STRUCT, _struct((1, _I32, _integer(self.rows)), (2, _I32, _integer(_PLAIN)),
                                 (3, _I32, _integer(_RLE)), (4, _I32, _integer(_RLE)))))
        self.page = header + body

    def schema(self) -> bytes:
        kind = [(6, _I32, _integer(_UTF8))] if self.text else []
        return _struct((1, _I32, _integer(self.type)), (3, _I32, _integer(_OPTIONAL)),
                       (4, _BINARY, _binary(self.name)), *kind)

    def chunk(self, offset: int) -> bytes:
        size = _integer(len(self.page))
        about = _struct(
            (1, _I32, _integer(self.type)),
            (2, _LIST, _list(_I32, [_integer(_PLAIN), _integer(_RLE)])),
            (3, _LIST, _list(_BINARY, [_binary(self.name)])),
            (4, _I32, _integer(0)),
            (5, _I64, _integer(self.rows)), (6, _I64, size), (7, _I64, size),
            (9, _I64, _integer(offset)))
        return _struct((2, _I64, _integer(offset)), (3, _STRUCT, about))


def to_parquet(frame: pd.DataFrame, file: Union[str, "pathlib.PurePath"]) -> None:
    """Writes a table, like that of ``sweep``, as a Parquet file.

    Truth values, whole numbers (64 bits) and numbers keep their type; everything else is written as
    text. NaN and None become null: no sample. An index with a name becomes the first column.
    """
    if frame.index.name is not None or frame.index.nlevels > 1:
        frame = frame.reset_index()
    columns = [_Column(str(name), frame[name]) for name in frame.columns]
    out = bytearray(_MAGIC)
    chunks: List[bytes] = []
    for column in columns:
        chunks.append(column.chunk(len(out)))
        out += column.page
    size = _integer(len(out) - len(_MAGIC))
    root = _struct((4, _BINARY, _binary(b"table")), (5, _I32, _integer(len(columns))))
    rows = _integer(len(frame))
    footer = _struct(
        (1, _I32, _integer(1)),
        (2, _LIST, _list(_STRUCT, [root, *(column.schema() for column in columns)])),
        (3, _I64, rows),
        (4, _LIST, _list(_STRUCT, [_struct((1, _LIST, _list(_STRUCT, chunks)), (2, _I64, size),
                                           (3, _I64, rows))])),
        (6, _BINARY, _binary(b"percs")))
    out += footer + struct.pack("<I", len(footer)) + _MAGIC
    pathlib.Path(file).write_bytes(out)
