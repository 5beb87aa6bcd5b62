# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero consoles` with a real conserver: what it serves, who gets to it, and which of its logs are kept."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence.free_boards import give_back
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import console_logs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import console
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import blame
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import consoles, reap
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.played_consoles import conserver, eventually

__all__ = ["conserver"]


def test_a_boards_words_are_logged_with_their_time(conserver):
    """Lost: what a board said before anybody looked, and when."""
    conserver.serial.say("Booting Linux\r\nsecond line\r\n")
    text = eventually(conserver.log.read_text, lambda text: "second line" in text)
    assert re.search(r"^\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\]second line$", text, re.M)
    assert blame.console_tail(str(conserver.log), 0)[-1].endswith("second line")


def test_each_boot_and_each_claim_has_a_log_of_its_own(conserver):
    """Lost: which boot said what; and a tenant reads what the one before said."""
    proxy, board = conserver.proxy, conserver.board
    conserver.say("of nobody")
    claim = conserver.site.claim(proxy)
    console.begin_anew(proxy, board)
    console.begin(proxy, board)
    assert blame.console_size(str(conserver.log)) == 0
    conserver.say("first boot")
    console.begin_anew(proxy, board)
    conserver.say("second boot")
    shown = console.console(proxy, board.id, 20, "jackie", None, False)
    assert [line.rpartition("]")[2] for line in shown["console"]] == ["second boot"]
    proxy.store.power_seen(board.id, "off")
    give_back(proxy, board, claim, "jackie", "look")
    conserver.say("after it")
    kept = console_logs.set_aside(str(conserver.log))
    assert [re.sub(r".*\.\d{6}-", "", path) for path in kept] == ["nobody", "jackie", "jackie"]
    said = [Path(path).read_text(encoding="utf-8") for path in kept]
    assert [word in text for word, text in zip(("of nobody", "first boot", "second boot"), said)] == [True] * 3
    assert "second boot" not in conserver.log.read_text()


def test_a_board_that_floods_its_console_fills_no_disk(conserver, monkeypatch):
    """Lost: the proxy's disk, to a kernel that prints the same line for ever; and with it each other board's log."""
    conserver.stop()
    monkeypatch.setattr(consoles, "MOST_BYTES", 20000)
    conserver.start()
    conserver.say("begin")
    conserver.serial.say("x" * 70 + "\r\n", times=1000)
    eventually(lambda: blame.console_size(str(conserver.log)), lambda size: size >= 20000)
    assert blame.console_size(str(conserver.log)) == 20000
    console.begin_anew(conserver.proxy, conserver.board)
    conserver.say("the next boot")


def test_a_board_that_talks_for_ever_is_logged_and_bounded(conserver, monkeypatch):
    """Lost: the proxy's disk, to a board that is not booted for a year; or its words, from the day its log is full."""
    monkeypatch.setattr(console_logs, "LOG_BYTES", 5000)
    conserver.site.claim(conserver.proxy)
    console.begin(conserver.proxy, conserver.board)
    conserver.say("few words")
    reap.turn(conserver.files)
    assert console_logs.set_aside(str(conserver.log)) == []
    for word in ("first", "second"):
        conserver.say(f"{word} {'x' * 5000}")
        reap.turn(conserver.files)
        conserver.say(f"after the {word}")
    kept = console_logs.set_aside(str(conserver.log))
    assert [path.rpartition("-")[2] for path in kept] == ["jackie", "jackie"]
    assert blame.console_size(str(conserver.log)) < 5000
    shown = console.console(conserver.proxy, conserver.board.id, 20, "jackie", None, False)
    assert shown["console"][-1].endswith("after the second")


def test_a_boot_does_not_wait_for_a_conserver_that_is_down_or_hangs(conserver, monkeypatch):
    """Lost: each boot of a site whose console server has died or hangs."""
    monkeypatch.setattr(console_logs, "PATIENCE", 0.2)
    conserver.say("before")
    conserver.pause()
    console.begin_anew(conserver.proxy, conserver.board)
    text = conserver.proxy.store.newest_events(conserver.board.id, 1)[0].text
    assert re.search(r"conserver goes on writing .*board0\.log-[-\d.]+-nobody 0\.2 s after it was told", text)
    conserver.stop()
    began = time.monotonic()
    conserver.log.write_text("more")
    console.begin_anew(conserver.proxy, conserver.board)
    assert time.monotonic() - began < 0.2
    assert len(console_logs.set_aside(str(conserver.log))) == 2
    conserver.start()
    conserver.say("it is back")


def test_what_conserver_writes_by_itself_is_no_sign_of_life(conserver):
    """Lost: a board that is off counts as on, as conserver notes each minute that nobody is at its socket."""
    conserver.say("last words")
    size = blame.console_size(str(conserver.log))
    conserver.serial.close()
    eventually(conserver.log.read_text, lambda text: "Console down" in text)
    assert not blame.has_spoken(str(conserver.log), size)
    assert blame.console_tail(str(conserver.log), 0)[-1].endswith("last words")


def test_nobody_attaches_without_the_key(conserver):
    """Lost: each console, to any account of the proxy: conserver's port is open to all of them."""
    conserver.say("secret")
    bare = conserver.site.folder / "bare.cf"
    folder = conserver.proxy.config.consoles_folder
    bare.write_text(f"config * {{ master 127.0.0.1; port {conserver.port}; sslcacertificatefile {folder}/tls.crt; }}\n")
    argv = ["console", "-n", "-C", str(bare), "-u"]
    assert subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False).returncode != 0
    assert os.stat(f"{folder}/tls.key").st_mode & 0o077 == 0
    assert "board0" in conserver.client("-u")


def test_its_children_have_the_ports_behind_its_own(conserver):
    """Lost: each console's connections, to any account of the proxy: role tftp_proxy's filter closes these ports."""
    [child] = Path(f"/proc/{conserver.process.pid}/task/{conserver.process.pid}/children").read_text().split()
    files = [os.readlink(one) for one in Path(f"/proc/{child}/fd").iterdir()]
    table = [line.split() for line in Path(f"/proc/{child}/net/tcp").read_text().splitlines()[1:]]
    listening = [row for row in table if row[3] == "0A" and f"socket:[{row[9]}]" in files]
    ports = [int(row[1].partition(":")[2], 16) for row in listening]
    assert [one for one in ports if not conserver.port < one <= conserver.port + 17] == []
    assert len(ports) == 1


def test_two_read_and_one_writes(conserver):
    """Lost: a colleague who looks on, or who types into the other's words."""
    with conserver.attached("ann") as ann:
        ann.expect(r"\[Enter")
        with conserver.attached("bob") as bob:
            bob.expect(r"\[no, ann@localhost is attached\]")
            ann.send("reboot\r")
            eventually(conserver.serial.heard, lambda text: "reboot" in text)
            bob.send("halt\r")
            conserver.serial.say("Restarting system\r\n")
            ann.expect("Restarting system")
            bob.expect("Restarting system")
            assert "halt" not in conserver.serial.heard()


def test_a_second_set_up_changes_nothing_and_a_new_console_is_taken_up(conserver):
    """Lost: consoles that a set-up cuts off each time, or that are not served until conserver is restarted."""
    assert consoles.written(conserver.proxy, "root", False) == []
    conserver.wire(
        {
            "0": {"console_from": {"type": "socket", "path": conserver.serial.path}},
            "1": {"console_from": {"type": "command", "command": "echo hello there; cat"}},
        }
    )
    with conserver.site.proxy() as proxy:
        assert [os.path.basename(path) for path in consoles.written(proxy, "root", True)] == ["conserver.cf"]
    assert consoles.main(["--config", str(conserver.config), "--user", "root"]) == 0
    log = conserver.log.with_name("board1.log")
    eventually(lambda: log.read_text() if log.exists() else "", lambda text: "hello there" in text)
    assert "Console down" not in conserver.log.read_text()


def test_the_password_of_a_console_that_is_served_no_more_goes(conserver):
    """Lost: the password of a BMC, which lies on after the BMC's console went."""
    left = Path(conserver.proxy.config.consoles_folder) / "board7.password"
    left.write_text("s3cret")
    assert consoles.written(conserver.proxy, "root", True) == [str(left)]
    assert left.exists()
    assert consoles.written(conserver.proxy, "root", False) == [str(left)]
    assert not left.exists()


def test_old_logs_go(tmp_path):
    """Lost: the proxy's disk, in a year of boots."""
    log = tmp_path / "board0.log"
    for number in range(console_logs.KEPT + 5):
        (tmp_path / f"board0.log-20260101-{number:06d}-jackie").write_text("x")
    (tmp_path / "board00.log-20260101-000000-jackie").write_text("another board's")
    console_logs.prune(str(log))
    kept = console_logs.set_aside(str(log))
    assert len(kept) == console_logs.KEPT
    assert kept[0].endswith("-000005-jackie")
    os.truncate(kept[-1], console_logs.KEPT_BYTES - (len(kept) - 1))
    console_logs.prune(str(log))
    assert console_logs.set_aside(str(log)) == kept, "to the last byte"
    os.truncate(kept[-1], 1)
    os.truncate(kept[-2], console_logs.KEPT_BYTES)
    console_logs.prune(str(log))
    assert console_logs.set_aside(str(log)) == [kept[-1]]
    assert (tmp_path / "board00.log-20260101-000000-jackie").exists()
