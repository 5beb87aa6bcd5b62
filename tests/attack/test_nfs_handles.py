# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root on a board asks the NFS server for files by handles that it has made up, and fills the root it was given.

Runs on the lab whose proxy is a container, with nfs-ganesha; tests/e2e/test_nfsd.py does the same to a kernel's server.
"""

from __future__ import annotations

from forging import forge, look_for

#: The root of `small`, and what of it its own tables may take.
SIZE, TABLES = 1 << 30, 64 << 20


def test_forged_handles_find_nothing_but_the_tenants_own(two):
    """Lost: another tenant's files and host key, all PDUs' passwords, who has which board."""
    wanted = look_for(two, "/var/lib/hetero/board-roots/fs_1/root", "victim")
    said = forge(two, "mallory", "/tftpboot/fs_0", "/tftpboot/fs_1", wanted)
    assert "works" in said, f"no file was found by a forged handle, so that this shows nothing: {said}"
    assert [line for line in said if line.startswith(("found", "mounts"))] == []
    tried = sum(int(line.split()[1]) for line in said if line.startswith("tried"))
    print(f"found 0 of {tried}; {said}")


def test_a_roots_file_system_holds_nothing_of_the_proxys(two):
    """Lost: whatever the proxy keeps beside a root, to the tenant of that root."""
    file = "/var/lib/hetero/board-roots/fs_0/root.ext4"
    names = {}
    for folder in ("/", "/lost+found", "/work"):
        # /inode/mode/owner/group/name/size/
        listed = two.on_proxy(f"sync; debugfs -c -R 'ls -p {folder}' {file} 2> /dev/null").splitlines()
        names[folder] = {line.split("/")[5] for line in listed if line.startswith("/")} - {".", "..", ""}
    assert names == {"/": {"lost+found", "upper", "work"}, "/lost+found": set(), "/work": {"work", "index"}}


def test_a_full_root_is_its_tenants_trouble_alone(two, lab):
    """Lost: everybody's work, and the records of who has what, when one tenant writes until nothing fits."""
    fill = "dd if=/dev/zero of=/root/fill bs=1M 2>&1; stat -c %s /root/fill; df -B1 --output=size / | tail -n 1"
    try:
        *said, written, size = lab.ssh("mallory", f"{fill}; true", timeout=300).splitlines()
        assert any("No space left on device" in line for line in said), said
        assert SIZE - TABLES < int(size) < SIZE, f"a root of local_gb 1 shows {size} bytes"
        assert SIZE - 2 * TABLES < int(written) < SIZE, f"{written} bytes went in"
        lab.ssh("victim", "dd if=/dev/zero of=/root/more bs=1M count=8 conv=fsync 2>&1; rm /root/more")
        lab.module(
            "board_claim",
            instance="carol",
            owner="carol",
            flavor={"name": "tp64.8x8", "memory_mb": 1, "vcpus": 1, "local_gb": 1},
            image="debian-12",
            ssh_public_key=(lab.folder / "ssh" / "id_ed25519.pub").read_text(),
        )
        board = next(claim["board"] for claim in lab.module("board_info")["claims"] if claim["instance"] == "carol")
        assert lab.module("board_image", boards=[board])["changed"], "a root is made while another is full"
        print(f"mallory wrote {int(written) >> 20} MiB of {int(size) >> 20}: {said[-1]}")
    finally:
        lab.ssh("mallory", "rm -f /root/fill")
