# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a container's GPU open, and what is done about it. Real processes are in tests/unit/hypervisors/lxc_gpus."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline as RealDeadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import mounts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_path
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.members import pids_below
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import gpu_users, hidden_files
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.hidden_files import Hiding
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.processes import Process
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.chain import program
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import new_cgroup
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system

BOX = SimpleNamespace(thing="container ml")
#: Of a container that is in no cgroup that can be frozen.
CGROUP = SimpleNamespace(folders=[])
ONE, TWO = Process(9, "python3", "ml"), Process(30, "sh", "ml")
HIDING = Hiding(31, "sh", "1 file sent to its socket 5")
NODES = [SimpleNamespace(number=("c", 195, 0))]


@pytest.fixture
def looks(monkeypatch):
    """What each look finds, the last one for ever; and who was ended."""
    found, ended = [], []
    monkeypatch.setattr(gpu_users, "users", lambda pids, nodes, paths: found.pop(0) if len(found) > 1 else found[0])
    monkeypatch.setattr(gpu_users.members, "pids_below", lambda folders: [31])
    monkeypatch.setattr(gpu_users.hidden_files, "hiding", lambda pids, paths: [])
    monkeypatch.setattr(gpu_users.os, "kill", lambda pid, number: ended.append((pid, number)))
    return found, ended


@pytest.fixture
def hides(monkeypatch):
    """What each look for hidden files finds, the last one for ever."""
    found = []

    def look(pids, paths):
        return found.pop(0) if len(found) > 1 else found[0]

    monkeypatch.setattr(gpu_users.hidden_files, "hiding", look)
    monkeypatch.setattr(gpu_users, "Deadline", lambda seconds: Deadline(2))
    return found


class Deadline:
    """One that has passed after so many naps."""

    seconds = 0.5

    def __init__(self, naps):
        self.left = naps
        self.spent = 0.0
        self.napped = []

    @property
    def passed(self):
        return self.left <= 0

    def nap(self, seconds=0.1):
        self.napped.append(seconds)
        self.left -= 1


def test_words_of_the_option():
    """Lost: what playbooks write for on_holders."""
    assert (gpu_users.FAIL, gpu_users.WAIT, gpu_users.KILL) == ("fail", "wait", "kill")


def test_each_process_is_found_once(monkeypatch):
    """Lost: a process with two GPUs, told twice; or one of a cgroup below the container's."""
    asked = []
    monkeypatch.setattr(
        gpu_users.processes, "holders", lambda *words: asked.append(words) or {"a": [TWO, ONE], "b": [ONE], "c": []}
    )
    assert gpu_users.users([9, 30], [SimpleNamespace(number="a")], "paths") == [ONE, TWO]
    assert asked == [(["a"], "paths", [9, 30])]
    below = []
    monkeypatch.setattr(gpu_users.members, "pids_below", lambda folders: below.append(folders) or [9])
    cgroup = SimpleNamespace(folders=["/v1", "/v2"])
    assert gpu_users.look(cgroup, NODES) == ([ONE, TWO], [])
    assert below == [["/v1", "/v2"]]


def test_what_is_open_is_refused_with_who_has_it(looks):
    """Lost: whose program to end; one that nobody has open is taken back."""
    found, _ended = looks
    found[:] = [[TWO, ONE], []]
    with pytest.raises(Refused, match="has GPU nodes open: pid 30 sh, pid 9 python3: end them") as refused:
        gpu_users.refuse_users(BOX, CGROUP, NODES)
    assert refused.value.facts["holders"] == [dict(pid=9, command="python3"), dict(pid=30, command="sh")]
    gpu_users.refuse_users(BOX, CGROUP, NODES)


@pytest.mark.parametrize(
    ("how", "each", "naps", "error", "ended"),
    [
        ("fail", [[]], 0, None, []),
        ("fail", [[ONE], []], 9, Refused, []),
        ("wait", [[ONE], [TWO], []], 9, None, []),
        ("wait", [[ONE]], 3, TimedOut, []),
        ("wait", [[ONE], []], 0, TimedOut, []),
        ("kill", [[ONE, TWO], [TWO], []], 9, None, [9, 30, 30]),
        ("kill", [[ONE]], 0, TimedOut, [9]),
    ],
)
def test_they_let_go_or_it_is_said(looks, how, each, naps, error, ended):
    """Lost: a GPU that goes to the next tenant while a program has it; or a program that nobody said should end."""
    found, killed = looks
    found[:] = each
    wanted = sorted({one for some in each for one in some}, key=lambda one: one.pid)
    deadline = Deadline(naps)
    if error is None:
        shown = [dict(pid=one.pid, command=one.command) for one in wanted]
        assert gpu_users.let_go(BOX, CGROUP, NODES, how, deadline) == shown
        assert deadline.left == naps - (len(each) - 1), "it naps between two looks"
    else:
        with pytest.raises(error, match="is denied its GPU, and still has it open") as said:
            gpu_users.let_go(BOX, CGROUP, NODES, how, deadline)
        assert said.value.facts["holders"]
    assert killed == [(pid, 9) for pid in ended]


def test_a_container_goes_on_for_as_long_as_it_stood_still(looks, monkeypatch):
    """Lost: a tenant's work for all of the time for which one of its programs is waited for."""
    found, _ended = looks
    found[:] = [[ONE], [ONE], []]
    deadline, real = Deadline(9), gpu_users.look

    def slow(*words, **more):
        deadline.spent += 2.0
        return real(*words, **more)

    monkeypatch.setattr(gpu_users, "look", slow)
    gpu_users.let_go(BOX, CGROUP, NODES, gpu_users.WAIT, deadline)
    assert deadline.napped == [2.0, 2.0]


def test_one_that_ended_by_itself_is_ended(monkeypatch):
    """Lost: a GPU's taking back, for a process that was quicker."""

    def gone(pid, number):
        raise ProcessLookupError

    monkeypatch.setattr(gpu_users.os, "kill", gone)
    assert gpu_users._kill(9) is None


@pytest.mark.parametrize(
    ("how", "naps", "error"),
    [("fail", 9, Refused), ("wait", 0, TimedOut), ("wait", 2, TimedOut), ("kill", 2, TimedOut)],
)
def test_who_may_have_it_is_waited_for_and_not_ended(looks, hides, how, naps, error):
    """Lost: a GPU that goes to the next tenant while the last one has it in a socket; or a program, on a guess."""
    found, killed = looks
    found[:] = [[]]
    hides[:] = [[HIDING]]
    with pytest.raises(error, match=r"is denied its GPU, and may still have it open.*: pid 31 sh \(1 file") as said:
        gpu_users.let_go(BOX, CGROUP, NODES, how, Deadline(naps))
    assert said.value.facts["holders"] == [dict(pid=31, command="sh")]
    assert "end those processes, or stop the container, and run this again" in str(said.value)
    assert killed == []
    with pytest.raises(Refused, match=r"may have GPU nodes open: pid 31 sh \(1 file sent to its socket 5\)"):
        gpu_users.refuse_users(BOX, CGROUP, NODES)
    # no node is closed, so that nobody can keep one
    gpu_users.refuse_users(BOX, CGROUP, [])


@pytest.mark.parametrize(
    ("open_by", "hidden_by", "seen"),
    [
        ([[]], [[HIDING], [HIDING], []], ([], [])),
        ([[]], [[], [HIDING]], ([], [HIDING])),
        ([[], [ONE]], [[]], ([ONE], [])),
        ([[], [ONE]], [[HIDING]], ([ONE], [])),
        ([[]], [[]], ([], [])),
    ],
    ids=["read in a moment", "back in a socket", "received meanwhile", "received then", "nothing"],
)
def test_what_goes_to_and_fro_is_seen(looks, hides, open_by, hidden_by, seen):
    """Lost: a GPU that is in no place while each is looked at; or its taking back, for a message that is on its way."""
    looks[0][:] = open_by
    hides[:] = hidden_by
    assert gpu_users.look(CGROUP, NODES) == seen


def test_who_has_it_open_is_named_before_who_may(looks, hides):
    """Lost: which of a container's programs to end first."""
    looks[0][:] = [[ONE]]
    hides[:] = [[HIDING]]
    with pytest.raises(Refused, match="has GPU nodes open: pid 9 python3: end them"):
        gpu_users.refuse_users(BOX, CGROUP, NODES)


def test_a_file_that_stays_hidden_is_waited_for_a_moment_only(looks, monkeypatch):
    """Lost: ten seconds of each who asks for a GPU back, beside a program that keeps a file in its socket."""
    looks[0].append([])
    monkeypatch.setattr(gpu_users.hidden_files, "hiding", lambda pids, paths: [HIDING])
    begun = time.monotonic()
    assert gpu_users.look(CGROUP, NODES) == ([], [HIDING])
    assert 0.9 * gpu_users.MOMENT <= time.monotonic() - begun < 9


@pytest.mark.parametrize("times", [1, 9])
def test_who_went_on_while_it_was_looked_at_is_looked_at_again(monkeypatch, times):
    """Lost: a GPU, to a program that somebody let go on meanwhile."""
    with new_cgroup("v1") as folder, new_cgroup("v2") as other, subprocess.Popen(["sleep", "99"]) as process:
        for one in (folder, other):
            Path(one, "cgroup.procs").write_text(str(process.pid))
        seen = []

        def users(_pids, _nodes, _paths):
            seen.append(Path(other, "cgroup.freeze").read_text().strip())
            if len(seen) <= times:
                Path(other, "cgroup.freeze").write_text("0")
            return []

        monkeypatch.setattr(gpu_users, "users", users)
        monkeypatch.setattr(gpu_users.members, "pids_below", lambda folders: [process.pid])
        try:
            if times == 1:
                assert gpu_users.look(SimpleNamespace(folders=[folder, other]), NODES) == ([], [])
            else:
                with pytest.raises(TimedOut, match="went on 3 times while it was looked at"):
                    gpu_users.look(SimpleNamespace(folders=[folder, other]), NODES)
            assert seen == ["1"] * (2 if times == 1 else 3)
        finally:
            process.kill()


@pytest.fixture
def frozen(monkeypatch):
    """A container in a freezer whose processes stand still, or do not, as the answers say; the last one for ever."""
    answers = []

    @contextmanager
    def still(folders):
        stands = answers.pop(0) if len(answers) > 1 else answers[0]
        yield SimpleNamespace(
            holds=lambda pids: bool(stands), is_possible=stands is not None, is_lost=False, leaves_calls=False
        )

    monkeypatch.setattr(gpu_users, "still", still)
    monkeypatch.setattr(gpu_users.hidden_files, "moving", lambda pids, paths: [HIDING])
    return answers


@pytest.mark.parametrize(
    ("stands", "seen"),
    [([False], ([], [HIDING])), ([False, True], ([], [])), ([True], ([], [])), ([None], ([], []))],
    ids=["never", "the second time", "at once", "it cannot"],
)
def test_who_does_not_stand_still_may_have_it(looks, hides, frozen, stands, seen):
    """Lost: a GPU that is on its way where no descriptor is; or its taking back, where there is no freezer."""
    looks[0][:], hides[:], frozen[:] = [[]], [[]], stands
    assert gpu_users.look(CGROUP, NODES) == seen


def test_what_was_not_looked_at_in_time_may_have_it(looks, hides, monkeypatch):
    """Lost: a GPU, to a program with so many files that nobody could say."""

    def late(*_asked):
        raise TimedOut("its files are too many", "process 31", pid=31, command="sh")

    hides[:] = [[]]
    monkeypatch.setattr(gpu_users, "users", late)
    assert gpu_users.look(CGROUP, NODES) == ([], [Hiding(31, "sh", "its files are too many")])


@contextmanager
def in_cgroups(version="v2"):
    """Yield (a container's folder of device cgroups, the commands of a shell that enter its cgroups)."""
    with new_cgroup("v1") as folder, ExitStack() as stack:
        other = Path(mounts.mounts()[version][0].point, Path(folder).name)
        other.mkdir()
        stack.callback(other.rmdir)
        yield folder, (folder, str(other))
        end = RealDeadline(30)
        while pids_below([folder]) and not end.passed:
            end.nap()


def test_a_descriptor_in_a_message_that_waits_is_not_free(tmp_path):
    """Lost: a GPU that is free by the table, and that a tenant has again once its own file system answers."""
    with in_cgroups() as both, own_file_system.holding(tmp_path, (1, 5), "sending", None, both[1]) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        folder = both[0]
        zero = [SimpleNamespace(number=("c", 1, 5))]
        found, hiding = gpu_users.look(of_path(folder), zero)
        assert found == []
        assert [(one.pid, one.hides) for one in hiding] == [(process.pid, hidden_files.WAITS)]
        with pytest.raises(Refused, match=r"may have GPU nodes open: pid [0-9]+ \S+ \(waits inside the kernel"):
            gpu_users.refuse_users(BOX, of_path(folder), zero)


#: A program waits for a message by a socket that a thread of it has closed, and is frozen by its container. Once it is
#: told to, another one sends the device there, and closes it.
RECEIVES = """
import array, os, socket, sys, threading, time
devices, freezer = sys.argv[1:]
ours, its = socket.socketpair()
if os.fork():
    for folder in (devices, freezer + "/inner"):
        open(folder + "/cgroup.procs", "w").write("0")
    its.close()
    threading.Timer(0.5, os.close, [ours.fileno()]).start()
    print(len(ours.recvmsg(1, 64)[1]), flush=True)
    os._exit(0)
for folder in (devices, freezer):
    open(folder + "/cgroup.procs", "w").write("0")
ours.close()
time.sleep(1)
open(freezer + "/inner/freezer.state", "w").write("FROZEN")
zero = os.open("/dev/zero", os.O_RDWR)
its.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [zero]))])
os.close(zero)
print("sent", flush=True)
sys.stdin.read()
"""


def test_who_waits_for_a_message_where_version_1_froze_it_may_have_it():
    """Lost: a GPU that is free by the table, and that a tenant has again as soon as it goes on."""
    zero = [SimpleNamespace(number=("c", 1, 5))]
    with in_cgroups("freezer") as (folder, both):
        inner = Path(both[1], "inner")
        inner.mkdir()
        argv = [sys.executable, "-c", RECEIVES, *both]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout.readline() == b"sent\n"
                found, hiding = gpu_users.look(of_path(folder), zero)
            finally:
                (inner / "freezer.state").write_text("THAWED")
            assert process.stdout.readline() == b"1\n"  # it has the device
        assert (found, [(one.pid, one.hides) for one in hiding]) == ([], [(process.pid, hidden_files.WAITS)])
        assert gpu_users.look(of_path(folder), zero) == ([], [])
        inner.rmdir()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its program is of x86-64")
def test_a_program_that_is_another_process_each_moment_is_found_and_ended(tmp_path):
    """Lost: a GPU that is free by the table, and that a tenant has for ever."""
    (tmp_path / "chain").write_bytes(program())
    (tmp_path / "chain").chmod(0o700)
    with new_cgroup("v1") as folder, ExitStack() as stack:
        frozen = Path(mounts.mounts()["v2"][0].point, Path(folder).name)
        frozen.mkdir()
        stack.callback(frozen.rmdir)
        into = "".join(f"echo $$ >{one}/cgroup.procs; " for one in (folder, frozen))
        argv = ["sh", "-c", f"{into} exec 3<>/dev/zero {tmp_path}/chain"]
        with subprocess.Popen(argv, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)):
            pass
        zero = [SimpleNamespace(number=("c", 1, 5))]
        cgroup = of_path(folder)
        found, hiding = gpu_users.look(cgroup, zero)
        assert ({one.command for one in found}, hiding) == ({"chain"}, [])
        with pytest.raises(Refused, match=r"has GPU nodes open: pid [0-9]+ chain"):
            gpu_users.refuse_users(BOX, cgroup, zero)
        ended = gpu_users.let_go(BOX, cgroup, zero, gpu_users.KILL, RealDeadline(60))
        assert {one["command"] for one in ended} == {"chain"}
        assert gpu_users.look(cgroup, zero) == ([], [])
