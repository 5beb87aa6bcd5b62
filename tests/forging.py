# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An attack with forged NFS handles, by a program on the attacker's board, and what it is to look for.

An attacker would try all numbers; here it is told those of the files that it must not find, so that it tries few.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

PROGRAM = Path(__file__).with_name("forge.pl")
MARKER = "a-marker-of-the"
#: Numbers that it tries besides: those of the first files of any file system.
LAST = 600


def look_for(lab, root, instance):
    """What an attacker must not find: ([inode numbers], [texts in these files]), of another tenant and of the proxy.

    :param root: where the other tenant's root lies on the proxy.
    """
    lab.ssh(instance, f"echo {MARKER}-tenant > /root/secret; chmod 600 /root/secret; sync")
    own = [f"{root}/root/secret", f"{root}/etc/ssh/ssh_host_ed25519_key", f"{root}/root/.ssh/authorized_keys"]
    state = "/var/lib/hetero"
    proxys = [f"{state}/secret", f"{state}/state.db", f"{state}/reboot-key/id_ed25519"]
    proxys += ["/etc/hetero/credentials.json", "/etc/hetero/secret"]
    mark = f"for file in {state}/secret /etc/hetero/secret; do echo {MARKER}-proxy > $file; chmod 600 $file; done; sync"
    files = [*own, *proxys]
    roots = f"find {state}/*-roots -name root.ext4 -printf '%i '"
    numbers = lab.on_proxy(f"{mark}; stat -c %i {' '.join(files)}; {roots} 2> /dev/null; true")
    keys = [f"{root}/etc/ssh/ssh_host_ed25519_key", f"{state}/reboot-key/id_ed25519"]
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
    words = f"perl - 10.0.2.254 {export} {other} {LAST} {','.join(map(str, numbers))} {quoted}"
    argv = ["ssh", "-F", lab.folder / "ssh" / instance, instance, words]
    done = subprocess.run(argv, input=PROGRAM.read_text(), check=True, stdout=subprocess.PIPE, text=True, timeout=120)
    return done.stdout.splitlines()
