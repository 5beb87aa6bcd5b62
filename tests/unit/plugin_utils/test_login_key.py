# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of a request. Lost if it fails: a login, or a secret that is no key, shown or sent to a node."""

from __future__ import annotations

import re

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.login_key import login_key

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


@pytest.mark.parametrize("given", [PRIVATE, "/home/me/.ssh/id.pub", "ssh-ed25519", f"{KEY}\nsecret words", "hunter2"])
def test_who_fills_in_a_form_is_told_what_a_form_can_do(home, given):
    """Lost: the next try of a user of AWX, whom a job told to give key_file, which each job refuses."""
    said = login_key(dict(key=given), in_a_job=True)["problem"]
    assert "the .pub file" in said
    assert not re.search(r"key_file|-e\b|hetero_ssh_public_key|secret|hunter2", said), said


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
    said = "key is the text of a key, and no.pub the name of a file: give key_file=no.pub"
    assert login_key(dict(key="no.pub"))["problem"] == said
    assert "no.pub" not in login_key(dict(key="no.pub"), in_a_job=True)["problem"]
    assert login_key(dict(key_file="me.pub"))["given"] == KEY
    assert "me.pub" not in login_key(dict(key="me.pub"), in_a_job=True)["problem"]


def test_no_key_at_all_says_how_to_get_one(home):
    assert login_key({})["missing"].endswith("or make one: ssh-keygen -t ed25519")
    assert login_key({}, in_a_job=True)["missing"].endswith("(key), or set hetero_ssh_public_key")
    # one error at a time: what is wrong with the given one
    assert login_key(dict(key="me"))["missing"] == ""


# ---- keys by name


@pytest.fixture
def keys(home, tmp_path, monkeypatch):
    """The site's folder of keys, beside its inventory; who asks stands elsewhere."""
    folder = tmp_path / "site" / "files" / "keys"
    folder.mkdir(parents=True)
    (folder / "jackie.pub").write_text(f"{KEY}\n")
    (folder / "bob.smith.pub").write_text(f"{OTHER}\n\n{KEY}\n")
    (folder / "notes.txt").write_text("secret")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


def by_name(keys, name, sources=None, **more):
    inventory = str(keys.parents[1] / "inventory.yml")
    return login_key(dict(key=name), sources=[inventory] if sources is None else sources, **more)


def test_a_name_is_a_key_of_the_sites_folder_in_a_form_too(keys):
    """Lost: a login, to the text of a key that was copied wrong; in a form a file is still nobody's to name."""
    assert by_name(keys, "jackie") == dict(given=KEY, public=KEY, problem="", missing="")
    assert by_name(keys, "bob.smith", in_a_job=True)["given"] == f"{OTHER}\n\n{KEY}"
    (keys.parents[1] / "hosts").mkdir()
    there = [str(keys.parents[1] / "hosts")]
    assert by_name(keys, "jackie", there)["given"] == KEY, "an inventory may be a folder, of which each file counts"
    assert by_name(keys, "jackie", ["host,"])["given"] == "jackie", "no inventory file, no folder beside it"
    assert login_key(dict(key=KEY), sources=[str(keys.parents[1])])["given"] == KEY


def test_the_folder_where_one_stands_counts_where_the_inventory_has_none(keys, tmp_path):
    """Lost: the login, to whoever may write to the folder where an operator stands, for a name that the site lacks."""
    own = tmp_path / "elsewhere" / "files" / "keys"
    own.mkdir(parents=True)
    (own / "jackie.pub").write_text(f"{OTHER}\n")
    (own / "eve.pub").write_text(f"{OTHER}\n")
    assert by_name(keys, "jackie")["given"] == KEY
    assert "has no key eve" in by_name(keys, "eve")["problem"]
    assert by_name(keys, "eve", ["/etc/hosts"])["given"] == OTHER


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("jakie", "write key=jackie"),
        ("zoe", "give one of these, key_file=FILE, or the text of a key"),
        ("notes", "give one of these, key_file=FILE, or the text of a key"),
    ],
)
def test_an_unknown_name_is_told_those_that_there_are(keys, name, remedy):
    said = by_name(keys, name)
    assert said["problem"] == f"files/keys has no key {name} (it has bob.smith, jackie): {remedy}"
    assert said["given"] == ""


def test_a_form_learns_no_names_of_others(keys):
    """Lost: who has access to a site; and a secret that was put into the wrong field, in the log of a job."""
    said = by_name(keys, "hunter2", in_a_job=True)["problem"]
    assert said == "files/keys of the project has no key of that name: give one of its names, or the text of a key"


def test_a_folder_that_cannot_be_read_is_said(keys, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.listdir", denied)
    with pytest.raises(AnsibleFilterError, match=r"files/keys cannot be read \(Permission denied\)"):
        by_name(keys, "jackie")


def test_a_site_with_many_keys_is_not_listed_whole(keys):
    for number in range(30):
        (keys / f"user{number:02}.pub").write_text(KEY)
    said = by_name(keys, "zoe")["problem"]
    assert "user17 and 12 more)" in said
    assert "user18" not in said


@pytest.mark.parametrize("name", ["../keys/jackie", "files/keys/jackie.pub", "/etc/hostname", "jackie.pub", ".", "-x"])
def test_no_path_is_a_name(keys, name, monkeypatch):
    """Lost: any file, to who fills in a form."""
    monkeypatch.chdir(keys.parents[1])
    said = by_name(keys, name, in_a_job=True)
    assert said["problem"].startswith("key is no OpenSSH public key")
    assert said["public"] == name


def test_what_is_private_in_that_folder_is_neither_used_nor_shown(keys, home):
    (keys / "eve.pub").write_text(f"{PRIVATE}\nsecret\n")
    (home / "id_ed25519").write_text(f"{PRIVATE}\nsecret\n")
    (keys / "bob.pub").symlink_to(home / "id_ed25519")
    (keys / "odd.pub").write_text("secret words\n")
    for name in ("eve", "bob"):
        said = by_name(keys, name)
        assert said["problem"].startswith(f"files/keys/{name}.pub holds a private key: take it out of that folder")
        assert "secret" not in str(said)
    said = by_name(keys, "odd")
    remedy = "put the .pub file of key odd there"
    assert said["problem"] == f"files/keys/odd.pub is no file with OpenSSH public keys: {remedy}"
    assert "secret" not in str(said)


def test_what_an_unquoted_key_leaves_is_no_unknown_name(keys):
    """Lost: the word on the quotes that are missing, to who typed -e key=ssh-ed25519 AAAA…"""
    assert "which -e cuts at its first blank" in by_name(keys, "ssh-ed25519")["problem"]


def test_a_file_where_one_stands_is_told_its_option_before_any_name(keys):
    with open("jackie", "w", encoding="utf-8") as file:
        file.write(KEY)
    assert by_name(keys, "jackie")["problem"].endswith("jackie is a file: give key_file=jackie")
    assert by_name(keys, "jackie", in_a_job=True)["given"] == KEY


def test_a_site_without_such_a_folder_is_told_of_it(home):
    assert login_key(dict(key="jackie"))["problem"].endswith("beside the inventory, as files/keys/jackie.pub")
