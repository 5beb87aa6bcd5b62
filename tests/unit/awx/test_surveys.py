# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables in awx/. If these fail, AWX refuses a template, asks for less than a playbook takes or lets through
what it does not, or hands a PDU's password to a job that anybody may start.
"""

from __future__ import annotations

import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_fit, console
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import instance, leases
from ansible_collections.hetero.compute.plugins.plugin_utils import request_words
from ansible_collections.hetero.compute.tests.awx import rules
from ansible_collections.hetero.compute.tests.awx.jobs import PROJECT, ROOT
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBench0000000000000000000000000000000000000 jo@there"
FLAVORS = "cg1.xlarge t64.8x8 tgx.10x10 tgx.4x4 tgx.6x6 tgx.8x8 tp64.8x8"


def question(read, template, variable):
    (found,) = (asked for asked in read["templates"][template]["survey"] if asked["variable"] == variable)
    return found


def test_awx_takes_every_survey(read):
    for name, template in read["templates"].items():
        if template["survey"]:
            assert rules.survey_problems(template["survey_spec"]) == [], name


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"type": "bool"}, "unknown"),
        ({"default": 1}, "no str"),
        ({"default": "$encrypted$"}, "encrypted"),
        ({"type": "multiplechoice"}, "choices"),
        ({"type": "multiplechoice", "choices": "a\nb", "default": "c"}, "no choice"),
        ({"type": "multiplechoice", "choices": "a\nb", "default": "a\nb"}, "no choice"),
        ({"required": "yes"}, "no bool"),
        ({"max": "63"}, "no integer"),
        ({"question_name": None}, "question_name"),
        ({"variable": "flavor"}, "twice"),
    ],
)
def test_what_awx_refuses_is_seen(read, change, why):
    """The rules are no rubber stamp."""
    spec = [dict(asked) for asked in read["templates"]["provide an instance"]["survey"]]
    spec[0].update(change)
    problems = rules.survey_problems({"name": "", "description": "", "spec": spec})
    assert why in " ".join(problems)


def test_limits_are_the_playbooks_own(read):
    """One more than the limit is refused by the survey and by the code; the limit itself by neither."""
    name = question(read, "provide an instance", "instance")
    for length, good in ((name["max"], True), (name["max"] + 1, False), (name["min"], True), (0, False)):
        assert bool(instance.INSTANCE.fullmatch("a" * length)) is good
        assert (rules.answer_problems(name, {"instance": "a" * length}) == []) is good
    assert question(read, "provide an instance", "hours")["max"] == leases.LONGEST
    assert question(read, "provide an instance", "count")["max"] == board_fit.MOST
    assert question(read, "console of an instance", "lines")["max"] == console.MOST_LINES
    assert question(read, "provide an instance", "wait")["max"] == request_words.MOST_MINUTES
    assert question(read, "cabling", "seconds")["max"] == request_words.MOST_SECONDS
    assert question(read, "provide an instance", "flavor")["choices"] == FLAVORS.replace(" ", "\n")
    asked = question(read, "extend an instance's lease", "hours")
    for hours, good in (("none", True), (str(leases.LONGEST), True), ("", False)):
        assert (rules.answer_problems(asked, {"hours": hours}) == []) is good


def test_every_playbook_has_a_template(read):
    """A verb that people have by hand and not in AWX.

    The lab's, the one that makes the templates, those that build images or write files where they run, and the one that
    sets up Slurm in AWX's place are no verbs.
    """
    by_hand = {"awx", "build_image", "lab_up", "lab_down", "move_in", "slurm"}
    there = {path.stem for path in (ROOT / "playbooks").glob("*.yml")} - by_hand
    assert {template["playbook"] for template in read["templates"].values()} == there


def test_every_answer_is_one_that_the_playbook_takes(read):
    """A question whose answer nobody reads. What a playbook takes is in its header: NAME=…"""
    for name, template in read["templates"].items():
        text = (ROOT / "playbooks" / f"{template['playbook']}.yml").read_text()
        header = text.partition("\n- name:")[0]
        for asked in template["survey"]:
            assert re.search(rf"\b{asked['variable']}=", header), (name, asked["variable"])


#: What a playbook takes by hand only: force is a template of its own, a job's container keeps no page, no JSON and no
#: file, and it has files of the site's in it that no user may have read. numbers are for programs that count instances,
#: and only_key is for those that have a key of their own for each.
BY_HAND = {"force", "all", "html", "json", "events", "key_file", "numbers", "only_key", "user_data", "write"}


def test_everything_that_a_playbook_takes_is_asked(read):
    """A new way to ask that people in AWX never get to see."""
    for playbook in {template["playbook"] for template in read["templates"].values()}:
        text = (ROOT / "playbooks" / f"{playbook}.yml").read_text()
        taken = set(re.findall(r"(?:^#  .*?|-e )([a-z_]+)=", text.partition("\n- name:")[0], re.MULTILINE)) - BY_HAND
        asked = {
            question["variable"]
            for template in read["templates"].values()
            if template["playbook"] == playbook
            for question in template["survey"]
        }
        assert taken <= asked, playbook


def test_who_may_do_what(read):
    """A user who takes another's board away, names another owner, or gets a PDU's password into a job of his own."""
    for name, template in read["templates"].items():
        assert template["for"] in ("users", "operators")
        variables = {asked["variable"] for asked in template["survey"]}
        assert not variables & {"force", "owner", "key_file", "html", "user_data"}, name
        if template["for"] == "users":
            assert not {"force", "all"} & set(template["extra_vars"]), name
            # who leaves a node out may take a name that somebody has there; who imports, what a name stands for
            assert (template["playbook"], "without" in variables) != ("provision_instance", True), name
            assert template["playbook"] not in ("image", "proxy", "gpu_host", "kvm_host"), name
        assert template.get("credentials", []) == (["pdus"] if template["playbook"] == "proxy" else []), name
    with pytest.raises(ValueError, match="owner is not asked for"):
        rules.launch(read["templates"]["stop an instance"], {"instance": "jackie", "owner": "eve"})


def test_the_guide_names_what_users_may_run(read):
    """Lost: that teams of users may run a verb, to whoever gives them the right."""
    text = guide("awx")
    left = text.partition("   * - provide an instance, ")[2].partition("\n     - ")[0]
    verbs = [name for name, template in read["templates"].items() if template["for"] == "users"]
    named = {name.removesuffix(" an instance") for name in ("provide an instance", *left.split(", "))}
    assert {name.removesuffix(" an instance") for name in verbs} == named


def test_credential_types(read):
    for kind in read["types"].values():
        assert rules.credential_type_problems(kind["inputs"], kind["injectors"]) == [], kind["name"]
    secret = {
        field["id"] for kind in read["types"].values() for field in kind["inputs"]["fields"] if field.get("secret")
    }
    assert secret == {"ssh_private_key", "credentials"}
    nodes = read["types"]["nodes"]
    wrong = {**nodes["injectors"], "env": {"ANSIBLE_HOST_KEY_CHECKING": "True"}, "extra_vars": {"x": "{{ nobody }}"}}
    assert len(rules.credential_type_problems(nodes["inputs"], wrong)) == 2


def test_awx_offers_the_projects_playbook():
    assert "play.yml" in rules.playbooks(PROJECT)
