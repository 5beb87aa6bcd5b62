# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module instance on boards: each verb on a board as one call, on a played proxy.

Lost where these fail: an instance that a second run boots anew, a board that stays claimed for nobody, a root that goes
though its instance ran.
"""

from __future__ import annotations

import importlib
import subprocess
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import board as board_module
from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY, OTHER_KEY

REQUEST = dict(owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)


def verb(site, state="running", timeout=10, **given):
    return site.module("instance", kind="board", instance="jackie", state=state, timeout=timeout, **given)


def up(site, **given):
    """Jackie, asked for and running."""
    result = verb(site, **REQUEST, **given)
    assert not result.get("failed"), result
    return result


def fake(site, board, **play):
    """How the board's boot is played."""
    site.wire(board, fake=dict({"tftp": 0.0, "nfs": 0.0, "running": 0.0}, **play))


def root(site, board=0):
    return site.state / "board-roots" / f"fs_{board}" / "root"


def test_a_board_in_one_call_and_again(site):
    result = up(site)
    (one,) = result["instances"]
    assert (one["instance"], one["name"], one["ip"], one["state"]) == ("jackie", "board0", "10.0.2.1", "running")
    assert result["lines"][0]["text"] == "wants tp64.8x8: 2 of 2 boards fit, board0 chosen"
    # and by an event, which whoever follows it sees before the boot
    (chosen,) = site.events(None, "choice")
    assert "jackie  " + chosen.text == "jackie  wants tp64.8x8: 2 of 2 boards fit, board0 chosen"
    again = up(site)
    assert (again["changed"], again["diff"]) == (False, [])
    assert len(site.events(None, "choice")) == 1


def test_a_dry_run_names_the_instance_it_would_make(site):
    """Lost: a dry run on a single proxy node, which takes an answer without the name for "there is none"."""
    there = site.what_is_there()
    (one,) = up(site, check=True)["instances"]
    assert (one["instance"], one["name"]) == ("jackie", "board0")
    assert site.what_is_there() == there


@pytest.mark.parametrize("state", ["stopped", "rebooted", "running", "rebuilt"])
def test_who_works_on_an_instance_whose_lease_ended_is_told(site, state):
    """Lost: the work in an instance that its node ends a minute later, for who starts it and hears nothing of that."""
    up(site, lease_hours=1)
    assert not any(line["phase"] == "lease" for line in verb(site, state, check=True)["lines"])
    with site.proxy() as proxy:
        proxy.store.put("jackie", expires=time.time() - 120)
    (told,) = [line for line in verb(site, state, check=True)["lines"] if line["phase"] == "lease"]
    assert (told["instance"], told["node"]) == ("jackie", "board0")
    assert told["text"].startswith("its lease ended 20")
    keep = "ansible-playbook hetero.compute.extend_instance -e instance=jackie -e hours=HOURS keeps it"
    assert told["text"].endswith(f"its node ends it, with all that it has, at its next turn; {keep}")


def test_who_follows_it_in_the_background_looks_at_what_it_writes_down(site, monkeypatch):
    """Lost: the progress of a boot: who follows looks into nobody's database, or at all that ever was."""
    up(site)
    followed = []
    monkeypatch.setattr(board_module.job, "in_background", lambda module, prepare, work: followed.append(prepare()))
    spec = importlib.import_module("ansible_collections.hetero.compute.plugins.modules.instance").SPEC
    params = {name: option.get("default") for name, option in spec.options.items()}
    params.update(site.params, kind="board", instance="jackie", timeout=10)
    board_module.in_background(SimpleNamespace(params=params))
    ((folder, follow),) = followed  # pylint: disable=unreachable
    assert (folder, follow["state_db"], follow["instances"]) == (
        str(site.run_folder),
        site.params["state_db"],
        ["jackie"],
    )
    with site.proxy() as proxy:
        assert follow["after"] == max(event.id for event in proxy.store.newest_events(None, 1)) > 1
    assert follow["limit"] > 10
    # what was chosen for several is told by the name of all
    board_module.in_background(SimpleNamespace(params=dict(params, instance="lab", count=2)))
    assert followed[1][1]["instances"] == ["lab", "lab-1", "lab-2"]  # pylint: disable=unreachable


def test_a_dry_run_of_both_steps_tells_of_the_claim_once(site):
    """Lost: when the lease ends: a second block of the diff says that it never does."""
    first = verb(site, "present", check=True, **REQUEST, lease_hours=3)
    created = [claim["created"] for claim in first["instances"]]
    second = verb(site, check=True, **REQUEST, created=created)
    things = [[diff["before_header"] for diff in result["diff"]] for result in (first, second)]
    assert (things[0], "jackie" in things[1], second["changed"]) == (["jackie"], False, True)
    assert first["diff"][0]["after"]["expires"]


@pytest.mark.parametrize(
    ("given", "way"),
    [
        (dict(image="centos"), "ask for jackie as it is: -e image=debian"),
        (dict(boot_source="disk"), "ask for jackie as it is: -e boot_source=nfs"),
        (dict(flavor=dict(FLAVOR, name="x"), image="x"), "ask for jackie as it is: -e flavor=tp64.8x8 -e image=debian"),
        (dict(board=1), "ask for jackie as it is: -e board=0"),
        (dict(board=77), "ask for jackie again with that corrected"),
        (dict(lease_hours=-1), "ask for jackie again with that corrected"),
        (dict(ssh_public_key=f"{KEY[:-12]}AAAAAAAAAAAA"), "ask for jackie again with that corrected"),
    ],
)
def test_whose_request_is_wrong_is_told_what_to_change_in_it(site, given, way):
    """Lost: the time of who looks for something to mend."""
    up(site)
    result = verb(site, **dict(REQUEST, **given))
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].endswith(f"; jackie on board0 stays claimed: {way}"), result["msg"]
    assert "mended" not in result["msg"]


def test_a_dry_run_makes_nothing(site):
    there = site.what_is_there()
    result = verb(site, check=True, **REQUEST)
    assert result["changed"]
    assert not result.get("failed"), result
    assert site.what_is_there() == there
    up(site)
    there = site.what_is_there()
    for state in ("stopped", "rebooted", "absent"):
        assert verb(site, state, check=True)["changed"], state
        assert site.what_is_there() == there, state
    assert verb(site, "rebuilt", check=True, image="debian-13")["changed"]
    assert site.what_is_there() == there


def test_stopped_started_rebooted_extended(site):
    up(site)
    (root(site) / "root" / "data").write_text("work")
    assert verb(site, "stopped")["changed"]
    assert site.outlets()["1"] == "off"
    assert not verb(site, "stopped")["changed"]
    assert verb(site)["instances"][0]["state"] == "running"
    assert verb(site, "rebooted", how="hard")["changed"]
    (lease,) = verb(site, "extended", lease_hours=5)["instances"]
    assert "5 h left" in lease["until"]
    assert (root(site) / "root" / "data").read_text() == "work"


@pytest.mark.parametrize("given", [dict(image="debian-13"), dict(ssh_public_key=OTHER_KEY), dict(fresh=True)])
def test_rebuilt(site, given):
    up(site)
    (root(site) / "root" / "data").write_text("work")
    result = verb(site, "rebuilt", **given)
    assert not result.get("failed"), result
    assert result["instances"][0]["state"] == "running"
    assert not (root(site) / "root" / "data").exists()
    again = verb(site, "rebuilt", **{name: value for name, value in given.items() if name != "fresh"})
    assert not again["changed"]


def test_keys_that_fill_the_database_are_refused(site):
    """Lost: the proxy's database, to whoever may fill in a form: each claim of a request keeps the keys."""
    keys = f"{KEY}\n" * 1000
    told = f"ssh_public_key: has {len(keys)} bytes: give at most 65536, all keys together"
    assert verb(site, **dict(REQUEST, ssh_public_key=keys))["msg"] == told  # pylint: disable=repeated-keyword
    assert site.record(0).claim is None
    up(site)
    (root(site) / "root" / "data").write_text("work")
    assert verb(site, "rebuilt", ssh_public_key=keys)["msg"] == told
    assert (root(site) / "root" / "data").read_text() == "work"
    assert not up(site)["changed"]


def test_a_host_key_that_fills_the_database_is_none(site):
    """Lost: the proxy's database, and all that lists claims, to a tenant who writes a megabyte of key into its root."""
    up(site)
    public = root(site) / "etc/ssh/ssh_host_ed25519_key.pub"
    own, key = public.read_text(), site.record(0).claim.host_key
    public.write_text(f"ssh-ed25519 {'A' * 1_000_000}")
    site.module("board_image", boards=[0], state="present")
    assert (len(site.record(0).claim.host_key), public.read_text() != own) == (len(key), True)


def test_ended_in_one_call_and_again(site):
    up(site)
    result = verb(site, "absent")
    assert result["changed"]
    assert result["lines"][-1]["text"] == "off and clean, given back"
    assert site.record(0).claim is None
    assert site.outlets()["1"] == "off"
    assert not root(site).exists()
    again = verb(site, "absent")
    assert (again["changed"], again["instances"]) == (False, [])


def test_another_owners_is_refused(site):
    up(site)
    there = site.what_is_there()
    for state in ("running", "stopped", "rebooted", "rebuilt", "extended", "absent"):
        result = verb(site, state, owner="bob", **({"lease_hours": 1} if state == "extended" else {}))
        assert "belongs to jackie" in result["msg"], state
    assert site.what_is_there() == there


def test_the_next_board_where_hardware_is_at_fault(site):
    """Its root goes, for it never ran; the board stays out of use."""
    fake(site, 0, stall="tftp")
    result = up(site)
    assert [one["name"] for one in result["instances"]] == ["board1"]
    assert site.record(0).state == "error"
    assert not root(site).exists()
    assert site.board_of("jackie") == 1


def test_the_board_that_was_named_or_none(site):
    """Lost: what `board=` is for, this very board; another one was booted instead, with rc 0."""
    site.pdu(board0="on")
    result = verb(site, **REQUEST, board=0)
    assert (result["failed"], result["blame"]) == (True, "board")
    assert "its outlet is on, and jackie was never started here" in result["msg"]
    assert (site.board_of("jackie"), site.record(0).state, site.record(1).claim) == (0, "error", None)
    site.pdu(board0="off")
    assert "stop_instance -e instance=jackie, then " in verb(site, **REQUEST, board=0)["msg"]
    assert not verb(site, "stopped").get("failed")
    assert verb(site)["instances"][0]["name"] == "board0"


def test_the_last_board_that_fails_is_said(site):
    for board in (0, 1):
        fake(site, board, stall="tftp")
    result = verb(site, **REQUEST, attempts=1, timeout=3)
    assert (result["failed"], result["blame"], result["step"]) == (True, "board", "boot")
    result = verb(site, **REQUEST, attempts=3, timeout=3)
    assert result["failed"]


def test_an_image_that_does_not_boot_is_taken_back(site):
    fake(site, 0, stall="nfs")
    result = verb(site, **REQUEST)
    assert (result["failed"], result["blame"]) == (True, "image")
    assert site.record(0).claim is None
    assert site.record(0).state == "power off"
    assert not root(site).exists()
    assert site.outlets()["1"] == "off"


@pytest.mark.parametrize("stall", ["tftp", "nfs"])
def test_what_ran_keeps_its_board_whatever_is_at_fault(site, stall):
    up(site)
    (root(site) / "root" / "data").write_text("work")
    site.cut(0)
    fake(site, 0, stall=stall)
    result = verb(site, **REQUEST)
    assert (result["failed"], result["blame"]) == (True, "instance")
    assert (root(site) / "root" / "data").read_text() == "work"
    assert site.board_of("jackie") == 0


def test_what_was_given_back_since_it_was_looked_up_is_not_claimed_anew(site):
    claimed = verb(site, "present", **REQUEST)
    created = [claim["created"] for claim in claimed["instances"]]
    assert verb(site, "absent")["changed"]
    assert "given back meanwhile" in verb(site, **REQUEST, created=created)["msg"]
    verb(site, "present", **REQUEST)
    assert "claimed anew by jackie" in verb(site, **REQUEST, created=created)["msg"]
    assert site.outlets()["1"] == "off"


def test_a_name_that_another_got_between_two_steps_is_left_alone(site, monkeypatch):
    """Lost: bob's root, to the end of an instance that was jackie's until her board was off."""
    up(site)
    stop = board_module.release.switch_off

    def stopped_and_given_to_bob(proxy, works, options):
        stop(proxy, works, options)
        old = proxy.store.claim_of("jackie")
        proxy.store.release(0, old)
        proxy.store.claim("jackie", ["jackie"], ClaimTerms("bob", FLAVOR, "debian", KEY), [0])

    monkeypatch.setattr(board_module.release, "switch_off", stopped_and_given_to_bob)
    result = verb(site, "absent")
    assert "claimed anew by bob" in result["msg"]
    assert site.record(0).claim.owner == "bob"
    assert root(site).exists()


def test_no_attempts_are_one(site):
    """Lost: the truth: nothing was tried, and it was told as done."""
    assert up(site, attempts=0)["instances"][0]["state"] == "running"
    with site.proxy() as proxy:
        given = dict(instance="jackie", created=[], state="stopped", how="auto", soft_timeout=30, timeout=300)
        assert board_module.Request(proxy, dict(given, attempts=-1), False).limit > 600, (
            "who follows it gives up at once"
        )


def test_a_step_that_fails_ends_the_verb(site):
    """A board that cannot be switched off keeps its root and its claim."""
    up(site)
    site.pdu(faults={"stuck": ["1"]})
    result = verb(site, "absent")
    assert (result["failed"], result["step"]) == (True, "stop")
    assert root(site).exists()
    assert site.board_of("jackie") == 0


@pytest.mark.parametrize("state", ["running", "stopped", "rebooted", "rebuilt", "absent"])
def test_what_another_verb_works_on_is_waited_for(site, monkeypatch, state):
    """Lost: the way on of whose play was killed: its verb runs on, and a second one gave up before the first ended."""
    up(site)
    monkeypatch.setattr(board_module, "CLAIM_TIME", 0.1)
    lock = site.run_folder / "locks" / "board0"
    with subprocess.Popen(["flock", lock, "-c", "echo held; sleep 1.5"], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        result = verb(site, state, **({"fresh": True} if state == "rebuilt" else {}))
        assert holder.poll() == 0, "it was waited for"
    assert not result.get("failed"), result


@pytest.mark.parametrize("state", ["running", "absent"])
@pytest.mark.parametrize("part", in_turns(range(4), 4))
def test_killed_anywhere_and_run_again(site, state, part):
    """Every ninth point, in four parts."""
    given = REQUEST if state == "running" else {}
    for point in range(3 + 9 * part, 2000, 36):
        site.points.reset(0)
        if state == "absent":
            up(site)
        site.points.reset(point)
        result = site._module("instance", kind="board", instance="jackie", state=state, timeout=10, **given)
        site.points.reset(0)
        if result is not None:
            break
        result = verb(site, state, **given)
        assert not result.get("failed"), (point, result)
        if state == "absent":
            assert site.record(0).claim is None
        else:
            assert result["instances"][0]["state"] == "running"
            assert not verb(site, **REQUEST)["changed"]
            assert not verb(site, "absent").get("failed")
    assert result is not None
    assert point > 60
    assert not verb(site, "absent").get("failed")
    assert site.what_is_there() == site.clean()


@pytest.mark.parametrize("how", ["pdu", "dhcp", "board"])
def test_who_is_not_served_is_told_what_stays_claimed(site, how):
    """Lost: a board that stays somebody's who does not know it; and what to type."""
    if how == "pdu":
        site.pdu(faults={"hang": True})
    else:
        fake(site, 0, running=86400.0, stall="tftp", **({"proxy": "DHCP: no address"} if how == "dhcp" else {}))
    result = verb(site, timeout=1, board=0, **REQUEST)
    said = (
        "; jackie on board0 stays claimed: ask for jackie again once that is mended, or ansible-playbook "
        "hetero.compute.terminate_instance -e instance=jackie ends it"
    )
    assert result["msg"].endswith(said), result["msg"]
    assert site.record(0).claim.instance == "jackie"
    if how == "board":
        assert "see that its network cable (port of " in result["msg"]
        assert "and its plug (pdu-a outlet 1) are in" in result["msg"]
    site.pdu()
    fake(site, 0)
    assert not any(one.get("failed") for one in verb(site, "absent")["instances"])
    assert site.record(0).claim is None


def test_which_board_it_has_is_said_before_it_boots(site):
    """Lost: what is being done, at the end of it all; or an event more of each request that changes nothing."""
    up(site)
    assert not verb(site, "stopped").get("failed")
    with site.proxy() as proxy:
        before = max(event.id for event in proxy.store.newest_events(None, 1))
    for _turn in range(2):
        up(site)
    with site.proxy() as proxy:
        said = [(event.phase, event.text) for event in proxy.store.events(before)]
    there = [text for phase, text in said if phase == "choice"]
    assert there == ["wants tp64.8x8: has board0"], said
    phases = [phase for phase, _text in said]
    assert phases.index("choice") < phases.index("power")


def test_of_what_was_given_back_nothing_is_said_to_stay(site):
    """Lost: the trust in it: an image that does not boot leaves no claim."""
    fake(site, 0, stall="nfs")
    fake(site, 1, stall="nfs")
    result = verb(site, timeout=1, **REQUEST)
    assert result["failed"]
    assert "stays claimed" not in result["msg"]


def test_a_running_board_whose_root_lost_its_host_key_keeps_the_one_that_it_shows(jackie):
    """Lost: the instance, to a key that its board never read: it would be called a stranger from then on."""
    key = jackie.record(0).claim.host_key
    (jackie.state / "board-roots" / "fs_0" / "root" / "etc" / "ssh" / "ssh_host_ed25519_key").unlink()
    done = jackie.module("board_image", boards=[0], instance="jackie")
    assert not done["changed"], done
    assert "its host key is gone from its root; while it runs it keeps" in done["lines"][-1]["text"]
    assert jackie.record(0).claim.host_key == key
    again = jackie.module("tilera_boot", boards=[0], instance="jackie", state="running")
    assert (again.get("failed"), again["changed"]) == (False, False), again
