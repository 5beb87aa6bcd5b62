# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the verb that has a board's lock to wait no longer, because the board's instance is to be ended, or stopped.

A flock beside the board's lock: it goes with the process that asks, so what a killed one left asks for nothing. The
text in it says which instance is meant. Only the process that has the board's lock may look, for its look takes that
flock for a moment.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from typing import Collection, Iterator, NamedTuple

FOLDER = "ends"
#: Key in the evidence of a board that was let go of, so that nobody is told that its instance stays.
BEING_ENDED = "being_ended"


class EndRequest(NamedTuple):
    """Which instance of a board is to be ended, or stopped.

    :param instance: its name, or that of its request.
    :param created: unix times of the claims of which one is meant; none for any.
    :param stays: whether it is stopped, and stays claimed.
    """

    instance: str
    created: Collection[float]
    stays: bool = False


@contextmanager
def asked(run_folder: str, name: str, request: EndRequest) -> Iterator[None]:
    """Ask, for as long as the block lasts. Where that cannot be written down, the block is entered all the same.

    :param name: the board's.
    """
    file = None
    with suppress(OSError):
        os.makedirs(os.path.join(run_folder, FOLDER), mode=0o700, exist_ok=True)
        file = os.open(os.path.join(run_folder, FOLDER, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)
        text = json.dumps(dict(request._asdict(), created=list(request.created))).encode()
        os.pwrite(file, text, 0)
        os.ftruncate(file, len(text))
    try:
        yield
    finally:
        if file is not None:
            os.close(file)


def names(run_folder: str) -> set[str]:
    """Return the names of the boards that were ever asked for; `of` tells of which of them that is so just now."""
    with suppress(OSError):
        return set(os.listdir(os.path.join(run_folder, FOLDER)))
    return set()


def of(run_folder: str, name: str) -> EndRequest | None:
    """Return what is asked for a board just now, or None.

    :param name: the board's.
    """
    try:
        file = os.open(os.path.join(run_folder, FOLDER, name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(file)
    finally:
        os.close(file)
    return None


def _read(file: int) -> EndRequest | None:
    """Return the request in a file; None where it is not written down yet."""
    try:
        # another may be writing over a longer text, whose end stays until it is cut off
        said, _end = json.JSONDecoder().raw_decode(os.pread(file, 65536, 0).decode())
        created = [float(time) for time in said["created"]]
        return EndRequest(str(said["instance"]), created, bool(said.get("stays")))  # earlier releases did not say it
    except (ValueError, KeyError, TypeError):
        return None
