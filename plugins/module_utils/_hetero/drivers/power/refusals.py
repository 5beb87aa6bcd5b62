# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PDU said when it last refused a session, or that it did not answer, for who only looks.

It lies in the run folder until the PDU has told its outlets again, so that a look costs no login: many PDUs let one in
at a time, and close after three wrong passwords.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from typing import Callable, Iterable, Iterator

from ...core.errors import BadInput, Busy, HeteroError
from ...core.json_file import read_object
from ...core.printable import brief
from ...files.whole_file import write_hint
from ...site.instance import age

#: The folder below the run folder that holds a file for each such PDU.
FOLDER = "pdu-refusals"
SAID = "{text} ({ago} ago)"
#: Most characters of a text that are kept.
MOST = 1000


@contextmanager
def kept(run_folder: str, name: str, masked: Callable[[str], str]) -> Iterator[None]:
    """Keep the error of a block that asks a PDU for its outlets; where the block raises none, forget the one before.

    A PDU that another user has for the moment has refused nothing.
    """
    try:
        yield
    except HeteroError as error:
        if not isinstance(error, Busy) and not isinstance(error.__cause__, Busy):
            said = dict(name=name, time=time.time(), text=brief(masked(str(error)), MOST))
            write_hint(_path(run_folder, name), json.dumps(said))
        raise
    with suppress(OSError):
        os.unlink(_path(run_folder, name))


def last(run_folder: str, names: Iterable[str]) -> dict[str, str]:
    """Return {PDU name: what it said, and when} of those that refused since they were last read."""
    found = {}
    for name in names:
        with suppress(BadInput, OSError, KeyError, TypeError, ValueError):
            kept_one = read_object(_path(run_folder, name), "")
            seconds = max(0.0, time.time() - float(kept_one["time"]))
            if kept_one["name"] == name:
                found[name] = SAID.format(text=brief(str(kept_one["text"]), MOST), ago=age(seconds))
    return found


def _path(run_folder: str, name: str) -> str:
    return os.path.join(run_folder, FOLDER, f"{name.replace('/', '_')}.json")
