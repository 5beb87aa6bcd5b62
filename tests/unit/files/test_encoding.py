# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which encoding a file is told to be in that an editor saved otherwise than as UTF-8."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.encoding import foreign_encoding


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("a\n".encode("utf-16"), "UTF-16"),
        (b"\xff\xfea\0", "UTF-16"),
        (b"\xfe\xff\0a", "UTF-16"),
        (b"\xff\xfe\0\0a\0\0\0", "UTF-32"),
        (b"\0\0\xfe\xff\0\0\0a", "UTF-32"),
        ("ab".encode("utf-16-le"), "UTF-16"),
        ("ab".encode("utf-16-be"), "UTF-16"),
        ("0 10.0.2.1".encode("utf-16-le"), "UTF-16"),
        ("0 10.0.2.1".encode("utf-16-be"), "UTF-16"),
    ],
)
def test_another_encoding_is_named(data, encoding):
    """Lost: what is wrong with a boards file that looks right in its editor."""
    assert foreign_encoding(data) == encoding


@pytest.mark.parametrize(
    "data",
    [b"", b"a", b"a\0b", b"\0a\0", b"ab\0\0", b"a\0\0b", b"0 10.0.2.1\n", b"\0" * 9, b"\0\0\0\0a", b"\xe9\xe9\xe9"],
)
def test_what_may_be_utf_8_is_no_other(data):
    """Lost: a file that is right, or the true reason of one that is not: that it has lost its contents, say."""
    assert foreign_encoding(data) is None
