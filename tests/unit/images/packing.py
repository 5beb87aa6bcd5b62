# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packing images and hostile archives for the tests, and the keys that go into roots."""

from __future__ import annotations

import io
import json
import tarfile

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUmyQLPYmxFQCbDXOYrVHhQDnHRlHvZnLLhDmTv0Rdq jackie@desk"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHnXrFYxxGnQwVZcBJp6Qx0mQd4m9pYb8cVZ1p8h2aQ other@desk"

#: An image as people pack it: image.json, kernel, initrd, and a root with the things that must not stay in it.
MEMBERS = {
    "image.json": json.dumps({"arch": "tilepro64", "cmdline": "quiet"}),
    "kernel": "KERNEL" * 1000,
    "initrd": "INITRD" * 1000,
    "root": None,
    "root/etc": None,
    "root/etc/hostname": "template\n",
    "root/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "root/etc/ssh": None,
    "root/etc/ssh/ssh_host_rsa_key": "private of the image\n",
    "root/etc/ssh/ssh_host_rsa_key.pub": "public of the image\n",
    "root/etc/ssh/ssh_host_ed25519_key": "private of the image\n",
    "root/etc/ssh/sshd_config": "# nothing\n",
    "root/root": None,
}


def member(name, content=None, kind=None, **fields):
    """(TarInfo, content); a folder where there is no content."""
    info = tarfile.TarInfo(name)
    info.type = kind or (tarfile.DIRTYPE if content is None else tarfile.REGTYPE)
    info.mode = 0o755 if info.type == tarfile.DIRTYPE else 0o644
    data = (content or "").encode()
    info.size = len(data) if info.type == tarfile.REGTYPE else 0
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def tar(path, members, mode="w"):
    """Write a tar of (TarInfo, content) pairs."""
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return str(path)


def image_tar(path, mode="w", **changes):
    """A whole image; `changes` replace the content of top files ("" + name), None leaves a member out."""
    members = dict(MEMBERS)
    for name, content in changes.items():
        if content is None:
            del members[name]
        else:
            members[name] = content
    return tar(path, [member(name, content) for name, content in members.items()], mode)
