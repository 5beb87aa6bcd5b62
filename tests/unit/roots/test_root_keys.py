# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys in a board's root. If these fail, a tenant's file is overwritten, a running board is taken for a stranger, or a
board boots without the user's key.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import root_keys
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

OWN, OTHER = "ssh-ed25519 OWN", "ssh-ed25519 OTHER"
BOARD = SimpleNamespace(id=3, name="board3")


class Root:
    """A root that keeps what is put into it, but for what `holds` forbids."""

    path = "/srv/fs_3"

    def __init__(self, key=False, host_key=None, holds=True):
        self.found, self.holds, self.did = dict(key=key, host_key=host_key, own=[]), holds, []

    def inspect(self, _key):
        return dict(self.found)

    def put_key(self, key):
        self.did.append("key")
        self.found["key"] = self.holds

    def put_host_key(self, _name):
        self.did.append("host key")
        self.found["host_key"] = "ssh-ed25519 FRESH"


def claim(host_key=None):
    return SimpleNamespace(instance="jackie", host_key=host_key, ssh_public_key=KEY)


def prepare(root, check=False, keeps=None, known=None, ready=True):
    change, restored = Change(check), []
    place = SimpleNamespace(board=BOARD, root=root)
    line = root_keys.prepare_keys(place, claim(known), change, restored, ready, keeps)
    return line, restored


def test_what_is_missing_is_put_there():
    """Lost: the login of a user."""
    root = Root()
    assert prepare(root) == ("ssh-ed25519 FRESH", ["key", "host key"])
    assert root.did == ["key", "host key"]


def test_what_is_there_stays():
    """Lost: a host key that people know."""
    root = Root(key=True, host_key=OWN)
    assert prepare(root) == (OWN, [])
    assert root.did == []


def test_check_mode_says_it_and_writes_nothing():
    """Lost: check mode."""
    root = Root()
    line, restored = prepare(root, check=True)
    assert (line, restored, root.did) == (None, ["key", "host key"], [])


def test_a_board_that_still_proves_the_known_key_gets_no_other():
    """Lost: a running instance, which is known by that key alone."""
    root = Root(key=True)
    assert prepare(root, keeps=lambda found: found is None, known=OWN) == (OWN, [])
    assert root.did == []


def test_keys_that_do_not_stay_are_told():
    """Lost: the reason, where a link of the tenant's leads elsewhere."""
    with pytest.raises(HeteroError, match="keys are not there after they were put in: check its links"):
        prepare(Root(holds=False))


@pytest.mark.parametrize(
    ("found", "proves", "power", "kept"),
    [
        (OWN, True, "on", False),
        (None, True, "off", True),
        (None, False, "on", True),
        (None, False, "off", False),
        (OTHER, True, "on", True),
        (OTHER, False, "on", False),
    ],
)
def test_when_a_claim_keeps_the_key_that_is_known(found, proves, power, kept):
    """Lost: the same; or a fresh key for ever, where nothing runs any more."""
    proxy = SimpleNamespace(store=SimpleNamespace(record=lambda _id: SimpleNamespace(power=power)))
    said = []
    keeps = root_keys.keeper(proxy, BOARD, claim(OWN), lambda *words: said.append(words), lambda: proves)
    assert keeps(found) is kept
    assert bool(said) is kept, "and the tenant is told"
    unknown = root_keys.keeper(proxy, BOARD, claim(None), lambda *_words: None, lambda: True)
    assert unknown(found) is False
