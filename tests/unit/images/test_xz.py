# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""xz with a limit of memory. If these fail, a small file takes a node's memory, or a part of an image is missing."""

from __future__ import annotations

import io
import lzma

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import xz

DATA = b"".join(b"%07d\n" % number for number in range(4_000))


def packed(data=DATA, preset=0):
    return lzma.compress(data, preset=preset)


def test_all_of_it_and_no_more():
    """Lost: the end of an image."""
    assert xz.open_xz(io.BytesIO(packed())).read() == DATA
    assert xz.open_xz(io.BytesIO(packed(b""))).read() == b""


def test_streams_behind_each_other_are_one_file():
    """Lost: all but the first part of what pixz and `cat a.xz b.xz` write, with padding between."""
    several = packed(b"one") + b"\0" * 8 + packed(b"two") + packed(b"three") + b"\0" * 4
    assert xz.open_xz(io.BytesIO(several)).read() == b"onetwothree"


def test_a_step_back_reads_it_again():
    """Lost: the tar reader, which goes back to a header."""
    with xz.open_xz(io.BytesIO(packed())) as file:
        assert file.seek(16_000) == 16_000
        assert file.read(8) == b"0002000\n"
        assert file.seek(8) == 8
        assert file.read(8) == b"0000001\n"
        file.seek(8, io.SEEK_CUR)
        assert file.read(8) == b"0000003\n"
        assert file.seek(10**9) == len(DATA), "there is no more"


def test_a_file_that_ends_early_is_no_whole_one():
    """Lost: an image whose download broke, and that is taken for good."""
    with pytest.raises(EOFError, match="before its end mark"):
        xz.open_xz(io.BytesIO(packed()[:-40])).read()


def test_what_takes_more_memory_than_allowed_is_refused(monkeypatch):
    """Lost: the node's memory."""
    monkeypatch.setattr(xz, "MOST_MEMORY", 1 << 20)
    with pytest.raises(lzma.LZMAError, match=r"[Mm]emory"):
        xz.open_xz(io.BytesIO(packed(preset=6))).read()
