# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk's image is told from an archive. If these fail, an import unpacks the wrong way, or not at all."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.disk_signs import START, is_disk


def start(**marks):
    """The first bytes of a file: {offset as text: bytes}."""
    data = bytearray(START)
    for at, mark in marks.items():
        data[int(at[1:]) : int(at[1:]) + len(mark)] = mark
    return bytes(data)


@pytest.mark.parametrize(
    "begin",
    [
        start(_0=b"QFI\xfb"),
        start(_510=b"\x55\xaa"),
        start(_1080=b"\x53\xef"),
        start(_0=b"XFSB"),
        start(_0=b"hsqs"),
        start(_1024=b"\xe2\xe1\xf5\xe0"),
        start(_65600=b"_BHRfS_M"),
    ],
)
def test_each_kind_of_disk(begin):
    """Lost: the images of that kind."""
    assert is_disk(begin)


def test_a_tar_is_none_whatever_is_in_it():
    """Lost: an archive whose first file is a disk."""
    assert not is_disk(start(_257=b"ustar", _510=b"\x55\xaa", _1080=b"\x53\xef"))


@pytest.mark.parametrize("begin", [b"", b"QFI", b"\x1f\x8b\x08", start(), b"XFS"])
def test_anything_else_is_none(begin):
    """Lost: the right words about a file that is neither."""
    assert not is_disk(begin)
