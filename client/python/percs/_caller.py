"""What calls a controller: the common part of the classes that make up Fabric."""

from __future__ import annotations

import pathlib
from typing import List, Optional, Type, TypeVar

from google.protobuf.message import Message

from percs import _program, _rpc

Reply = TypeVar("Reply", bound=Message)


class Caller:
    """A connection to a controller."""

    def __init__(self, address: str, tls: Optional[pathlib.Path], name: str) -> None:
        self.address = address  # host:port or unix:/path
        self.tls = tls  # folder of the identity to use; None: plaintext
        self.name = name  # of a local fabric; "": it is elsewhere
        self.channel = _rpc.Channel(_rpc.Address(address, tls))

    def arguments(self) -> List[str]:
        """``--controller`` and ``--tls`` for percsctl."""
        return ["--controller", self.address, *_program.options(tls=self.tls)]

    def call(self, method: str, request: Message, kind: Type[Reply],
             seconds: float = _rpc.DEADLINE_SECONDS) -> Reply:
        """Calls a method of ``percs.v1.Control`` (proto/percs/v1/control.proto)."""
        return self.channel.call(method, request, kind, seconds)
