# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record that cannot be read, of a container that is there and that an older database does not know, while several
are asked for with that name among them. Lost: the record, which nobody gave up: the request was refused that name.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_older_copies_of_hosts import put_back


@pytest.mark.parametrize("partial", [True, False])
def test_the_record_stays(claims, partial):
    claims.claim("ml-7", flavor=SMALL)
    copy = backups.make(claims.database)
    claims.claim("bob-2", owner="jo", flavor=SMALL)
    with claims.host() as host:
        host.store.put("bob-2", container=f"{claims.lxcpath}/bob-2#{'8' * 32}")
        record = Path(host.store.records.path("bob-2"))
    folder = claims.lxcpath / "bob-2"
    folder.mkdir(parents=True)
    (folder / "config").write_text("lxc.uts.name = bob-2\n")
    put_back(claims, copy)
    unread = record.read_text()[:-20]
    record.write_text(unread)
    with suppress(NoneFree):
        assert partial == (claims.claim("bob", owner="bo", flavor=SMALL, count=2, partial=partial)["new"] == ["bob-1"])
    assert record.read_text() == unread
