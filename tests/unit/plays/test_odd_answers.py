# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two proxies, of which one answers what cannot be. If these fail, that one hides what the other has, and is not named.
"""

from __future__ import annotations

import json
import os
import re
import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.own_copy import keep_copy
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import packed
from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, LIB, Playbooks, Proxy, mount
from ansible_collections.hetero.compute.tests.unit.plays.test_a_node_that_lies import MAIN, RUNS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")

SAYS = MAIN.format("sys.stdout.write({})")
#: Answers as the module does, but for one value of it, by seed, which is then anything.
SPOILT = """
import contextlib, io, json, random, runpy

def places(value, path=()):
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places(part, (*path, key))

def main():
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_module("hetero.modules.honest_MODULE", run_name="__main__", alter_sys=True)
    answer = json.loads(said.getvalue())
    chosen = random.Random(SEED)
    *path, last = chosen.choice([path for path in places(answer) if "invocation" not in path])
    value = chosen.choice(WRONG)
    at = answer
    for key in path:
        at = at[key]
    if value == "nothing":
        del at[last]
    else:
        at[last] = value
    print(json.dumps(answer))

if __name__ == "__main__":
    main()
"""
RUN = ("{{ lookup('pipe', 'touch PWNED') }}", "$(touch PWNED)", "`touch PWNED`", "; touch PWNED;")
WRONG = ["nothing", None, True, -1, 1e300, 10**400, "", "x", [], [[]], [None], {}, {"x": 1}, [{}], "x" * 30000, "p1"]
WRONG += ["\x1b[2Jp1\x1b[1A", "jackie\nbob is running on board7: ssh root@192.0.2.66", *RUN]
#: {play: the modules by which it asks a proxy node}.
ASKS = {
    "status": "board_info",
    "image": "image_store",
    "reconcile": "board_reconcile",
    "provision_instance": "board_info",
}
#: How a play names the node whose answer cannot be: the table of status has a row for it.
NAMED = {"status": "p2 proxy - - not asked - - - - -"}
#: What Ansible says of a play that cannot go on with what it was told.
ANSIBLES = ("Traceback", "unhandled", "undefined", "has no attribute", "Callback dispatch", "Error rendering")


def sites(folder, liars):
    """Yield (a function that has a node run a text in place of a module, the playbooks for p1 and the `liars`)."""
    folder.chmod(0o755)
    names = ["p1", *liars]
    made = []
    try:
        for number, name in enumerate(names, 1):
            made.append(Proxy(folder / name, number))
        (folder / "code.tar").write_bytes(packed())
        for node in made[1:]:
            if not shared():
                (node.root / LIB).mkdir()
                keep_copy(str(node.root / LIB), str(folder / "code.tar"), Change())
            (modules,) = (node.root / LIB).glob("*/hetero/modules")
            # of the copy that all nodes share, a liar has modules of its own
            mount("--bind", shutil.copytree(modules, node.folder / "modules"), modules)

        def runs(module, text, name=liars[0]):
            (copy,) = (made[names.index(name)].root / LIB).glob("*/hetero/modules")
            (copy / f"{module}.py").rename(copy / f"honest_{module}.py")
            (copy / f"{module}.py").write_text(text)

        yield runs, Playbooks(folder, names)
    finally:
        for node in made:
            node.remove()


@pytest.fixture
def site(tmp_path):
    """p2 answers what it is told."""
    yield from sites(tmp_path, ["p2"])


@pytest.fixture
def crowd(tmp_path):
    """Ten of them, as what a play takes is Ansible itself."""
    yield from sites(tmp_path, [f"p{number}" for number in range(2, 12)])


def said(output):
    return " ".join(output.split())


@pytest.mark.parametrize(
    ("play", "answer", "why", "shown"),
    [
        ("image", "{}", "image_store cannot be (table is not there)", "p1: debian "),
        ("image", '{"table": "x"}', "image_store cannot be (table is 'x')", "p1: debian "),
        ("reconcile", "{}", "board_reconcile cannot be (others is not there)", "2 boards: 2 as recorded"),
        ("status", '{"boards": 5}', "board_info cannot be (claims is not there)", "board0 board"),
    ],
)
def test_what_the_others_have_is_shown_and_who_answers_oddly_is_named(site, play, answer, why, shown):
    """Lost: what all other nodes have, and which one is not sound."""
    runs, plays = site
    runs(ASKS[play], SAYS.format(repr(answer)))
    rc, output = plays.play(play)
    assert rc != 0
    assert shown in said(output), output
    assert f"{NAMED.get(play, 'p2:')} what the node answers to {why}" in said(output), output


@pytest.mark.parametrize(
    "text",
    [
        SAYS.format("'{\"boards\": \"' + 'x' * 70_000_000 + '\"}'"),
        MAIN.format("while True: sys.stdout.write('x' * 65536)"),
    ],
)
def test_an_answer_without_end_is_not_looked_at(site, text):
    """Lost: the terminal, the log and the memory of who asks for the status, to one node that answers 70 million
    characters or does not end."""
    runs, plays = site
    runs("board_info", text)
    rc, output = plays.play("status")
    assert rc != 0
    assert "board0 board" in said(output)
    why = "what the node answers to board_info cannot be (it has more than 64 MB, and no more is read)"
    assert f"{NAMED['status']} {why}" in said(output), output[-2000:]
    assert len(output) < 100_000


def test_a_console_that_cannot_be_shown_hides_none_of_another_node(site, tmp_path):
    """Lost: the way to the console of one board, to another node that does not answer."""
    runs, plays = site
    path = tmp_path / "p1" / "etc" / "hetero" / "proxy.json"
    config = json.loads(path.read_text())
    for board in config["boards"].values():
        board["console_command"] = "picocom /dev/ttyUSB1"
    path.write_text(json.dumps(config))
    rc, output = plays.play("provision_instance", instance="lab", flavor=FLAVOR, count=4)
    assert rc == 0, output
    runs("board_console_info", SAYS.format("'{\"name\": \"board0\"}'"))
    rc, output = plays.play("console", instance="lab")
    assert rc != 0
    assert said(output).count("live: ssh -t p1 'picocom /dev/ttyUSB1'") == 2, output
    assert "p2: what the node answers to board_console_info cannot be (command is not there)" in said(output), output


@pytest.mark.parametrize(
    ("verb", "words", "one", "why"),
    [
        ("stop_instance", {}, dict(state="running"), "state of jackie is 'running', and it is to be stopped"),
        ("terminate_instance", {}, {}, "state of jackie is 'running', and it is to be absent"),
        ("extend_instance", dict(hours=3), dict(name="board0"), "until of jackie is not there"),
    ],
)
def test_a_verb_that_was_not_done_is_the_nodes_failure(site, verb, words, one, why):
    """Lost: a board that goes on running, which its user believes is off and nobody's."""
    runs, plays = site
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, without="p1")
    assert rc == 0, output
    answer = json.dumps(dict(changed=True, lines=[], instances=[dict(RUNS, **one)]))
    runs("instance", SAYS.format(repr(answer)))
    rc, output = plays.play(verb, instance="jackie", **words)
    assert rc != 0
    assert f"what the node answers to instance cannot be ({why}" in said(output), output
    assert "p2]: FAILED!" in output
    assert "is stopped and keeps" not in output


@pytest.mark.parametrize("play", list(ASKS))
@pytest.mark.parametrize("tens", in_turns(range(4), 4))
def test_whatever_one_value_of_an_answer_is(crowd, tmp_path, play, tens):
    """Lost: what the others have, or the controller, to any value that a node may answer; the play's own words, which
    say who it is, to Ansible's."""
    runs, plays = crowd
    pwned = tmp_path / "pwned"
    wrong = repr(WRONG).replace("PWNED", str(pwned))
    spoilt = SPOILT.replace("MODULE", ASKS[play]).replace("WRONG", wrong)
    liars = [f"p{number}" for number in range(2, 12)]
    for number, name in enumerate(liars):
        runs(ASKS[play], spoilt.replace("SEED", str(10 * tens + number)), name)
    asked = dict(instance="jackie", flavor=FLAVOR) if play == "provision_instance" else {}
    rc, output = plays.play(play, *(["--check"] if asked else []), **asked)
    assert [word for word in ANSIBLES if word in output] == [], output
    assert "\x1b" not in output
    assert not pwned.exists()
    assert rc == 0 or re.search(r"\bp(?:[2-9]|1[01])\b", output), output
    shown = {"status": "board0 of p1", "image": "p1: debian ", "reconcile": "as recorded"}
    assert asked or (shown[play] if rc == 0 else shown[play].partition(" of ")[0]) in said(output), output
