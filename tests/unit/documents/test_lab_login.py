# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make ssh`, as the tour has it. If these fail, a newcomer cannot look at the proxy node of the lab."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml
from jinja2 import Environment, Template

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

SAYS = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps([sys.argv[1:], sys.stdin.read()]))\n"


@pytest.fixture
def clone(tmp_path):
    """A clone whose lab runs proxy1 and jackie; its ssh says what it was called with."""
    for folder in ("bin", "tools", ".lab/ssh"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "ssh", tmp_path / "tools" / "ssh")
    (tmp_path / "bin" / "ssh").write_text(SAYS)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    (tmp_path / ".lab" / "ssh" / "jackie").write_text("Host jackie\n")
    # as role lab writes it
    way = Template((ROOT / "roles" / "lab" / "templates" / "way_in.j2").read_text()).render(
        item={"key": "proxy1", "value": "10.0.2.254"}, lab_folder=f"{tmp_path}/.lab", _lab_namespace="hetero-1"
    )
    (tmp_path / ".lab" / "ssh" / "proxy1").write_text(f"{way}\n")
    return tmp_path


def login(clone, *words):
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    env["PATH"] = f"{clone / 'bin'}:{env['PATH']}"
    done = subprocess.run(
        [clone / "tools" / "ssh", *words], env=env, input="typed\n", capture_output=True, text=True, check=False
    )
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def test_a_login_on_an_instance(clone):
    arguments, typed = login(clone, "jackie", "true")
    assert (arguments[-4:], typed) == (["-F", ".lab/ssh/jackie", "jackie", "true"], "typed\n")


def test_nobody_is_asked_for_a_password(clone):
    """Nothing in the lab has one: a newcomer would guess, and believe that he had forgotten it."""
    for name in ("jackie", "proxy1"):
        arguments, _typed = login(clone, name)
        assert {"PasswordAuthentication=no", "KbdInteractiveAuthentication=no"} <= set(arguments)


#: What ssh says by itself, and what is said of it then.
ENDS = [
    (
        "root@10.0.2.1: Permission denied (publickey).",
        "{name} refuses the key that this lab has for it: whoever asked for it gave another ssh_public_key, or its "
        "authorized_keys was changed. Nothing here has a password.",
    ),
    (
        "ssh: connect to host 10.0.2.1 port 22: No route to host",
        "{name} cannot be reached: make status shows whether it runs, and on which node. What was just begun takes a "
        "minute; make lab-up brings back a node of the lab.",
    ),
    (
        "Host key verification failed.",
        "{name} is not the machine that it was: another host key than the one known answers. make status shows what "
        "has its address.",
    ),
]


@pytest.mark.parametrize("name", ["jackie", "proxy1"])
@pytest.mark.parametrize(("words", "hint"), ENDS)
def test_a_login_that_fails_says_what_to_look_at(clone, name, words, hint):
    """A newcomer reads `Error 255` of make, and does not know whether it is he, the instance or the lab."""
    # real ones write to the file behind -E
    says = f"import sys\nwith open(sys.argv[sys.argv.index('-E') + 1], 'a') as log: log.write({words!r} + chr(10))\n"
    (clone / "bin" / "ssh").write_text(f"#!{sys.executable}\n{says}sys.exit(255)\n")
    said = login(clone, name, "true")
    assert said.splitlines() == [words, hint.format(name=name)]


def test_a_command_that_ends_with_255_is_no_failed_login(clone):
    (clone / "bin" / "ssh").write_text("#!/bin/sh\nexit 255\n")
    assert login(clone, "jackie", "true") == ""


def test_a_real_ssh_that_is_refused(clone):
    """The hint hangs on the words and the options of the real one."""
    (clone / "bin" / "ssh").unlink()
    text = "Host jackie\nHostName 127.0.0.1\nPort 1\nUser root\n"
    (clone / ".lab" / "ssh" / "jackie").write_text(text)
    said = login(clone, "jackie", "true").splitlines()
    assert "Connection refused" in said[0]
    assert said[-1].startswith("jackie cannot be reached: make status shows")


def test_a_key_of_ones_own_opens_the_labs_instances(tmp_path, monkeypatch):
    """Lost: the way in to `-e key_file=~/.ssh/id_ed25519.pub`: where a file names one key, ssh offers no other."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ecdsa").touch()
    environment = Environment(trim_blocks=True, autoescape=False)  # as Ansible's templates have it
    environment.filters["expanduser"], environment.tests["file"] = os.path.expanduser, os.path.isfile
    text = (ROOT / "roles" / "lab" / "templates" / "lab.yml.j2").read_text()
    _before, key, options = text.partition("    hetero_ssh_options:")
    options = key + options.partition("{% if _lab_proxies %}")[0]
    written = yaml.safe_load(environment.from_string(options).render(lab_folder="/lab", _lab_namespace="lab"))
    keys = [line for line in written["hetero_ssh_options"] if line.startswith("IdentityFile ")]
    assert keys == ["IdentityFile /lab/ssh/id_ed25519", f"IdentityFile {tmp_path}/.ssh/id_ecdsa"]


def test_a_login_on_a_node_of_the_lab(clone):
    """It has a namespace of its own, whose name nobody knows by heart."""
    arguments, typed = login(clone, "proxy1", "echo", "a b")
    assert arguments[-5:] == ["-F", ".lab/ssh/proxy1", "proxy1", "echo", "a b"]
    assert typed == "typed\n", "what is typed is the shell's"


def test_the_way_to_a_node_is_a_file_for_ssh(clone):
    """Who has the collection's archive alone has no `make ssh`, and types `ssh -F .lab/ssh/proxy1 proxy1`."""
    asked = ["ssh", "-G", "-F", ".lab/ssh/proxy1", "proxy1"]
    known = subprocess.run(asked, cwd=clone, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {
        "user root",
        "hostname 10.0.2.254",
        f"identityfile {clone}/.lab/ssh/id_ed25519",
        f"userknownhostsfile {clone}/.lab/ssh/known_hosts",
        "proxycommand nsenter --net=/run/netns/hetero-1 nc %h %p",
    } <= set(known)
    assert {"stricthostkeychecking yes", "stricthostkeychecking true"} & set(known)


@pytest.mark.parametrize(("ends", "code"), [(0, 0), (1, 0), (130, 0), (255, 1)])
def test_a_shell_ends_without_an_error_of_make(clone, ends, code):
    """A newcomer whose last command found nothing reads `Error 1` of make, and looks for what is broken."""
    (clone / "bin" / "ssh").write_text(f"#!/bin/sh\nexit {ends}\n")
    env = dict(os.environ, PATH=f"{clone / 'bin'}:{os.environ['PATH']}")
    ours, theirs = os.openpty()
    try:
        done = subprocess.run([clone / "tools" / "ssh", "jackie"], env=env, stdin=theirs, check=False)
        assert done.returncode == code
        typed = subprocess.run([clone / "tools" / "ssh", "jackie"], env=env, stdin=subprocess.DEVNULL, check=False)
        assert typed.returncode == ends, "a script's"
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("name", ["bob", "localhost", "a b", ""])
def test_what_is_not_there_is_said(clone, name):
    said = login(clone, name)
    assert "is not running in this lab" in said or "Which instance" in said
