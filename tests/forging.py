# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks with forged NFS handles and with names that have / in them, by programs on the attacker's board.

Of handles an attacker would try all numbers; here it is told those of the files that it must not find, so that it tries
few.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).parent
MARKER = "a-marker-of-the"
STATE = "/var/lib/hetero"
#: Numbers that it tries besides: those of the first files of any file system.
LAST = 600


def look_for(lab, root, instance):
    """What an attacker must not find: ([inode numbers], [texts in these files]), of another tenant and of the proxy.

    :param root: where the other tenant's root lies on the proxy.
    """
    lab.ssh(instance, f"echo {MARKER}-tenant > /root/secret; chmod 600 /root/secret; sync")
    own = [f"{root}/root/secret", f"{root}/etc/ssh/ssh_host_ed25519_key", f"{root}/root/.ssh/authorized_keys"]
    proxys = [f"{STATE}/secret", f"{STATE}/state.db", f"{STATE}/reboot-key/id_ed25519"]
    proxys += ["/etc/hetero/credentials.json", "/etc/hetero/secret"]
    mark = f"for file in {STATE}/secret /etc/hetero/secret; do echo {MARKER}-proxy > $file; chmod 600 $file; done; sync"
    files = [*own, *proxys]
    roots = f"find {STATE}/*-roots -name root.ext4 -printf '%i '"
    numbers = lab.on_proxy(f"{mark}; stat -c %i {' '.join(files)}; {roots} 2> /dev/null; true")
    keys = [f"{root}/etc/ssh/ssh_host_ed25519_key", f"{STATE}/reboot-key/id_ed25519"]
    private = lab.on_proxy("; ".join(f"sed -n 3p {key}" for key in keys)).split()
    credentials = lab.on_proxy("grep -m 1 password /etc/hetero/credentials.json").strip()
    texts = [f"{MARKER}-tenant", f"{MARKER}-proxy", "SQLite format 3", credentials, *private]
    # An overlay shows the number below with the layer's in front of it.
    return sorted({int(number) & 0xFFFFFFFF for number in numbers.split()}), texts


def forge(lab, instance, export, other, wanted):
    """Run the attack on an instance's board; its lines.

    :param export: what its board mounts; `other`: what another's does.
    """
    numbers, texts = wanted
    quoted = " ".join(f"'{text}'" for text in texts)
    words = f"{export} {other} {LAST} {','.join(map(str, numbers))} {quoted}"
    return _on_board(lab, instance, "forge.pl", words)


def slashed_names(lab, instance, export):
    """Ask the NFS server for names with / in them, from an instance's board.

    :param export: what its board mounts, which is three folders below the state folder.
    :returns: (the program's lines, names that it made in the state folder or took away; they are gone again).
    """
    secret, made = "secret", "made-by-a-board"
    lab.on_proxy(f"echo {MARKER}-proxy > {STATE}/{secret}; chmod 600 {STATE}/{secret}; rm -rf {STATE}/{made}*")
    try:
        lines = _on_board(lab, instance, "names.pl", f"{export} ../../.. {secret} {made}")
        return lines, lab.on_proxy(f"cd {STATE}; find . -maxdepth 1 -name '{made}*' -printf '%f '").split()
    finally:
        lab.on_proxy(f"rm -rf {STATE}/{made}*")


def _on_board(lab, instance, program, words):
    """Run a program that speaks NFS on an instance's board; its lines."""
    argv = ["ssh", "-F", lab.folder / "ssh" / instance, instance, f"perl - 10.0.2.254 {words}"]
    text = (HERE / "nfs3.pl").read_text() + (HERE / program).read_text()
    done = subprocess.run(argv, input=text, check=True, stdout=subprocess.PIPE, text=True, timeout=1200)
    return done.stdout.splitlines()
