# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role debian_image has initrds do before they mount a root: nobody else can take the proxy's address.

The script runs with busybox alone, as in an initrd, in namespaces of its own with a network card that leads nowhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "roles" / "debian_image" / "files" / "pin-proxy"
INITRD = """
set -e
mount -t tmpfs tmpfs /run
mount --bind "$1/cmdline" /proc/cmdline
ip link add enp0s1 type veth peer name switch
ip link set switch up
ip link set enp0s1 up
ip address add 192.0.2.1/24 dev enp0s1
echo DEVICE=enp0s1 > /run/net-enp0s1.conf
for time in premount bottom; do PATH=$1/bin "$1/bin/sh" "$2"; done
ip neigh show
cat /run/systemd/network/05-netboot.network.d/pin.conf
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
@pytest.mark.skipif(not shutil.which("busybox"), reason="busybox is not installed: tools/setup test")
def test_the_proxy_is_who_the_kernels_arguments_say(tmp_path):
    """Lost: the root of a board, to any other that says first that it has the proxy's address."""
    (tmp_path / "bin").mkdir()
    for applet in ("sh", "cat", "mkdir", "printf", "arp", "ip"):
        (tmp_path / "bin" / applet).symlink_to(shutil.which("busybox"))
    (tmp_path / "cmdline").write_text("rw root=/dev/nfs hetero.proxy=192.0.2.254,52:54:00:0a:64:fe quiet\n")
    argv = ["unshare", "--net", "--mount", "sh", "-c", INITRD, "sh", str(tmp_path), str(SCRIPT)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=True)
    pinned, *lines = done.stdout.splitlines()
    assert pinned.split() == ["192.0.2.254", "dev", "enp0s1", "lladdr", "52:54:00:0a:64:fe", "PERMANENT"]
    assert lines == ["[Neighbor]", "Address=192.0.2.254", "LinkLayerAddress=52:54:00:0a:64:fe"]
    assert done.stderr == ""
