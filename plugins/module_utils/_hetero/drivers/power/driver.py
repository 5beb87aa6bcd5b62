# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of a power driver: log in, read and switch outlets, log out.

outlets.py reads back, cycles, waits and holds the PDU's lock.
"""

from __future__ import annotations

import ipaddress
import re
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, NamedTuple

from ...core.errors import BadInput, HeteroError
from ...core.plays import play
from ...core.this_node import THIS_NODE
from .masking import Mask

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from .drawn import Drawn

#: Characters that end a line or control a terminal, and lone surrogates.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
#: A name or address, also of IPv6, that no program takes for an option.
HOST = re.compile(r"[\w.:%][\w.:%-]*")
#: What a browser takes, and nobody here: an address of IPv6 has more colons.
HOST_AND_PORT = re.compile(r"([\w.%-]+):([0-9]+)")
#: Setting of a PDU that a module's arguments describe, and no configuration.
BY_HAND = "by_hand"
#: Seconds; a wait that is shorter says nothing about the PDU.
CUT_OFF = 0.2
#: What to look at if a name is not resolved.
NAMELESS = f"check its host and the name servers of {THIS_NODE}, or give its address"


class Answer(NamedTuple):
    """A PDU's answer to a command for an outlet. Only the outlet's status tells whether it was carried out.

    :param error: what is said where it was not, if that says more than the words, and nothing of other outlets.
    """

    accepted: bool
    words: str
    error: HeteroError | None = None


class PowerDriver(ABC):
    """One session with one PDU: `with driver:` logs in and always logs out.

    :param name: the PDU's name, for errors.
    :param settings: what proxy.json says of it (host, port, transport …).
    :param secrets: username and password.
    :param deadline: limits each wait.
    :raises BadInput: a secret has a control character, which a terminal would obey and which would end a line of a
        file.
    """

    #: How the PDU speaks, as recognised at login ("menu", "cli"); None before.
    dialect: str | None = None
    #: Whether the PDU can be read while others use it, so that only switching needs its lock.
    readers = False
    #: Whether it reads what outlets draw (`drawn`), where its device tells.
    measures = False
    #: Debian packages that only this driver needs.
    packages: tuple[str, ...] = ()
    #: Whether it reaches no PDU without a host.
    needs_host = True
    #: Seconds that an outlet has to show its new state, up to the deadline; None for as many as a relay has.
    window: float | None = None
    #: What to look at if an outlet does not follow an order that was accepted.
    stuck = "check its relay"
    #: The folder for what is known until the node starts anew; None where there is none.
    run_folder: str | None = None
    _mask: Mask | None = None

    def __init__(self, name: str, settings: dict[str, Any], secrets: Mapping[str, Any], deadline: Deadline) -> None:
        self.name = name
        self.settings = settings
        self.secrets: dict[str, str | None] = {
            word: secret if secret is None else str(secret) for word, secret in secrets.items()
        }
        self.deadline = deadline
        for word, secret in self.secrets.items():
            if secret and CONTROL.search(secret):
                what = f"its {word} has a line end or another control character"
                raise BadInput(what, name, self.credential)

    def __enter__(self) -> PowerDriver:
        with ExitStack() as failed:
            failed.callback(self.logout)
            self.login()
            failed.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self.logout()

    @classmethod
    def wrong(cls, name: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, HeteroError]]:
        """Yield (key, error) of each setting that makes a session impossible, as far as this node can tell without one.

        A missing host is not reported.
        """
        host = str(settings.get("host") or "")
        both = HOST_AND_PORT.fullmatch(host)
        if both:
            what = f"'{host}' is a host and its port"
            yield "host", BadInput(what, name, f"write them apart: host: {both[1]}, port: {both[2]}")
        elif host and not HOST.fullmatch(host):
            yield "host", BadInput(f"'{host}' is no host", name, "give its name or address")

    def _must_be_right(self) -> None:
        """Raise the first error of its settings."""
        for _key, error in self.wrong(self.name, self.settings):
            raise error

    def _each(self, outlets: Iterable[str], state_of: Callable[[str], str]) -> dict[str, str]:
        """Return the states of outlets that are asked one by one. One that cannot be read hides no other.

        :raises HeteroError: none of them can be read, or an error is not of one outlet alone.
        """
        states: dict[str, str] = {}
        errors: dict[str, HeteroError] = {}
        for outlet in outlets:
            try:
                states[outlet] = state_of(outlet)
            except HeteroError as error:
                if error.thing == self.name:
                    raise
                errors[outlet] = error
        if errors and not states:
            raise next(iter(errors.values()))
        return {**states, **{outlet: f"unknown ({error.what})" for outlet, error in errors.items()}}

    @property
    def credential(self) -> str:
        """Return the remedy for a wrong user name, password or community: where that is set."""
        if self.settings.get(BY_HAND):
            return f"correct the credential that is given beside its host, {self.name}"
        return f"correct the credential of {self.name} (tftp_proxy_pdu_credentials), then run {play('proxy')}"

    @property
    def way(self) -> str:
        """Return the remedy for a PDU that is not reached: by which address it was asked, and where that is set."""
        port = self.settings.get("port")
        at = f"{self.settings.get('host')}{f' port {port}' if port else ''}"
        whose = "" if self.name == self.settings.get("host") else f", as tftp_proxy_pdus has {self.name}"
        return f"check its host and port ({at}{whose})"

    @property
    def nameless(self) -> str | None:
        """Return a note that the PDU's host name may be unknown, for a PDU that was not heard; None for an address."""
        host = str(self.settings.get("host") or "")
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return f"nothing was heard of {host}, whose name may not be known"
        return None

    def masked(self, text: str) -> str:
        """Return a text of a PDU or a program without the session's secrets, in whatever form they are written.

        Pass all that was said and choose a line afterwards, because a secret may extend over several lines.
        """
        if self._mask is None:
            user = self.secrets.get("username")
            self._mask = Mask([secret for word, secret in self.secrets.items() if word != "username"], user)
        return self._mask(text)

    @abstractmethod
    def login(self) -> None:
        """Open the session.

        :raises Busy: the PDU serves somebody else.
        :raises Lost: it does not answer.
        """

    @abstractmethod
    def logout(self) -> None:
        """End the session in whatever state it is. Errors of the PDU are not raised."""

    @abstractmethod
    def status(self) -> dict[str, str]:
        """Return {outlet: "on" | "off"} of all outlets, read from the PDU now."""

    @abstractmethod
    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        """Tell the PDU to turn outlets "on" or "off"; return {outlet: Answer}. Doing it twice does no harm."""

    def drawn(self, outlets: list[str]) -> Mapping[str, Drawn]:
        """Return {outlet: Drawn} of what outlets draw by the device's own meter, of those of which it tells.

        A driver that has it sets `measures`. It is called in an open session, with `deadline` set to a few seconds; any
        error counts as no reading.
        """
        return {}
