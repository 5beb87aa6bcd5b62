# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play looked at is somebody's by the time that it acts: repair, what is given back as surplus, what is taken
back after a refusal. If these fail, a running instance loses its board and its root to somebody else's play.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owners import holders
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
MODULES = ("tilera_boot", "board_image", "board_wipe", "board_claim")
#: Arguments of these tasks that are not templates, and for what their templates stand here.
STANDS_FOR = {"timeout": 10, "method": None, "verify": None}


def steps(path):
    """(module, its arguments) of each task of a file of the playbooks that acts on boards, in their order."""
    found = yaml.safe_load((PLAYBOOKS / path).read_text(encoding="utf-8"))
    tasks = found[0].get("tasks", found)
    return [
        (name, task[f"hetero.compute.{name}"])
        for task in tasks
        for name in MODULES
        if f"hetero.compute.{name}" in task and not task.get("check_mode")
    ]


def play(site, path, **known):
    """Play such a file's tasks as far as the one before did not fail; the results."""
    results = []
    for name, given in steps(path):
        given = {option: known.get(option, STANDS_FOR.get(option, value)) for option, value in given.items()}
        results.append(site.module(name, **{option: value for option, value in given.items() if value is not None}))
        if results[-1].get("failed"):
            break
    return results


def whole(results):
    return not any(result is None or result.get("failed") for result in results)


def request():
    return dict(instance="jackie", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)


def older(site):
    """The database as it was just after jackie's claim, without the claim's own record."""
    with closing(sqlite3.connect(site.params["state_db"])) as db:
        db.execute("UPDATE claims SET image_hash = NULL, host_key = NULL")
        db.execute("UPDATE boards SET state = 'power off', power = NULL")
        db.execute("DELETE FROM events WHERE id > (SELECT min(id) FROM events WHERE phase = 'claim')")
        db.commit()
    (site.state / "claims" / "board0.json").unlink()


@pytest.mark.parametrize("was", ["power off", "error"])
def test_repair_leaves_a_board_that_somebody_got_meanwhile(site, was):
    """A second operator repaired it first, or it was free already."""
    if was == "error":
        with site.proxy() as proxy:
            proxy.store.move(0, "error", "its relay sticks")
        assert whole(play(site, "repair.yml", boards=[0], board=0))
    assert whole(site.provision())
    there = site.what_is_there()
    for name, given in steps("repair.yml"):
        mine = {option: value for option, value in given.items() if option in ("state", "inspect", "instance")}
        mine.update(dict(board=0) if name == "board_claim" else dict(boards=[0]))
        mine.update(dict(timeout=10) if name in ("tilera_boot", "board_wipe") else {})
        result = site.module(name, **mine)
        assert "claimed for jackie" in result["msg"], name
        assert site.what_is_there() == there


def surplus(seen, others=(), before=None):
    """The one part that a play gives back by what its owners answered."""
    (part,) = holders([*others, dict(seen, item="proxy2")], "jackie", 1, "jackie", before)[1]
    return dict(instance="jackie", created=[claim["created"] for claim in part["claims"]])


def test_what_is_given_back_as_surplus_may_run_meanwhile(site):
    """The owner's second try had the claim boot that the first one, which got too little, gives back."""
    assert not site.module("board_claim", **request()).get("failed")
    mine = surplus(site.module("board_info", instance="jackie"), before=[])
    assert whole(site.provision())
    there = site.what_is_there()
    result = site.module("instance", kind="board", state="absent", never_ran=True, owner="jackie", **mine)
    assert "runs jackie, or ran it, since it was looked at: nothing of it is taken back" in result["msg"]
    assert site.what_is_there() == there


def test_surplus_by_an_older_database_alone_is_not_given_back(jackie):
    older(jackie)
    seen = jackie.module("board_info")
    other = dict(seen["claims"][0], created=seen["claims"][0]["created"] - 1, board=7)
    mine = surplus(seen, [dict(item="proxy1", boards=[], claims=[other])])
    there = jackie.what_is_there()
    result = jackie.module("instance", kind="board", state="absent", never_ran=True, owner="jackie", **mine)
    assert "has a root of which neither the database nor the record of its claim know" in result["msg"]
    assert jackie.what_is_there() == there


def test_every_give_back_of_surplus_asks_whether_it_ran():
    """Lost: all of the above, by one loop that forgets to ask."""
    for name, times in {"tasks/place": 1, "tasks/settle": 2, "tasks/again": 1}.items():
        text = (PLAYBOOKS / f"{name}.yml").read_text(encoding="utf-8")
        assert len(re.findall(r"import_tasks: (tasks/)?give_back\.yml\n", text)) == times, name
    removing = {path.name for path in PLAYBOOKS.glob("**/*.yml") if "state: absent" in path.read_text(encoding="utf-8")}
    # the last of these removes a file of molecule's
    assert removing == {"give_back.yml", "terminate_instance.yml", "repair.yml", "destroy.yml"}
    (task,) = yaml.safe_load((PLAYBOOKS / "tasks" / "give_back.yml").read_text(encoding="utf-8"))
    assert task["hetero.compute.instance"]["never_ran"] is True


def test_a_refusal_that_touches_nothing_is_not_followed_by_a_take_back(jackie):
    """Asked again after an older backup was put back, with the record lost: what was never ready is taken back."""
    older(jackie)
    there = jackie.what_is_there()
    claimed = jackie.module("instance", kind="board", **request(), state="present")
    assert not claimed["instances"][0]["ran"]
    refused = jackie.module("instance", kind="board", **request(), timeout=10)
    assert "has a root of which neither the database nor the record of its claim know" in refused["msg"]
    assert "nothing is touched: put a newer backup back" in refused["msg"]
    assert jackie.what_is_there() == there


@pytest.mark.parametrize("way", ["nobody waited", "killed", "killed, and asked again"])
def test_what_had_power_while_nobody_looked_may_have_run(site, way):
    """Lost: a root that somebody worked in for days, by a relay that sticks: its play was killed before it came up."""
    assert whole([site.module("board_claim", **request()), site.module("board_image", boards=[0], instance="jackie")])
    if way == "nobody waited":
        assert whole([site.module("tilera_boot", boards=[0], instance="jackie", timeout=10, wait=False)])
    else:
        for point in range(20, 200, 4):
            site.points.reset(point)
            result = site._module("tilera_boot", boards=[0], instance="jackie", timeout=10)
            site.points.reset(0)
            if site.outlets()["1"] == "on":
                break
        assert result is None, "not killed"
    data = site.state / "board-roots" / "fs_0" / "root" / "root" / "data"
    data.write_text("a week's work")
    boot = site.run_folder / "fake-boots" / "board0"
    if boot.exists():
        boot.write_text(json.dumps(dict(json.loads(boot.read_text()), on=None)))
    site.pdu(board0="off", faults={"stuck": ["1"]})
    if way != "killed, and asked again":
        site.module("board_reconcile", timeout=5)
        assert [event.text for event in site.events(0, "unwatched")] == [
            "its board had power while no play watched it, so jackie may have run"
        ]
    result = site.provision()[-1]
    assert result["blame"] == "instance", result
    given = dict(boards=[0], instance="jackie", never_ran=True, state="absent")
    assert "runs jackie, or ran it" in site.module("board_image", **given)["msg"]
    assert data.exists()
