# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of claims as older releases wrote them, and as a disk may have changed them. If these fail, an upgrade loses who
has what, or a verb acts on a claim that nobody ever made.

Tests claims/store.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.claim_records import TYPES
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.store import read_claim
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.backups import UNREADABLE

FLAVOR = {"name": "small", "memory_mb": 512}
ROW = dict(
    instance="jackie",
    request="jackie",
    owner="jo",
    kind="lxc",
    flavor=json.dumps(FLAVOR),
    image="debian-12",
    ssh_public_key="ssh-ed25519 AAAA",
    state="running",
    note="",
    container=None,
    address="10.0.80.2",
    host_key=None,
    image_hash=None,
    mover=None,
    departure=None,
    memory_mb=512,
    vcpus=1,
    local_gb=8,
    since=1.0,
    created=1,
    expires=None,
    first_id=None,
)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("debian-12", "debian-12"),
        ("/srv/images/debian-12.tar.gz", "debian-12"),
        ("https://example.org/images/debian-12.tar?from=a/b", "debian-12"),
    ],
)
def test_a_claim_of_before_images_had_names_has_that_of_its_file(image, name):
    """Lost: each instance of an old release, of which the upgraded node says that its database is damaged."""
    assert read_claim(dict(ROW, image=image), TYPES)["image"] == name


def test_a_row_is_read_as_it_was_written():
    """Lost: a field of a claim."""
    assert read_claim(ROW, TYPES) == dict(ROW, flavor=FLAVOR)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("flavor", "{"),
        ("flavor", "[]"),
        ("flavor", None),
        ("flavor", "[" * 100_000),
        ("image", None),
        ("image", 7),
        ("image", b"debian"),
        ("instance", "../jackie"),
        ("instance", ""),
        ("instance", None),
        ("request", "Jackie"),
        ("owner", None),
        ("memory_mb", "512"),
        ("memory_mb", None),
        ("created", None),
        ("created", float("nan")),
        ("since", float("inf")),
        ("expires", "never"),
        ("first_id", 1.5),
    ],
)
def test_a_row_that_no_release_writes_is_damaged(column, value):
    """Lost: the word to put a copy of the database back, in place of a traceback; or the owner of what is not his."""
    with pytest.raises(UNREADABLE):
        read_claim(dict(ROW, **{column: value}), TYPES)


def test_a_row_without_a_column_is_damaged():
    """Lost: the same, of a table that a person made."""
    with pytest.raises(UNREADABLE):
        read_claim({key: value for key, value in ROW.items() if key != "request"}, TYPES)
