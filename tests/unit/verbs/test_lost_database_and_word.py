# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A state database that is gone without a copy, and made.json of a root that is gone, too. If these fail, all that is
left for a healthy instance is to be stopped and cleaned away.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.images import Node
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record, rewrite
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import root, verb
from ansible_collections.hetero.compute.tests.unit.verbs.test_lost_database import lose
from ansible_collections.hetero.compute.tests.unit.verbs.test_lost_words import (
    no_file,
    no_key,
    other_key,
    says,
    unmounted,
    word,
)

__all__ = ["word"]


def left(site):
    """What lies there and who has power, whatever the database says."""
    there = site.what_is_there()
    # the kernel lets go of a loop device some time after its last mount
    return {name: there[name] for name in ("power", "exports", "roots", "records", "restore", "tftp")}


@pytest.mark.parametrize("state", ["running", "stopped", "unmounted"])
def test_reconcile_adopts_what_its_record_and_its_host_key_bear_out(jackie, word, state):
    """Lost: her claim, for which all that was printed was to clean it away."""
    if state != "running":
        assert verb(jackie, "stopped")["changed"]
        unmounted(jackie) if state == "unmounted" else None
    lose(jackie)
    (dry,) = found(reconcile(jackie, check=True))
    assert (dry[1], says(word)) == ("would be adopted", False)
    lose(jackie)
    proof = "it shows its own key" if state == "running" else "its outlet is off"
    adopted, missing = found(reconcile(jackie))
    assert adopted == (f"is jackie's of jackie by its root and the record of its claim, {proof}", "adopted")
    assert missing == ("missing: made.json" + (", mount" if state == "unmounted" else ""), "put back")
    assert says(word)
    assert not verb(jackie).get("failed")
    assert (root(jackie) / "root" / "data").read_text() == "work"
    assert jackie.what_is_there() == jackie.running("jackie")


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (other_key, "the host key in it is not jackie's"),
        (no_key, "there is no host key in it"),
        (no_file, "root.ext4 is not there"),
        (lambda site: rewrite(site, image_hash=site.newer.hash), "it is not mounted over the files of its image"),
        (lambda site: rewrite(site, image_hash="ab" * 32), "image"),
    ],
    ids=["another key", "no key", "no file", "another image", "no such image"],
)
@pytest.mark.parametrize("given", [{}, {"adopt": ["jackie"]}, {"forget": ["jackie"]}])
def test_what_does_not_bear_it_out_is_named_and_all_of_it_stays(jackie, word, harm, why, given):
    """Lost: somebody's root, by a guess whose it is."""
    harm(jackie)
    before = left(jackie)
    lose(jackie)
    ((text, done),) = found(reconcile(jackie, **given))
    assert "made.json of its root cannot be read, nor be told anew (" in text
    assert why in text
    assert "nothing of it is touched: put a newer backup of the database back; or, once its owner agrees" in text
    assert (done, left(jackie), says(word)) == (None, before, False)
    for result in (jackie.provision()[0], verb(jackie, "absent")):
        assert result["failed"], result
        assert "board0 has the record of its claim" in result["msg"]
        assert "nothing is touched" in result["msg"]
    assert left(jackie) == before


@pytest.mark.parametrize("running", [True, False])
def test_without_its_record_nobody_can_tell_and_all_of_it_stays(jackie, word, running):
    """Lost: the same, where nothing but the root is left: a board that is given to the next one."""
    assert running or verb(jackie, "stopped")["changed"]
    record(jackie).unlink()
    before = left(jackie)
    lose(jackie)
    for given in ({}, {"adopt": ["jackie"]}, {"forget": ["jackie"]}):
        ((text, done),) = found(reconcile(jackie, **given))
        assert "has the root of somebody (what made.json says cannot be read), of which no claim is known" in text
        assert "nothing of it is touched: put a newer backup of the database back; or, once its owner agrees" in text
        assert done is None
    assert "what lies there for board0 may be its" in verb(jackie, "absent")["msg"]
    assert left(jackie) == before
    assert [claim["board"] for claim in jackie.provision("bob")[0]["boards"]] == [1]
    assert (left(jackie)["roots"]["fs_0"], jackie.outlets()["1"]) == (before["roots"]["fs_0"], before["power"]["1"])


def test_its_image_is_somebodys_meanwhile(jackie, word):
    """Lost: the image below a root, which neither the database nor made.json name any more."""
    assert verb(jackie, "stopped")["changed"]
    unmounted(jackie)
    image = json.loads(record(jackie).read_text())["claim"]["image_hash"]
    lose(jackie)
    Store(jackie.params["state_db"]).close()
    with Node("proxy", jackie.params["config"], []) as images:
        assert [(one.instance, one.image_hash) for one in images.users()] == [("jackie", image)]
