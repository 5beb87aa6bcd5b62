# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs that are asked by HTTP (http.py, redfish.py), with the library requests.

An answer is read to a limit, redirections and the machine's own proxies are not followed, and certificates are checked
unless the settings say otherwise.
"""

from __future__ import annotations

import ipaddress
import os
from importlib import import_module
from typing import Any, Iterator, Mapping, NamedTuple

from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Lost, TimedOut
from ...core.printable import brief
from .driver import CUT_OFF, PowerDriver

#: Most bytes of an answer: a PDU of 48 outlets with its measurements tells some 20 KB.
MOST = 1 << 20
#: In place of an answer's status.
UNTRUSTED, UNANSWERED, TOO_MUCH, NO_HTTP = -1, -2, -3, -4


class Reply(NamedTuple):
    """An answer, whatever its status."""

    status: int
    reason: str
    text: str
    headers: Mapping[str, str]


class WebDriver(PowerDriver):
    """A driver that asks by HTTP, each time by a connection of its own."""

    #: Whether it asks by HTTPS where the settings do not say.
    tls = False
    #: Most seconds for one answer.
    patience = 10.0
    _session: Any = None  # of requests, from login to logout

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        wrong = dict(super().wrong(name, settings))
        yield from {**dict(_wrong_way(name, settings, settings.get("tls", cls.tls))), **wrong}.items()

    def login(self) -> None:
        """Make ready to ask. Nothing is asked yet."""
        self._must_be_right()
        requests = self._library("requests")
        self._session = requests.Session()
        self._session.trust_env = False  # neither proxies nor ~/.netrc of this machine
        # unverified only by the site's word, which needs no warning at each question
        import_module("urllib3").disable_warnings()
        self._session.verify = self.settings.get("tls_ca") or self.settings.get("tls_verify", True)
        self._session.headers["Accept-Encoding"] = "identity"

    def logout(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _library(self, name: str) -> Any:
        """Return a Python library that not every node has."""
        try:
            return import_module(name)
        except ImportError as error:
            what = f"the Python library {name} is not installed"
            raise HeteroError(what, self.name, f"install python3-{name}") from error

    def _asked(self, method: str, path: str, given: Mapping[str, Any], seconds: float | None = None) -> Reply:
        """Return an answer, whatever its status.

        A child process asks, because a device that sends a byte a time would be listened to for ever.

        :param given: what else requests is told.
        :param seconds: the limit where the deadline is not to count.
        :raises Lost: there is none, or not the whole of it.
        :raises HeteroError: it is none that can be trusted or read.
        """
        limit = seconds or max(CUT_OFF, min(self.patience, self.deadline.left))
        try:
            said = in_child(lambda: self._exchange(method, path, given, limit), Deadline(limit), self.name, self.way)
        except TimedOut as error:
            raise Lost(f"no whole answer within {limit:.1f} s", self.name, f"{self.way}, or raise timeout") from error
        reply = Reply(*said)
        if reply.status == UNTRUSTED:
            remedy = "give the authority that signed it (tls_ca), or with tls_verify: false no proof is asked for"
            raise HeteroError(f"its certificate is not trusted ({self._quoted(reply.reason)})", self.name, remedy)
        if reply.status == UNANSWERED:
            also = "that it speaks TLS there (tls)" if self._tls else "that it has power"
            raise Lost(f"no answer ({self._quoted(reply.reason)})", self.name, f"{self.way}, and {also}")
        if reply.status == NO_HTTP:
            remedy = "see what answers there, and check its host, port and tls"
            what = f"answers against the rules of HTTP ({self._quoted(reply.reason)})"
            raise HeteroError(what, self.name, remedy)
        if reply.status == TOO_MUCH:
            raise HeteroError(f"answers with more than {MOST >> 10} KiB", self.name, "see what answers there")
        return reply

    def _exchange(
        self, method: str, path: str, given: Mapping[str, Any], limit: float
    ) -> tuple[int, str, str, dict[str, str]]:
        """Return (status, reason, text, headers) of an answer; or in place of the status what went wrong."""
        requests = import_module("requests")
        ways: dict[str, Any] = dict(given, timeout=limit, allow_redirects=False, stream=True)
        try:
            with self._session.request(method, f"{self._base()}{path}", **ways) as answer:
                said = b""
                for part in answer.iter_content(8192):
                    said += part
                    if len(said) > MOST:
                        return TOO_MUCH, "", "", {}
        except requests.exceptions.RequestException as error:
            # only a certificate is a matter of trust: a device may hang up, or speak no TLS
            untrusted = isinstance(error, requests.exceptions.SSLError) and "certificate" in str(error).lower()
            return UNTRUSTED if untrusted else UNANSWERED, str(error), "", {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # the library's, of headers it cannot read
            return NO_HTTP, f"{type(error).__name__}: {error}", "", {}
        return answer.status_code, str(answer.reason), said.decode("utf-8", "replace"), dict(answer.headers)

    @property
    def _tls(self) -> bool:
        return bool(self.settings.get("tls", self.tls))

    def _base(self) -> str:
        port = self.settings.get("port") or (443 if self._tls else 80)
        host = str(self.settings["host"])
        return f"http{'s' if self._tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"

    def _quoted(self, text: str) -> str:
        return brief(" ".join(self.masked(text).split()))


def _wrong_way(name: str, settings: Mapping[str, Any], tls: bool) -> Iterator[tuple[str, HeteroError]]:
    """Yield (key, error) of each setting by which no device is reached."""
    host, authority = str(settings.get("host") or ""), settings.get("tls_ca")
    try:
        if ":" in host:
            ipaddress.ip_address(host.partition("%")[0])
        else:
            host.encode("idna")
    except ValueError:
        yield "host", BadInput(f"'{brief(host)}' is no host", name, "give its name or address")
    if authority and not tls:
        yield "tls_ca", BadInput("has tls_ca without tls, and so nothing would be checked", name, "give tls: true, too")
    elif authority and not os.path.exists(authority):
        what = f"its tls_ca {brief(str(authority))} is not there"
        yield "tls_ca", BadInput(what, name, "put the certificate there, or name the file or folder that it is in")
