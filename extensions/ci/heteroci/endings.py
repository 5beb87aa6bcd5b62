# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a request for a board ended, and the codes with which the programs here end.

The words are those of the collection's callback `outcome`.
"""

from __future__ import annotations

import os
import sys

GIVEN, REQUEST, NONE, BOOT, OWNER, OTHER = "given", "request", "none", "boot", "owner", "other"
#: Codes that test programs, shells (from 126 on), curl (up to 101) and sysexits.h (64 to 78) do not use.
CODES = {REQUEST: 111, NONE: 112, BOOT: 113, OWNER: 114, OTHER: 115}
#: The code where the user's own command ended with one of these.
SHIFTED = 110
WORDS = {
    REQUEST: "the request is wrong",
    NONE: "no node was free in time",
    BOOT: "the board did not come up",
    OWNER: "a node cannot be reached",
    OTHER: "Ansible, or a file, failed on this machine",
}


class NoBoard(Exception):
    """There is no board.

    :param ending: a key of CODES.
    :param why: what the playbook said.
    :param blame: whose fault a boot was: board, image, instance, network or proxy; None where that is not known.
    :param console: the last lines of the board's console.
    """

    def __init__(self, ending, why, blame=None, console=()):
        self.ending, self.why, self.blame, self.console = ending, why, blame, list(console)
        fault = f" (fault of: {blame})" if blame else ""
        super().__init__(f"{WORDS[ending]}{fault}: {why}")

    @property
    def code(self):
        """Return the code with which a program ends that got no board."""
        return CODES[self.ending]


def say(text, stream=None):
    """Write a text on standard error, or on another stream; return whether that could be done. Where it cannot, as its
    reader has gone or a disk is full, nothing more is written there, and the program goes on.
    """
    stream = stream or sys.stderr
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return False
    return True


def errors():
    """Return the number of the file to which standard error goes: below pytest it may be a text in its memory."""
    try:
        return sys.stderr.fileno()
    except OSError:
        return 2


def tell(text):
    """Write on standard output what the job's other processes need of a board.

    :raises OSError: they cannot read it, so nobody would give that board back.
    """
    if not say(text, sys.stdout):
        raise OSError("standard output cannot be written, so nobody would know of the board: see who reads it")


def as_told(error):
    """Return an error of this machine's files as a NoBoard; one that is none already stays what it is."""
    return error if isinstance(error, NoBoard) else NoBoard(OTHER, str(error))


def code_of(status):
    """Return the code with which `board run` ends after a command, from the command's own.

    :param status: as subprocess has it: negative where a signal ended the command.
    """
    code = status if status >= 0 else 128 - status
    return SHIFTED if code in CODES.values() else code
