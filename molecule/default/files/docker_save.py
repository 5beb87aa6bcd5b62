# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docker_save.py IMAGE FILE: write the root of an image's tar as `docker save` would a container of two layers.

The second layer adds /etc/made-of and deletes /etc/motd.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile


def root_of(image: str, path: str) -> None:
    """Write what is below root/ of an image as a layer."""
    with tarfile.open(image) as source, tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as layer:
        for member in source:
            top, _slash, name = member.name.lstrip("./").partition("/")
            if top == "root" and name:
                content = source.extractfile(member) if member.isreg() else None
                member.name = name
                member.linkname = member.linkname.partition("root/")[2] if member.islnk() else member.linkname
                layer.addfile(member, content)


def changes(path: str) -> None:
    """Write the second layer."""
    with tarfile.open(path, "w") as layer:
        for name, text in (("etc/made-of", b"a container\n"), ("etc/.wh.motd", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            layer.addfile(member, io.BytesIO(text))


def sum_of(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def main(image: str, path: str) -> None:
    layers = [f"{path}.1", f"{path}.2"]
    root_of(image, layers[0])
    changes(layers[1])
    sums = [sum_of(layer) for layer in layers]
    config = dict(architecture="tilepro64", os="linux", rootfs=dict(diff_ids=[f"sha256:{one}" for one in sums]))
    names = [f"{one}/layer.tar" for one in sums]
    manifest = [dict(Config=f"{'c' * 64}.json", RepoTags=["box:1"], Layers=names)]
    with tarfile.open(path, "w") as saved:
        for layer, name in zip(layers, names):
            saved.add(layer, name)
            os.unlink(layer)
        for name, text in ((f"{'c' * 64}.json", config), ("manifest.json", manifest)):
            data = json.dumps(text).encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            saved.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    main(*sys.argv[1:])
