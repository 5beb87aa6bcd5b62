# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the kernel that have gaps. If these fail, a container that runs counts as down now and then."""

from __future__ import annotations

import builtins
import io

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import kernel_tables


def test_a_table_is_read_anew_until_something_is_in_it(monkeypatch):
    """Lost: the line that one page of three lacked."""
    pages = iter([b"a\nb\n", b"a\n", b"a\nc\n", b"d\n"])
    monkeypatch.setattr(builtins, "open", lambda *_args, **_more: io.BytesIO(next(pages)))
    assert list(kernel_tables.reads("/proc/net/unix")) == [["a", "b"], ["a"], ["a", "c"]]
    assert next(pages) == b"d\n", "and no further"


def test_a_name_that_is_no_text_stops_no_reader(tmp_path):
    """Lost: all sockets of a host, to one that somebody bound to odd bytes."""
    (tmp_path / "unix").write_bytes(b"socket \xff\n")
    assert next(kernel_tables.reads(str(tmp_path / "unix"))) == ["socket \udcff"]
