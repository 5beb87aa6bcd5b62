# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an image must hold. If these fail, an image without a kernel is found out by a board that does not boot, or one
that lost a file by a tenant.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.content import (
    SIZES,
    about_of,
    check_content,
    damage,
    note_sizes,
)


@pytest.fixture
def folder(tmp_path):
    """An image with a kernel and a root."""
    (tmp_path / "image.json").write_text('{"arch": "tilepro64"}')
    (tmp_path / "kernel").write_bytes(b"kernel")
    (tmp_path / "root").mkdir()
    return tmp_path


def about(folder, **said):
    (folder / "image.json").write_text(json.dumps(dict(dict(arch="tilepro64"), **said)))


def test_a_whole_image_passes(folder):
    """Lost: the image; or the arch that its operator gave."""
    check_content(str(folder), "box", None, True)
    check_content(str(folder), "box", "x86_64", True)
    assert about_of(str(folder), "box")["arch"] == "x86_64"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (dict(arch="a b"), "arch must be a word"),
        (dict(arch=7), "arch must be a word"),
        (dict(cmdline="quiet\nboot"), "cmdline must be one line of ASCII"),
        (dict(cmdline="ü"), "cmdline must be one line of ASCII"),
        (dict(ram="yes"), "ram must be true or false"),
        (dict(console_key=1), "console_key must be true or false"),
        (dict(ram=True), "is a RAM image and holds root"),
    ],
)
def test_what_image_json_says_wrongly_is_named(folder, said, words):
    """Lost: a boot entry into which a line break puts another command."""
    about(folder, **said)
    with pytest.raises(BadInput, match=words):
        check_content(str(folder), "box", None, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "is not JSON"), ("[]", "is no JSON object"), (None, "no such file in it .found: kernel, root")],
)
def test_what_is_no_image_json_is_named(folder, text, words):
    """Lost: what an archive lacks, and what it has instead."""
    (folder / "image.json").unlink()
    if text is not None:
        (folder / "image.json").write_text(text)
    with pytest.raises(BadInput, match=words):
        check_content(str(folder), "box", None, True)


def test_what_is_missing_is_named_with_what_to_give(folder):
    """Lost: the way to an image that boots."""
    (folder / "root").rmdir()
    with pytest.raises(BadInput, match="root: no such folder in it"):
        check_content(str(folder), "box", None, True)
    (folder / "root").mkdir()
    (folder / "kernel").unlink()
    with pytest.raises(BadInput, match=r"kernel: no such file in it: .*; or give kernel_of=NAME"):
        check_content(str(folder), "box", None, True)
    check_content(str(folder), "box", None, False)
    (folder / "initrd").mkdir()
    with pytest.raises(BadInput, match="initrd: no such file in it"):
        check_content(str(folder), "box", None, False)


def test_a_file_that_is_lost_later_is_noticed(folder):
    """Lost: a board, given an image that lies half in the store."""
    note_sizes(str(folder))
    assert damage(str(folder), True) is None
    (folder / "kernel").write_bytes(b"kern")
    assert damage(str(folder), True) == "kernel is not there as it was imported"
    (folder / "kernel").unlink()
    assert damage(str(folder), True) == "kernel is not there as it was imported"
    (folder / SIZES).unlink()
    assert damage(str(folder), True) == "kernel: no such file in it", "an older release noted no sizes"
    assert damage(str(folder), False) is None
    (folder / "root").rmdir()
    assert damage(str(folder), False) == "root: no such folder in it"
    (folder / SIZES).write_text("[")
    assert damage(str(folder), False) == f"{SIZES} is damaged"
    (folder / "image.json").unlink()
    assert damage(str(folder), False).startswith("image.json: no such file in it")
