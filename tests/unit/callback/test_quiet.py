# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback hetero.compute.quiet, by ansible-playbook itself. If these fail, a person misses an error, or reads it among
a hundred lines.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pexpect
import pytest

from ansible_collections.hetero.compute.plugins.callback.quiet import CallbackModule, bounded, errors
from ansible_collections.hetero.compute.tests.unit.drivers.power.test_pdu_power import COLLECTIONS

BIN = Path(sys.executable).parent
PLAY = """\
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Nothing to say
      ansible.builtin.command: {argv: [echo, hidden]}
      changed_when: false
    - name: What a play says
      hetero.compute.show: {lines: ["jackie is running"]}
    - name: A failure that counts for nothing
      ansible.builtin.fail: {msg: not to be seen}
      ignore_errors: true
    - name: A file
      ansible.builtin.copy: {content: "new\\n", dest: "{{ file }}", mode: "0600"}
    - name: Items
      ansible.builtin.command: "{{ item }}"
      loop: ["true", "sh -c 'echo no such outlet >&2; exit 3'"]
      changed_when: false
      when: fails | default(false) | bool
    - when: rescues | default(false) | bool
      block:
        - name: An error
          ansible.builtin.fail: {msg: to be rescued}
      rescue:
        - name: What mends it
          ansible.builtin.debug: {msg: hidden}
"""


DOWN = """\
- hosts: "{{ whose }}"
  gather_facts: false
  vars: {asked: [proxy1, proxy2], first: "{{ asked[0] }}"}
  tasks:
    - name: For one
      ansible.builtin.ping:
      delegate_to: "{{ first }}"
      when: whose == 'localhost'
    - name: Its own
      ansible.builtin.ping:
      when: whose == 'proxy1'
    - name: For each
      ansible.builtin.ping:
      delegate_to: "{{ item }}"
      loop: "{{ asked }}"
"""


def environment(**more):
    """Nobody's settings but those of this callback; lines for a pipe are kept back, as they are for most people."""
    own = ("ANSIBLE_", "PYTHONUNBUFFERED")
    env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return dict(
        env,
        ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS),
        ANSIBLE_STDOUT_CALLBACK="hetero.compute.quiet",
        ANSIBLE_LOCALHOST_WARNING="false",
        ANSIBLE_INVENTORY_UNPARSED_WARNING="false",
        ANSIBLE_NOCOLOR="true",
        **more,
    )


@pytest.fixture
def play(tmp_path):
    """A function that runs PLAY; returns (exit code, standard output and errors)."""
    (tmp_path / "play.yml").write_text(PLAY)

    def run(*words):
        argv = [str(BIN / "ansible-playbook"), "play.yml", "-e", f"file={tmp_path / 'file'}", *words]
        done = subprocess.run(
            argv, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=1000,
        )  # fmt: skip
        # on a busy machine each task may last
        return done.returncode, re.sub(r"(?m)^.*: \d+ s so far\n", "", done.stdout)

    return run


def test_what_the_play_says_and_what_changed(play):
    assert play() == (0, "jackie is running\nlocalhost: 1 changed\n")
    assert play() == (0, "jackie is running\n")


def test_an_error_is_said_once_with_the_programs_words(play):
    rc, output = play("-e", "fails=true")
    assert rc == 2
    lines = output.splitlines()
    assert lines == ["jackie is running", lines[1], "localhost: 1 changed, 1 failed"]
    assert lines[1] == "localhost: non-zero return code: no such outlet"


def test_a_rescue_is_told(play):
    """Lost: that the error above was dealt with."""
    rc, output = play("-e", "rescues=true")
    assert rc == 0
    assert output == "jackie is running\nlocalhost: to be rescued\nlocalhost: 1 changed, 1 rescued\n"


def test_a_dry_run_shows_the_difference(play):
    rc, output = play("--check", "--diff")
    assert rc == 0
    assert "+new" in output
    assert output.endswith("localhost: 1 changed\nA dry run: nothing was changed\n")


def test_verbose_is_as_ever(play):
    """Lost: which task it was, where one looks for a fault."""
    rc, output = play("-v")
    assert rc == 0
    assert "TASK [Nothing to say]" in output
    assert "PLAY RECAP" in output


def test_a_module_that_crashed_says_why():
    """Lost: the reason, as ansible-core before 2.19 has it beside a message that names none."""
    said = 'Traceback (most recent call last):\n  File "<stdin>", line 9\nOSError: No space left on device\n'
    crashed = {"msg": "MODULE FAILURE\nSee stdout/stderr", "module_stderr": said, "module_stdout": ""}
    assert errors(crashed) == ["MODULE FAILURE: OSError: No space left on device"]
    assert errors({"results": [{"failed": True, **crashed}, {"msg": "well"}]}) == errors(crashed)
    assert errors({"msg": "no", "results": 5}) == ["no"]


def test_what_a_filter_of_ours_refused_is_said_in_its_words():
    """Lost: which value is wrong, behind the name of a plugin that nobody gave."""
    refused = "The filter plugin 'hetero.compute.flavors' failed: flavor a.b: memory_mb is -1"
    for text in (refused, f"Task failed: {refused}", f"Task failed: Error while resolving value for 'x': {refused}"):
        assert errors({"msg": text}) == ["flavor a.b: memory_mb is -1"]
    others = "Task failed: The filter plugin 'ansible.builtin.int' failed: no"
    assert errors({"msg": others}) == [others]


def test_words_of_others_in_an_error_add_no_line_of_ours(tmp_path):
    """Lost: whose machine is meant, to who pastes what a lying node had printed; the terminal; and the error itself,
    above a node's million words.
    """
    stranger = "x\nlocalhost: 1 changed\n\r\njackie is running on board7: ssh root@192.0.2.66\x1b[2J"
    tasks = [
        {"ansible.builtin.fail": {"msg": text}, "ignore_errors": False, "when": f"which == {number}"}
        for number, text in enumerate((stranger, "y" * 10**6, "z\n" * 100_000))
    ]
    (tmp_path / "words.json").write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    said = []
    for which in range(3):
        argv = [str(BIN / "ansible-playbook"), "words.json", "-e", json.dumps({"which": which})]
        done = subprocess.run(argv, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
        said.append(done.stdout)
    assert [line for line in said[0].splitlines() if line[:1] != " "] == ["localhost: x", "localhost: 1 failed"]
    assert "  jackie is running on board7: ssh root@192.0.2.66\\x1b[2J" in said[0]
    assert "\x1b" not in said[0]
    assert "\r" not in said[0]
    assert len(said[1]) < 51_000
    assert "…\n" in said[1]
    assert len(said[2].splitlines()) == 502


def test_as_few_warnings_as_anybody_reads():
    assert bounded({"msg": "x"}) == {"msg": "x"}
    few = bounded({"warnings": ["w\x1b\nlocalhost: ok"] * 1000, "msg": "x"})
    assert few == {"warnings": ["w\\x1b\n  localhost: ok"] * 20, "msg": "x"}


def test_an_unreachable_host_says_why_in_a_loop_too():
    """Lost: the reason, behind Ansible's own "All items completed"."""
    items = [{"unreachable": True, "msg": "Connection refused"}, {"msg": "well"}]
    found = {"unreachable": True, "msg": "All items completed", "results": items}
    assert errors(found, "unreachable") == ["Connection refused"]
    assert errors(dict(items[0]), "unreachable") == ["Connection refused"]


@pytest.mark.parametrize(
    ("whose", "said"),
    [
        ("localhost", ["localhost: proxy1 "]),
        ("proxy1", ["proxy1: "]),
        ("127.0.0.1", ["127.0.0.1: proxy1 ", "127.0.0.1: proxy2 "]),
    ],
)
def test_who_cannot_be_reached_is_named(tmp_path, whose, said):
    """Lost: which of all nodes is down, where the play is localhost's and its task for a proxy."""
    (tmp_path / "down.yml").write_text(DOWN)
    hosts = {name: {"ansible_host": "127.0.0.1", "ansible_port": 9} for name in ("proxy1", "proxy2")}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    argv = [str(BIN / "ansible-playbook"), "-i", "hosts.json", "down.yml", "-e", f"whose={whose}"]
    done = subprocess.run(argv, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    assert re.findall("^(.*)cannot be reached: ", done.stdout, re.M) == said, done.stdout


# ---- what goes on

#: Seconds after which a play that says nothing is ended.
LONGEST = 1000.0
SHORT = """\
- hosts: localhost
  gather_facts: false
  tasks:
    - name: One of many
      ansible.builtin.command: sleep 2
      loop: "{{ range(loops | default(1) | int) | list }}"
      changed_when: false
    - name: Second of many
      ansible.builtin.command: sleep 2
      changed_when: false
    - name: Third of many
      ansible.builtin.command: sleep 2
      changed_when: false
    - name: Fourth of many
      ansible.builtin.command: sleep 2
      changed_when: false
    - name: Fifth of many
      ansible.builtin.command: sleep 2
      changed_when: false
"""


def test_many_short_tasks_are_not_silent(tmp_path):
    """Lost: whether a set-up of a hundred short tasks still does anything: it said nothing for 22 s."""
    (tmp_path / "short.yml").write_text(SHORT)
    argv = [str(BIN / "ansible-playbook"), "short.yml"]
    said = subprocess.run(argv, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True, check=True).stdout
    assert re.search(r"^(Third|Fourth|Fifth) of many(: \d+ s so far)?$", said, re.MULTILINE), said


@pytest.mark.parametrize(
    ("playbook", "words", "says"),
    [
        (
            "provision_instance",
            "instance=jackie",
            "what was begun on the nodes goes on there; ansible-playbook hetero.compute.status shows it, the same "
            "command again waits for it, and ansible-playbook hetero.compute.terminate_instance -e instance=jackie "
            "ends the instance",
        ),
        (
            "terminate_instance",
            "instance=jackie",
            "what was begun on the nodes goes on there; ansible-playbook hetero.compute.status shows it, the same "
            "command again waits for it",
        ),
        (
            "lab_up",
            "x=1",
            "what was started of the lab runs on; the same command again goes on there, and ansible-playbook "
            "hetero.compute.lab_down ends it",
        ),
        (
            "proxy",
            "x=1",
            "what was begun on the nodes may go on there; the same command again waits for it, or goes on where it was",
        ),
    ],
)
def test_an_interrupted_play_says_what_goes_on(tmp_path, playbook, words, says):
    """Lost: a board that boots on for who pressed Ctrl-C, and does not know of it. Also that lines of a task that lasts
    are seen through a pipe before there are 8 KB of them.
    """
    (tmp_path / f"{playbook}.yml").write_text(SHORT)
    argv = [str(BIN / "ansible-playbook"), f"{playbook}.yml", "-e", words, "-e", "loops=3000"]
    play = subprocess.Popen(
        argv, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    silent = threading.Timer(LONGEST, play.kill)
    silent.start()
    try:
        # on a busy machine the play itself is named before its first task
        assert any("One of many" in line for line in itertools.islice(play.stdout, 20))
        play.send_signal(signal.SIGINT)
        said, _nothing = play.communicate(timeout=LONGEST)
    finally:
        silent.cancel()
        play.kill()
        play.wait()
    assert play.returncode == 99
    assert said.splitlines()[-1] == f"Interrupted: {says}", said
    assert said.count("Interrupted") == 1


@pytest.mark.parametrize("more", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_who_reads_one_line_and_leaves_hears_no_traceback(tmp_path, more):
    """Lost: the table's head under Ansible's own errors, to `| head -1`."""
    (tmp_path / "shows.yml").write_text(SHOWS)
    argv = [str(BIN / "ansible-playbook"), "shows.yml"]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with subprocess.Popen(argv, cwd=tmp_path, env=environment(**more), **pipes) as play:
        assert play.stdout.readline() == "line 0\n"
        play.stdout.close()
        said = play.stderr.read()
    assert (play.returncode, said) == (0, "")


# ---- on a terminal

SHOWS = """\
- hosts: localhost
  gather_facts: false
  tasks:
    - name: What a play says
      hetero.compute.show: {lines: ["line {{ item }}"]}
      loop: [0, 1, 2, 3]
    - name: A change
      ansible.builtin.command: sleep 1
"""

SLOW = """\
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Wait for the disk
      ansible.builtin.command: sleep 2.5
      changed_when: false
    - name: What a play says
      hetero.compute.show: {lines: ["jackie is running"]}

- hosts: localhost
  gather_facts: false
  vars_prompt:
    - {name: sure, prompt: Shall I wipe board3, private: false}
  tasks:
    - name: What was answered
      hetero.compute.show: {lines: ["answer {{ sure }}"]}
"""


def on_terminal(folder, *words):
    """What a terminal of 40 columns gets of SLOW: (exit code, all that was written)."""
    (folder / "slow.yml").write_text(SLOW)
    env = environment(TERM="xterm")
    argv = [str(BIN / "ansible-playbook"), "slow.yml", *words]
    with pexpect.spawn(argv[0], argv[1:], cwd=str(folder), env=env, timeout=1000, dimensions=(24, 40)) as child:
        child.expect("wipe board3")
        said = child.before.decode() + child.after.decode()
        with pytest.raises(pexpect.TIMEOUT):
            child.expect("\x1b", timeout=2)  # nothing is written over the question
        child.sendline("yes")
        child.expect(pexpect.EOF)
        said += child.before.decode()
    return child.exitstatus, said


def shown(written):
    """The lines that stay on the terminal, by what was written to it."""
    lines, kept = [""], None
    for part in re.findall(r"\x1b7|\x1b8|\x1b\[1A|\x1b\[K|\r|\n|[^\x1b\r\n]+", written):
        if part == "\x1b7":
            kept = len(lines)
        elif part == "\x1b8":
            lines += [""] * (kept - len(lines))
        elif part == "\x1b[1A":
            lines.pop()
        elif part == "\x1b[K":
            lines[-1] = ""
        elif part == "\n":
            lines.append("")
        elif part != "\r":
            lines[-1] += part
    return [line for line in lines if line]


def test_a_terminal_shows_what_lasts_and_keeps_what_is_said_and_asked(tmp_path):
    """Lost: whether anything goes on; or the lines of a play, under one that is written over them; or a question."""
    rc, written = on_terminal(tmp_path)
    assert rc == 0
    assert "Wait for the disk: 2 s" in written
    assert shown(written) == ["jackie is running", "Shall I wipe board3: yes", "answer yes"]


def test_a_terminal_shows_with_v_what_ansible_says(tmp_path):
    rc, written = on_terminal(tmp_path, "-v")
    assert rc == 0
    assert "\x1b[K" not in written
    assert "TASK [Wait for the disk]" in written


def test_a_result_that_warns_of_nothing_is_not_copied():
    """Lost: processor time of the controller for each of a hundred nodes, whose answers are large."""

    class Answer:
        warnings, deprecations, task = (), (), SimpleNamespace(action="hetero.compute.node_info")

        @property
        def result(self):
            pytest.fail("Ansible makes a copy of all of it")

    CallbackModule().v2_runner_on_ok(Answer())
    handled = []
    callback = CallbackModule()
    callback._handle_warnings = handled.append
    task = SimpleNamespace(action="hetero.compute.node_info")
    for more in (dict(warnings=["old"]), dict(warnings=[], deprecations=["old"]), {}):  # ansible-core 2.18 says nothing
        callback.v2_runner_on_ok(SimpleNamespace(**dict(dict(deprecations=[], task=task, result=dict(more)), **more)))
    assert handled == [dict(warnings=["old"]), dict(warnings=[], deprecations=["old"]), {}]
