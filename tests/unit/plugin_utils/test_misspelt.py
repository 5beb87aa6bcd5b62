# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelt options of playbooks. If these fail, `-e hour=24` gives a lease without an end, or an operator's own
variable stops each play.

Tests plugin_utils/filters/misspelt.py.
"""

from __future__ import annotations

import re

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import spelling
from ansible_collections.hetero.compute.plugins.plugin_utils.filters import misspelt as code
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT
from ansible_collections.hetero.compute.tests.unit.documents.test_documented_commands import options, variables

OPTIONS = yaml.safe_load((ROOT / "playbooks" / "vars" / "request.yml").read_text())["_options"].split()
#: Playbooks that set something up: their options are variables of roles.
SET_UP = ("awx", "build_image", "gpu_host", "kvm_host", "lab_down", "lab_up", "proxy", "slurm")
VERBS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml") if path.stem not in SET_UP)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("adpot", "adopt"), ("flavour", "flavor"), ("hour", "hours"), ("imgae", "image"), ("nod", "node"),
        ("instanse", "instance"), ("forse", "force"), ("hourz", "hours"), ("bourd", "board"), ("hoard", None),
        ("mount", None), ("fore", "force"), ("stage", None), ("site", None), ("keys", None),
        ("mode", None), ("a", None), ("", None), ("ky", None),
    ],
)  # fmt: skip
def test_a_slip_of_one_letter(name, meant):
    assert spelling.meant_by(name, OPTIONS) == meant


def test_of_two_words_the_one_with_the_same_first_letter_is_meant():
    """Lost: who types `sorce=csv` is asked whether force is meant, and writes over what is there."""
    assert spelling.meant_by("sorce", ["force", "source"]) == "source"
    assert spelling.meant_by("forse", ["source", "force"]) == "force"


def test_what_was_given_is_looked_at(monkeypatch):
    given = {"adpot": "jackie", "forget": "bob", "site": "north"}
    monkeypatch.setattr(code, "load_extra_vars", lambda loader: given)
    said = "adpot is no option: is adopt meant? A variable of your own needs another name"
    assert code.misspelt(OPTIONS) == said
    del given["adpot"]
    assert code.misspelt(OPTIONS) == ""


def test_the_time_limit_that_errors_say_is_to_be_raised_is_named(monkeypatch):
    """Lost: the words of an error that are typed, to a variable that nobody reads."""
    monkeypatch.setattr(code, "load_extra_vars", lambda loader: {"timeout": "600"})
    assert "hetero_boot_timeout" in code.misspelt(OPTIONS)
    monkeypatch.setattr(code, "load_extra_vars", lambda loader: {"hetero_boot_timeout": "600"})
    assert code.misspelt(OPTIONS) == ""


@pytest.mark.parametrize(("name", "option"), code.CALLED.items())
def test_what_people_call_an_option(monkeypatch, name, option):
    """Lost: `disk=true`, and with it the root on the board's own disk: it was booted with its root by NFS, rc 0."""
    monkeypatch.setattr(code, "load_extra_vars", lambda loader: {name: "true"})
    assert code.misspelt(OPTIONS).startswith(f"{name} is no option: is {option} meant?")
    assert option in OPTIONS
    assert code.misspelt(["nova_compute"]) == "", "a playbook without that option leaves the variable alone"


@pytest.mark.parametrize(
    ("name", "option"), [("nmae", "instance"), ("lesae", "hours"), ("please", None), ("gamer", None)]
)
def test_a_slip_of_what_people_call_an_option(monkeypatch, name, option):
    """Lost: the name of an instance, without a word, for `nmae=bob`."""
    monkeypatch.setattr(code, "load_extra_vars", lambda loader: {name: "bob"})
    said = f"{name} is no option: is {option} meant? A variable of your own needs another name" if option else ""
    assert code.misspelt(OPTIONS) == said


@pytest.mark.parametrize(
    ("given", "rest", "said"),
    [
        ("node=board3 state=on reason=its fan rattles", "reason", None),
        ("reason=its fan = odd", "reason", "fan = odd"),
        ("reason=its fan rattles", None, "fan rattles"),
        ("reason=its fan state=on", "reason", "fan"),
        ("fan reason=its", "reason", "fan"),
        ("@file.yml", None, None),
        ('{"hours": "2 3"}', None, None),
        ("title='Our boards' hours=2", None, None),
    ],
)
def test_what_is_left_over_is_said(monkeypatch, given, rest, said):
    """Lost: a lease, by `hours = 2`; or the words of a reason that are its own."""
    monkeypatch.setattr(code, "load_extra_vars", lambda loader: {})
    monkeypatch.setattr(code.context, "CLIARGS", {"extra_vars": ["hours=2", given]})
    text = code.misspelt(OPTIONS, rest=rest)
    assert text.startswith(f"left over in -e: {said} is no NAME=VALUE") if said else text == ""


def test_an_option_that_this_playbook_would_take_for_nothing_is_said(monkeypatch):
    """Lost: a root, to who has an instance rebuilt for another boot source. An empty field of a form says nothing."""
    for value, said in (("disk", "boot_source stays as it is"), ("", ""), (None, "")):
        monkeypatch.setattr(code, "load_extra_vars", lambda loader, value=value: {"boot_source": value, "image": "x"})
        assert code.misspelt(OPTIONS, vain={"boot_source": "stays as it is"}) == said


def test_dashes_and_capitals_make_no_other_word(monkeypatch):
    """Lost: a lease, by `--hours=2` or `Hours=2`. Short words in capitals may be an operator's."""
    given = {"--hours": 2, "--all": "x", "Hours": 2, "key-file": "x", "--check": "true", "URL": "x", "-": ""}
    monkeypatch.setattr(code, "load_extra_vars", lambda loader: given)
    text = code.misspelt(OPTIONS)
    for name, option in {"--hours": "hours", "--all": "all", "Hours": "hours", "key-file": "key_file"}.items():
        assert f"{name} is no option: is {option} meant?" in text
    assert text.endswith(
        "; --check stands in -e, where only NAME=VALUE does: give it by itself, or not at all; "
        "- stands in -e, where only NAME=VALUE does: give it by itself, or not at all"
    )
    assert "URL" not in text


def test_all_options_are_known():
    """Lost: an option that is refused as another one's misspelling."""
    assert set().union(*map(options, VERBS)) | {"owner", "title"} == set(OPTIONS)
    assert sorted(OPTIONS) == OPTIONS


def test_no_variable_of_ours_or_of_awx_is_taken_for_a_slip():
    """Lost: every job of AWX, or a site that gives its roles' variables at the command line."""
    surveys = re.findall(r"variable: (\w+)", (ROOT / "awx" / "surveys.yml").read_text())
    own = ["awx_job_id", "awx_user_name", "awx_inventory_name", "tower_job_id", "tower_user_name"]
    assert len(surveys) > 5
    taken = {name: code._meant(name, OPTIONS) for name in [*surveys, *own, *variables()] if name not in OPTIONS}
    assert {name: option for name, option in taken.items() if option} == {}


@pytest.mark.parametrize("playbook", VERBS)
def test_each_playbook_looks(playbook):
    """Lost: the one that a person misspells an option of."""
    text = (ROOT / "playbooks" / f"{playbook}.yml").read_text()
    shared = re.findall(r"(?:plays/find)\.yml", text)
    texts = [text, *((ROOT / "playbooks" / name).read_text() for name in shared)]
    assert any(re.search(r"_misspelt|\b_wrong\b", text) for text in texts)
