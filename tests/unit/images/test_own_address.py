# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role debian_image has initrds do for a guest's address, by the words that its kernel gets from its host.

If these fail, a guest of such an image has no address, for nobody answers DHCP on a host's bridge: no login, and a
request that ends with it. The script runs with busybox alone, as in an initrd.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.guests import kernel_words

FILES = Path(__file__).resolve().parents[3] / "roles" / "debian_image" / "files"
INITRD = """
mount -t tmpfs tmpfs /run && mount --bind "$1/cmdline" /proc/cmdline || exit
PATH=$1/bin "$1/bin/sh" "$2" && [ ! -e /run/systemd ] || cat /run/systemd/network/04-own-address.network
"""
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
    pytest.mark.skipif(not shutil.which("busybox"), reason="busybox is not installed: tools/setup test"),
]


def said(folder, words):
    """The lines for systemd-networkd by a kernel's command line."""
    (folder / "bin").mkdir()
    for applet in ("sh", "cat", "mkdir"):
        (folder / "bin" / applet).symlink_to(shutil.which("busybox"))
    (folder / "cmdline").write_text(f"{words}\n")
    argv = ["unshare", "--mount", "sh", "-c", INITRD, "sh", str(folder), str(FILES / "own-address")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=True)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(("netmask", "bits"), [("255.255.255.0", 24), ("255.255.254.0", 23), ("255.255.255.128", 25)])
@pytest.mark.parametrize("gateway", ["10.0.90.1", None])
def test_a_guest_has_the_address_that_its_host_gave_it(tmp_path, netmask, bits, gateway):
    guest = SimpleNamespace(address="10.0.90.10", gateway=gateway, netmask=netmask, name="sim-1")
    way_out = [f"Gateway={gateway}"] if gateway else []
    assert said(tmp_path, kernel_words(guest, "rw")) == [
        "[Match]",
        "Name=eth0",
        "[Network]",
        f"Address=10.0.90.10/{bits}",
        *way_out,
        "KeepConfiguration=yes",
        "LinkLocalAddressing=ipv6",
    ]


@pytest.mark.parametrize("words", ["root=/dev/nfs ip=dhcp quiet", "root=/dev/sda1", "ip=10.0.2.1", "ip=:::::eth0:dhcp"])
def test_a_board_keeps_to_dhcp(tmp_path, words):
    assert said(tmp_path, words) == []


def test_an_initrd_has_the_script():
    assert 'install -D -m 755 "$here/own-address" "$initramfs/scripts/init-bottom/hetero-own-address"' in (
        FILES / "customize.sh"
    ).read_text()
