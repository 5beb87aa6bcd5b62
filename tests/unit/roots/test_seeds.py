# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data for cloud-init in a board's root. If these fail, a system that has run gets another's data, or a request's data
are not there when it boots first.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import seeds

DATA = "#cloud-config\n"


class Root:
    path, is_mounted = "/srv/fs_3", True

    def __init__(self, seed=None, keeps=True):
        self.seed, self.keeps = seed, keeps

    def has_seed(self, data):
        return self.seed == data

    def has_left_seed(self, _image):
        return self.seed is not None

    def put_seed(self, data, _name):
        self.seed = data if self.keeps else None

    def take_seed_out(self, _image):
        self.seed = None if self.keeps else self.seed


def prepare(root, user_data=DATA, fresh=False, check=False, ran=False, power="off"):
    store = SimpleNamespace(
        had_power=lambda _claim: ran,
        has_run=lambda _claim: ran,
        record=lambda _board: SimpleNamespace(power=power),
    )
    place = SimpleNamespace(root=root, proxy=SimpleNamespace(store=store), board=SimpleNamespace(name="board3"))
    said = []
    claim = SimpleNamespace(board=3, instance="jackie")
    done = seeds.prepare_seed(
        place, claim, "image", user_data, Change(check), lambda *words: said.append(words[1]), fresh
    )
    return done, said


def test_data_come_into_a_root_that_no_system_has_run_from():
    """Lost: what the user asked for."""
    root = Root()
    assert prepare(root) == (True, ["user_data is there for cloud-init"])
    assert root.seed == DATA
    assert prepare(root) == (False, []), "once"
    assert prepare(Root("old"), fresh=True)[0]


def test_check_mode_says_what_would_be():
    """Lost: check mode."""
    root = Root()
    assert prepare(root, check=True) == (True, ["user_data would be there for cloud-init"])
    assert root.seed is None


@pytest.mark.parametrize("seen", [dict(ran=True), dict(power="on")])
def test_a_system_that_may_have_seen_it_keeps_what_it_has(seen):
    """Lost: a tenant's machine, which cloud-init would set up a second time."""
    root = Root("old")
    done, said = prepare(root, **seen)
    assert (done, root.seed, len(said)) == (False, "old", 1)
    done, said = prepare(root, user_data="", **seen)
    assert (done, root.seed) == (False, "old")


def test_an_earlier_requests_data_are_taken_out():
    """Lost: a secret of who asked before, in the root of who asks now."""
    root = Root("old")
    assert prepare(root, user_data="") == (True, ["user_data of an earlier request was taken out of its root"])
    assert root.seed is None
    assert prepare(root, user_data="") == (False, [])
    assert prepare(Root("old"), user_data="", fresh=True) == (False, []), "a new root has none"


def test_what_does_not_stay_is_told():
    """Lost: the reason, where a link of the tenant's leads elsewhere."""
    with pytest.raises(HeteroError, match="user_data is not there after it was put in"):
        prepare(Root(keeps=False))
    with pytest.raises(HeteroError, match="user_data is there after it was taken out"):
        prepare(Root("old", keeps=False), user_data="")
