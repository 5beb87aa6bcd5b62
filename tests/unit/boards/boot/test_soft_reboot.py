# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reboot by ssh: told with a key that may do nothing else, done when the board's boot request is seen.

The ssh server is a real one where the client's part is tested; the boards of the loop are played.

Tests drivers/boot/ssh_reboot.py, roots/reboot_key.py.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import tempfile
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import fake, ssh_reboot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import reboot_key

AUTO = "ansible-playbook hetero.compute.reboot_instance -e instance=vm0 -e how=auto"
BY_POWER = f"by power, where ssh does not do: {AUTO}"


@pytest.fixture
def keyed(site):
    """A running board whose proxy has its key."""
    site.claim(0)
    site.run("start", 0)
    with site.proxy() as proxy:
        reboot_key.reboot_line(proxy)
    return site


def texts(site, *phases):
    return [event.text for event in site.events(0, phases)]


def outcome(result):
    (one,) = result["boards"]
    return result["failed"], one["state"], "power" in one["phases"]


def test_by_ssh(keyed, monkeypatch):
    """Lost: a reboot that does not pull the plug under a file system."""
    followed = []
    monkeypatch.setattr(fake.Fake, "boots_anew", lambda driver, board: followed.append(board.id))
    keyed.play(0, soft="boots")
    result = keyed.run("reboot", 0)
    assert outcome(result) == (False, "running", False)
    assert followed == [0], "a driver that acts on the board would do nothing for the new system"
    told, fetched, *rest = texts(keyed, "reboot", "tftp", "nfs", "running")[-4:]
    assert told == "told by ssh, boot request seen"
    assert sorted(fetched.removesuffix(" fetched").split(", ")) == ["boot entry", "initrd", "kernel"]
    assert rest == ["root mounted", "ssh answers"]
    assert texts(keyed, "state")[-2:] == ["running → booting", "booting → running"]
    assert result["changed"] is True


@pytest.mark.parametrize("soft", [None, "nothing"])
def test_else_by_power(keyed, soft):
    """Lost: a reboot of the very board that needs one, because its sshd hangs."""
    keyed.play(0, soft=soft)
    result = keyed.run("reboot", 0, soft_timeout=1)
    assert outcome(result) == (False, "running", True)
    why = "cannot be told to reboot by ssh: Connection refused" if soft is None else "no boot request came within 1 s"
    (said,) = texts(keyed, "reboot")
    assert said.startswith("by power: ")
    assert why in said
    assert "pdu-a outlet 5: on → off → on, read back" in texts(keyed, "power")


@pytest.mark.parametrize("how", ["soft", "auto"])
def test_no_power_is_cut_of_a_board_that_shows_a_new_key_after_it(keyed, how):
    """Lost: a tenant's work, who made new host keys and asked for a reboot by ssh; or an answer taken for the known."""
    keyed.play(0, soft="boots", wrong_key=True)
    before = keyed.events(0, ["switch"])
    result = keyed.run("reboot", 0, how=how, timeout=30)
    assert (result["failed"], keyed.record(0).state, keyed.power(0)) == (True, "error", "on")
    assert keyed.events(0, ["switch"])[len(before) :][1:] == [], "told by ssh, and nothing switched"
    assert "shows another host key than the one that is known: its tenant may have made a new one" in result["msg"]


@pytest.mark.parametrize("soft", [None, "nothing"])
def test_soft_only_leaves_a_board_that_does_not_as_it_is(keyed, soft):
    """Lost: the one promise of how=soft, that no power is cut."""
    keyed.play(0, soft=soft)
    result = keyed.run("reboot", 0, how="soft", soft_timeout=1)
    assert outcome(result) == (True, "running", False)
    assert BY_POWER in result["msg"]
    assert (result["changed"], result["diff"]) == (False, [])
    assert keyed.power(0) == "on"
    assert len(texts(keyed, "power")) == 1, "of the start"


@pytest.mark.parametrize("console", [True, False])
@pytest.mark.parametrize("soft", [None, "nothing"])
def test_a_board_of_which_nothing_is_heard(keyed, soft, console):
    """Lost: that it is not its ssh alone, and what to do next; the instance and its power are as they were."""
    if not console:
        del keyed.config["boards"]["0"]["console"]
    keyed.play(0, soft=soft, running=1e4)
    before = keyed.record(0)
    begun = time.monotonic()
    result = keyed.run("reboot", 0, how="soft", soft_timeout=1)
    assert time.monotonic() - begun < 60
    assert outcome(result) == (True, "running", False)
    assert (keyed.power(0), keyed.record(0).claim) == ("on", before.claim)
    heard = "its console says nothing" if console else "it has no console"
    assert f"nothing at all was heard of it since: no answer at 10.0.2.1, no boot request, {heard}: " in result["msg"]
    look = "look at its console (ansible-playbook hetero.compute.console -e instance=vm0), or " if console else ""
    assert result["msg"].endswith(
        f"{look}have its power cut: ansible-playbook hetero.compute.reboot_instance -e instance=vm0 -e how=hard"
    ), result["msg"]


@pytest.mark.parametrize("sign", ["console", "address"])
def test_a_board_of_which_something_is_heard_is_not_called_silent(keyed, sign, monkeypatch):
    """Lost: an hour in front of a board that works, but for its ssh."""
    log = keyed.folder / "board0.log"
    log.write_text("")
    keyed.play(0, soft="nothing", running=1e4 if sign == "console" else 0.0)
    if sign == "console":
        alive = fake.Fake.alive

        def speak(*given):
            with log.open("a") as console:
                console.write("panic\n")
            return alive(*given)

        monkeypatch.setattr(fake.Fake, "alive", speak)
    result = keyed.run("reboot", 0, how="soft", soft_timeout=1)
    assert "nothing at all was heard" not in result["msg"]
    assert BY_POWER in result["msg"]
    assert (result["changed"], result["diff"]) == (False, [])


def test_a_silent_board_is_rebooted_by_power_with_what_was_heard(keyed):
    keyed.play(0, soft="nothing", running=0.3)
    keyed.later(0, -1e4)  # as if it had been switched on just now, and came to nothing
    result = keyed.run("reboot", 0, soft_timeout=1)
    assert outcome(result) == (False, "running", True)
    (said,) = texts(keyed, "reboot")
    assert "nothing at all was heard of it since: no answer at 10.0.2.1" in said


def test_hard_asks_nobody(keyed):
    """Lost: a way to cut the power of a board whose ssh is not to be trusted."""
    keyed.play(0, soft="boots")
    assert outcome(keyed.run("reboot", 0, how="hard")) == (False, "running", True)
    assert texts(keyed, "reboot") == []


def test_turned_off(keyed):
    """Lost: a site's decision that the proxy does not log in to boards."""
    keyed.config["soft_reboot"] = False
    keyed.write()
    keyed.play(0, soft="boots")
    assert outcome(keyed.run("reboot", 0)) == (False, "running", True)
    assert texts(keyed, "reboot") == ["by power: reboot by ssh is turned off (soft_reboot)"]


def test_a_soft_boot_under_way_is_waited_for(keyed):
    """Lost: a board cut in the middle of its boot because the play that began it was killed."""
    keyed.play(0, soft="boots", running=0.8)
    assert outcome(keyed.run("reboot", 0, wait=False))[1] == "booting"
    result = keyed.run("start", 0)
    assert (result["changed"], outcome(result)) == (False, (False, "running", False))


def test_check_mode(keyed):
    """Lost: a dry run that reboots."""
    keyed.play(0, soft="boots")
    before = keyed.events(0)
    result = keyed.run("reboot", 0, check=True)
    assert [line["text"] for line in result["lines"]] == ["would be told by ssh, else by power"]
    assert (result["changed"], keyed.events(0)) == (True, before)


@pytest.mark.parametrize(("how", "failed", "power"), [("auto", False, "on"), ("soft", True, "off")])
def test_a_board_that_is_off_is_told_nothing(keyed, how, failed, power):
    """Lost: half a minute for a machine without power; and, at its address, some other machine's uptime."""
    keyed.play(0, soft="boots")
    keyed.cut(0)
    result = keyed.run("reboot", 0, how=how)
    assert (result["failed"], keyed.power(0)) == (failed, power)
    assert "told by ssh, boot request seen" not in texts(keyed, "reboot")
    assert "pdu-a outlet 5 is off" in str(result["lines"])


@pytest.mark.parametrize("seconds", [0, 601, 10**9])
def test_bad_limit(site, seconds):
    """Lost: the board's lock, for as long as the tenant who has it reboots likes."""
    with pytest.raises(BadInput, match="give 1 to 600 seconds"):
        site.run("reboot", 0, soft_timeout=seconds)


# ---- the ssh client's part, on a real server


def keygen(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return " ".join(open(f"{path}.pub").read().split()[:2])


@pytest.fixture
def server(tmp_path):
    """sshd with one authorized line; (port, its host key, the private key, a file that the command writes)."""
    tmp_path.chmod(0o755)
    host_key = keygen(tmp_path / "host")
    line = reboot_key.LINE.format(mark=reboot_key.MARK, key=keygen(tmp_path / "key"))
    done = tmp_path / "done"
    line = line.replace("exec /sbin/reboot", f"echo $SSH_ORIGINAL_COMMAND > {done}; exec sleep 20")
    (tmp_path / "authorized").write_text(line + "\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        f"Port={port}",
        "ListenAddress=127.0.0.1",
        f"HostKey={tmp_path}/host",
        f"AuthorizedKeysFile={tmp_path}/authorized",
        "PidFile=none",
        "StrictModes=no",
        "UsePAM=no",
        "PermitRootLogin=yes",
    ]
    os.makedirs("/run/sshd", exist_ok=True)
    argv = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *(word for option in options for word in ("-o", option))]
    process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while socket.socket().connect_ex(("127.0.0.1", port)):
        assert time.monotonic() < end
        time.sleep(0.02)
    yield port, host_key, str(tmp_path / "key"), done
    process.kill()
    process.wait()


def ask(server, **changed):
    port, host_key, key, _done = server
    given = dict(host_key=host_key, private_key=key, mark=reboot_key.MARK, deadline=Deadline(60), port=port)
    return ssh_reboot.asked("127.0.0.1", **dict(given, **changed))


def test_the_line_runs_its_command_and_no_other(server):
    """Lost: the promise that this key can only reboot."""
    with ask(server) as refusal:
        assert refusal() is None
    assert server[3].read_text() == "reboot\n", "what was asked for is only a word to the forced command"


def test_a_command_that_fails_is_told(server, tmp_path):
    """Lost: 30 seconds of waiting for a boot of a board that has no /sbin/reboot."""
    authorized = tmp_path / "authorized"
    authorized.write_text(authorized.read_text().replace("exec sleep 20", "exec /no/such/reboot"))
    with ask(server) as refusal:
        end = time.monotonic() + 60
        while refusal() is None and time.monotonic() < end:
            time.sleep(0.02)
        assert "/no/such/reboot" in refusal()


def test_a_command_that_floods_fills_nothing(server, tmp_path, monkeypatch):
    """Lost: the proxy's /tmp or memory, to a tenant whose authorized_keys prints for ever."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    authorized = tmp_path / "authorized"
    authorized.write_text(authorized.read_text().replace("exec sleep 20", "exec yes"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ask(server) as refusal:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            assert refusal() is None
            time.sleep(0.02)
        assert sum(path.stat().st_size for path in scratch.rglob("*") if path.is_file()) < 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 5 << 10


def test_a_flood_in_place_of_the_word_is_no_reboot(server, tmp_path):
    """Lost: seconds of waiting for a board that says anything but that it reboots."""
    authorized = tmp_path / "authorized"
    authorized.write_text(re.sub(r'command="[^"]*"', 'command="yes"', authorized.read_text()))
    with pytest.raises(HeteroError, match="did not say that it reboots within 4096 bytes"), ask(server):
        pass


def test_another_host_key_is_not_told(server, tmp_path):
    """Lost: a word to whoever has taken the board's address."""
    with pytest.raises(HeteroError, match="Host key verification failed"), ask(server, host_key=keygen(tmp_path / "x")):
        pass
    assert not server[3].exists()


def test_a_key_that_is_not_let_in(server, tmp_path):
    """Lost: the reason, in the words of ssh."""
    keygen(tmp_path / "other")
    with pytest.raises(HeteroError, match="Permission denied"), ask(server, private_key=str(tmp_path / "other")):
        pass


def test_nobody_there(server):
    """Lost: seconds, where the address refuses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(HeteroError, match="Connection refused"), ask(server, port=free.getsockname()[1]):
            pass
