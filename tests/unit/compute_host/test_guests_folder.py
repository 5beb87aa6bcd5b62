# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of guests that is not mounted. If these fail, a new guest is made below a mount point, and covered by the
file system with all others when that comes back.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.guests_folder import must_be_mounted
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused


def host(folder, *claims):
    in_use = [SimpleNamespace(kind="kvm", container="key", state="running", **dict(one)) for one in claims]
    kvm = SimpleNamespace(guests_folder=str(folder))
    return SimpleNamespace(store=SimpleNamespace(in_use=lambda: in_use), config=SimpleNamespace(kvm=kvm))


def change(made, **said):
    for claim in made.store.in_use():
        vars(claim).update(said)
    return made


def test_where_none_of_the_others_lies_it_is_not_mounted(tmp_path):
    """Lost: the new guest, or all others."""
    with pytest.raises(
        Refused, match=r"has no guests, and db was made in it: .*instance=db -e fresh=true makes a new one"
    ):
        must_be_mounted(host(tmp_path, {"instance": "db"}, {"instance": "new"}), "new")


def test_one_of_them_is_enough(tmp_path):
    """Lost: each new guest, where one of many was removed by hand."""
    (tmp_path / "web").mkdir()
    must_be_mounted(host(tmp_path, {"instance": "db"}, {"instance": "web"}), "new")


@pytest.mark.parametrize("said", [dict(kind="lxc"), dict(container=None), dict(state="ending")])
def test_who_has_nothing_there_says_nothing(tmp_path, said):
    """Lost: the first guest of a host with containers, or beside one that is not made yet, or is ending."""
    must_be_mounted(change(host(tmp_path, {"instance": "db"}), **said), "new")


def test_its_own_folder_may_be_gone(tmp_path):
    """Lost: the rebuild of the only guest."""
    must_be_mounted(host(tmp_path, {"instance": "db"}), "db")
