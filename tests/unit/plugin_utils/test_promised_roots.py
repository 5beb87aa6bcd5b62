# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What status says of a proxy's roots. If this fails, nobody hears that the next request for a root will be refused."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.filter.status_table import FilterModule

status_table = FilterModule().filters()["status_table"]

FULL = ": no further root can be given"
HOPE = "; 200 GiB may be promised (tftp_proxy_roots_overcommit is 2), in the hope that not all roots fill up"


@pytest.mark.parametrize(
    ("promised", "overcommit", "said"),
    [
        (99, 1.0, "roots on p1: 99 GiB promised of 100 GiB there, 3.0 GiB taken"),
        (100, 1.0, "roots on p1: 100 GiB promised of 100 GiB there, 3.0 GiB taken: no further root can be given"),
        (150, 1.0, "roots on p1: 150 GiB promised of 100 GiB there, 3.0 GiB taken: no further root can be given"),
        (150, 2.0, f"roots on p1: 150 GiB promised of 100 GiB there, 3.0 GiB taken{HOPE}"),
        (200, 2.0, f"roots on p1: 200 GiB promised of 100 GiB there, 3.0 GiB taken{HOPE}{FULL}"),
    ],
)
def test_it_is_said_when_no_further_root_can_be_given(promised, overcommit, said):
    sizes = dict(promised=promised << 30, there=100 << 30, taken=3 << 30, overcommit=overcommit)
    table = status_table({"p1": dict(boards=[], roots=sizes)})
    assert table[-1] == said
