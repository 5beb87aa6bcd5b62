# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console of one of the lab's boards, which the proxy's conserver serves: who reads it, writes on it, and sees why
a board does not boot.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager

import pexpect
import pytest
from labs import ROOT

pytestmark = pytest.mark.long
#: Seconds that anything of this may take beside other load, and that two boots that go wrong are given here: until a
#: kernel has been loaded and panics, and until iPXE gives up to ask.
LONG, PANIC, NO_ANSWER = 900, 300, 120
LOG = "/var/log/hetero/conserver/board0.log"
#: What its initrd says in each boot.
UP = "udhcpc: lease of 10.0.2.1 obtained"
#: How a line of a log begins: with its time.
LINE = re.compile(r"^\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\]")


@pytest.fixture(scope="module")
def spoken(up):
    """Board 0 with firmware that speaks to its serial line, as a server's; the lab's own speaks to a screen."""
    path = up.folder / "lab.json"
    before = path.read_text()
    lab = json.loads(before)
    argv = lab["pdus"]["pdu-a"]["outlets"]["5"]["argv"]
    argv[argv.index("-machine") + 1] += ",graphics=off"
    begun(up, json.dumps(lab))
    yield up
    begun(up, before)


def begun(lab, description):
    """Have the lab's PDUs go on with what this says; boards end with them."""
    program = [sys.executable, ROOT / "roles" / "lab" / "files" / "lab.py", lab.folder / "lab.json", "pdus"]
    subprocess.run([*program, "down"], check=True)
    (lab.folder / "lab.json").write_text(description)
    subprocess.run([*program, "up"], check=True)


@contextmanager
def attached(lab, *words):
    """`hetero console` at a terminal, by the ssh that playbook `console` prints."""
    address = lab.description["nodes"]["proxy1"]["networks"][0]["address"].partition("/")[0]
    namespace = f"--net=/run/netns/{lab.description['namespace']}"
    argv = [namespace, "ssh", "-t", "-i", f"{lab.folder}/ssh/id_ed25519", "-o"]
    argv += [f"UserKnownHostsFile={lab.folder}/ssh/known_hosts", f"root@{address}"]
    argv.append(shlex.join(["/usr/local/sbin/hetero", *words]))
    child = pexpect.spawn("nsenter", argv, timeout=LONG, encoding="utf-8", codec_errors="replace")
    try:
        yield child
    finally:
        child.close(force=True)


def test_two_readers_a_reset_and_the_end_of_a_claim(lab, spoken):
    """Lost: the second pair of eyes on a board, its words after a reset, or the next tenant's secrets to both."""
    lab.provision("nina", board=0, hetero_boot_timeout=LONG)
    with attached(lab, "console", "nina") as writer, attached(lab, "console", "nina", "--read") as reader:
        for one in (writer, reader):
            one.expect_exact("[Enter `^Ec?' for help]")
        writer.send("\r")  # its init asks for it
        writer.expect_exact("# ")
        writer.send("echo I am $(uname -n)\r")
        for one in (writer, reader):
            one.expect_exact("I am nina")
        writer.send("echo b >/proc/sysrq-trigger\r")  # a reset without a word to anybody
        for one in (writer, reader):
            one.expect_exact("iPXE")
            one.expect_exact(UP)
            one.expect_exact("Server listening on")
        lab.ssh("nina", "true")
        said = lab.on_proxy(f"cat {LOG}")
        assert "I am nina" in said
        assert said.count(UP) == 2
        # "[-- " begins what conserver says itself: who attached, and that it has the console; it has no time for what
        # a board goes on to say within a line
        lines = [line for line in said.split("\n")[1:] if line.strip() and not line.startswith("[-- ")]
        assert [line for line in lines if not LINE.match(line)] == []
        lab.terminate("nina")
        for one in (writer, reader):
            one.expect_exact("nina's claim of board0 is over")
            one.expect(pexpect.EOF)


def refused(lab, instance, seconds, **extra):
    """What was said of a boot that went wrong, as one line."""
    played = lab.provision(instance, expect=2, board=0, hetero_boot_timeout=seconds, **extra)
    return " ".join(played.output.split())


def test_a_panic_is_said(lab, spoken):
    """Lost: an hour with the console of a board whose image has a kernel that panics, which nobody says."""
    lab.on_proxy(
        "set -e; mkdir /srv/bad; cd /srv/bad; tar xf /srv/images/debian-12.tar;"
        "head -c 512 /dev/urandom >initrd; tar cf /srv/panics.tar image.json kernel initrd root; rm -r /srv/bad"
    )
    lab.module("board_image", image="/srv/panics.tar", name="panics", replace=True)
    said = refused(lab, "pam", PANIC, image="panics")
    assert re.search(r"image panics does not boot: .*; its console says: Kernel panic - not syncing: ", said), said


def test_an_error_of_pxe_is_said(lab, spoken):
    """Lost: whether a board is dead, or something between it and the proxy eats its TFTP."""
    rule = "udp dport 69 ip saddr 10.0.2.1 drop"
    lab.on_proxy(
        "nft add table ip cut; nft 'add chain ip cut in { type filter hook prerouting priority -400; }';"
        f"nft add rule ip cut in {rule}"
    )
    try:
        said = refused(lab, "pia", NO_ANSWER)
    finally:
        lab.on_proxy("nft delete table ip cut")
    assert re.search(r"board0 .*; its console says: [^;]* \(https?://ipxe\.org/[0-9a-f]+", said), said
