# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `hetero` does on a node. If a verb could not be imported there, it would fail on the day it is needed: at a
boot, at a container's start, at the end of a lease.

Tests nodes/hetero.py, nodes/tools.py.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import subprocess
import sys
import tarfile

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import hetero, tools
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import pdu_mgr
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import packed
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

IMPORT = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name, "hetero.module_utils._hetero.nodes")
print(sorted({module.partition(".")[0] for module in sys.modules} & {"ansible", "ansible_collections"}))
"""


def test_a_verb_is_called_by_its_own_name():
    """What its messages, locks and events call it is what a person types."""
    for verb, path in hetero.VERBS.items():
        assert verb == importlib.import_module(path, hetero.__package__).VERB


@pytest.mark.parametrize("asked", ["--help", "-h", "help"])
def test_who_knows_no_verb_is_told_them_all(asked, capsys):
    """Lost: an operator on a node, to whom `hetero --help` said only that there is no such verb."""
    assert hetero.main([asked]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert "hetero VERB --help" in first
    does = {verb: importlib.import_module(path, hetero.__package__).DOES for verb, path in hetero.VERBS.items()}
    assert [re.split("  +", line.strip(), maxsplit=1) for line in lines] == [[one, does[one]] for one in sorted(does)]


def test_who_types_no_verb_is_told_them_all(capsys):
    """Lost: the way on; "no such verb" of nothing said nothing."""
    assert hetero.main([]) == 1
    told = capsys.readouterr()
    assert (hetero.main(["--help"]), told.out) == (0, "")
    assert told.err == capsys.readouterr().out


@pytest.mark.parametrize(("words", "code"), [(["host"], 1), (["host", "--help"], 0)])
def test_who_types_half_a_verb_is_told_those_that_begin_so(words, code, capsys):
    assert hetero.main(words) == code
    told = capsys.readouterr()
    _first, *lines = (told.err if code else told.out).splitlines()
    assert [line.strip().partition("  ")[0] for line in lines] == ["host reap"]


def test_a_file_that_cannot_be_loaded_hides_no_verb(monkeypatch, capsys):
    """Lost: restore, to who looks for it on a node where another verb's file is damaged."""
    monkeypatch.setitem(hetero.VERBS, "reap", ".proxy.no_such_file")
    assert hetero.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^  reap  +cannot be loaded: ModuleNotFoundError: ", told, re.MULTILINE)
    assert re.search(r"^  restore  +Mount the boards' roots", told, re.MULTILINE)


@pytest.mark.parametrize("verb", sorted(hetero.VERBS))
def test_each_verb_says_what_it_does(verb, capsys):
    """Lost: what `hetero --help` promises."""
    with pytest.raises(SystemExit) as ended:
        sys.exit(hetero.main([*verb.split(), "--help"]))
    assert ended.value.code == 0
    assert f"usage: hetero {verb} " in capsys.readouterr().out


@pytest.mark.parametrize("words", [["host", "reap"], ["gpu-reap"]])
def test_what_ends_leases_on_a_host_goes_by_its_former_name_too(words, capsys):
    """Lost: the end of leases on a host whose timers an earlier release wrote, until its role runs again."""
    with pytest.raises(SystemExit) as ended:
        hetero.main([*words, "--kind", "kvm", "--help"])
    assert ended.value.code == 0
    assert "usage: hetero host reap " in capsys.readouterr().out


@pytest.mark.parametrize("words", [["reap-host", "reap"], ["host", "backup"], ["hst"]])
def test_a_verb_that_is_none_is_refused_with_those_that_are(words):
    """Lost: what an operator is told who types a verb that no node has."""
    with pytest.raises(BadInput, match=r"no such verb \(known: backup, .*host reap"):
        hetero.main(words)


def test_roles_write_units_that_call_verbs_by_their_own_names():
    """Lost: a unit that fails at its first start on a node, for no verb is called so; or one of a former name."""
    called = [
        (file.name, words.split())
        for file in sorted(ROOT.glob("roles/*/templates/*.j2"))
        for words in re.findall(r"/usr/local/sbin/hetero ([^\n]+)", file.read_text())
    ]
    assert len(called) > 10
    for file, words in called:
        verb, _others = hetero.parted(words)
        assert words[: len(verb.split())] == verb.split(), file


@pytest.mark.skipif(os.geteuid() != 0, reason="another account needs root: run as root")
@pytest.mark.parametrize("verb", [*sorted(hetero.VERBS), "pdu_mgr"])
def test_another_account_is_told_that_root_is_needed(verb, capsys):
    """Lost: the truth, to an operator who forgot sudo: a database that may not be read was said to be none, of a node
    on which nothing was ever claimed."""
    name, words = ("pdu_mgr", ["pdu-a", "3", "1"]) if verb == "pdu_mgr" else ("hetero", verb.split())
    main = pdu_mgr.main if verb == "pdu_mgr" else hetero.main
    os.seteuid(65534)
    try:
        assert tools.start(name, main, words) == 1
        with pytest.raises(SystemExit) as ended:
            sys.exit(tools.start(name, main, [*words, "--help"]))
    finally:
        os.seteuid(0)
    assert ended.value.code == 0
    said = capsys.readouterr()
    assert said.err == f"{name}: needs root, as others may not read what a node keeps: run it as root\n"
    assert "usage: " in said.out


def test_every_verb_is_imported_from_the_copy_and_without_ansible(tmp_path):
    with tarfile.open(fileobj=io.BytesIO(packed())) as tar:
        tar.extractall(tmp_path)
    words = [sys.executable, "-I", "-c", IMPORT, str(tmp_path), ".hetero", ".proxy.pdu_mgr"]
    done = subprocess.run([*words, *hetero.VERBS.values()], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
