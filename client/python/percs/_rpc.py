"""Calls of the services that controllers and daemons serve, straight from their descriptors."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import threading
from typing import Any, Dict, Iterator, Optional, Tuple, Type, TypeVar

import grpc
from google.protobuf import descriptor_pb2
from google.protobuf.message import Message

from percs import errors
from percs.v1 import control_pb2, endpoint_pb2, options_pb2

SERVICES = {
    "Control": control_pb2.DESCRIPTOR.services_by_name["Control"],
    "Endpoint": endpoint_pb2.DESCRIPTOR.services_by_name["Endpoint"],
}
DEADLINE_SECONDS = 30.0

Reply = TypeVar("Reply", bound=Message)

_OF_A_CODE: Dict[grpc.StatusCode, Type[errors.PercsError]] = {
    grpc.StatusCode.UNAVAILABLE: errors.UnreachableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.UnreachableError,
    grpc.StatusCode.UNAUTHENTICATED: errors.RefusedError,
    grpc.StatusCode.PERMISSION_DENIED: errors.RefusedError,
    grpc.StatusCode.NOT_FOUND: errors.NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: errors.ExistsError,
    grpc.StatusCode.FAILED_PRECONDITION: errors.StateError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ExhaustedError,
    grpc.StatusCode.CANCELLED: errors.CancelledError,
    grpc.StatusCode.DATA_LOSS: errors.ViolationError,
}


@dataclasses.dataclass(frozen=True)
class Address:
    """Where a service is, and the identity to use there."""

    address: str  # host:port or unix:/path
    tls: Optional[pathlib.Path] = None  # folder with ca.pem and identity.pem; None: plaintext
    role: str = "controller"  # the one that the certificate of the server proves


def _identity(folder: pathlib.Path) -> Tuple[bytes, bytes, bytes]:
    """Authority, private key and certificate of a folder that `percsctl ca` made."""
    try:
        authority = (folder / "ca.pem").read_bytes()
        own = (folder / "identity.pem").read_bytes()
    except OSError as error:
        raise errors.RefusedError(
            f"{folder}: {error.strerror} ({error.filename}); `percsctl ca` makes a folder per role "
            "with ca.pem and identity.pem") from error
    key = re.search(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----\n?",
                    own, re.S)
    certificate = re.search(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", own,
                            re.S)
    if not key or not certificate:
        raise errors.RefusedError(f"{folder / 'identity.pem'}: expected a private key and a "
                                  "certificate in PEM; `percsctl ca` writes both")
    return authority, key[0], certificate[0]


def _arguments(where: Address) -> Tuple[list[Tuple[str, Any]], Optional[Any]]:
    """Options and credentials of a channel."""
    options: list[Tuple[str, Any]] = [("grpc.max_receive_message_length", -1),
                                      ("grpc.max_send_message_length", -1),
                                      ("grpc.enable_http_proxy", 0),
                                      ("grpc.initial_reconnect_backoff_ms", 20),
                                      ("grpc.max_reconnect_backoff_ms", 500)]
    if where.tls is None:
        return options, None
    authority, key, certificate = _identity(where.tls)
    options.append(("grpc.ssl_target_name_override", f"{where.role}.percs"))
    return options, grpc.ssl_channel_credentials(authority, key, certificate)


def error_of(method: str, where: Address, error: Any) -> errors.PercsError:
    """The exception for a status of gRPC."""
    code, details = error.code(), error.details() or ""
    kind = _OF_A_CODE.get(code, errors.PercsError)
    if code == grpc.StatusCode.UNAVAILABLE and "handshake" in details.lower():
        return errors.RefusedError(
            f"no {where.role} at {where.address} that trusts this identity, or that this identity "
            "trusts: a fabric that was started again may have a new authority; name the folder of "
            f"an identity of its authority ({method}: {details})")
    if code == grpc.StatusCode.UNAVAILABLE:
        text = (f"no {where.role} answers at {where.address} ({method}: {details}); "
                "`percsctl ps` lists the local fabrics")
        return errors.UnreachableError(text)
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return errors.UnreachableError(
            f"the {where.role} at {where.address} did not answer {method} in time")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return errors.PercsError(f"the server at {where.address} does not implement {method}: it "
                                 f"is not a percs-{where.role}, or has another version")
    if code == grpc.StatusCode.NOT_FOUND:
        return errors.NotFoundError(details)
    if code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE):
        return errors.ScenarioError([errors.problem_of(line) for line in
                                     details.splitlines() or [str(code)]])
    if code == grpc.StatusCode.FAILED_PRECONDITION and "deadlock" in details:
        return errors.DeadlockError(details)
    return kind(f"{method}: {details}")


def error_of_number(code: int, message: str) -> errors.PercsError:
    """The exception for the number of a status, which is the same in Abseil and in gRPC."""
    for status, kind in _OF_A_CODE.items():
        if status.value[0] == code:
            return kind(message)
    if code in (grpc.StatusCode.INVALID_ARGUMENT.value[0], grpc.StatusCode.OUT_OF_RANGE.value[0]):
        return errors.ScenarioError([errors.problem_of(message)])
    return errors.PercsError(message)


class Channel:
    """A connection to one service. May be used from any thread."""

    def __init__(self, where: Address, service: str = "Control") -> None:
        self.where = where
        self.service = service
        self._lock = threading.Lock()
        options, credentials = _arguments(where)
        self._channel = (grpc.insecure_channel(where.address, options) if credentials is None else
                         grpc.secure_channel(where.address, credentials, options))
        self._calls: Dict[str, Any] = {}

    def close(self) -> None:
        """Ends it, and the streams on it."""
        self._channel.close()

    def method(self, name: str) -> Any:
        """What calls a method of the service."""
        with self._lock:
            if name not in self._calls:
                self._calls[name] = bind(self._channel, self.service, name)
            return self._calls[name]

    def call(self, name: str, request: Message, kind: Type[Reply],
             seconds: float = DEADLINE_SECONDS) -> Reply:
        """Calls a unary method; PercsError unless it answers."""
        try:
            reply = self.method(name)(request, timeout=seconds)
        except grpc.RpcError as error:
            raise error_of(f"{self.service}.{name}", self.where, error) from None
        assert isinstance(reply, kind)
        return reply

    def stream(self, name: str, request: Message, kind: Type[Reply]) -> Iterator[Reply]:
        """The messages of a stream, until it ends or the iterator is closed."""
        stream = self.method(name)(request)
        try:
            for message in stream:
                assert isinstance(message, kind)
                yield message
        except grpc.RpcError as error:
            raise error_of(f"{self.service}.{name}", self.where, error) from None
        finally:
            stream.cancel()


def bind(channel: Any, service: str, name: str) -> Any:
    """What calls a method over a channel, of grpc or of grpc.aio."""
    method = SERVICES[service].methods_by_name[name]
    from_program, from_server = streams(service, name)
    kind = ("stream" if from_program else "unary") + "_" + ("stream" if from_server else "unary")
    return getattr(channel, kind)(
        f"/{SERVICES[service].full_name}/{name}",
        request_serializer=method.input_type._concrete_class.SerializeToString,
        response_deserializer=method.output_type._concrete_class.FromString)


def streams(service: str, name: str) -> Tuple[bool, bool]:
    """Whether the requests and the replies of a method are streams."""
    whole = descriptor_pb2.ServiceDescriptorProto()
    SERVICES[service].CopyToProto(whole)
    for method in whole.method:
        if method.name == name:
            return method.client_streaming, method.server_streaming
    raise KeyError(name)


def commands() -> Dict[str, Any]:
    """The methods that are commands (percs/v1/options.proto), by their words after `percsctl`."""
    return {method.GetOptions().Extensions[options_pb2.command].words: method
            for method in SERVICES["Control"].methods
            if method.GetOptions().HasExtension(options_pb2.command)}


def async_channel(where: Address) -> Any:
    """A channel of grpc.aio, of the running event loop."""
    options, credentials = _arguments(where)
    if credentials is None:
        return grpc.aio.insecure_channel(where.address, options)
    return grpc.aio.secure_channel(where.address, credentials, options)
