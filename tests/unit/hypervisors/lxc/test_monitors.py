# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account of the host in the place of containers' monitors. If these fail, it has the host read a configuration of
its own as root, which writes any file as root; or no container of the host is started or given anything any more.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import unix_sockets
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import in_child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import liblxc, monitors
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.folders import in_use
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system
from ansible_collections.hetero.compute.tests.unit.gaps_in_tables import with_gaps
from ansible_collections.hetero.compute.tests.unit.own_network import own_network

NOBODY = 65534
#: An abstract name as liblxc makes one of a long path; of which path, whoever listens there says.
SHORTENED = "lxc/0123456789abcdef/command"
#: Run as the account: listens at the names of its arguments, says what a monitor would of a container, or nothing at
#: all; and keeps a program of root's by the name of that container's monitor.
POSE = """
import os, socket, struct, subprocess, sys, threading
folder, name, answers, *places = sys.argv[1:]
said = {4: None, 8: name.encode() + b"\\0", 9: folder.encode() + b"\\0"}
def serve(client):
    while answers == "yes":
        head = client.recv(16)
        number = struct.unpack("i", head[:4])[0] if len(head) == 16 else None
        if number not in said:
            return client.close()
        data = said[number]
        client.sendall(struct.pack("iiq", 0, len(data or b""), 1) + (data or b""))
    threading.Event().wait()
def listen(door):
    while True:
        threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
for place in places:
    door = socket.socket(socket.AF_UNIX)
    door.bind("\\0" + place)
    door.listen()
    threading.Thread(target=listen, args=(door,), daemon=True).start()
title = f"[lxc monitor] {folder} {name}"
subprocess.Popen([title], executable="/bin/su", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
print("there", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def alone():
    """What stands in for monitors here answers no other test, and is asked by none."""
    with own_network():
        yield


@pytest.fixture
def account():
    """A folder of the account's, deep enough for its socket's name to be shortened, and how it poses as monitors."""
    with tempfile.TemporaryDirectory(prefix="hetero-test-", dir="/var/tmp") as top:
        os.chown(top, NOBODY, NOBODY)
        posing = []

        def pose(folder, *places, name="box", answers=True):
            # the system's: the one that runs the tests may lie where only root looks
            argv = ["/usr/bin/python3", "-I", "-c", POSE, folder, name, "yes" if answers else "no", *places]
            who = dict(user=NOBODY, group=NOBODY, extra_groups=[])
            posing.append(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **who))
            assert posing[-1].stdout.readline() == "there\n"

        pose.folder = f"{top}/{'deep-' * 20}/lxc"
        pose.top = top
        os.makedirs(f"{pose.folder}/box")
        yield pose
        for process in posing:
            process.communicate()


def asked(code, seconds=60):
    """What root's program says that asks for containers that run; None for one that never comes back."""
    house = "ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors"
    lines = f"from {house}.lxc import folders, liblxc\nfrom {house}.lxc_gpus import open_rights as reach\n"
    try:
        argv, env = [sys.executable, "-c", lines + code], dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        return subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=True, env=env).stdout
    except subprocess.TimeoutExpired:
        return None


def test_no_configuration_of_an_accounts_is_read(account, tmp_path):
    """Lost: the host. liblxc makes the log file that a configuration names, and writes to it, as whoever reads it."""
    made = tmp_path / "made-by-root"
    with open(f"{account.folder}/box/config", "w", encoding="utf-8") as config:
        config.write(f"lxc.rootfs.path = dir:/tmp\nlxc.log.level = 1\nlxc.log.file = {made}\n")
    account(account.folder, SHORTENED, monitors.address_of("box", account.folder))
    said = asked(f"reach.look(['/var/lib/lxc', {account.folder!r}], []); print({account.folder!r} in folders.in_use())")
    assert (said, made.exists()) == ("False\n", False)
    assert liblxc.running(account.folder) == []


def test_an_account_that_says_nothing_is_not_waited_for(account):
    """Lost: every verb of the host and the hooks of its containers' starts, which would wait for ever."""
    account(account.folder, SHORTENED, answers=False)
    assert asked("print(liblxc.running('/var/lib/lxc') is not None, folders.in_use() is not None)") == "True True\n"


def test_a_monitor_of_a_long_name_is_roots_or_none(account):
    """Lost: what is asked of a container deep down is answered by an account."""
    folder = f"{account.top}/roots/{'deep-' * 20}/lxc"
    os.makedirs(f"{folder}/box")
    with open(f"{folder}/box/config", "w", encoding="utf-8") as config:
        config.write("lxc.rootfs.path = dir:/tmp\n")
    box = liblxc.Container("box", folder)
    assert (monitors.owner("box", folder), box.state) == (None, "STOPPED")
    account(folder, monitors.address_of("box", folder))
    with pytest.raises(HeteroError, match=f"user id {NOBODY} of this machine answers in place of its monitor"):
        assert box.state


@pytest.mark.parametrize("length", [monitors.LONGEST - 1, monitors.LONGEST, monitors.LONGEST + 1])
def test_the_name_of_its_socket_is_lxcs(boxes, length):
    """Lost: a container whose path is just too long for a socket; or its place, to whoever takes a name beside it."""
    boxes.lxcpath = f"{boxes.top}/"
    name = "hetero-test-long"
    boxes.lxcpath += "d" * (length - len(f"{boxes.lxcpath}/{name}/command"))
    box = boxes.make(name=name)
    address = monitors.address_of(name, boxes.lxcpath)
    assert len(address) == (length if length <= monitors.LONGEST else len(SHORTENED))
    assert monitors.owner(name, boxes.lxcpath) == 0
    assert (boxes.lxcpath, name) in monitors.of_root()
    assert liblxc.running(boxes.lxcpath) == [name]
    assert boxes.lxcpath in in_use()
    box.stop()
    assert (monitors.owner(name, boxes.lxcpath), liblxc.running(boxes.lxcpath)) == (None, [])


def test_none_is_passed_over_while_sockets_come_and_go(boxes, monkeypatch):
    """Lost: a GPU, which a container has that was passed over, to another one."""
    box = boxes.make()
    with_gaps(monkeypatch, monitors.SOCKETS, box.name)
    assert (boxes.lxcpath, box.name) in monitors.of_root()


def test_a_monitor_that_hangs_up_is_asked_again(tmp_path):
    """Lost: GPUs, of a container that runs, and was not seen to in the moment of somebody's look."""
    address, said, calls = "lxc/fedcba9876543210/command", {8: b"box\0", 9: f"{tmp_path}/lxc\0".encode()}, []

    def answer(door):
        while True:
            client, _address = door.accept()
            with client:
                calls.append(client.recv(16))
                if not calls[-1]:
                    return
                if len(calls) > 2:  # the first two get no answer
                    data = said[struct.unpack("i", calls[-1][:4])[0]]
                    client.sendall(struct.pack("iiq", 0, len(data), 1) + data)

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"\0{address}")
        door.listen()
        answering = threading.Thread(target=answer, args=(door,), daemon=True)
        answering.start()
        assert (f"{tmp_path}/lxc", "box") in monitors.of_root()
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(f"\0{address}")
        answering.join(30)
    assert len(calls) == 5


@contextmanager
def stopped(box):
    """The monitor of a container does nothing."""
    with open(f"/proc/{box.init_pid}/status", encoding="utf-8") as status:
        monitor = int(status.read().split("PPid:")[1].split()[0])
    os.kill(monitor, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(monitor, signal.SIGCONT)


@contextmanager
def flooded(address):
    """So many call that nobody else gets through."""
    with ExitStack() as calls:
        while True:
            call = calls.enter_context(socket.socket(socket.AF_UNIX))
            call.setblocking(False)
            try:
                call.connect(f"\0{address}")
            except BlockingIOError:
                break
        yield


def test_a_monitor_of_roots_that_hangs_is_said(boxes, monkeypatch):
    """Lost: what a container deep down has, which would look free while its monitor is stopped."""
    boxes.lxcpath = f"{boxes.top}/{'deep-' * 20}/lxc"
    os.makedirs(boxes.lxcpath)
    box = boxes.make()
    monkeypatch.setattr(monitors, "ANSWER_TIME", 0.3)
    with stopped(box), pytest.raises(TimedOut, match=r"lxc/[0-9a-f]{16}/command: .*did not answer within 0\.3 s"):
        monitors.of_root()


def test_a_monitor_that_an_account_floods_is_there(box, monkeypatch):
    """Lost: the GPUs of a container that any account keeps from being seen."""
    address = monitors.address_of(box.name, box.lxcpath)
    said = rf"socket @{address}: takes no call within 0\.3 s, for so many call it"
    with monkeypatch.context() as quick:
        quick.setattr(monitors, "ANSWER_TIME", 0.3)
        with stopped(box), flooded(address), pytest.raises(TimedOut, match=said):
            liblxc.running(box.lxcpath)
    assert liblxc.running(box.lxcpath) == [box.name]


@pytest.mark.parametrize("told", ["as it is", "in a line of its own", "in a line of its own, by an old kernel"])
def test_an_accounts_socket_that_takes_no_call_holds_up_nobody(account, monkeypatch, told):
    """Lost: every verb of the host, to an account that has many of them, or one that the kernel's table calls root's by
    the name of another one: a line feed in it begins a line.
    """
    monkeypatch.setattr(monitors, "ANSWER_TIME", 1.0)
    address = f"{account.top}/box/command"
    os.seteuid(NOBODY)
    try:
        door, other = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    finally:
        os.seteuid(0)
    with door, other, socket.socket(socket.AF_UNIX) as roots:
        roots.bind("\0roots")
        roots.listen()
        if told != "as it is":
            other.bind(f"\0\nx: 1 1 00010000 1 01 {os.fstat(roots.fileno()).st_ino} @{address}")
            other.listen()
        door.bind(f"\0{address}")
        door.listen(0)
        with flooded(address):
            if told.endswith("kernel"):
                monkeypatch.setattr(unix_sockets, "NETLINK_SOCK_DIAG", 31)
                with pytest.raises(TimedOut, match=f"socket @{address}: takes no call within 1 s"):
                    monitors.owner("box", account.top)
                return
            assert monitors.owner("box", account.top) == NOBODY
            assert (account.top, "box") not in monitors.of_root()


def test_a_process_that_keeps_who_asks_waiting_holds_up_nobody(tmp_path, monkeypatch):
    """Lost: every verb of the host, for ever, to an account that floods a monitor and leaves for another program."""
    monkeypatch.setattr(monitors, "ANSWER_TIME", 1.0)
    with own_file_system.holding(tmp_path, (1, 5), "leaving") as process, socket.socket(socket.AF_UNIX) as flooded_one:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        time.sleep(0.3)  # for which it is on its way
        address = f"/lxc/{os.getpid()}/command"
        flooded_one.bind(f"\0{address}")
        flooded_one.listen()
        for shown, makers in ((unix_sockets.UDIAG_SHOW_UID, [os.geteuid()]), (0, [0])):  # 0: it may be root's
            monkeypatch.setattr(unix_sockets, "UDIAG_SHOW_UID", shown)
            found = in_child(lambda: sorted(monitors._makers(address)), Deadline(30), "look", "")
            assert found == makers
