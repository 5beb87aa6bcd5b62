# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done with a root on a board's own disk, rule by rule. Whole boots and real disks: test_disk_boot.py."""

from __future__ import annotations

import hashlib
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import disk_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    HeteroError,
    Lost,
    Refused,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.shell import NoProgram

CLAIM = SimpleNamespace(boot_source="disk", image="demo", host_key="key")
NFS = SimpleNamespace(boot_source="nfs", image="demo", host_key="key")


def made(unpacked=1.0, sure=True):
    return SimpleNamespace(claim="token", own_sha256="own sum", unpacked=unpacked, sure=sure)


class Work:
    """BoardWork of board 0, whose disk's record says `made`; what is done with it goes into `done`."""

    def __init__(self, known=None, claim=CLAIM, state="power off", number=0, dry=False, **more):
        self.board = SimpleNamespace(id=number, name=f"board{number}")
        self.claim, self.state, self.instance, self.pdu = claim, state, "vm0", "pdu-a"
        self.made, self.done, self.marks = known, [], []
        self.as_rebuilt = self.only_from_off = self.failed = self.over = self.disk_left = False
        self.blame, self.change, self.proxy = None, SimpleNamespace(check=dry), self
        self.store = SimpleNamespace(has_run=lambda claim: self.ran)
        self.ran = False
        self.key = None
        vars(self).update(more)

    def root_partition(self, board):
        return "/dev/sda1"

    def disks(self, board):
        return ["/dev/sda"]

    def folder(self, name):
        return f"/state/{name}"

    def note(self, *note):
        self.done.append(("note", *note))

    def line(self, *line):
        self.done.append(("line", *line))

    def say(self, phase, text, seconds=None):
        self.done.append((phase, text) if seconds is None else (phase, text, seconds))

    def move(self, state, note=""):
        self.done.append(("move", state, note))

    def fail(self, blame, error, **facts):
        self.failed = self.over = True
        self.done.append(("fail", blame, str(error)))

    def quarantine(self, note):
        self.done.append(("quarantine", note))


@pytest.fixture(autouse=True)
def places(monkeypatch):
    """Each board's record of its disk is its Work's."""

    class Place:
        def __init__(self, work, board):
            self.disk, self.work = self, work
            self.own = "own.tar"

        def made(self):
            return self.work.made

        def mark(self, **fields):
            self.work.marks.append(fields)

    monkeypatch.setattr(disk_boot, "Place", Place)
    monkeypatch.setattr(disk_boot.presence, "shown", lambda work: work.key)


@pytest.mark.parametrize(
    ("known", "more", "wanted", "may_run"),
    [
        (made(), {}, False, True),
        (made(), dict(as_rebuilt=True), True, False),
        (made(unpacked=None), {}, True, False),
        (made(unpacked=None), dict(state="running"), True, True),
        (made(unpacked=None), dict(state="booting"), True, False),
        (made(sure=False), {}, True, True),
        (None, {}, True, False),
        (None, dict(state="running"), True, False),
        (made(sure=False), dict(claim=NFS), False, False),
        (made(sure=False), dict(claim=None), False, False),
    ],
)
def test_which_boards_are_looked_at_in_ram(known, more, wanted, may_run):
    """Lost: a tenant's disk, unpacked over; or the power of a board that runs."""
    work = Work(known, **more)
    assert (disk_boot.wanted(work), disk_boot.may_run(work)) == (wanted, may_run)


@pytest.mark.parametrize(
    ("known", "more", "looked", "only_from_off"),
    [
        (made(sure=False), dict(power="off"), True, True),
        (made(sure=False), dict(power="on"), False, False),
        (made(unpacked=None), {}, True, False),
        (made(unpacked=None), dict(ran=True, key="own key"), False, False),
        (made(unpacked=None), dict(ran=True, key="another"), True, False),
        (made(unpacked=None), dict(ran=False, key="own key"), True, False),
        (made(unpacked=None), dict(ran=True, key="own key", as_rebuilt=True), True, False),
        (
            made(unpacked=None),
            dict(ran=True, key="own key", claim=SimpleNamespace(host_key=None, boot_source="disk")),
            True,
            False,
        ),
        (made(sure=False), dict(ran=True, key="own key", power="off"), True, True),
    ],
)
def test_only_a_board_that_is_off_is_looked_at(monkeypatch, known, more, looked, only_from_off):
    """Lost: a running board's power, for a look at its disk."""
    asked = []

    def power(proxy, boards, deadline):
        asked.append(([board["id"] for board in boards], deadline.seconds))
        for board in boards:
            board["power"] = more["power"]
        return {}

    monkeypatch.setattr(disk_boot, "outlet_power", power)
    monkeypatch.setattr(disk_boot.presence, "OWN_KEY", "own key")
    work = Work(known, **more)
    assert disk_boot._from_off(None, [work]) == ([work] if looked else [])
    assert work.only_from_off is only_from_off
    assert asked == ([([0], 60.0)] if "power" in more else [])
    assert not work.failed


@pytest.mark.parametrize(("errors", "why"), [({"pdu-a": "pdu-a: is away"}, "pdu-a: is away"), ({}, "no answer")])
def test_an_outlet_that_cannot_be_asked_leaves_its_board_as_it_is(monkeypatch, errors, why):
    monkeypatch.setattr(
        disk_boot, "outlet_power", lambda proxy, boards, deadline: boards[0].update(power=None) or errors
    )
    work = Work(made())
    assert disk_boot._from_off(None, [work]) == []
    assert work.done == [("error", f"the board is left as it is: {why}"), ("fail", "proxy", why)]


def test_what_comes_up_needs_no_look_and_what_does_not_is_looked_at():
    """Lost: a root unpacked over, or a boot into RAM each time a board that runs is started."""
    now = time.time()
    works = [
        Work(made(1.0, sure=False), state="running"),
        Work(made(None, sure=True), state="running"),
    ]
    others = [
        Work(made(1.0, sure=True), state="running"),
        Work(made(1.0, sure=False), state="booting"),
        Work(made(1.0, sure=False), state="running", failed=True),
        Work(made(1.0, sure=False), state="running", claim=NFS),
        Work(made(1.0, sure=False), state="running", claim=None),
        Work(made(1.0, sure=False), state="running", dry=True),
        Work(None, state="running"),
    ]
    disk_boot.remember([*works, *others])
    assert works[0].marks == [dict(sure=True, unpacked=1.0)]
    (mark,) = works[1].marks
    assert mark["sure"] is True
    assert now <= mark["unpacked"] <= time.time()
    assert [work.marks for work in others] == [[]] * len(others)
    failed = Work(made(), blame="image")
    quiet = [Work(made(), blame="board"), Work(made(), claim=NFS, blame="image"), Work(None, blame="image")]
    quiet.append(Work(made(), claim=None, blame="image"))
    disk_boot.doubt([failed, *quiet])
    assert [work.marks for work in (failed, *quiet)] == [[dict(sure=False)], [], [], [], []]


@pytest.fixture
def laid(monkeypatch):
    """`lay` without boards: what was booted into RAM, and whose files were put back."""
    done = []
    monkeypatch.setattr(disk_boot, "_from_off", lambda proxy, works: works)
    monkeypatch.setattr(disk_boot, "in_ram", lambda proxy, works, options, act: done.append(("ram", works, act)))
    monkeypatch.setattr(disk_boot, "image_of", lambda proxy, claim: claim.image)
    monkeypatch.setattr(
        disk_boot,
        "prepare_files",
        lambda place, image, root, change, restored: done.append(("files", image, root, restored)),
    )
    monkeypatch.setattr(disk_boot, "ensure_entry", lambda work: done.append(("entry", work)))
    return done


def test_each_board_that_needs_it_is_laid_and_made_ready(laid):
    """Lost: a board that boots nothing after its root was unpacked; or one whose look failed, which boots at all."""
    good, bad, sure = Work(made(None)), Work(made(None), number=1, failed=True), Work(made())
    node = SimpleNamespace(root_partition=lambda board: "/dev/sda1", disk=None)
    node.made, node.marks = made(None), []
    begun = time.time()
    disk_boot.lay(node, [good, bad, sure], SimpleNamespace(check=False))
    (mark,) = node.marks
    assert (begun <= mark["unpacked"] <= time.time(), mark["sure"]) == (True, True)
    assert laid == [("ram", [good, bad], disk_boot._lay), ("files", "demo", "disk", []), ("entry", good)]
    note = ("note", "board0 /dev/sda1", {"root": None}, {"root": "demo"})
    assert good.done == [note, ("move", "booting", "")]
    assert sure.done == []


def test_a_board_of_whose_root_nothing_can_be_read_is_not_cut(laid):
    """Lost: the power of a board whose disk could not be told from another's."""
    work = Work(None)
    node = SimpleNamespace(root_partition=lambda board: "/dev/sda1", made=None)
    disk_boot.lay(node, [work], SimpleNamespace(check=False))
    (_note, (_fail, blame, error)) = work.done
    assert (blame, error) == (None, f"board0: what is known of the root of vm0 cannot be read: {disk_boot.NOT_READY}")
    assert laid == [("ram", [], disk_boot._lay)]


def test_a_dry_run_boots_nothing(laid):
    work = Work(None)
    node = SimpleNamespace(root_partition=lambda board: "/dev/sda1", made=None)
    disk_boot.lay(node, [work], SimpleNamespace(check=True))
    text = "would boot into RAM, and unpack its root to /dev/sda1 where it is not there"
    assert (laid, work.done[1:], work.failed) == ([], [("line", "ram", text)], False)


ARCHIVE = SimpleNamespace(
    sha256="archive sum", size=100 << 20, unpacked=1000 << 20, path="root.tar.gz", names=[], sample={}
)
NEEDED_KB = (int((1000 << 20) * 1.1) + (100 << 20)) >> 10


@pytest.fixture
def on_board(monkeypatch):
    """What is asked of a board that is in RAM; `says` are its answers by script."""
    asked, says = [], {}

    def run(work, shell, script, deadline, *words, stdin=None):
        asked.append((script, deadline.seconds, *words))
        return says[script]

    monkeypatch.setattr(disk_boot, "_run", run)
    monkeypatch.setattr(disk_boot, "image_of", lambda proxy, claim: claim.image)
    monkeypatch.setattr(
        disk_boot, "archive_of", lambda folder, image, deadline: asked.append((folder, image)) or ARCHIVE
    )
    monkeypatch.setattr(disk_boot, "_upload", lambda work, shell, archive, own: asked.append(("upload", own)))
    monkeypatch.setattr(disk_boot, "_unpack", lambda work, run, *given: asked.append(("unpack", *given)))
    return SimpleNamespace(asked=asked, says=says)


MARKER = hashlib.sha256(b"token archive sum own sum").hexdigest()
LOOKED = (disk_boot.LOOK, 300.0, "/dev/sda1", "/mnt", MARKER)
FORMATTED = (disk_boot.FORMAT, 300.0, "/dev/sda", "/dev/sda1", "/mnt")


@pytest.mark.parametrize("unpacked", [None, 1.0])
def test_a_root_that_is_there_is_left(on_board, unpacked):
    """Lost: all that a tenant has, unpacked over."""
    on_board.says[disk_boot.LOOK] = "there\n"
    work = Work(made(unpacked))
    disk_boot._lay(work, None)
    assert on_board.asked == [("/state/archives", "demo"), LOOKED]
    assert work.done == [("unpack", "/dev/sda1 has the root of vm0 already, whole")]
    assert work.marks == []


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ("other", "holds other files now: nothing"),
        ("none\n", "cannot be mounted now, or is another disk: nothing"),
        ("none\nmount: bad\n disk\n", r"cannot be mounted now, or is another disk \(mount: bad disk\): nothing"),
    ],
)
def test_what_was_a_tenants_is_not_formatted(on_board, found, why):
    on_board.says[disk_boot.LOOK] = found
    work = Work(made())
    with pytest.raises(Refused, match=f"board0: /dev/sda1 was vm0's, and {why} is touched: look at the disk"):
        disk_boot._lay(work, None)
    assert (on_board.asked[-1], work.marks) == (LOOKED, [])


@pytest.mark.parametrize("found", ["none", "other"])
def test_a_fresh_disk_gets_its_root(on_board, found):
    """Lost: an instance's root, on a disk with just the room for it."""
    on_board.says.update({disk_boot.LOOK: found, disk_boot.FORMAT: f"a word\n{NEEDED_KB}\n"})
    work = Work(made(None))
    disk_boot._lay(work, None)
    assert on_board.asked[2:] == [
        FORMATTED,
        ("upload", "own.tar"),
        ("unpack", ARCHIVE, "own.tar", work.made, "/dev/sda1", MARKER),
    ]
    assert work.marks == []


def test_a_root_that_does_not_fit_costs_no_board(on_board):
    """Lost: a sound board, or minutes of unpacking into a disk that is full."""
    on_board.says.update({disk_boot.LOOK: "none", disk_boot.FORMAT: f"{NEEDED_KB - 1}\n"})
    work = Work(made(None))
    disk_boot._lay(work, None)
    text = f"image demo takes {(NEEDED_KB << 10) >> 20} MB, /dev/sda1 has {(NEEDED_KB - 1) >> 10} MB"
    assert work.done == [
        ("move", "shutting down", text),
        ("fail", "image", f"board0: {text}: ask for another flavor, or choose another image"),
    ]
    assert (on_board.asked[-1], work.marks) == (FORMATTED, [])


@pytest.mark.parametrize(
    ("error", "done"),
    [
        (Lost("gone"), []),
        (TimedOut("late"), []),
        (NoProgram("mkfs.ext4: not found"), [("fail", "proxy", "mkfs.ext4: not found")]),
        (HeteroError("Input/output error"), [("quarantine", "its disk cannot be used: Input/output error")]),
    ],
)
def test_whose_fault_a_script_is(error, done):
    """Lost: a board whose cable was pulled, or each board in turn to a RAM image that lacks a program; or one whose
    disk is broken goes to the next tenant."""

    class Shell:
        def run(self, argv, deadline, stdin):
            if argv[-1] == "fine":
                return (argv, deadline, stdin)
            raise error

    work = Work()
    assert disk_boot._run(work, Shell(), "script", "soon", "a", "fine", stdin="in") == (
        ["sh", "-c", "script", "sh", "a", "fine"],
        "soon",
        "in",
    )
    with pytest.raises(type(error)):
        disk_boot._run(work, Shell(), "script", "soon")
    assert work.done == done


def test_an_upload_says_how_far_it_is(monkeypatch):
    """Lost: the sign of life of an upload of many minutes; or thousands of lines of it."""
    clock, put, work = [100.0], [], Work()
    monkeypatch.setattr(disk_boot, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(disk_boot, "Deadline", lambda seconds: seconds)

    def send(source, target, deadline, progress=None):
        put.append((source, target, deadline))
        for now, done in ((100.5, 10), (101.0, 25), (101.9, 30), (102.1, 50)) if progress else ():
            clock[0] = now
            progress(done * 10**6, 50 * 10**6)

    archive = SimpleNamespace(path="/state/root.tar.gz", size=50 * 10**6)
    disk_boot._upload(work, SimpleNamespace(put=send), archive, "/state/own.tar")
    folder = "/mnt/.hetero"
    hour = 3600.0
    assert put == [
        ("/state/own.tar", f"{folder}/own.tar", hour),
        ("/state/root.tar.gz", f"{folder}/root.tar.gz", hour),
    ]
    assert work.done == [
        ("upload", "0 of 50 MB (0 %)"),
        ("upload", "25 of 50 MB (50 %)", 1.0),
        ("upload", "50 of 50 MB (100 %)", pytest.approx(2.1)),
        ("upload", "root archive is there, 50 MB", pytest.approx(2.1)),
    ]


def test_what_is_unpacked_is_compared(monkeypatch):
    """Lost: a root with a hole in it, which boots, and fails in some other way."""
    ran, work, begun = [], Work(), time.monotonic()
    monkeypatch.setattr(disk_boot, "own_names", lambda own: ["./etc", "./etc/hostname", "./own"])

    def run(script, deadline, *words, stdin=None):
        text = None
        if stdin:
            with open(stdin, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        ran.append((script, deadline.seconds, *words, text))

    archive = SimpleNamespace(
        sha256="0123456789abcdef",
        names=["./etc/", "./etc/hostname", "other", "./"],
        sample={"./b\udcff": "sum b", "./a": "sum a"},
    )
    disk_boot._unpack(work, run, archive, "own.tar", made(), "/dev/sda1", "marker")
    assert ran == [
        (disk_boot.UNPACK, 3600.0, "/dev/sda1", "/mnt", "0123456789abcdef", "own sum", None),
        (disk_boot.CHECK, 3600.0, "/mnt", "5", "marker", "sum a  ./a\nsum b  ./b\udcff\n"),
    ]
    first, last = work.done
    assert first == ("unpack", "4 files to /dev/sda1")
    assert last[:2] == ("unpack", "/dev/sda1 verified: archive 0123456789ab as received, 5 files, 2 compared")
    assert 0 <= last[2] <= time.monotonic() - begun


def test_how_long_its_steps_may_take():
    """Lost: a boot that is given up in the middle of its unpacking, with a root that is half there."""
    assert disk_boot.LONGEST == 60 + 2 * 300 + 3600 + 2 * 3600
