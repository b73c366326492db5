"""Documents from the web, if that is allowed at all: from public addresses alone, whatever names and redirects say.

The name is resolved once, every address it has must be public, and the connection goes to an address that was checked; so a name that
changes its address in between (DNS rebinding) gains nothing. Each redirect is checked in the same way.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit

from pagelift.server.errors import ApiError

REDIRECTS = 5
CHUNK = 64 * 1024
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """most_bytes: of the body. seconds: for everything. connect_seconds: for each connection and each wait for bytes."""

    most_bytes: int
    seconds: float = 60.0
    connect_seconds: float = 10.0


def fetch(url: str, limits: FetchLimits) -> bytes:
    """The body at an http or https URL. Raises ApiError: 400 for a bad URL, 403 for an address that is not public, 413, 422."""
    deadline = time.monotonic() + limits.seconds
    for _ in range(REDIRECTS + 1):
        status, location, body = _get(_split(url), limits, deadline)
        if status in (301, 302, 303, 307, 308) and location:
            url = urljoin(url, location)
        elif status == 200:
            return body
        else:
            raise ApiError(422, f"the document's URL answered with status {status}", code="fetch_failed")
    raise ApiError(422, f"the document's URL redirects more than {REDIRECTS} times", code="fetch_failed")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        known = parts.scheme in PORTS and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known or parts.username is not None or any(c.isspace() or ord(c) < 33 or ord(c) > 126 for c in url):
        raise ApiError(400, "the document's URL is no plain http or https URL", code="invalid_url")
    return parts


def public_addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[object, ...]]]:
    """What `host` resolves to. Raises ApiError 403 when any of it is not a public address, 422 when there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ApiError(422, "the host of the document's URL cannot be resolved", code="fetch_failed") from error
    if not all(_public(str(address[0])) for *_, address in found):
        raise ApiError(403, "the document's URL leads to an address that is not public; send the document itself", code="private_address")
    return [(family, address) for family, _, _, _, address in found]


def _public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if inner or address in NAT64:
            return _public(str(inner or ipaddress.IPv4Address(address.packed[-4:])))
    return address.is_global and not address.is_multicast and not address.is_reserved


NAT64 = ipaddress.ip_network("64:ff9b::/96")


class _Pinned(http.client.HTTPConnection):
    """A connection to addresses that were checked, whatever the name resolves to by now."""

    def __init__(self, parts: SplitResult, timeout_s: float) -> None:
        self._port = parts.port or PORTS[parts.scheme]
        self._secure = parts.scheme == "https"
        super().__init__(str(parts.hostname), self._port, timeout=timeout_s)

    def connect(self) -> None:
        error: OSError | None = None
        for family, address in public_addresses(self.host, self._port):
            connection = socket.socket(family, socket.SOCK_STREAM)
            connection.settimeout(self.timeout)
            try:
                connection.connect(address)
                self.sock = connection
                if self._secure:
                    self.sock = ssl.create_default_context().wrap_socket(connection, server_hostname=self.host)
                return
            except OSError as failed:
                connection.close()
                error = failed
        raise error or OSError("no address")


def _get(parts: SplitResult, limits: FetchLimits, deadline: float) -> tuple[int, str, bytes]:
    """Status, Location and body of one request."""
    connection = _Pinned(parts, limits.connect_seconds)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("GET", target, headers={"User-Agent": "pagelift", "Accept": "application/pdf, image/*", "Connection": "close"})
        response = connection.getresponse()
        body = bytearray()
        if response.status == 200:
            while chunk := response.read1(CHUNK):
                body += chunk
                if len(body) > limits.most_bytes:
                    raise ApiError(413, f"the document at the URL is larger than {limits.most_bytes} bytes", code="limit_exceeded")
                if time.monotonic() > deadline:
                    raise ApiError(422, "the document's URL answers too slowly", code="fetch_failed")
        return response.status, response.getheader("Location", ""), bytes(body)
    except (OSError, http.client.HTTPException, UnicodeError, ValueError) as error:
        raise ApiError(422, f"the document cannot be fetched from its URL ({type(error).__name__})", code="fetch_failed") from error
    finally:
        connection.close()
