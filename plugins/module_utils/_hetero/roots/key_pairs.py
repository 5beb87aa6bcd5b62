# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fresh pairs of ssh keys: host keys of roots and RAM systems, and the proxy's own keys."""

from __future__ import annotations

from typing import NamedTuple

from ..core.command import command


class KeyPair(NamedTuple):
    """Both halves of a key, as ssh-keygen writes them."""

    private: str
    public: str

    @property
    def line(self) -> str:
        """The public half without its comment."""
        return without_comment(self.public)


def make_pair(path: str, comment: str, thing: str) -> KeyPair:
    """Make a pair of keys without a passphrase, in the files `path` and `path`.pub, and return it.

    :param path: lies in a folder that only root can read.
    :param thing: what an error names.
    """
    command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path], thing)
    with open(path, encoding="ascii") as file, open(f"{path}.pub", encoding="ascii") as public_file:
        return KeyPair(file.read(), public_file.read())


def without_comment(public: str) -> str:
    """Return the line of a public key without its comment, as claims keep it and a known_hosts file has it."""
    return " ".join(public.split()[:2])
