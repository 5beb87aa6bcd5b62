# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of a request. Lost if it fails: a login, or a secret that is no key, shown or sent to a node."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.login_key import login_key

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDf0 jackie@home"
OTHER = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAA bob"
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The user's ~/.ssh, empty."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    return tmp_path / ".ssh"


def test_what_was_given_comes_first_then_the_sites_then_the_users_own(home):
    (home / "id_rsa.pub").write_text(f"{OTHER}\n")
    assert login_key({})["public"] == OTHER
    (home / "id_ed25519.pub").write_text(f"{KEY}\n")
    assert login_key({})["public"] == KEY
    assert login_key({}, default=OTHER)["public"] == OTHER
    given = login_key(dict(key=KEY), default=OTHER)
    assert given == dict(given=KEY, public=KEY, problem="", missing="")


def test_a_file_is_read_for_a_person_and_not_for_a_form(home):
    """A job could read others' secrets for whoever fills in its form."""
    (home / "lab.pub").write_text(f"{KEY}\n\n{OTHER}\n")
    asked = dict(key_file="~/.ssh/lab.pub")
    assert login_key(asked)["given"] == f"{KEY}\n\n{OTHER}"
    refused = login_key(asked, in_a_job=True)
    assert refused["given"] == ""
    assert refused["problem"] == "key_file is for the command line; in a job give the text of the key (key)"


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (dict(key=KEY, key_file="x"), "Give key (the text) or key_file (its file), not both"),
        (dict(key=PRIVATE), "That is a private key: give the .pub file beside it"),
        (dict(key_file="/nosuch/x.pub"), "/nosuch/x.pub: there is no such file: key_file names the .pub file"),
        (dict(key_file="/etc"), "/etc is no file with OpenSSH public keys: key_file names the .pub file"),
        (dict(key_file="/etc/hostname"), "/etc/hostname is no file with OpenSSH public keys"),
        (dict(key="ssh-ed25519"), "key is no OpenSSH public key: give key_file=FILE, or the text, which -e cuts"),
        (dict(key=f"{KEY}\nsecret words"), "line 2 of key is no OpenSSH public key; a key is one line"),
        (dict(key=7), "key is no OpenSSH public key"),
        (dict(key=KEY), ""),
        (dict(key="", key_file=None), ""),
    ],
)
def test_what_is_wrong_is_said_without_a_word_of_it(home, asked, problem):
    said = login_key(asked)["problem"]
    assert said.startswith(problem) if problem else said == ""
    assert "secret" not in said


def test_a_file_that_was_given_as_the_key_is_told_the_option_for_it(home, monkeypatch):
    """Lost: minutes, to who types key=me.pub; and where a form asks, whether a file is there is nobody's to learn."""
    (home / "me.pub").write_text(f"{KEY}\n")
    monkeypatch.chdir(home)
    assert login_key(dict(key="me.pub"))["problem"].endswith("me.pub is a file: give key_file=me.pub")
    assert login_key(dict(key_file="me.pub"))["given"] == KEY
    assert "me.pub" not in login_key(dict(key="me.pub"), in_a_job=True)["problem"]


def test_no_key_at_all_says_how_to_get_one(home):
    assert login_key({})["missing"].endswith("or make one: ssh-keygen -t ed25519")
    assert login_key({}, in_a_job=True)["missing"].endswith("(key), or set hetero_ssh_public_key")
    # one error at a time: what is wrong with the given one
    assert login_key(dict(key="me"))["missing"] == ""


def test_what_is_no_request_is_said():
    with pytest.raises(AnsibleFilterError, match="needs a mapping of key and key_file"):
        login_key(KEY)
