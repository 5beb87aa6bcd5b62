# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, the modules board_claim and board_info give a user the wrong board, take one that is in use, give one
back that is not clean, or say something else than happened. Each module runs in a process of its own, as Ansible has
it.

Tests site/board_states.py.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.tests.unit.boards.records.started import MODULES, Started

DATA = Path(__file__).resolve().parents[4] / "roles" / "lab" / "files"
TEN = [f"board{number}" for number in range(10)]


def public_key(letter, comment="alice@laptop"):
    blob = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + letter * 32
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} {comment}"


FLAVOR = {
    "name": "tp64.8x8",
    "memory_mb": 16384,
    "vcpus": 1,
    "local_gb": 500,
    "cpu_arch": "tilepro64",
    "cpu_info": {"geometry": "8x8"},
}
GX = dict(FLAVOR, name="tgx.8x8", cpu_arch="tile-gx64")
JACKIE = {
    "instance": "jackie",
    "owner": "alice",
    "flavor": FLAVOR,
    "image": "debian",
    "ssh_public_key": public_key(b"a"),
}

#: What busctl says on a proxy node whose NFS server exports nothing.
BUSCTL = """#!/bin/sh
case "$*" in
*ShowExports*) echo '{"type":"(tt)a(qsbbbbbbbb(tt))","data":[[0,0],[]]}' ;;
*) echo 'Call failed: Export id not found' >&2; exit 1 ;;
esac
"""


class Node:
    """A proxy node of the sample's ten boards, in a folder; board0 to board4 on pdu-a, the others on pdu-b."""

    def __init__(self, folder):
        self.folder = folder
        self.state_db = folder / "hetero" / "state.db"
        shutil.copy(DATA / "tilera_boards", folder / "tilera_boards")
        self.write("etc", "credentials.json", "{}")
        outlets = {str(number): "off" for number in range(1, 11)}
        self.write("etc", "pdu-a.state", json.dumps({"outlets": dict(outlets, **{"5": "on"})}))
        config = {
            "server": "10.0.2.254",
            "tftp_root": str(folder / "tftpboot"),
            "state_folder": str(folder / "hetero"),
            "run_folder": str(folder / "run"),
            "credentials": str(folder / "etc" / "credentials.json"),
            # ten flavors promise more than a test machine has
            "roots_overcommit": 10000,
            "pdus": {
                name: {"driver": "fake", "path": str(folder / "etc" / f"{name}.state")} for name in ("pdu-a", "pdu-b")
            },
            "boards": {
                # the blueprint's wiring; board9 has none
                **{str(number): {"pdu": "pdu-a", "outlet": str(number + 5)} for number in range(5)},
                **{str(number): {"pdu": "pdu-b", "outlet": str(number)} for number in range(5, 9)},
            },
        }
        self.write("etc", "proxy.json", json.dumps(config))
        self.write("bin", "busctl", BUSCTL)
        (folder / "bin" / "busctl").chmod(0o755)
        self.image("debian", "tilepro64")

    def write(self, place, name, text):
        (self.folder / place).mkdir(exist_ok=True)
        (self.folder / place / name).write_text(text)

    def image(self, name, arch):
        """An image in the store, as far as a claim looks at it."""
        hash = hashlib.sha256(f"{name} {arch}".encode()).hexdigest()
        (self.folder / "hetero" / "images" / hash).mkdir(parents=True)
        (self.folder / "hetero" / "images" / "names").mkdir(exist_ok=True)
        self.write(f"hetero/images/{hash}", "image.json", json.dumps({"arch": arch}))
        self.write(f"hetero/images/{hash}", "kernel", "")
        (self.folder / "hetero" / "images" / hash / "root").mkdir()
        self.write("hetero/images/names", name, f"{hash}\n")

    def arguments(self, args, check):
        return dict(
            args,
            boards_file=str(self.folder / "tilera_boards"),
            config=str(self.folder / "etc" / "proxy.json"),
            state_db=str(self.state_db),
            _ansible_check_mode=check,
        )

    def start(self, module, args, check=False):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return Started(module, self.arguments(args, check), {"PATH": path})

    def end(self, started):
        code, out, errors = started.end()
        assert out.strip(), errors
        result = json.loads(out)
        assert bool(result.get("failed")) == (code != 0), out
        assert not result.get("exception"), out
        return result

    def run(self, module, check=False, **args):
        return self.end(self.start(module, args, check))

    def claim(self, check=False, **args):
        return self.run("board_claim", check, **dict(JACKIE, **args))

    def release(self, check=False, **args):
        return self.run("board_claim", check, **dict({"instance": "jackie", "state": "absent"}, **args))

    def info(self, **args):
        return self.run("board_info", **args)

    def store(self):
        return Store(str(self.state_db), "test")

    def move(self, board, *ways, note=""):
        with self.store() as store:
            for way in ways:
                store.move(board, way, note)

    def off(self, *boards):
        with self.store() as store:
            for board in boards:
                store.power_seen(board, "off")

    @property
    def files(self):
        """Everything below the node's folder, with its content."""
        return {path: path.read_bytes() if path.is_file() else None for path in self.folder.rglob("*")}


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def ids(result):
    return [board["board"] for board in result["boards"]]


def texts(result):
    return [line["text"] for line in result["lines"]]


@pytest.mark.parametrize(("module", "args"), [("board_claim", JACKIE), ("board_info", {})])
def test_each_module_is_a_program_of_its_own(node, module, args):
    """On a node it would miss what only these tests import, or end without a word: the others start it as a fork."""
    done = subprocess.run(
        [sys.executable, "-m", f"{MODULES}{module}"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": node.arguments(args, check=True)}),
        capture_output=True,
        text=True,
        check=True,
    )
    alone, forked = json.loads(done.stdout), node.run(module, check=True, **args)
    assert list(alone) == list(forked)
    assert [board["name"] for board in alone["boards"]] == [board["name"] for board in forked["boards"]]
    assert alone["boards"]


# ---- claims


def test_the_first_claim_takes_the_first_board_and_says_so(node):
    result = node.claim(lease_hours=1.5)
    assert result["changed"] is True
    assert result["lines"] == [
        {
            "instance": "jackie",
            "node": "",
            "phase": "",
            "text": "wants tp64.8x8: 10 of 10 boards fit, board0 chosen",
            "seconds": None,
        }
    ]
    [claim] = result["boards"]
    assert ids(result) == [0]
    fields = ("instance", "request", "board", "name", "ip", "mac", "owner", "flavor", "state")
    assert {key: claim[key] for key in fields} == {
        "instance": "jackie",
        "request": "jackie",
        "board": 0,
        "name": "board0",
        "ip": "10.0.2.1",
        "mac": "00:1a:ca:00:57:90",
        "owner": "alice",
        "flavor": "tp64.8x8",
        "state": "power off",
    }
    assert claim["expires"] - claim["created"] == pytest.approx(5400)
    assert (result["rejected"], result["rejected_lines"]) == ({}, [])
    [diff] = result["diff"]
    assert diff["before"] == {}
    assert {key: diff["after"][key] for key in ("board", "owner", "flavor", "image")} == {
        "board": "board0",
        "owner": "alice",
        "flavor": "tp64.8x8",
        "image": "debian",
    }
    with node.store() as store:
        assert store.claim_of("jackie").board == 0


def test_the_same_again_changes_nothing(node):
    first = node.claim()
    before = node.info(events=9)["boards"][0]["events"]
    again = node.claim(ssh_public_key=public_key(b"a", "from another machine"), lease_hours=7)
    assert again["changed"] is False
    assert again["diff"] == []
    assert again["boards"] == first["boards"]
    way = "ansible-playbook hetero.compute.extend_instance -e instance=jackie -e hours=7"
    kept = f"keeps its lease: no end; {way} makes it shorter"
    assert texts(again) == ["wants tp64.8x8: has board0", kept]
    assert node.info(events=9)["boards"][0]["events"] == before


@pytest.mark.parametrize("hours", [10, -1])
def test_of_two_ends_of_a_lease_the_later_one_is_told(node, hours):
    """Lost: a tenant's work, saved in haste before an end that only a database has that is older than her lease."""
    (first,) = node.claim(lease_hours=40)["boards"]
    with node.store() as store:
        store._db._db.execute("UPDATE claims SET expires = created + ?", (hours * 3600,))
    end = time.strftime("until %Y-%m-%d %H:%M %Z", time.localtime(first["expires"]))
    (told,) = texts(node.claim(lease_hours=20))[1:]
    assert told.startswith(f"keeps its lease: {end}, ")
    assert told.endswith("hours=20 makes it shorter")


def test_nothing_fits_reads_as_the_tour_shows_it(node):
    result = node.claim(instance="bob", flavor=GX)
    assert result["msg"] == (
        "bob wants tgx.8x8 (tile-gx64, 8x8, 16384 MB, 500 GB): no node.\n"
        "  10 boards: cpu_arch TILEPro64 is not tile-gx64"
    )
    assert result["failure"]["rejected"] == {name: ["cpu_arch TILEPro64 is not tile-gx64"] for name in TEN}
    assert node.info()["claims"] == []


def test_an_image_for_other_boards_is_refused_before_anything_is_claimed(node):
    """A board would be kept from others by a claim that can never run."""
    node.image("arm", "aarch64")
    result = node.claim(instance="bob", image="arm")
    assert result["failure"]["rejected_lines"] == ["10 boards: image arm is for aarch64, the board is TILEPro64"]
    assert node.info()["claims"] == []
    assert node.claim()["boards"][0]["board"] == 0
    node.image("debian", "aarch64")
    assert not node.claim()["changed"], "an instance keeps the image it was made from"


def test_no_image_of_that_name_is_said_before_anything_is_claimed(node):
    """Before, a board was claimed, and given back when its root was to be made."""
    result = node.claim(image="nope")
    assert result["failure"]["rejected_lines"] == ["10 boards: no image nope in its store (known: debian)"]
    assert sorted(result["failure"]["unfit"]) == sorted(TEN)
    assert node.info()["claims"] == []
    debian = {"arch": "tilepro64", "ram": False, "arguments": False, "kernels": ["default"], "initrds": []}
    assert node.info()["images"] == {"debian": debian}


def test_no_room_for_a_root_is_said_before_anything_is_claimed(node):
    """Before, a board was claimed, and given back when its root was to be made."""
    roots = node.info()["roots"]
    path = node.folder / "etc" / "proxy.json"
    # room for two of 500 GiB and a bit
    ratio = 1100 * 2**30 / roots["there"]
    config = dict(json.loads(path.read_text()), roots_overcommit=max(1, ratio))
    path.write_text(json.dumps(config))
    result = node.claim(count=3)
    [line] = result["failure"]["rejected_lines"]
    # what others write meanwhile moves the limit a little
    assert re.match(
        r"8 boards: no room for a root of 500 GiB: 1000 GiB of the 1\d\d\d GiB for roots are promised", line
    )
    assert not result["failure"]["unfit"]
    assert node.info()["claims"] == []
    assert node.claim(count=3, partial=True)["boards"][1]["board"] == 1
    result = node.claim(instance="eve", flavor=dict(FLAVOR, local_gb=900), check=True)
    assert result["changed"]
    path.write_text(json.dumps(dict(config, roots_overcommit=max(1, ratio / 2))))
    result = node.claim(instance="eve", flavor=dict(FLAVOR, local_gb=900))
    assert re.search(r"10 boards: no room for a root of 900 GiB: all roots together have 5\d\d GiB", result["msg"])
    assert len(result["failure"]["unfit"]) == 10


def test_the_next_gets_the_next_board_and_is_told_of_the_others(node):
    node.claim()
    node.move(0, board_states.BOOTING, board_states.RUNNING)
    node.move(1, board_states.BOOTING)
    node.move(1, board_states.ERROR, note="stalled at tftp after 41 s, twice")
    node.move(2, board_states.MAINTENANCE)
    result = node.claim(instance="bob", owner="bob", flavor=dict(FLAVOR, local_gb=917))
    assert texts(result) == ["wants tp64.8x8: 10 of 10 boards fit, 7 free, board3 chosen"]
    assert sorted(result["rejected"]) == ["board0", "board1", "board2"]
    assert result["rejected"]["board0"][0].startswith("running jackie since ")
    assert result["rejected"]["board1"] == ["error: stalled at tftp after 41 s, twice"]
    assert result["rejected"]["board2"] == ["maintenance"]


def test_none_free_says_for_each_board_why(node):
    node.claim(instance="lab", count=9)
    result = node.claim(instance="late", flavor=dict(FLAVOR, local_gb=917), count=2)
    lines = result["msg"].splitlines()
    assert lines[0] == "late wants 2 tp64.8x8 (tilepro64, 8x8, 16384 MB, 917 GB): 1 of 2 boards."
    assert [line.split(" since ")[0] for line in lines[1:]] == [
        f"  board{number}: claimed for lab-{number + 1}" for number in range(9)
    ]
    result = node.claim(instance="late", flavor=dict(FLAVOR, local_gb=918), count=2)
    assert "  9 boards: local_gb 917 < 918" in result["msg"].splitlines()


def test_several_are_numbered_and_all_or_nothing_unless_partial(node):
    result = node.claim(instance="lab", count=11)
    assert result["msg"].startswith("lab wants 11 tp64.8x8 (tilepro64, 8x8, 16384 MB, 500 GB): 10 of 11 boards.")
    assert node.info()["claims"] == []
    result = node.claim(instance="lab", count=11, partial=True)
    assert [(claim["instance"], claim["board"]) for claim in result["boards"]] == [
        (f"lab-{number + 1}", number) for number in range(10)
    ]
    assert texts(result) == [f"wants 11 tp64.8x8: 10 of 10 boards fit, {', '.join(TEN)} chosen (10 of 11)"]
    again = node.claim(instance="lab", count=11, partial=True)
    assert (again["changed"], ids(again)) == (False, list(range(10)))


def test_a_share_of_a_request_that_others_serve_too(node):
    """Numbers that another proxy node has would be there twice; given back by number, the others stay."""
    asked = dict(JACKIE, instance="lab", count=4)
    given = node.claim(**dict(asked, numbers=[2, 4]))
    assert [(one["instance"], one["request"], one["board"]) for one in given["boards"]] == [
        ("lab-2", "lab", 0),
        ("lab-4", "lab", 1),
    ]
    assert node.claim(**dict(asked, numbers=[2, 4]))["changed"] is False
    assert "numbers: has 5, and the instances are 1 to 4" in node.claim(**dict(asked, numbers=[5]))["msg"]
    node.off(0, 1)
    assert [one["instance"] for one in node.release(instance="lab", numbers=[4])["boards"]] == ["lab-4"]
    with node.store() as store:
        assert [claim.instance for claim in store.claims()] == ["lab-2"]


def test_check_mode_names_the_board_and_touches_nothing(node):
    before = node.files
    result = node.claim(check=True)
    assert (result["changed"], ids(result)) == (True, [0])
    assert result["diff"][0]["after"]["board"] == "board0"
    assert node.files == before
    node.claim()
    held = node.info(events=9)
    result = node.claim(check=True, instance="bob")
    assert (result["changed"], ids(result)) == (True, [1])
    assert node.claim(check=True)["changed"] is False
    after = node.info(events=9)
    assert after["claims"] == held["claims"]
    assert [board["events"] for board in after["boards"]] == [board["events"] for board in held["boards"]]


def test_another_owner_or_another_wish_is_refused(node):
    node.claim()
    result = node.claim(owner="bob", ssh_public_key=public_key(b"b"))
    assert result["msg"] == "jackie: belongs to alice: choose another name"
    assert public_key(b"a").split()[1] not in json.dumps(result["failure"])
    result = node.claim(ssh_public_key=public_key(b"b"), image="centos")
    why = "no image centos in its store (known: debian): choose another image"
    assert result["msg"].startswith("jackie: has board0 with another image and ssh key (it has SHA256:")
    assert result["msg"].endswith(f"): {why}")
    assert len(node.info()["claims"]) == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"instance": "Jackie"}, "'Jackie': is no instance name"),
        ({"instance": "a" * 62, "count": 10}, "is no instance name"),
        ({"owner": " "}, "owner: is empty"),
        ({"image": ""}, "image: is empty"),
        ({"flavor": {"name": "x", "memory_mb": -1}}, "memory_mb is -1"),
        ({"flavor": {"memory_mb": 1}}, "flavor: has no name"),
        ({"ssh_public_key": "ssh-ed25519 AAAA"}, "ssh_public_key: is no OpenSSH public key"),
        ({"count": 0}, "count: is 0"),
        ({"count": 100000}, "count: is 100000"),
        ({"count": 2, "board": 1}, "count: is 2, and board names one board"),
        ({"board": 77}, "board 77: no such board (known: 0 to 9): give one of these, or"),
        ({"lease_hours": -1}, "lease_hours: is -1"),
        ({"lease_hours": "nan"}, "lease_hours: is nan"),
        ({"memory_tolerance": 1}, "memory_tolerance: is 1"),
    ],
)
def test_bad_input_is_named_and_claims_nothing(node, wrong, said):
    result = node.claim(**wrong)
    assert result["failed"] is True
    assert said in result["msg"]
    assert node.info()["claims"] == []


def test_a_private_key_given_by_mistake_is_not_shown(node):
    result = node.claim(ssh_public_key="-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END")
    assert "ssh_public_key" in result["msg"]
    assert "b3BlbnNzaC1rZXktdjEA" not in json.dumps({key: result[key] for key in ("msg", "failure")})


def test_one_board_can_be_asked_for(node):
    result = node.claim(board=7)
    assert ids(result) == [7]
    assert texts(result) == ["wants tp64.8x8: 1 of 1 boards fit, board7 chosen"]
    taken = node.claim(instance="bob", board=7)["msg"].splitlines()
    assert taken[0] == "bob wants tp64.8x8 (tilepro64, 8x8, 16384 MB, 500 GB): no node."
    assert taken[1].startswith("  board7: claimed for jackie since ")
    assert node.claim(board=8)["msg"] == "jackie: has board7, not board8: leave out option board, or terminate it first"
    assert node.claim()["changed"] is False


def test_the_tolerance_is_the_users(node):
    assert ids(node.claim(memory_tolerance=0)) == [9]
    text = node.claim(instance="bob", memory_tolerance=0)["msg"]
    assert "  9 boards: memory_mb 16218 < 16384" in text.splitlines()


def test_a_claim_on_a_board_in_error_moves_only_when_asked(node):
    node.claim()
    node.move(0, board_states.BOOTING)
    node.move(0, board_states.ERROR, note="stalled at tftp")
    stays = node.claim()
    assert (stays["changed"], ids(stays), stays["boards"][0]["state"]) == (False, [0], "error")
    moved = node.claim(move=True)
    assert (moved["changed"], ids(moved)) == (True, [1])
    assert texts(moved) == [
        "wants tp64.8x8: 10 of 10 boards fit, 9 free, board1 chosen",
        "error: stalled at tftp; jackie moves to board1",
    ]
    assert moved["lines"][1]["node"] == "board0"
    assert moved["rejected"] == {"board0": ["error: stalled at tftp"]}
    [diff] = moved["diff"]
    assert (diff["before"]["board"], diff["after"]["board"]) == ("board0", "board1")
    again = node.claim(move=True)
    assert (again["changed"], ids(again)) == (False, [1])
    assert node.info(boards=[0])["boards"][0]["error"] == "stalled at tftp"


def test_a_move_without_a_free_board_leaves_the_claim(node):
    node.claim(board=3)
    node.move(3, board_states.BOOTING)
    node.move(3, board_states.ERROR, note="stalled at tftp")
    result = node.claim(board=3, move=True)
    assert result["msg"].endswith("no node besides the 1 that it has.\n  board3: error: stalled at tftp")
    assert node.info()["claims"][0]["board"] == 3


def test_twelve_plays_at_once_on_ten_boards(node):
    names = [f"user-{number}" for number in range(12)]
    plays = [node.start("board_claim", dict(JACKIE, instance=name, owner=name)) for name in names]
    results = [node.end(play) for play in plays]
    won = [ids(result)[0] for result in results if not result.get("failed")]
    assert sorted(won) == list(range(10))
    for lost in (result for result in results if result.get("failed")):
        assert len(lost["msg"].splitlines()) == 11
        assert sorted(lost["failure"]["rejected"]) == sorted(TEN)


# ---- giving back


def test_a_board_is_given_back_only_off_and_clean(node):
    node.claim()
    unseen = node.release()
    assert unseen["msg"].startswith("jackie: board0 is not clean: its outlet was not looked at since the claim")
    with node.store() as store:
        store.power_seen(0, "on")
    assert "its outlet was last seen on" in node.release()["msg"]
    node.off(0)
    node.move(0, board_states.BOOTING, board_states.RUNNING)
    assert "it is in state 'running'" in node.release()["msg"]
    node.move(0, board_states.SHUTTING_DOWN)
    (node.folder / "hetero" / "roots" / "fs_0" / "upper").mkdir(parents=True)
    left = node.release()
    assert left["msg"].startswith("jackie: board0 is not clean: ")
    assert "fs_0" in left["msg"]
    assert left["errors"] == {"jackie": left["msg"]}
    assert node.info()["claims"][0]["instance"] == "jackie"
    shutil.rmtree(node.folder / "hetero" / "roots")
    clean = node.release(owner="alice")
    assert (clean["changed"], ids(clean), clean["boards"][0]["instance"]) == (True, [0], "jackie")
    assert texts(clean) == ["off and clean, given back"]
    [diff] = clean["diff"]
    assert (diff["before"]["board"], diff["after"]) == ("board0", {})
    board = node.info(boards=[0], events=1)["boards"][0]
    assert (board["state"], board["instance"], board["events"][0]["phase"]) == ("power off", None, "release")
    again = node.release()
    assert (again["changed"], again["boards"], again["lines"]) == (False, [], [])


def test_one_board_that_is_not_clean_does_not_stop_the_others(node):
    node.claim(instance="lab", count=3)
    node.off(0, 2)
    result = node.release(instance="lab")
    assert result["failed"] is True
    assert ids(result) == [0, 2]
    assert list(result["errors"]) == ["lab-2"]
    assert [claim["instance"] for claim in node.info()["claims"]] == ["lab-2"]
    node.off(1)
    assert ids(node.release(instance="lab-2")) == [1]


def test_only_one_board_of_a_request(node):
    node.claim(instance="lab", count=2)
    node.off(0, 1)
    assert ids(node.release(instance="lab", board=1)) == [1]
    assert [claim["instance"] for claim in node.info()["claims"]] == ["lab-1"]


def test_another_owner_ends_nothing(node):
    node.claim()
    node.off(0)
    assert node.release(owner="bob")["msg"] == "jackie: belongs to alice: have alice do it"
    assert node.info()["claims"][0]["owner"] == "alice"


def test_check_mode_says_what_stands_in_the_way_and_touches_nothing(node):
    node.claim()
    node.move(0, board_states.BOOTING, board_states.RUNNING)
    result = node.release(check=True)
    assert result["changed"] is True
    assert "it is in state 'running'" in texts(result)[0]
    assert node.info()["claims"][0]["state"] == "running"
    assert not (node.folder / "run").exists()
    missing = node.release(check=True, instance="nobody")
    assert missing["changed"] is False


def test_a_board_that_another_verb_holds_is_waited_for_and_its_holder_named(node):
    node.claim()
    node.off(0)
    (node.folder / "run" / "locks").mkdir(parents=True)
    lock = str(node.folder / "run" / "locks" / "board0")
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline()
        assert f"board0: still held by pid {holder.pid} after 0.3 s" in node.release(timeout=0.3)["msg"]
    finally:
        holder.communicate("\n", timeout=600)
    assert ids(node.release(timeout=60)) == [0]


# ---- information


def test_information_makes_nothing(node):
    before = node.files
    result = node.info(events=3)
    assert result["changed"] is False
    assert node.files == before
    assert [board["id"] for board in result["boards"]] == list(range(10))
    board = result["boards"][0]
    assert (board["state"], board["power"], board["since"], board["events"]) == ("power off", None, None, [])
    assert (board["arch"], board["geometry"], board["memory_mb"]) == ("TILEPro64", "8x8", 16218)


def test_information_shows_who_has_what_since_when(node):
    node.claim(instance="lab", count=2, lease_hours=1)
    node.claim()
    node.move(1, board_states.BOOTING, board_states.RUNNING)
    with node.store() as store:
        store.put("lab-2", host_key="ssh-ed25519 HOST")
        store.power_seen(1, "on")
    result = node.info(instance="lab", events=2)
    assert [board["name"] for board in result["boards"]] == ["board0", "board1"]
    board = result["boards"][1]
    assert (board["state"], board["instance"], board["request"], board["owner"]) == ("running", "lab-2", "lab", "alice")
    assert (board["power"], board["host_key"]) == ("on", "ssh-ed25519 HOST")
    assert 0 <= board["since_seconds"] < 60
    assert [event["text"] for event in board["events"]] == ["power off → booting", "booting → running"]
    assert [claim["instance"] for claim in result["claims"]] == ["lab-1", "lab-2"]
    assert [board["id"] for board in node.info(boards=[2, 0])["boards"]] == [2, 0]
    assert [claim["instance"] for claim in node.info(boards=[2])["claims"]] == ["jackie"]
    assert node.info(instance="nobody")["boards"] == []
    assert "no such board" in node.info(boards=[77])["msg"]


def test_a_claim_of_a_board_that_left_the_file_is_still_shown(node):
    node.claim(board=9)
    text = (node.folder / "tilera_boards").read_text()
    (node.folder / "tilera_boards").write_text(text[: text.index("\n9 10.0.2.10") + 1])
    result = node.info()
    assert len(result["boards"]) == 9
    assert [(claim["name"], claim["ip"]) for claim in result["claims"]] == [("board9", None)]
    assert "board9, which is not in the boards file" in node.release()["msg"]


def test_the_pdus_are_asked_and_one_that_is_silent_does_not_hide_the_other(node):
    result = node.info(power=True, timeout=5)
    power = {board["id"]: board["power"] for board in result["boards"]}
    assert power == {0: "on", **dict.fromkeys(range(1, 5), "off"), **dict.fromkeys(range(5, 10))}
    assert list(result["pdu_errors"]) == ["pdu-b"]
    assert "pdu-b.state" in result["pdu_errors"]["pdu-b"]
    assert not node.state_db.exists()
    node.write("etc", "pdu-b.state", json.dumps({"outlets": {"5": "on", "6": "off", "7": "off"}}))
    result = node.info(power=True, timeout=5)
    assert [board["power"] for board in result["boards"][5:]] == ["on", "off", "off", None, None]
    assert result["pdu_errors"]["pdu-b"].startswith("pdu-b: has no outlet 8")


def test_a_pdu_that_refused_is_told_without_being_asked(node, monkeypatch):
    """Lost: why boards cannot be had, for who looks at the status; or a login for each look, and each board."""
    node.info(power=True, timeout=5)
    result = node.info()
    assert list(result["pdu_errors"]) == ["pdu-b"]
    assert "pdu-b.state" in result["pdu_errors"]["pdu-b"]
    assert result["pdu_errors"]["pdu-b"].endswith(" s ago)")
    assert len(result["boards"]) == 10, "its boards are shown, and the others'"
    assert node.info(boards=[0])["pdu_errors"] == {}, "it feeds none of those that were asked for"


def test_a_database_that_is_none_is_an_error_and_stays(node):
    node.state_db.parent.mkdir(exist_ok=True)
    node.state_db.write_text("not a database, but somebody's text\n" * 99)
    for result in (node.claim(), node.claim(check=True), node.info()):
        assert "state.db: is no SQLite database" in result["msg"]
    assert node.state_db.read_text().startswith("not a database")
