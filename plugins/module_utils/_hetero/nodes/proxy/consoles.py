# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero consoles`: what the proxy's conserver reads is as the wiring says. `--serve` is conserver itself.

conserver has an account of its own (Debian's package makes it), and no file that it writes grows beyond MOST_BYTES.
"""

from __future__ import annotations

import argparse
import os
import pwd
import resource
import signal
import stat
import sys
from contextlib import suppress
from typing import Container, Sequence

from ...boards.records.console_logs import CLIENT, MOST_BYTES, pid_file, tell
from ...boards.records.proxy import Proxy
from ...core.command import command
from ...core.errors import BadInput, naming
from ...core.this_node import THIS_NODE
from ...files.plain_file import read_plain
from ...files.whole_file import write_whole
from ...site.proxy_config import CONFIG, SET_UP, files_of
from ..verb_parser import verb_parser
from .conserver_files import CERTIFICATE, CONSERVER, KEY, SECRETS, client, configuration, serving

VERB = "consoles"
DOES = "Have conserver serve the consoles of the wiring (console_from), and say what was changed for that."
USER, BINARY = "conservr", "/usr/sbin/conserver"
#: 100 years: the certificate is made anew with each start of the node.
DAYS = "36500"
ROOT = (0, 0)


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = verb_parser(VERB, DOES, CONFIG, "proxy")
    words.add_argument("--check", action="store_true", help="change nothing, and say what would be changed")
    words.add_argument("--serve", action="store_true", help="become conserver, in the foreground")
    words.add_argument("--user", default=USER, help="conserver's account (%(default)s)")
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    files = files_of(options.config)
    with Proxy(files, f"hetero {VERB}", create=False) as proxy:
        changed = written(proxy, options.user, options.check)
        for path in changed:
            sys.stdout.write(f"{path} {'would be' if options.check else 'is'} changed\n")
        if changed and not options.check and not options.serve:
            tell(proxy.config, signal.SIGHUP)  # it takes up what is new, and leaves other consoles as they are
        config = proxy.config
    sys.stdout.flush()
    if options.serve:
        serve(config.consoles_folder, pid_file(config), options.user)
    return 0


def written(proxy: Proxy, user: str, check: bool) -> list[str]:
    """Have all files be as the wiring says, and return the paths of those that were not.

    :param user: conserver's account.
    :param check: change nothing.
    """
    config = proxy.config
    try:
        account = pwd.getpwnam(user)
    except KeyError as error:
        if check:
            return []
        raise BadInput(f"has no account {user}", THIS_NODE, f"install package conserver-server: {SET_UP}") from error
    served, folder = serving(config, proxy.boards), config.consoles_folder
    changed = []
    for path, mode, owner in ((folder, 0o755, 0), (config.console_logs, 0o750, account.pw_uid)):
        changed += _folder(path, mode, owner, check)
    texts = {CONSERVER: configuration(config, served)}
    texts.update(file for one in served.values() for file in one.files)
    for name, text in texts.items():
        changed += _file(os.path.join(folder, name), text, 0o400, (account.pw_uid, account.pw_gid), check)
    changed += _file(os.path.join(folder, CLIENT), client(config), 0o444, ROOT, check)
    lacks = [path for path in (os.path.join(folder, name) for name in (KEY, CERTIFICATE)) if not _has_text(path)]
    changed += lacks
    if lacks and not check:
        _make_key(folder, account)
    return changed + _left(folder, texts, check)


def _left(folder: str, names: Container[str], check: bool) -> list[str]:
    """Remove what consoles read that are served no more, and return the paths: a password of a BMC is one of them."""
    found = os.listdir(folder) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, one) for one in found if one.endswith(SECRETS) and one not in names]
    for path in paths if not check else ():
        with naming(path), suppress(FileNotFoundError):
            os.unlink(path)
    return paths


def serve(folder: str, pid: str, user: str) -> None:
    """Become conserver, in the foreground, under its own account."""
    account = pwd.getpwnam(user)
    write_whole(pid, f"{os.getpid()}\n".encode(), mode=0o644)
    # A file that is full ends the writing to it, and not conserver, which ignores the signal as we do.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    os.umask(0o027)
    os.chdir("/")
    os.initgroups(user, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    os.execv(BINARY, [BINARY, "-C", os.path.join(folder, CONSERVER), "-M", "127.0.0.1"])


def _folder(path: str, mode: int, owner: int, check: bool) -> list[str]:
    with naming(path):
        try:
            seen = os.lstat(path)
            if stat.S_ISDIR(seen.st_mode) and (stat.S_IMODE(seen.st_mode), seen.st_uid) == (mode, owner):
                return []
        except FileNotFoundError:
            pass
        if not check:
            os.makedirs(path, exist_ok=True)
            os.chmod(path, mode)
            os.chown(path, owner, -1)
    return [path]


def _file(path: str, text: str, mode: int, owner: tuple[int, int], check: bool) -> list[str]:
    with naming(path):
        if read_plain(path) == text.encode():
            return []
        if not check:
            write_whole(path, text.encode(), mode=mode, owner=owner)
    return [path]


def _has_text(path: str) -> bool:
    """Return whether a file is there and not empty, as a power cut, or a full disk, may leave one of others."""
    with suppress(OSError):
        return os.stat(path).st_size > 0
    return False


def _make_key(folder: str, account: pwd.struct_passwd) -> None:
    """Make the key and certificate of conserver and its clients, which nobody else has."""
    key, certificate = os.path.join(folder, KEY), os.path.join(folder, CERTIFICATE)
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-days", DAYS, "-subj", "/CN=hetero-consoles", "-keyout", "/dev/stdout", "-out", "/dev/stdout"]
    both = command(argv, "openssl", f"install package openssl: {SET_UP}")
    write_whole(certificate, both[both.index("-----BEGIN CERTIFICATE") :].encode(), mode=0o444)
    write_whole(key, both.encode(), mode=0o400, owner=(account.pw_uid, account.pw_gid))
