# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules called from the copy of the collection on their node. If these fail, each call sends hundreds of kilobytes
again, one copy answers for another release, or what was cut off is done twice.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")

#: What Ansible says at -vvv of a module that it sends.
SENT = "Using module file"
TOOLS = {"hetero.compute.node_tools": {"commands": {"/usr/local/sbin/hetero": "hetero"}}}
KILLED = """
import os, signal

def main():
    open('/tmp/calls', 'a').write('called\\n')
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    main()
"""
SAYS = """
import os, json

def main():
    print(json.dumps(dict(said=os.environ['WORD'])))

if __name__ == "__main__":
    main()
"""
#: What of a copy was cut off, and how: its new content, or none for a file that is not there.
DAMAGE = {
    "hetero/modules/board_info.py": b"",
    "hetero/module_utils/_hetero/core/module.py": b"from .errors import",
    "hetero/module_utils/_hetero/boards/work/info.py": None,
    "ansible/module_utils/basic.py": b"",
}


@pytest.fixture
def node(tmp_path):
    """(a Proxy p1 without a copy, a function that runs tasks on it and returns the exit code, what was said and the
    results of those that were registered).
    """
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1, copy=False)
    plays = Playbooks(tmp_path, ["p1"])

    def run(*tasks, **play):
        told = {
            "dest": str(tmp_path / "told.json"),
            "content": "{{ [one | default({}), two | default({})] | to_json }}",
        }
        last = {"ansible.builtin.copy": told, "delegate_to": "localhost", "no_log": True}
        book = [{"hosts": "p1", "gather_facts": False, "tasks": [*tasks, last], **play}]
        (tmp_path / "book.json").write_text(json.dumps(book))
        rc, output = plays.end(plays.start_file("book.json", "-vvv"))
        return rc, output, json.loads((tmp_path / "told.json").read_text()) if rc == 0 else []

    try:
        yield proxy, run
    finally:
        proxy.remove()


def called(output, module="board_info"):
    """How often a module was sent as a whole."""
    return sum(SENT in line and f"/{module}.py" in line for line in output.splitlines())


def test_a_call_gives_the_same_by_the_copy(node):
    """Lost: seconds of each call; or a field of its result that plays go on with."""
    _proxy, run = node
    rc, output, (sent, short) = run(
        {"hetero.compute.board_info": {"events": 1}, "register": "one"},
        TOOLS,
        {"hetero.compute.board_info": {"events": 1}, "register": "two", "diff": True},
    )
    assert rc == 0, output
    assert called(output) == 1
    why = "board_info is sent with all that it imports: p1 has no copy of this release: set it up again"
    assert output.splitlines().count(why) == 1
    for result in (sent, short):
        del result["seconds"], result["roots"]  # as they are at this moment
    assert short == sent
    assert len(short["boards"]) == 2


def test_what_a_module_refuses_is_refused_in_the_same_words(node):
    """Lost: which argument was wrong."""
    _proxy, run = node
    wrong = {"hetero.compute.board_info": {"boards": ["x"]}, "ignore_errors": True}
    unknown = {"hetero.compute.board_info": {"boards": [77]}, "ignore_errors": True}
    rc, output, told = run(TOOLS, dict(wrong, register="one"), dict(unknown, register="two"))
    assert rc == 0, output
    assert called(output) == 0
    short = [result["msg"] for result in told]
    rc, output, told = run(
        {"ansible.builtin.command": "rm -r /usr/lib/hetero"}, dict(wrong, register="one"), dict(unknown, register="two")
    )
    assert rc == 0, output
    assert called(output) == 2
    assert short == [result["msg"] for result in told]


def test_a_call_that_lasts_says_so(node):
    """Lost: whether a node whose PDU hangs is still asked, for as long as the PDU may take."""
    proxy, run = node
    path = proxy.folder / "etc" / "hetero" / "pdu.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), faults={"hang": True})))
    rc, output, (told, _none) = run(TOOLS, {"hetero.compute.board_reconcile": {"timeout": 8}, "register": "one"})
    assert rc == 0, output
    assert told["unseen"] == ["board0", "board1"]
    what = "p1: board_reconcile, which looks at boards and mends what is safe, has taken"
    told = [int(seconds) for seconds in re.findall(rf"^{what} (\d+) s so far$", output, re.MULTILINE)]
    assert len(told) > 1, output
    assert min(told) >= 2, "a call that is over at once says nothing"


def test_check_mode_and_a_verb_in_the_background_are_the_same_by_the_copy(node):
    """Lost: a dry run that does it; the progress of a boot."""
    proxy, run = node
    claim = dict(instance="jackie", owner="jo", flavor={"name": "small"}, image="debian")
    claim["ssh_public_key"] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKdMrYVSfzPTDCJvNwB3WKbXWoxIRXHyAbXlrXkVmyzL"
    rc, output, (planned, done) = run(
        TOOLS,
        {"hetero.compute.instance": claim, "check_mode": True, "register": "one"},
        {"hetero.compute.instance": claim, "register": "two"},
    )
    assert rc == 0, output
    assert called(output, "instance") == 0
    assert planned["changed"]
    assert planned["instances"][0]["state"] != "running"
    assert done["instances"][0]["state"] == "running"
    assert "jackie  board0  power" in output
    assert os.path.exists(proxy.state_db)


def test_a_call_by_a_former_name_is_by_the_copy_too(node):
    """Lost: seconds of each call, to whoever has not changed a play since the module got another name."""
    _proxy, run = node
    claim = dict(instance="nobody", kind="board", state="absent")
    rc, output, (shown, ended) = run(
        TOOLS,
        {"hetero.compute.board_console": {"board": 77}, "register": "one", "ignore_errors": True},
        {"hetero.compute.board_instance": claim, "register": "two"},
    )
    assert rc == 0, output
    assert (called(output, "board_console_info"), called(output, "instance")) == (0, 0)
    assert "77" in shown["msg"]
    assert ended["instances"] == []


def test_a_copy_of_another_release_is_not_asked(node):
    """Lost: what a newer controller knows, or its words, to what an older set-up left on the node."""
    proxy, run = node
    rc, output, _told = run(TOOLS)
    assert rc == 0, output
    (copy,) = (proxy.root / "usr" / "lib" / "hetero").iterdir()
    copy.rename(copy.with_name("0123456789abcdef"))
    rc, output, (told, _none) = run({"hetero.compute.board_info": {}, "register": "one"})
    assert rc == 0, output
    assert called(output) == 1
    assert len(told["boards"]) == 2


def test_a_copy_that_is_damaged_is_not_asked(node):
    """Lost: every verb on a node, in a traceback, by a file that its disk lost; until somebody sets it up again."""
    proxy, run = node
    rc, output, _told = run(TOOLS)
    assert rc == 0, output
    (copy,) = (proxy.root / "usr" / "lib" / "hetero").iterdir()
    for path, content in DAMAGE.items():
        before = (copy / path).read_bytes()
        (copy / path).unlink()
        if content is not None:
            (copy / path).write_bytes(content)
        rc, output, (told, _none) = run({"hetero.compute.board_info": {}, "register": "one"})
        assert rc == 0, (path, output)
        assert called(output) == 1
        assert len(told["boards"]) == 2
        (copy / path).write_bytes(before)


def test_another_package_of_our_name_is_not_taken(node):
    """Lost: short calls, and each command of the node, such as what ends leases, where somebody has installed one."""
    proxy, run = node
    other = proxy.root / "usr" / "lib" / "python3" / "dist-packages" / "hetero"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    rc, output, told = run(
        TOOLS,
        {"hetero.compute.board_info": {}, "register": "one"},
        {"ansible.builtin.command": "/usr/local/sbin/hetero --help"},
    )
    assert rc == 0, output
    assert called(output) == 0
    assert len(told[0]["boards"]) == 2


def test_what_was_begun_is_not_begun_again(node):
    """Lost: an outlet that is switched twice, for a call that was killed in the middle looks like one never made."""
    proxy, run = node
    rc, output, _told = run(TOOLS)
    assert rc == 0, output
    (copy,) = (proxy.root / "usr" / "lib" / "hetero").iterdir()
    (copy / "hetero" / "modules" / "board_info.py").write_text(KILLED)
    rc, output, (told, _none) = run({"hetero.compute.board_info": {}, "register": "one", "ignore_errors": True})
    assert rc == 0, output
    assert told["failed"]
    assert called(output) == 0
    assert (proxy.root / "tmp" / "calls").read_text() == "called\n"


def test_the_environment_of_a_task_is_given(node):
    """Lost: a proxy for downloads, a locale: what `environment:` says of a task."""
    proxy, run = node
    rc, output, _told = run(TOOLS)
    assert rc == 0, output
    (copy,) = (proxy.root / "usr" / "lib" / "hetero").iterdir()
    module = copy / "hetero" / "modules" / "board_lease.py"
    module.write_text(SAYS)
    lease = {"hetero.compute.board_lease": dict(instance="jackie", hours=1), "register": "one"}
    rc, output, (told, _none) = run(lease, environment={"WORD": "a b"})
    assert rc == 0, output
    assert told["said"] == "a b"


def test_a_piece_of_a_root_is_in_no_temporary_file(node):
    """Lost: a tenant's data, to who reads what a crash left in a node's temporary files; at first, before it is off."""
    proxy, run = node
    move = dict(instance="ml-9", created=1764430000.25, owner="jo", run="r1")
    piece = dict(file="disk.raw", number=0, offset=0, length=1, sha256="0" * 64, data="eJwDAAAAAAE=")
    begins = dict(move, step="arriving", other="kvm1", came={"instance": "ml-9"})
    how = {"ignore_errors": True, "no_log": False}
    tasks = [
        {"hetero.compute.instance_copy": begins, "register": "one", **how},
        {"hetero.compute.instance_copy": dict(move, step="written", **piece), "register": "two", **how},
    ]
    rc, output, told = run(*tasks)
    assert rc == 0, output
    assert called(output, "instance_copy") == 0
    no_file = "p1 gets no piece of an instance's root, which Ansible would put into a temporary file there, for "
    assert [one["msg"] for one in told] == [f"{no_file}p1 has no copy of this release: set it up again"] * 2
    rc, output, told = run(TOOLS, *tasks)
    assert rc == 0, output
    assert not [one["msg"] for one in told if one["msg"].startswith(no_file)], "the copy on the node takes it"
    rc, output, told = run(*tasks, environment={"A": "b"}, become=True, become_method="su")
    assert rc == 0, output
    assert called(output, "instance_copy") == 0
    assert {"by su" in one["msg"] for one in told} == {True}
    assert not list(proxy.root.glob("tmp/hetero-plays/*/AnsiballZ_instance_copy.py"))
