# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record of a claim that cannot be read, on a board that nobody has by the database, and those who ask for other
names. If these fail, one damaged file keeps everybody from hearing that an instance is gone; or what runs is said to be
none.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import without_claims
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import record

ASKED = {
    "stopped": dict(state="stopped"),
    "rebuilt": dict(state="rebuilt", fresh=True),
    "extended": dict(state="extended", lease_hours=1),
}


@pytest.fixture
def damaged(jackie):
    """Jackie on board 0; on board 1, which was eve's and is off and clean, a record that cannot be read."""
    assert not any(result.get("failed") for result in [*jackie.provision("eve"), *jackie.terminate("eve")])
    record(jackie, 1).write_text("{")
    return jackie


def verb(site, state="absent", **given):
    return site.module("instance", kind="board", instance="bob", state=state, timeout=5, **given)


def test_a_name_that_was_never_here_ends_beside_a_damaged_record(damaged):
    """Lost: the end of whatever is not there any more, in each play of everybody, by one file."""
    there = damaged.what_is_there()
    released = damaged.module("board_claim", instance="bob", state="absent")
    for result in (verb(damaged), verb(damaged, check=True), released):
        assert not result.get("failed"), result
        assert not result["changed"]
        ((name, text),) = [(line["node"], line["text"]) for line in result["lines"]]
        assert name == "board1"
        assert f"{record(damaged, 1)}: what it says of a claim cannot be read" in text
        assert "nothing else is there of board1" in text
    assert damaged.what_is_there() == there


@pytest.mark.parametrize("given", ASKED.values(), ids=ASKED)
def test_other_verbs_say_that_there_is_none(damaged, given):
    """Lost: the plain answer."""
    assert "bob: no such instance on" in verb(damaged, **given)["msg"]


def test_who_asks_for_a_name_is_told_of_the_file_beside_it(damaged):
    """Lost: the word by which somebody mends the file; or the end of the play that asks for a name."""
    answer = dict(damaged.module("board_info", instance="bob"), item="tp-a")
    assert without_claims.unclaimed([answer]) == []
    (note,) = without_claims.notes([answer])
    assert note.startswith("board1 on tp-a: ")
    assert "cannot be read" in note


def test_its_board_is_given_to_nobody_all_the_same(damaged):
    """Lost: whoever's claim that record was."""
    assert damaged.provision("bob")[-1]["failed"]


@pytest.mark.parametrize("what", ["root", "export", "disk", "power", "unknown power", "state"])
def test_what_may_be_its_is_not_said_to_be_none(damaged, what):
    """Lost: an instance that runs, of which is told that there is none."""
    site = damaged
    if what == "root":
        (site.state / "board-roots" / "fs_1").mkdir()
    elif what == "export":
        (site.folder / "ganesha.json").write_text(
            (site.folder / "ganesha.json").read_text()[:-1]
            + ', "2": {"path": "/x", "pseudo": "/tftpboot/fs_1", "clients": ["10.0.2.2"]}}'
        )
    elif what == "disk":
        wipes = site.state / "wipes"
        wipes.mkdir(exist_ok=True)
        (wipes / "00-1a-ca-00-57-01.json").write_text('{"used by": "eve", "disks": ["/dev/sda"]}')
        site.wire(1, disk="/dev/sda")
    else:
        with site.proxy() as proxy:
            if what == "power":
                proxy.store.power_seen(1, "on")
            elif what == "unknown power":
                proxy.store._look_again(1)
            else:
                proxy.store.move(1, "booting")
    there = site.what_is_there()
    released = site.module("board_claim", instance="bob", state="absent")
    for result in (verb(site), released, *(verb(site, **given) for given in ASKED.values())):
        assert "what lies there for board1 may be its" in result["msg"], what
        assert not result.get("changed")
    assert without_claims.unclaimed([dict(site.module("board_info", instance="bob"), item="tp-a")])
    assert site.what_is_there() == there
