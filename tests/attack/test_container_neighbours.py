# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root in a container, alone or with a local account of the host to help, against the host and other containers."""

from __future__ import annotations

import base64
import shlex
import struct
import time

import pytest
from conftest import GPU_HOST

#: A local account of the host that nobody gave anything to.
STRANGER = 12345
ROOT = "/var/lib/lxc/{}/rootfs"
#: Process ids of the container's cgroup; on version 1 a controller has its own.
PROCS = "find /sys/fs/cgroup/lxc.payload.{0} /sys/fs/cgroup/pids/lxc.payload.{0} -name cgroup.procs 2>/dev/null"
#: The same as its limit counts them: also those that ended and whose parent did not ask yet.
CURRENT = "cat /sys/fs/cgroup/lxc.payload.{0}/pids.current /sys/fs/cgroup/pids/lxc.payload.{0}/pids.current 2>/dev/null"
#: gpu_lxc_pids of the role.
PIDS = 4096
MIB = 1 << 20
#: Root in a container mounts its own part of a hierarchy, and makes cgroups there.
OWN_CGROUPS = "mkdir -p /mnt/{0}; mount -t cgroup -o {0} none /mnt/{0} && cd /mnt/{0}"


def set_uid_program():
    """A program for x86-64 that becomes what its arguments say and keeps its rights, which shells of today do not."""
    code = bytes.fromhex("488b0424 488d742408 488d54c608 488d3d07000000 b83b000000 0f05") + b"/bin/sh\0"
    start = 0x400000
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, start + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, start, start, 120 + len(code), 120 + len(code), 4096)
    return header + segment + code


def on_host(lab, command, **more):
    return lab.on_node(GPU_HOST, command, **more).stdout


def as_user(lab, number, command):
    """What a local account of the host says and is told."""
    words = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--", "sh", "-c", command]
    return on_host(lab, f"{shlex.join(words)} 2>&1", check=False)


def pid_of(lab, name):
    return on_host(lab, f"lxc-info -n {name} -p -H").strip()


def first_id(lab, name):
    return int(on_host(lab, f"cat /proc/{pid_of(lab, name)}/uid_map").split()[1])


@pytest.fixture
def secret(neighbours):
    """A file of bob's that only his root reads."""
    neighbours.ssh("bob", "echo bobs-secret > /root/secret; chmod 600 /root/secret")
    return ROOT.format("bob") + "/root/secret"


def test_a_set_uid_program_of_one_container_is_no_way_into_another(neighbours, secret):
    """Lost: any local account of the host, with root of any container to help, is root in all containers."""
    program = base64.b64encode(set_uid_program()).decode()
    neighbours.ssh("alice", f"echo {program} | base64 -d > /bin/shell; chmod 4755 /bin/shell; chmod 755 / /bin")
    pid = pid_of(neighbours, "alice")
    monitor = on_host(neighbours, f"awk '/PPid/ {{ print $2 }}' /proc/{pid}/status").strip()
    places = [ROOT.format("alice"), *(f"/proc/{one}/{way}" for one in (pid, monitor) for way in ("root", "cwd"))]
    for place in places:
        said = as_user(neighbours, STRANGER, f"{place}/bin/shell -p -c 'id -u; cat {secret}'")
        assert "bobs-secret" not in said, place
        assert said.strip().endswith("Permission denied"), f"{place}: {said}"
    # not by the ids alone, either: they are two containers' own
    alice, bob = (first_id(neighbours, name) for name in ("alice", "bob"))
    assert abs(alice - bob) >= 65536
    assert "Permission denied" in as_user(neighbours, alice, f"cat {secret}")


def test_set_uid_programs_work_where_they_belong(neighbours):
    """Lost: sudo, ping and passwd of a container's users, to the rule that keeps the host safe from them."""
    ping = "su -s /bin/sh nobody -c 'cat /proc/self/status; /opt/busybox ping -c 1 127.0.0.1 2>&1'"
    neighbours.ssh("alice", "mkdir -p /opt; cp /bin/busybox /opt/busybox")
    without = neighbours.ssh("alice", f"{ping} || true")
    assert "Uid:\t65534\t65534" in without
    assert "0% packet loss" not in without
    assert "0% packet loss" in neighbours.ssh("alice", f"chmod 4755 /opt/busybox; {ping}; rm /opt/busybox")


def test_a_local_account_enters_nothing_of_a_container(neighbours):
    """Lost: what a container prints, holds and may open, to anybody who has an account on the host."""
    closed = on_host(neighbours, "ls -d /var/lib/lxc/alice/* /dev/hetero-disks/* /dev/hetero-lxc/*/dev/nvidia*").split()
    assert {"/var/lib/lxc/alice/root.ext4", "/var/lib/lxc/alice/config", "/var/lib/lxc/alice/console.log"} <= {*closed}
    assert len([path for path in closed if path.startswith("/dev/hetero-disks/alice-")]) == 1
    assert len([path for path in closed if path.startswith("/dev/hetero-lxc/alice-")]) >= 2
    for command in ("stat", "head -c 1"):
        said = as_user(neighbours, STRANGER, f"for one in {' '.join(closed)}; do {command} $one; done")
        assert said.count("Permission denied") == len(closed) == len(said.splitlines()), said
    assert "Permission denied" in as_user(neighbours, STRANGER, "ls /var/lib/lxc")


def test_what_a_container_mounts_stays_inside(neighbours):
    """Lost: the end of a container, and the host's table of mounts, to whoever mounts on a device that was given."""
    before = on_host(neighbours, "cat /proc/self/mountinfo")
    given = neighbours.ssh("alice", "ls /dev/nvidia[0-9]* | head -n 1").strip()
    neighbours.ssh("alice", f"echo evil > /root/evil; mount -o bind /root/evil {given} && cat {given}")
    try:
        assert on_host(neighbours, "cat /proc/self/mountinfo") == before
    finally:
        neighbours.ssh("alice", f"umount {given}")


def test_a_local_account_cannot_pose_as_a_containers_monitor(neighbours):
    """Lost: requests of everybody, or the host's own files, to an account that only says that a container runs."""
    program = (
        "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + '/var/lib/lxc/dora/command');"
        " s.listen(); print('there', flush=True); time.sleep(120)"
    )
    pose = f"setpriv --reuid={STRANGER} --regid={STRANGER} --clear-groups -- python3 -c {shlex.quote(program)}"
    wait = "until [ -s /tmp/dora ]; do sleep 0.1; done"
    pid = on_host(neighbours, f"{pose} > /tmp/dora 2>&1 & echo $!; {wait}").strip()
    try:
        assert on_host(neighbours, "cat /tmp/dora").strip() == "there"
        # what liblxc takes for the monitor of a container that runs
        assert "@/var/lib/lxc/dora/command" in on_host(neighbours, "cat /proc/net/unix")
        neighbours.play("provision_instance", instance="alice", flavor="cg1.xlarge")
        found = neighbours.module("host_info", node=GPU_HOST)
        assert "dora" not in str(found["instances"])
    finally:
        on_host(neighbours, f"kill {pid}; rm -f /tmp/dora")


def test_a_fork_bomb_ends_at_the_limit_of_its_container(neighbours):
    """Lost: the host, and all who have containers on it, to one that starts processes without end."""
    count = f"{{ {CURRENT.format('alice')}; }} | head -n 1"
    bomb = "i=0; while [ $i -lt 10000 ]; do sleep 300 & i=$((i+1)); done"
    try:
        neighbours.ssh("alice", f"({bomb}) > /dev/null 2>&1 < /dev/null &")
        end = time.monotonic() + 600
        seen = [0]
        while time.monotonic() < end and (seen[-1] < PIDS - 100 or seen[-1] > seen[-2]):
            seen.append(int(on_host(neighbours, count)))
        assert PIDS - 100 < max(seen) <= PIDS
        start = time.monotonic()
        assert neighbours.ssh("bob", "echo well").strip() == "well"
        assert on_host(neighbours, "echo well").strip() == "well"
        assert time.monotonic() - start < 150
    finally:
        # the shell that goes on as soon as there is room, too; not the container's first process
        names = f"cat $({PROCS.format('alice')}) | sort -u | grep -vx {pid_of(neighbours, 'alice')} | sed 's,$,/comm,'"
        kill = f"grep -slxE 'sleep|sh' $({names}) | cut -d / -f 1 | xargs -r kill -KILL"
        end = time.monotonic() + 120
        while int(on_host(neighbours, f"cd /proc; {{ {kill}; }} 2> /dev/null; {count}")) > 100:
            assert time.monotonic() < end
    assert neighbours.ssh("alice", "echo well").strip() == "well"


def test_what_a_container_prints_takes_a_megabyte_at_most(neighbours):
    """Lost: the host's disk, with the database of who has what, to a container that prints all day."""
    flood = "dd if=/dev/zero bs=64k count=256 2> /dev/null | tr '\\0' x"
    neighbours.ssh("alice", f"{flood} > /dev/console; echo LAST > /dev/console", timeout=300)
    logs = f"cd {ROOT.format('alice')}/..; cat $(ls -r console.log*)"
    end = time.monotonic() + 240
    # the end of one file and the beginning of the next, for the word may lie in both
    while "LAST" not in (said := on_host(neighbours, f"{logs} 2>&1 | tail -c 200", check=False)):
        assert time.monotonic() < end, said
    size = int(on_host(neighbours, f"{logs} | wc -c"))
    assert MIB // 2 < size <= MIB, on_host(neighbours, f"ls -l {ROOT.format('alice')}/../console.log*")


def test_a_container_that_fills_its_disk_fills_its_own(neighbours):
    """Lost: the disk of all containers, and the host's database, to the first that writes until it is full."""
    look = "stat -c %d /; stat -f -c '%S %b' /"
    (alice, room), (bob, _room) = (neighbours.ssh(name, look).splitlines() for name in ("alice", "bob"))
    assert alice != bob, "both write to one file system"
    block, count = map(int, room.split())
    assert block * count < 160 << 30, "more than local_gb of its flavor"
    # Blocks that are claimed, not written: the host's disk here has fewer.
    claim = "for mib in 8192 512 16; do while fallocate -l $((mib << 20)) /fill$i; do i=$((i+1)); done; done"
    fill = f"i=0; {claim} 2> /dev/null; dd if=/dev/zero of=/more bs=1M count=20 2>&1"
    try:
        said = neighbours.ssh("alice", f"{fill} | tail -n 3", timeout=120)
        assert "No space left on device" in said
        write = "dd if=/dev/zero of={0} bs=1M count=64 2> /dev/null && rm {0}"
        neighbours.ssh("bob", write.format("/mine"))
        on_host(neighbours, write.format("/var/lib/hetero/mine"))
    finally:
        neighbours.ssh("alice", "rm -f /fill* /more")


def given_gpu(lab):
    """A GPU's node that alice has and keeps under another name, whatever is unmounted later."""
    given = lab.ssh("alice", "ls /dev/nvidia[0-9]* | head -n 1").strip()
    lab.ssh("alice", f"touch /root/kept; mount -o bind {given} /root/kept")
    return "(: <> /root/kept) 2>&1 || true"


def test_a_gpu_that_is_taken_back_is_closed_in_all_cgroups(neighbours):
    """Lost: a GPU of the next tenant, to the last one: its init alone is in a cgroup that has the container's name."""
    attempt = given_gpu(neighbours)
    home = OWN_CGROUPS.format("devices")
    try:
        neighbours.ssh("alice", f"{home}; mkdir lxc.payload.alice; echo 1 > lxc.payload.alice/cgroup.procs")
        # its driver is not here: who may open it is told that it is no device
        assert "No such device" in neighbours.ssh("alice", attempt)
        done = neighbours.module("lxc_gpu_attach", node=GPU_HOST, container="alice", state="detached")
        assert done["changed"]
        assert "Operation not permitted" in neighbours.ssh("alice", attempt)
    finally:
        neighbours.ssh(
            "alice", "cd /mnt/devices; echo 1 > cgroup.procs; rmdir lxc.payload.alice; cd /; umount /mnt/devices"
        )
        neighbours.ssh("alice", "umount /root/kept")
        neighbours.play("provision_instance", instance="alice", flavor="cg1.xlarge")


def test_a_gpu_is_taken_back_from_whoever_makes_cgroups(neighbours):
    """Lost: a GPU, to a container with more cgroups than anybody looks through."""
    attempt = given_gpu(neighbours)
    try:
        neighbours.ssh("alice", f"{OWN_CGROUPS.format('devices')}; mkdir $(seq 10050)")
        done = neighbours.module("lxc_gpu_attach", node=GPU_HOST, container="alice", state="detached")
        assert done["changed"]
        assert "Operation not permitted" in neighbours.ssh("alice", attempt)
    finally:
        neighbours.ssh("alice", "cd /mnt/devices; rmdir $(seq 10050); cd /; umount /mnt/devices /root/kept")
        neighbours.play("provision_instance", instance="alice", flavor="cg1.xlarge")


def test_a_container_that_froze_itself_is_ended(neighbours):
    """Lost: GPUs, ids, an address and a disk, for ever, to a tenant who puts its init where no signal arrives."""
    home = OWN_CGROUPS.format("freezer")
    neighbours.ssh(
        "alice", f"{home}; mkdir x; echo 1 > x/cgroup.procs; echo FROZEN > x/freezer.state; cat x/freezer.state"
    )
    try:
        neighbours.terminate("alice")
        assert "alice" not in on_host(neighbours, "lxc-ls -1")
    finally:
        thaw = "for one in /sys/fs/cgroup/freezer/lxc.payload.alice*/x/freezer.state; do echo THAWED > $one; done"
        on_host(neighbours, f"{thaw} 2> /dev/null; true")
        neighbours.play("provision_instance", instance="alice", flavor="cg1.xlarge")


def test_cgroups_go_with_their_container(neighbours):
    """Lost: the host's memory, to a tenant who leaves thousands of cgroups inside each other behind in each round."""
    deepen = "i=0; while [ $i -lt 1500 ]; do mkdir a && cd -P a || exit 1; i=$((i+1)); done"
    neighbours.ssh("alice", f"{OWN_CGROUPS.format('pids')}; {deepen}")
    try:
        neighbours.terminate("alice")
        assert on_host(neighbours, "ls -d /sys/fs/cgroup/*/lxc.payload.alice* 2> /dev/null; true") == ""
    finally:
        neighbours.play("provision_instance", instance="alice", flavor="cg1.xlarge")
