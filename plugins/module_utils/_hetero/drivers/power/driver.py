# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every power driver can do: log in, tell and switch outlets, log out.

Reading back, cycling, waiting and the PDU's lock are not a driver's business (outlets.py).
"""

from __future__ import annotations

import ipaddress
import re
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple

from ...core.errors import BadInput
from ...core.this_node import THIS_NODE
from .masking import Mask

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...core.errors import HeteroError

#: What ends a line or is obeyed rather than taken as a character; surrogates are none at all.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
#: Names and addresses, of IPv6 too; nothing that a program would take for an option.
HOST = re.compile(r"[\w.:%][\w.:%-]*")
#: A wait shorter than that (seconds) tells nothing of the PDU.
CUT_OFF = 0.2
#: What to look at where a name is not resolved.
NAMELESS = f"check its host and the name servers of {THIS_NODE}, or give its address"


class Answer(NamedTuple):
    """What the PDU said to a command for an outlet. Only the outlet's status tells whether it was carried out."""

    accepted: bool
    words: str


class PowerDriver(ABC):
    """One session with one PDU: `with driver:` logs in and always logs out.

    :param name: the PDU's name, for errors.
    :param settings: what proxy.json says of it (host, port, transport …).
    :param secrets: username and password.
    :param deadline: bounds each wait.
    :raises BadInput: a secret has a control character, which a terminal would obey and a file would end a line at.
    """

    #: How the PDU speaks, as recognised at login ("menu", "cli"); None before.
    dialect: str | None = None
    #: Whether the PDU can be read while somebody else has it, so that only switching takes turns.
    readers = False
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
                remedy = f"correct the credential of {name}"
                raise BadInput(f"its {word} has a line end or another control character", name, remedy)

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
        """(key, HeteroError) of each setting by which no session can be, as far as this node knows without one.

        That there is no host at all is not among them.
        """
        host = str(settings.get("host") or "")
        if host and not HOST.fullmatch(host):
            yield "host", BadInput(f"'{host}' is no host", name, "give its name or address")

    @property
    def nameless(self) -> str | None:
        """Why nothing may have been heard of it, where its host is a name, which somebody has to resolve; else None."""
        host = str(self.settings.get("host") or "")
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return f"nothing was heard of {host}, whose name may not be known"
        return None

    def masked(self, text: str) -> str:
        """What a PDU or a program said as people may see it: without our secrets, however they are written.

        Give it all that was said, before a line of it is chosen: a secret may be in several.
        """
        if self._mask is None:
            user = self.secrets.get("username")
            self._mask = Mask([secret for word, secret in self.secrets.items() if word != "username"], user)
        return self._mask(text)

    @abstractmethod
    def login(self) -> None:
        """Open the session. :raises Busy: somebody else has it. :raises Lost: no answer."""

    @abstractmethod
    def logout(self) -> None:
        """End the session, in whatever state it is; raises nothing that the PDU causes."""

    @abstractmethod
    def status(self) -> dict[str, str]:
        """{outlet: "on" | "off"} of every outlet, read from the PDU now."""

    @abstractmethod
    def switch(self, outlets: list[str], state: str) -> dict[str, Answer]:
        """Tell the PDU to turn outlets (a list) "on" or "off"; {outlet: Answer}. Doing it twice does no harm."""
