# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers of container images. If these fail, a file that a later layer removed is in the root, or a layer writes
outside it.

Tests images/layers.py.
"""

from __future__ import annotations

import hashlib
import io
import tarfile

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.tree import ROOT, Tree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.layers import apply


def layer(path, *members):
    """A tar of (name, content; None for a folder, a kind of tarfile, or a tuple for a link); returns its diff_id."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            if content is None:
                member.type = tarfile.DIRTYPE
            elif isinstance(content, bytes) and len(content) == 1 and content in (tarfile.FIFOTYPE, tarfile.CHRTYPE):
                member.type, content = content, None
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if content else None)
    path.write_bytes(data.getvalue())
    return "sha256:" + hashlib.sha256(data.getvalue()).hexdigest()


def applied(folder, *layers):
    """Lay layers over one another; returns {path below the root: content, None for a folder}."""
    (folder / "image" / ROOT).mkdir(parents=True)
    with Tree(str(folder / "image"), 1 << 20) as tree:
        for members in layers:
            apply(str(folder / "tar"), layer(folder / "tar", *members), tree, 1 << 20, Deadline(30.0))
        tree.finish()
    root = folder / "image" / ROOT
    return {
        path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in sorted(root.rglob("*"))
    }


def test_a_later_layer_goes_over_an_earlier_one(tmp_path):
    """Lost: the newer file; or a folder, where a file was before."""
    below = [("etc", None), ("etc/a", b"old a"), ("etc/b", b"old b"), ("var", b"a file")]
    above = [("etc/a", b"new a"), ("var", None), ("var/log", b"log")]
    assert applied(tmp_path, below, above) == {
        "etc": None,
        "etc/a": b"new a",
        "etc/b": b"old b",
        "var": None,
        "var/log": b"log",
    }


def test_what_a_layer_hides_is_gone_and_its_marks_are_not_there(tmp_path):
    """Lost: a secret that an image's maker removed; or files that nobody asked for."""
    below = [("etc", None), ("etc/a", b"secret"), ("etc/b", b"b"), ("opt", None), ("opt/old", b"old")]
    above = [
        ("etc/.wh.a", b"x"),
        ("opt", None),
        ("opt/.wh..wh..opq", b"x"),
        ("opt/new", b"new"),
        ("etc/.wh..wh.aufs", b"x"),
    ]
    assert applied(tmp_path, below, above) == {"etc": None, "etc/b": b"b", "opt": None, "opt/new": b"new"}


def test_what_a_layer_hides_is_what_was_below_it_in_whatever_order(tmp_path):
    """Lost: a file that a layer makes anew and hides first below."""
    assert applied(tmp_path, [("a", b"old")], [("a", b"new"), (".wh.a", b"x")]) == {"a": b"new"}


def test_devices_and_pipes_are_left_out(tmp_path):
    """Lost: the image, to what a board makes itself."""
    assert applied(tmp_path, [("pipe", tarfile.FIFOTYPE), ("disk", tarfile.CHRTYPE), ("a", b"a")]) == {"a": b"a"}


@pytest.mark.parametrize("name", ["../etc/passwd", "/etc/passwd", "a/../../b"])
def test_a_name_that_leads_out_is_refused(tmp_path, name):
    """Lost: the proxy's own files."""
    with pytest.raises(BadInput):
        applied(tmp_path, [(name, b"x")])


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh..."])
def test_a_mark_that_hides_no_file_is_refused(tmp_path, name):
    """Lost: the folder above, which "." and ".." would be."""
    with pytest.raises(BadInput, match="hides no file that there can be"):
        applied(tmp_path, [("etc", None), ("etc/a", b"a"), (f"etc/{name}", b"x")])


def test_another_layer_than_the_images_is_refused(tmp_path):
    """Lost: what the image's maker signed."""
    (tmp_path / ROOT).mkdir()
    layer(tmp_path / "tar", ("a", b"a"))
    with Tree(str(tmp_path), 1 << 20) as tree, pytest.raises(
        BadInput, match="is not the layer that the image's configur"
    ):
        apply(str(tmp_path / "tar"), "sha256:" + "0" * 64, tree, 1 << 20, Deadline(30.0))
    assert list((tmp_path / ROOT).iterdir()) == [], "nothing of it is there"
