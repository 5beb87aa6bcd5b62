# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver apc over ssh: the OpenSSH client against Debian's own sshd, behind which the emulated PDU's screens are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Busy, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, alive, boards
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_ssh import EmulatedSsh
from ansible_collections.hetero.compute.tests.unit.drivers.power.test_pdu_power import run


@pytest.fixture
def over_ssh(emulated, tmp_path):
    """A function that starts a PDU with an ssh side; returns (PDU, ssh side)."""
    started = []

    def start(*options, **settings):
        pdu = emulated(**settings)
        folder = tmp_path / "ssh"
        folder.mkdir()
        started.append(EmulatedSsh(folder, pdu, *options))
        return pdu, started[-1]

    yield start
    for ssh in started:
        ssh.stop()


def apc(pdu, ssh, **settings):
    return Apc("pdu-t", {**ssh.settings, **settings}, pdu.secrets, Deadline(60))


@pytest.mark.parametrize("dialect", ["menu", "cli"])
def test_switches_and_tells(over_ssh, tmp_path, dialect):
    """Without it, nobody could use a PDU on which telnet is off, as APC ships them now."""
    pdu, ssh = over_ssh(dialect=dialect, outlets=boards(tmp_path, "1", "2"))
    with apc(pdu, ssh) as session:
        assert session.dialect == dialect
        assert session.switch(["2"], "on")["2"].accepted
        assert session.status() == {str(number): "on" if number == 2 else "off" for number in range(1, 9)}
        said = Path(f"/proc/{session._line._child.pid}/cmdline").read_text()
    assert said.split("\0")[0].endswith("ssh")
    assert PASSWORD not in said
    assert alive(pdu.outlets["2"]["pid"])
    assert pdu.logouts == 1


def test_another_host_key_gets_no_password(over_ssh):
    """Without it, a machine that took the PDU's address would be given its password."""
    pdu, ssh = over_ssh()
    with apc(pdu, ssh):
        pass
    known_hosts = Path(ssh.settings["known_hosts"])
    assert "ssh-rsa" in known_hosts.read_text()
    assert known_hosts.parent.stat().st_mode & 0o777 == 0o700
    ssh.stop()
    ssh.new_host_key()
    ssh.start()
    with pytest.raises(HeteroError, match="another ssh host key than before") as caught, apc(pdu, ssh):
        pytest.fail("logged in")
    assert str(known_hosts) in caught.value.remedy
    assert not isinstance(caught.value, Busy)
    assert "Accepted password" not in (ssh.folder / "sshd.log").read_text()


def test_a_pinned_key_and_no_other_gets_the_password(over_ssh, tmp_path):
    """Without it, whoever answers at a new PDU's address first is given its password."""
    pdu, ssh = over_ssh()
    public = " ".join(ssh.host_key.with_suffix(".pub").read_text().split()[:2])
    with apc(pdu, ssh, host_key=public) as session:
        assert session.status()
    assert not Path(ssh.settings["known_hosts"]).exists(), "nothing is taken at first sight"
    ssh.stop()
    ssh.new_host_key()
    ssh.start()
    with pytest.raises(HeteroError, match="another ssh host key than the one pinned") as caught:
        apc(pdu, ssh, host_key=public).__enter__()
    assert (caught.value.thing, "correct its host_key in tftp_proxy_pdus" in caught.value.remedy) == ("pdu-t", True)
    assert "Accepted password" not in (ssh.folder / "sshd.log").read_text()
    with pytest.raises(BadInput, match="its host_key is no public key"):
        apc(pdu, ssh, host_key="SHA256:abc").__enter__()


def test_the_module_says_how_a_pdu_proved_itself(over_ssh, tmp_path):
    """Without it, nobody knows which PDUs were taken at their word."""
    pdu, ssh = over_ssh()
    given = dict(host="127.0.0.1", port=ssh.port, transport="ssh", username="apc", password=PASSWORD)
    public = ssh.host_key.with_suffix(".pub").read_text()
    result, _text = run(tmp_path, module="pdu_info", **given, host_key=public, timeout=60)
    assert (result["host_key"], result["outlets"]["1"]["after"]) == ("pinned", "off")


def test_a_wrong_password_is_said_once(over_ssh):
    """Without it, the two ways in which ssh asks for a password would be two bad logins of the three."""
    pdu, ssh = over_ssh("LogLevel VERBOSE")
    session = Apc("pdu-t", ssh.settings, {"username": "apc", "password": "hush-hush-7"}, Deadline(60))
    with pytest.raises(HeteroError, match="refuses user 'apc'") as caught:
        session.__enter__()
    assert not isinstance(caught.value, Busy)
    assert "hush-hush-7" not in repr(caught.value.failure)
    assert (ssh.folder / "sshd.log").read_text().count("Failed password") == 1


def test_a_taken_place_is_busy(over_ssh):
    """Without it, a colleague's login would be reported as a wrong password instead of being waited for."""
    pdu, ssh = over_ssh(faults={"busy": 1})
    with pytest.raises(Busy, match="Another user is logged in"), apc(pdu, ssh):
        pytest.fail("two users at once")
    with apc(pdu, ssh) as session:
        assert session.status()


def test_old_algorithms_are_taken_only_when_asked_for(over_ssh):
    """Without it, a card of 2010 could not be reached, or every PDU would be spoken to with broken ciphers."""
    old = ("KexAlgorithms diffie-hellman-group-exchange-sha1", "HostKeyAlgorithms ssh-rsa", "Ciphers aes128-cbc")
    pdu, ssh = over_ssh(*old, "MACs hmac-sha1")
    with pytest.raises(HeteroError, match="set its legacy_ssh") as caught, apc(pdu, ssh):
        pytest.fail("logged in")
    assert not isinstance(caught.value, Busy)
    with apc(pdu, ssh, legacy_ssh=True) as session:
        assert session.status()


def test_module_keeps_host_keys_with_the_proxy(over_ssh, tmp_path):
    """Without it, each play would take any key, or root's own known_hosts would grow on the proxy."""
    pdu, ssh = over_ssh()
    credentials, config = tmp_path / "credentials.json", tmp_path / "proxy.json"
    credentials.write_text(json.dumps({"pdu-t": pdu.secrets}))
    settings = {**ssh.settings}
    del settings["known_hosts"]
    state = tmp_path / "state"
    folders = {"run_folder": str(tmp_path / "run"), "state_folder": str(state)}
    config.write_text(json.dumps({"pdus": {"pdu-t": settings}, "credentials": str(credentials), **folders}))
    result, text = run(tmp_path, pdu="pdu-t", config=str(config), outlets=["3"], state="on", timeout=60)
    assert result["outlets"]["3"]["after"] == "on"
    assert PASSWORD not in text
    assert "ssh-rsa" in (state / "pdu_known_hosts").read_text()


def test_a_key_that_cannot_be_kept_stops_it(over_ssh, tmp_path):
    """Without it, a full or read-only disk would silently turn the check of the PDU's identity off."""
    pdu, ssh = over_ssh()
    (tmp_path / "file").write_text("")
    with pytest.raises(HeteroError, match="cannot keep its ssh host key") as caught:
        apc(pdu, ssh, known_hosts=str(tmp_path / "file" / "known_hosts")).login()
    assert "writable" in caught.value.remedy


@pytest.mark.parametrize("user", ["-oProxyCommand=touch /tmp/x", ""])
def test_a_user_name_is_no_option(user):
    """Without it, a user name from an inventory could run a program on the proxy."""
    settings = {"host": "127.0.0.1", "transport": "ssh"}
    with pytest.raises(BadInput, match="user name"):
        Apc("pdu-t", settings, {"username": user, "password": "x"}, Deadline(1)).login()
