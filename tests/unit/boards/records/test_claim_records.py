# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of claims beside the database.

Tests claims/record_files.py.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import claim_records
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    Claim,
    ClaimRecords,
    Fed,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import record_files
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import machine_identity

MINE = Claim(
    0, "jackie", "lab", "ann", {"name": "x"}, "debian", "ssh-ed25519 AAAA x", 100.5, 200, "ssh-ed25519 H", "ab", "nfs"
)


def test_what_a_killed_writer_left_goes_with_the_file(tmp_path):
    """Lost: half a claim of an instance that is no more, kept for ever where roots and claims are backed up from."""
    records = ClaimRecords(str(tmp_path))
    (tmp_path / "board0.json").write_text("{}")
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    (tmp_path / f".board0.json.{gone}~").write_text("half a claim")
    (tmp_path / f".board0.json.{os.getppid()}~").write_text("of one that still writes")
    records.remove(0)
    assert os.listdir(tmp_path) == [f".board0.json.{os.getppid()}~"]


def test_a_removed_record_stays_removed(tmp_path, monkeypatch):
    """Lost: a board, to an instance that was terminated before a power cut and whose record is there again."""
    synced = []
    monkeypatch.setattr(record_files, "sync_folder", lambda folder: synced.append((folder, os.listdir(folder))))
    (tmp_path / "board0.json").write_text("{}")
    ClaimRecords(str(tmp_path)).remove(0)
    assert synced == [(str(tmp_path), [])]


@pytest.mark.parametrize(
    "kept",
    [
        Kept(MINE, "running", "busy", True, Fed("pdu-a", "1", "10.0.100.1", "board7"), True),
        Kept(Claim(0, "jackie", "jackie", "ann", {}, "debian", "ssh-ed25519 A", 100), "power off"),
        Kept(MINE, "error", fed=Fed("pdu-a", "1")),
    ],
)
def test_what_is_written_is_read(tmp_path, kept):
    """Lost: what an instance has, with the database."""
    records = ClaimRecords(str(tmp_path / "claims"))
    assert records.read(0) is None
    records.write(0, kept)
    assert records.read(0) == kept
    assert stat.S_IMODE(os.stat(records.path(0)).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "claims").st_mode) == 0o700
    assert sorted(json.loads((tmp_path / "claims" / "board0.json").read_text())) == [
        "anew", "claim", "fed", "note", "ran", "state",
    ]  # fmt: skip
    records.write(0, kept)


def given(**changed):
    """A record as JSON has it, with fields of it, or of its claim (claim_…) or outlet (fed_…), otherwise."""
    words = asdict(Kept(MINE, "running", "busy", True, Fed("pdu-a", "1", "10.0.100.1", "board7")))
    for name, value in changed.items():
        part, _blank, field = name.partition("_")
        if part in ("claim", "fed"):
            words[part][field] = value
        else:
            words[name] = value
    return words


TEXTS = ("instance", "request", "owner", "image", "ssh_public_key")
MAYBE = ("host_key", "image_hash", "boot_source")


@pytest.mark.parametrize(
    "changed",
    [
        *({f"claim_{name}": value} for name in TEXTS for value in (None, 5)),
        *({f"claim_{name}": 5} for name in MAYBE),
        *({"claim_board": value} for value in ("0", 0.0, None, False)),
        *({"claim_flavor": value} for value in ("x", None, [])),
        *({"claim_created": value} for value in ("now", None, True, float("nan"), float("inf"))),
        *({"claim_expires": value} for value in ("never", False, float("inf"))),
        {"claim_instance": "../x"},
        # what no answer to a play, no date and no row of a database can hold
        {"claim_request": "../x"},
        *({"claim_owner": value} for value in ("", " ", "x" * 20_001, "\ud800")),
        *({"claim_image": value} for value in ("", "a b", "x" * 129)),
        {"claim_ssh_public_key": "x" * (machine_identity.MOST_KEYS + 1)},
        *({f"claim_{name}": "x" * 20_001} for name in MAYBE),
        *({f"claim_{name}": value} for name in ("created", "expires") for value in (1e11, 1e17, 10**30, -1)),
        {"claim_board": 10**12},
        *({"claim_flavor": {"name": value}} for value in (5, None)),
        *({"claim_flavor": {"name": "x", "local_gb": value}} for value in ("x", 1e30, -1, True)),
        *({"claim_flavor": {"name": "x", name: "y"}} for name in ("cpu_info", "extra_specs")),
        {"claim_flavor": {"name": "x", "extra_specs": {"y": "z" * (1 << 16)}}},
        {"note": "x" * 20_001},
        {"fed_pdu": "x" * 20_001},
        {"claim_more": 1},
        {"state": "melting"},
        {"state": None},
        {"state": ["running"]},
        {"note": None},
        {"ran": 1},
        {"ran": None},
        {"anew": "no"},
        {"fed": ["pdu-a"]},
        *({f"fed_{name}": value} for name in ("pdu", "outlet") for value in (None, 1)),
        *({f"fed_{name}": 1} for name in ("address", "taken")),
        {"fed_more": "x"},
        {"claim": None},
    ],
)
def test_what_no_claim_of_ours_can_be_is_not_taken_for_one(tmp_path, changed):
    """Lost: a board, to a record that a hand wrote wrongly; or each verb, to a traceback."""
    (tmp_path / "board0.json").write_text(json.dumps(given(**changed)))
    with pytest.raises(
        HeteroError, match=r"board0\.json: what it says of a claim cannot be read: nothing of its board"
    ):
        ClaimRecords(str(tmp_path)).read(0)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "5", '{"state": "running"}', "[" * 100000, "\udcff", json.dumps(given(claim_created=10**400))],
)
def test_what_is_no_record_is_said(tmp_path, text):
    """Lost: the same, to a file that a full disk or a hand has left."""
    (tmp_path / "board0.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(HeteroError, match="what it says of a claim cannot be read"):
        ClaimRecords(str(tmp_path)).read(0)
    assert ClaimRecords(str(tmp_path)).readable() == []


@pytest.mark.parametrize("name", MAYBE)
def test_what_a_claim_may_be_without(tmp_path, name):
    """Lost: each instance that was not made ready yet."""
    (tmp_path / "board0.json").write_text(json.dumps(given(**{f"claim_{name}": None}, claim_expires=None)))
    found = ClaimRecords(str(tmp_path)).read(0)
    assert (getattr(found.claim, name), found.claim.expires) == (None, None)


@pytest.mark.parametrize(("image_hash", "ran"), [("ab", True), (None, False)])
def test_a_record_of_an_earlier_release_says_less(tmp_path, image_hash, ran):
    """Lost: instances of an earlier release; or a root that their tenants worked in."""
    words = given(claim_image_hash=image_hash)
    for name in ("ran", "fed", "anew"):
        del words[name]
    (tmp_path / "board0.json").write_text(json.dumps(words))
    found = ClaimRecords(str(tmp_path)).read(0)
    assert (found.ran, found.fed, found.anew) == (ran, None, False)


def huge(path):
    """A file of more than any memory, which takes no room."""
    with open(path, "w", encoding="utf-8") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("field", "value"),
    [("owner", "ann\u200b"), ("owner", "ann\x1b[m"), ("owner", "x" * 20_000), ("image", "/srv/images/debian.tar.xz")],
)
def test_what_an_earlier_release_took_is_still_a_claim(tmp_path, field, value):
    """Lost: the way to end an instance whose owner or image no request may name any more."""
    (tmp_path / "board0.json").write_text(json.dumps(given(**{f"claim_{field}": value})))
    assert getattr(ClaimRecords(str(tmp_path)).read(0).claim, field) == value


def longer(path):
    """A record with more text than any of ours."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(given(note="x")) + " " * claim_records.LARGEST)


def zeros(path):
    os.symlink("/dev/zero", path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, zeros, huge, longer])
def test_what_is_in_its_place_is_neither_waited_for_nor_read_without_an_end(tmp_path, make):
    """Lost: every verb of every tenant, which would hang without a word, or end where memory ends."""
    records = ClaimRecords(str(tmp_path))
    make(records.path(0))
    with pytest.raises(HeteroError, match="what it says of a claim cannot be read: nothing of its board is touched"):
        records.read(0)
    assert records.readable() == []


def test_the_longest_keys_are_read_again(tmp_path):
    """Lost: the boards of whoever gives as many keys as may be given, in letters that JSON writes longest."""
    records = ClaimRecords(str(tmp_path))
    kept = Kept(replace(MINE, ssh_public_key="\x01" * machine_identity.MOST_KEYS), "running")
    records.write(0, kept)
    assert records.read(0) == kept


def test_a_record_has_a_line_for_each_field_and_is_json(tmp_path):
    """Lost: what a person reads there when nothing else is left; or what any program does."""
    flavor = {"name": "x", "local_gb": 500, "extra_specs": {"a": "é\n", "b": []}, "cpu_info": {}}
    one = Kept(replace(MINE, flavor=flavor, expires=None), "running", fed=Fed("pdu-a", "1", belied=True))
    records = ClaimRecords(str(tmp_path))
    records.write(MINE.board, one)
    with open(records.path(MINE.board), encoding="utf-8") as file:
        text = file.read()
    assert text == json.dumps(asdict(one), sort_keys=True, indent=1)
    assert json.loads(text) == asdict(one)
    assert records.read(MINE.board) == one


def test_what_is_remembered_is_what_a_text_says(tmp_path, monkeypatch):
    """Lost: a newer record, to what an older one said; a second of a proxy for each hundred boards; or its memory."""
    read, real = [], claim_records._meant
    monkeypatch.setattr(claim_records, "_meant", lambda text: read.append(len(text)) or real(text))
    records = ClaimRecords(str(tmp_path))
    one = Kept(replace(MINE, instance="remembered"), "booting")
    records.write(MINE.board, one)
    assert [records.read(MINE.board) for _each in range(3)] == [one] * 3
    assert len(read) == 1
    records.write(MINE.board, replace(one, state="running"))
    assert records.read(MINE.board).state == "running"
    long = Kept(replace(MINE, ssh_public_key="k" * claim_records.USUAL), "running")
    records.write(MINE.board, long)
    del read[:]
    assert [records.read(MINE.board) for _each in range(2)] == [long] * 2
    assert len(read) == 2


def test_a_record_in_another_boards_place_says_whose_it_is(tmp_path):
    """Lost: the way back of a record that somebody moved; or the board in whose place it lies."""
    records = ClaimRecords(str(tmp_path))
    records.write(7, Kept(MINE, "running"))
    with pytest.raises(HeteroError, match=r"board7\.json: that is a record of board0, not of board7: ") as error:
        records.read(7)
    assert error.value.facts == {"of": 0}
    assert [(path, kept.claim) for path, kept in records.readable()] == [(records.path(7), MINE)]


def test_files_of_records_and_others(tmp_path):
    """Lost: a board's record, overlooked for what its name is like; or room for what nobody reads."""
    records = ClaimRecords(str(tmp_path / "claims"))
    assert (records.boards(), records.strays(), records.readable()) == ([], [], [])
    (tmp_path / "claims").mkdir()
    names = ["board10.json", "board2.json", "board0.json", "board01.json", "board2.json.bak", "xboard1.json", "a~"]
    for name in [*names, ".board2.json.77~", ".hidden"]:
        (tmp_path / "claims" / name).write_text("{}")
    assert records.boards() == [0, 2, 10]
    left = [".hidden", "a~", "board01.json", "board2.json.bak", "xboard1.json"]
    assert records.strays() == [str(tmp_path / "claims" / name) for name in left]


def test_what_is_the_same_claim_and_whose_a_record_is():
    """Lost: the claim of one who got the name after another; or a board, to a claim that was cut off."""
    later = Claim(**dict(vars(MINE), created=101.5))
    moved = Claim(**dict(vars(MINE), board=5, expires=None, owner="x"))
    other = Claim(**dict(vars(MINE), instance="eve"))
    assert [MINE.is_same(one) for one in (MINE, moved, later, other, None)] == [True, True, False, False, False]
    bare = Claim(**dict(vars(MINE), image_hash=None))
    found = [Kept(MINE, "running"), Kept(bare, "running", ran=True), Kept(bare, "running")]
    assert [one.is_somebodys for one in found] == [True, True, False]
    assert (found[2].note, found[2].ran, found[2].fed, found[2].anew) == ("", False, None, False)
    assert Fed("pdu-a", "7").name == "pdu-a outlet 7"


@pytest.mark.parametrize(("belied", "written"), [(False, False), (True, True)])
def test_an_earlier_release_reads_what_says_nothing_new(tmp_path, belied, written):
    """Lost: each record of a claim, to a node that goes back a release: it takes no word that it does not know."""
    records = ClaimRecords(str(tmp_path))
    kept = Kept(MINE, "running", fed=Fed("pdu-a", "5", "10.0.100.3", belied=belied))
    records.write(0, kept)
    assert ("belied" in json.loads((tmp_path / "board0.json").read_text())["fed"]) is written
    assert records.read(0) == kept
