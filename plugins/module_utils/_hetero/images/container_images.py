# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of containers: OCI image layouts, and what `docker save` writes. Their layers become one root.

Of the configuration only architecture, system and the layers' sums are read: what a container would start, and its
environment, mean nothing to a board. layers.py applies a layer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import BadInput, HeteroError
from ..files.tree import LAYER, Tree
from .archive import HEADERS, shown
from .layers import apply

if TYPE_CHECKING:
    from ..core.deadline import Deadline

#: Files at the top by which the two are known. `docker save` since release 25 writes both, with the same content.
OCI, DOCKER = "oci-layout", "manifest.json"
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
#: Paths that Docker's manifest.json names: of its older releases, and of those that write both.
SAVED = re.compile(r"[0-9a-f]{64}\.json|[0-9a-f]{64}/layer\.tar|blobs/sha256/[0-9a-f]{64}")
#: Bytes of a manifest or configuration, layers of an image (Docker takes 127), and indexes in each other.
MOST_JSON, MOST_LAYERS, MOST_DEPTH = 4 << 20, 512, 4
#: The name that GOARCH, of which configurations speak, gives to an architecture, and what Linux calls it.
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "arm": "arm"}
SAVE = "save it again: docker save -o FILE IMAGE, or skopeo copy docker://IMAGE oci:FOLDER"


@dataclass(frozen=True)
class Container:
    """A container's image: its architecture as Linux calls it, and (path, diff_id) of its layers from below."""

    arch: str
    layers: list[tuple[str, str]]


def is_container(folder: str) -> bool:
    """Return whether a folder holds a container's image."""
    return any(os.path.isfile(os.path.join(folder, name)) for name in (OCI, DOCKER))


def container_of(folder: str, source: str, arch: str | None) -> Container:
    """Return the container's image in a folder.

    :param source: its name in errors.
    :param arch: which one to take where there are several of one name.
    :raises BadInput: it is damaged, there is none of that architecture, or more than one.
    """
    return _Layout(folder, source).container(arch)


def write_root(container: Container, folder: str, source: str, limit: int, deadline: Deadline) -> None:
    """Make ROOT in a folder of a container's layers.

    :param limit: bytes that all layers together may have.
    """
    most = 2 * limit + HEADERS  # of all layers together, also of what another one hides or nobody writes
    with Tree(folder, limit) as tree:
        for number, (path, diff_id) in enumerate(container.layers, start=1):
            try:
                most -= apply(path, diff_id, tree, most, deadline)
            except HeteroError as error:
                member = f" member {shown(error.thing)}" if error.thing else ""
                what = f"layer {number} of {len(container.layers)}:{member} {error.what}"
                raise type(error)(what, source, error.remedy, **error.facts) from error
        tree.finish()


def same_arch(mine: str, theirs: str) -> bool:
    """Return whether two names mean one architecture. GOARCH's arm is any 32-bit ARM."""
    one, two = (ARCHITECTURES.get(word.lower(), word.lower()) for word in (mine, theirs))
    thirty_two = [word.startswith("arm") for word in (one, two)]
    return one == two or ("arm" in (one, two) and all(thirty_two))


class _Layout:
    """The files of a container's image. All are plain files in plain folders, as files/tree.py has written them."""

    def __init__(self, folder: str, source: str) -> None:
        self.folder = folder
        self.source = source

    def container(self, arch: str | None) -> Container:
        oci = os.path.isfile(os.path.join(self.folder, OCI))
        config, layers = self._oci(arch) if oci else self._docker()
        if config.get("os", "linux") != "linux":
            raise self._wrong(f"is for {shown(str(config['os']))}, not for Linux")
        found = config.get("architecture")
        if not isinstance(found, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", found):
            raise self._wrong("its configuration names no architecture")
        sums = self._list(self._dict(config.get("rootfs"), "rootfs").get("diff_ids"), "diff_ids")
        if len(sums) != len(layers) or not all(isinstance(one, str) and DIGEST.fullmatch(one) for one in sums):
            raise self._wrong(f"its configuration has {len(sums)} sums for {len(layers)} layers")
        return Container(ARCHITECTURES.get(found, found), list(zip(layers, sums)))

    def _oci(self, arch: str | None) -> tuple[dict[str, Any], list[str]]:
        """Return the configuration and the paths of the layers of an OCI image layout."""
        manifest = self._manifest(self._read(os.path.join(self.folder, "index.json"), "index.json"), arch)
        layers = [self._blob(layer) for layer in self._list(manifest.get("layers"), "layers")]
        return self._json_blob(manifest.get("config")), layers

    def _manifest(self, index: dict[str, Any], arch: str | None, depth: int = 0) -> dict[str, Any]:
        """Return the one manifest for an architecture; an index may name indexes."""
        named = {}
        for entry in self._list(index.get("manifests"), "manifests"):
            platform = self._dict(self._dict(entry, "manifests").get("platform", {}), "platform")
            # proofs of where an image comes from are listed beside it, for system "unknown"
            if platform.get("os") != "unknown":
                # of one image with two tags there are two entries
                named[str(entry.get("digest"))] = (str(platform.get("architecture", "")), entry)
        found = list(named.values())
        if len(found) > 1 and arch is not None:
            found = [(theirs, entry) for theirs, entry in found if same_arch(arch, theirs)]
        if len(found) != 1:
            there = ", ".join(shown(theirs or "no architecture") for theirs, _entry in found) or "none"
            wanted = f" for {arch}" if arch else ""
            remedy = SAVE if arch else "give arch, where they differ by that; or save one alone"
            raise BadInput(f"is to hold one image{wanted}, and holds: {there}", self.source, remedy)
        manifest = self._json_blob(found[0][1])
        if "manifests" not in manifest:
            return manifest
        if depth == MOST_DEPTH:
            raise self._wrong("its indexes name each other")
        return self._manifest(manifest, arch, depth + 1)

    def _docker(self) -> tuple[dict[str, Any], list[str]]:
        """Return the configuration and the paths of the layers of what `docker save` wrote."""
        images = self._read(os.path.join(self.folder, DOCKER), DOCKER, list)
        if len(images) != 1:
            names = [str(image.get("RepoTags")) for image in images if isinstance(image, dict)]
            raise BadInput(
                f"is to hold one image, and holds {len(images)}: {shown(', '.join(names))}", self.source, SAVE
            )
        image = self._dict(images[0], DOCKER)
        layers = [self._saved(name) for name in self._list(image.get("Layers"), "Layers")]
        return self._read(self._saved(image.get("Config")), "its configuration"), layers

    def _saved(self, name: object) -> str:
        """Return the path of a file that manifest.json names; a layer may be a link to another one (files/tree.py)."""
        if not isinstance(name, str) or not SAVED.fullmatch(name):
            raise self._wrong(f"{DOCKER} names {shown(str(name))!r}, which is no layer or configuration")
        path = os.path.join(self.folder, name)
        if os.path.islink(path) and LAYER.fullmatch(name):
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        return self._plain(path, name)

    def _blob(self, entry: object) -> str:
        """Return the path of the blob that a descriptor names."""
        digest = self._dict(entry, "a descriptor").get("digest")
        found = DIGEST.fullmatch(digest) if isinstance(digest, str) else None
        if found is None:
            raise self._wrong(f"names a blob by {shown(str(digest))!r}, which is no sha256")
        return self._plain(os.path.join(self.folder, "blobs", "sha256", found.group(1)), f"blob {digest}")

    def _plain(self, path: str, name: str) -> str:
        if os.path.islink(path) or not os.path.isfile(path):
            raise self._wrong(f"{name} is not in it")
        return path

    def _json_blob(self, entry: object) -> dict[str, Any]:
        """Return the content of a blob of JSON, whose sum is compared. Layers are compared by their diff_ids."""
        path = self._blob(entry)
        found: dict[str, Any] = self._read(path, f"blob {os.path.basename(path)}")
        with open(path, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != os.path.basename(path):
                raise self._wrong(f"blob {os.path.basename(path)[:12]} has another sum than its name")
        return found

    def _read(self, path: str, name: str, kind: type = dict) -> Any:
        """Return the content of a file of JSON, which is to be an object or a list."""
        if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > MOST_JSON:
            raise self._wrong(f"{name} is not in it, or too large")
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"{name} is not JSON ({error})") from error
        return found if isinstance(found, kind) else self._dict(None, name)

    def _dict(self, value: object, name: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(f"{name} is not what it is to be")
        return value

    def _list(self, value: object, name: str) -> list[Any]:
        if not isinstance(value, list) or len(value) > MOST_LAYERS:
            raise self._wrong(f"{name} is not what it is to be, or too long")
        return value

    def _wrong(self, what: str) -> BadInput:
        return BadInput(f"as an image of a container, {what}", self.source, SAVE)
