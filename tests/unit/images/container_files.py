# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of containers, built by hand as docker save and OCI tools write them, whole or with something wrong."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile

from ansible_collections.hetero.compute.tests.unit.images.packing import member

#: A layer as a distribution's first one is.
BASE = (
    member("etc"),
    member("etc/os-release", "ID=debian\n"),
    member("usr"),
    member("usr/bin"),
    member("usr/bin/su", "su", mode=0o4755),
    member("bin", kind=tarfile.SYMTYPE, linkname="usr/bin"),
    member("opt"),
    member("opt/old"),
    member("opt/old/a", "a"),
    member("opt/old/b", "b"),
)


def layer(*members):
    """The bytes of a layer of (TarInfo, content) pairs."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def config_of(layers, **changes):
    """A configuration; a change to None leaves the field out."""
    config = dict(
        architecture="amd64",
        os="linux",
        config={"Env": ["PATH=/evil"], "Cmd": ["/bin/sh"]},
        rootfs=dict(type="layers", diff_ids=[f"sha256:{digest(one)}" for one in layers]),
    )
    config.update(changes)
    return {name: value for name, value in config.items() if value is not None}


def packed(data, how):
    if how == "gzip":
        return gzip.compress(data)
    if how == "zstd":
        return subprocess.run(["zstd", "--stdout", "--quiet"], input=data, capture_output=True, check=True).stdout
    return data


def write_tar(path, files, mode="w", links=()):
    """A tar of {name: bytes}, and (name, target) of symbolic links."""
    with tarfile.open(path, mode) as archive:
        for name, target in links:
            archive.addfile(member(name, kind=tarfile.SYMTYPE, linkname=target)[0])
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    return str(path)


def docker_save(path, layers, mode="w", **changes):
    """What docker save of releases before 25 writes. A layer that was there before is a link to it."""
    files, links, names = {}, [], []
    for number, data in enumerate(layers):
        name, before = digest(b"%d" % number), digest(b"%d" % layers.index(data))
        names.append(f"{name}/layer.tar")
        if name == before:
            files[names[-1]] = data
        else:
            links.append((names[-1], f"../{before}/layer.tar"))
    config = json.dumps(config_of(layers, **changes)).encode()
    files[f"{digest(config)}.json"] = config
    manifest = [dict(Config=f"{digest(config)}.json", RepoTags=["builder:1"], Layers=names)]
    files["manifest.json"] = json.dumps(manifest).encode()
    return write_tar(path, files, mode, links)


def oci_files(*images, how="plain", nested=False, tags=1):
    """{name: bytes} of an OCI image layout of images, each (layers, changes of its configuration)."""
    files, entries = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}, []

    def blob(data):
        files[f"blobs/sha256/{digest(data)}"] = data
        return dict(digest=f"sha256:{digest(data)}", size=len(data))

    for layers, changes in images:
        config = config_of(layers, **changes)
        manifest = dict(config=blob(json.dumps(config).encode()), layers=[blob(packed(one, how)) for one in layers])
        entry = blob(json.dumps(manifest).encode())
        entry["platform"] = dict(os="linux", architecture=config.get("architecture"))
        entries += [dict(entry, annotations={"tag": str(number)}) for number in range(tags)]
    if nested:  # as docker save of a containerd store: an index in the index, with a proof beside the image
        proof = dict(blob(b'{"config": {}, "layers": []}'), platform=dict(os="unknown", architecture="unknown"))
        entries = [blob(json.dumps(dict(manifests=[*entries, proof])).encode())]
    files["index.json"] = json.dumps(dict(manifests=entries)).encode()
    return files


def oci(path, *images, **how):
    return write_tar(path, oci_files(*images, **how))
