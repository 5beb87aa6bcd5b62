# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a root one machine's own, whatever it runs on: host name, machine id, ssh host key, its user's keys.

Other files know where the root lies and who may use it.
"""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, Sequence, cast

from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError
from ..files.removal import remove_tree
from ..files.root_work import READ_LIMIT, inside, make_folder, read_file, remove_file, write_file
from ..site import key_prints
from .key_pairs import make_pair, without_comment

#: Seconds for anything done to a few files of a root.
FILES_TIME = 30.0
#: A line of an OpenSSH public key without options.
KEY = re.compile(r"((?:ssh|ecdsa|sk)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{16,}={0,2})(?: [^\n]*)?")
#: Most bytes of a user's keys, which each claim keeps, and of a host's key in a root: one of RSA with 16384 bits has
#: 2.8 KB.
MOST_KEYS, MOST_HOST_KEY = 1 << 16, 1 << 13
HOSTNAME = "/etc/hostname"
MACHINE_ID = "/etc/machine-id"
AUTHORIZED = "/root/.ssh/authorized_keys"
#: How the line of the proxy's own key ends (reboot_key.py).
OWN = " hetero: reboot only"
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"
#: Where its private half is made, in a folder that only root can read.
KEY_FOLDER = "host-key"
#: Where the user's keys and the host key lie: folders, then files.
KEY_PLACES = (("/root", "/root/.ssh"), (AUTHORIZED,))
HOST_KEY_PLACES = (("/etc", "/etc/ssh"), (HOST_KEY, f"{HOST_KEY}.pub"))


def parse_key(text: str) -> list[tuple[str, str]]:
    """Return [(type, base64)] of the user's public keys, one a line. Blanks around them and empty lines do not count.

    :raises BadInput: the text holds anything else, or nothing; the error never shows the text.
    """
    keys = []
    lines = list(filter(None, map(str.strip, text.splitlines())))
    for number, line in enumerate(lines, 1):
        match = KEY.fullmatch(line)
        if not match or key_prints.blob(match.group(2)) is None:
            what = "is a private key" if "PRIVATE KEY" in text else "is no OpenSSH public key"
            if len(lines) > 1 and "PRIVATE KEY" not in text:
                what = f"line {number} of it {what}; a key is one line"
            raise BadInput(what, "ssh_public_key", "give the content of the .pub file")
        keys.append((match.group(1), match.group(2)))
    if not keys:
        raise BadInput("is empty", "ssh_public_key", "give the content of the .pub file")
    return keys


def must_be_keys(text: str) -> None:
    """Raise BadInput where a text is longer than MOST_KEYS, or holds anything but public keys."""
    size = len(text.encode("utf-8", "surrogateescape"))
    if size > MOST_KEYS:
        raise BadInput(f"has {size} bytes", "ssh_public_key", f"give at most {MOST_KEYS}, all keys together")
    parse_key(text)


def fingerprint(key: str) -> str:
    """Return the fingerprint of a public key's line, SHA256:…, as ssh-keygen -l prints it."""
    return key_prints.fingerprint(cast(bytes, key_prints.blob(key.split()[1])))


def inspect(path: str, key: str) -> dict[str, Any]:
    """Return what makes a root one machine's own.

    :param path: where the root is mounted.
    :param key: the user's public keys, one a line.
    :returns: dict of key (True where all of the user's keys are in the root), own (lines of the proxy's own key),
        host_key (the public one, or None) and hostname.
    """
    wanted = {blob for kind, blob in parse_key(key)}

    def look() -> dict[str, Any]:
        words, own = set(), []
        for line in (read_file(AUTHORIZED) or "").splitlines():
            words.update([] if line.lstrip().startswith("#") else line.split())
            own += [line] if _is_own(line) else []
        return {
            "key": wanted <= words,
            "own": own,
            "host_key": _host_key(),
            "hostname": (read_file(HOSTNAME) or "").strip()[:256].encode("ascii", "replace").decode(),
        }

    return inside(path, look, Deadline(FILES_TIME))


def odd_place(path: str, folders: Iterable[str], files: Iterable[str]) -> list[str] | None:
    """Return [name, what it is] of the first entry in a root that prevents files from being put there, or None.

    :param folders: names that must be folders, or links to folders, where they exist.
    :param files: names that must not be folders.
    """

    def look() -> list[str] | None:
        for name in folders:
            if os.path.lexists(name) and not os.path.isdir(name):
                link = os.path.islink(name)
                is_what = f"a symbolic link to {os.readlink(name)}, which is no folder" if link else "no folder"
                return [name, is_what]
        return next(([name, "a folder"] for name in files if os.path.isdir(name) and not os.path.islink(name)), None)

    return inside(path, look, Deadline(FILES_TIME))


def host_key(path: str) -> str | None:
    """Return the public host key in a root; None where there is none, or one that is too long or misspelt."""
    return inside(path, _host_key, Deadline(FILES_TIME))


def _host_key() -> str | None:
    """Return the public host key, as host_key does, from a process whose root directory is the root."""
    public = (read_file(f"{HOST_KEY}.pub") or "").strip()
    key = without_comment(public)
    return key if len(key) <= MOST_HOST_KEY and KEY.fullmatch(public) and read_file(HOST_KEY) else None


def settle(path: str, hostname: str) -> None:
    """Make a fresh root a machine of its own: its host name, no machine id and no host keys of the image."""

    def write() -> None:
        make_folder("/etc", 0o755)
        write_file(HOSTNAME, f"{hostname}\n", 0o644)
        # Empty, not missing: systemd then makes a new one (machine-id(5)).
        write_file(MACHINE_ID, "", 0o444)
        for name in os.listdir("/etc/ssh") if os.path.isdir("/etc/ssh") else []:
            if re.fullmatch(r"ssh_host_.*_key(\.pub)?", name):
                remove_file(f"/etc/ssh/{name}")

    inside(path, write, Deadline(FILES_TIME))


def put_key(path: str, key: str, owner: tuple[int, int] = (0, 0)) -> None:
    """Put the user's keys into root's authorized_keys beside what is there.

    :param owner: (user id, group id) that the root's user `root` has on this machine.
    """

    def write() -> None:
        make_folder("/root", 0o700)
        make_folder("/root/.ssh", 0o700, exact=True)
        write_file(AUTHORIZED, "".join(f"{line}\n" for line in with_keys(_authorized(), key)), 0o600)
        for written in ("/root", "/root/.ssh", AUTHORIZED):
            os.chown(written, *owner, follow_symlinks=False)

    inside(path, write, Deadline(FILES_TIME))


def with_keys(lines: Sequence[str], key: str) -> list[str]:
    """Return the lines of an authorized_keys file, and behind them those of the user's keys that it lacks.

    :param key: the user's public keys, one a line.
    """
    wanted = [line.strip() for line in key.strip().splitlines()]
    return [*lines, *(line for line in wanted if not any(line.split()[1] in other.split() for other in lines))]


def _is_own(line: str) -> bool:
    """Return whether a line is that of the proxy's own key: it has options, which parse_key allows in no user's key."""
    return line.endswith(OWN) and not KEY.fullmatch(line.strip())


def _authorized() -> list[str]:
    """Return the lines of root's authorized_keys; raise HeteroError where the file is too long to be read whole."""
    text = read_file(AUTHORIZED) or ""
    if len(text.encode("utf-8", "surrogateescape")) >= READ_LIMIT:
        what = f"has {READ_LIMIT >> 20} MiB or more: it is not written anew, so no key was put there"
        raise HeteroError(what, f"{AUTHORIZED} in its root", "make it smaller in the instance, or give it a new root")
    return text.splitlines()


def put_own_line(path: str, wanted: str | None) -> None:
    """Put this line of the proxy's own key into root's authorized_keys in place of others of it; None removes all."""

    def write() -> None:
        make_folder("/root", 0o700)
        make_folder("/root/.ssh", 0o700, exact=True)
        others = [line for line in _authorized() if not _is_own(line)]
        write_file(AUTHORIZED, "".join(f"{line}\n" for line in [*others, *([wanted] if wanted else [])]), 0o600)

    inside(path, write, Deadline(FILES_TIME))


def put_host_key(path: str, comment: str, keep: str) -> str:
    """Put a fresh host key into the root; return its public half, as a line.

    :param keep: a folder that only root can read, where the private half is made.
    """
    folder = os.path.join(keep, KEY_FOLDER)
    remove_tree(folder)  # left by a process that was killed here
    os.mkdir(folder, 0o700)
    try:
        pair = make_pair(os.path.join(folder, "key"), comment, path)
    finally:
        remove_tree(folder)

    def write() -> None:
        make_folder("/etc", 0o755)
        make_folder("/etc/ssh", 0o755)
        write_file(HOST_KEY, pair.private, 0o600)
        write_file(f"{HOST_KEY}.pub", pair.public, 0o644)

    inside(path, write, Deadline(FILES_TIME))
    return pair.line
