# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP by which a proxy asks its own nginx as a board would."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, NamedTuple

from ...core.errors import HeteroError
from ...core.plays import play

if TYPE_CHECKING:
    from ...core.deadline import Deadline

#: Bytes of an answer that are read: the files that the proxy asks for are a few lines.
LIMIT = 1 << 16
#: What shows why it does not serve.
LOOK = "is hetero-http running (systemctl status hetero-http), or has another program its port (ss -ltnp)?"


class Answer(NamedTuple):
    """What a server says: the status (200) and its words (OK), and the file."""

    status: int
    words: str
    data: bytes


def ask(server: str, port: int, name: str, deadline: Deadline, method: str = "GET") -> Answer:
    """Ask `server` for file `name`.

    :raises HeteroError: it does not answer by the deadline, or by something that is no HTTP.
    """
    asked = http.client.HTTPConnection(server, port, timeout=max(0.1, deadline.left))
    try:
        asked.request(method, f"/{name}")
        said = asked.getresponse()
        return Answer(said.status, said.reason, said.read(LIMIT))
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise HeteroError(f"no answer ({why})", f"HTTP {server}:{port}/{name}", LOOK) from error
    finally:
        asked.close()


def get(server: str, port: int, name: str, deadline: Deadline) -> bytes:
    """Return the content of file `name`; raise HeteroError with the server's words if it refuses or gives nothing."""
    said = ask(server, port, name, deadline)
    if said.status != http.client.OK or not said.data:
        what = "it is empty" if said.status == http.client.OK else f"refused ({said.status} {said.words})"
        raise HeteroError(what, f"HTTP {server}:{port}/{name}", f"run {play('proxy')}")
    return said.data
