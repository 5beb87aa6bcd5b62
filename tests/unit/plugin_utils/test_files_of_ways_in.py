# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files for `ssh -F`. If these fail, nobody reaches what was given to them, or a file of their own is gone.

Tests plugin_utils/ways_in.py.
"""

from __future__ import annotations

import os

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.hetero.compute.plugins.plugin_utils.ways_in import is_ours, keep, read

KEY = "10.0.2.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBench0000000000000000000000000000000000000"
JACKIE = dict(instance="jackie", ip="10.0.2.1", known_hosts=KEY)


def test_a_file_is_kept_as_it_is_asked_for(tmp_path):
    """Lost: the way in; or that nothing changed, of a file that is right already."""
    folder = str(tmp_path / "ways")
    checked = keep(folder, [JACKIE], ["ProxyJump p1"], check=True)
    assert (checked["changed"], (tmp_path / "ways").exists()) == (True, False)
    made = keep(folder, [JACKIE], ["ProxyJump p1"])
    text = (tmp_path / "ways" / "jackie").read_text()
    assert (made, made["diff"][0]["after"]) == (checked, text)
    assert text.endswith(f"KnownHostsCommand /usr/bin/echo {KEY}\n  ProxyJump p1\n")
    assert keep(folder, [JACKIE], ["ProxyJump p1"]) == dict(changed=False, diff=[])
    (tmp_path / "ways" / "jackie").chmod(0o644)
    assert keep(folder, [JACKIE], ["ProxyJump p1"])["diff"][0]["before"] == f"mode 0644\n{text}"
    assert keep(folder, [dict(instance="jackie")], [], present=False)["changed"] is True
    assert keep(folder, [dict(instance="jackie")], [], present=False) == dict(changed=False, diff=[])


def test_a_file_of_ones_own_is_left_alone(tmp_path):
    """Lost: ~/.ssh/config, where an instance is called so and the folder is ~/.ssh."""
    own = tmp_path / "jackie"
    own.write_text("Host jackie\n  Port 23\n  User me\n")
    assert is_ours(own.read_text(), "jackie") is False
    for present in (True, False):
        with pytest.raises(AnsibleActionFail, match="is no file of an instance: move it away"):
            keep(str(tmp_path), [JACKIE], [], present)
    assert own.read_text().endswith("User me\n")
    assert read(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (dict(instance="../x"), "'../x' is no name of an instance"),
        (dict(ip="10.0.2.1;reboot"), "ip is no address or host name"),
        (dict(known_hosts="$(reboot)"), "known_hosts is no line of known_hosts"),
        (dict(known_hosts=f"{KEY}\nProxyCommand reboot"), "known_hosts is not one line"),
        (dict(ip=""), "ip is not one line"),
    ],
)
def test_what_a_shell_would_obey_is_refused(tmp_path, wrong, why):
    """Lost: the controller, to a node that says a command for an address."""
    with pytest.raises(AnsibleActionFail) as refused:
        keep(str(tmp_path), [dict(JACKIE, **wrong)], [])
    assert str(refused.value).partition(": ")[2].startswith(why) or str(refused.value).startswith(why)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    """Lost: which folder is to be made writable."""
    (tmp_path / "file").write_text("")
    with pytest.raises(AnsibleActionFail, match=rf"file/jackie: .*: make folder {tmp_path}/file writable"):
        keep(str(tmp_path / "file"), [JACKIE], [])


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of another user needs root: run as root")
@pytest.mark.parametrize("first", ["nothing", "the same text"])
def test_a_folder_that_others_made_since_the_request_was_checked_gets_nothing(tmp_path, monkeypatch, first):
    """Lost: the controller's account, to who makes the folder in /tmp while the first instance boots."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    folder = tmp_path / "ways"
    keep(str(folder), [JACKIE], [])
    if first == "nothing":
        (folder / "jackie").unlink()
    there = os.listdir(folder)
    os.chown(folder, 1234, -1)
    with pytest.raises(AnsibleActionFail, match=r"folder which belongs to another user \(1234\), and ssh would do"):
        keep(str(folder), [JACKIE], [])
    assert os.listdir(folder) == there
    assert keep(str(folder), [JACKIE], [], check=True)["changed"] is (first == "nothing")
    keep(str(folder), [JACKIE], [], present=False)
    assert os.listdir(folder) == [], "what was written there is taken back"
