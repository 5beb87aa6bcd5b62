# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of the table of allocations. If these fail, a damaged row ends every verb of a host, or is taken for a GPU that
nobody has.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation_rows import read_allocation

ROW = dict(
    address="0000:08:00.0", holder="/var/lib/lxc/ml-8 ab", state="attached", uuid=None, since=5.0, method="host",
    wanted=json.dumps(dict(count=1, arch="fermi", gpus=[], share=False)), share=0, persistent=1,
    nodes=json.dumps([["/dev/nvidia0", "c", 195, 0]]),
)  # fmt: skip


def test_a_row_is_read_as_it_was_written():
    """Lost: whether a GPU is shared, and which device nodes its container has."""
    one = read_allocation(ROW)
    assert (one.address, one.holder, one.state, one.since) == ("0000:08:00.0", "/var/lib/lxc/ml-8 ab", "attached", 5.0)
    assert (one.share, one.persistent, one.uuid) == (False, True, None)
    assert (one.wanted.count, one.wanted.arch, one.wanted.gpus) == (1, "fermi", ())
    assert one.nodes == (("/dev/nvidia0", "c", 195, 0),)
    assert read_allocation(dict(ROW, wanted=json.dumps(dict(gpus=["0", "1"])), nodes="[]")).wanted.gpus == ("0", "1")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *[(name, wrong) for name in ("address", "holder", "state", "method") for wrong in (None, 5, b"x")],
        *[("since", wrong) for wrong in (None, "5", float("nan"), -1)],
        *[(name, wrong) for name in ("share", "persistent") for wrong in (None, "0")],
        *[("wanted", wrong) for wrong in (None, "", "{", "[]", "{}", '{"gpus": 5}', '{"gpus": [], "colour": "red"}')],
        *[("nodes", wrong) for wrong in (None, "", "{", "5", "[5]", '[["/dev/nvidia0", "c", 195]]')],
    ],
)
def test_a_damaged_row_is_an_error_of_its_own(column, value):
    """Lost: each verb of a host, to an error that its caller does not take for that of a damaged row."""
    with pytest.raises((ValueError, TypeError, KeyError)):
        read_allocation(dict(ROW, **{column: value}))


def test_a_row_without_a_column_is_damaged():
    """Lost: the same, to the table of an earlier release."""
    for name in ROW:
        with pytest.raises((ValueError, TypeError, KeyError)):
            read_allocation({key: value for key, value in ROW.items() if key != name})
