# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes answer to reconcile, with any one value of another type, or not there; and answers of which something is
too long. If these fail, one node ends the table of a whole site, or fills the terminal of who reads it.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import progress
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import LONGEST, MOST_OF_FAILURE, checked
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.reconcile_table import reconcile_table
from ansible_collections.hetero.compute.plugins.plugin_utils.short_calls import WARNING, WARNINGS, only_data
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_answers import BOARD, CLAIM, EVENT, NODE
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_wrong_types import MISSING, WRONG, places, spoiled

FOUND = [dict(found="its outlet is on", done=None), dict(found="missing: export", done="put back")]
LOOKED_AT = dict(instance="jackie", recorded="running", power="on", ssh="own key", found=FOUND)
LISTS = dict(ended=["eve"], not_adopted=["eve"], removed=["board9"], gone=["eve"], kept=["eve"])
FINDING = dict(kind="wildcard", container="ml-7", address="0000:05:00.0", found="all is open", done=None, error=None)
ANSWERS = {
    "board_reconcile": dict(
        LISTS,
        unseen=["board0"],
        others=["an export"],
        boards=[dict(LOOKED_AT, board=0, name="board0", changed=False)],
        lines=[dict(instance=None, node="board9", phase="reconcile", text="removed: a root", seconds=None)],
    ),
    "host_reconcile": dict(
        instances=[dict(LOOKED_AT, name="gpu1", kind="lxc")],
        domains=[dict(domain="eve", address="0000:05:00.0", found="has it", done=None)],
        others=["a container"],
        unseen=["jackie"],
    ),
    "gpu_reconcile": dict(findings=[FINDING]),
}


def table(module, answer):
    """The lines of the table of one node's answer."""
    told = [dict(answer, item="n1")]
    boards, hosts, gpus = (told if module == name else [] for name in ANSWERS)
    return reconcile_table(boards, hosts, gpus)


@pytest.mark.parametrize("module", list(ANSWERS))
def test_what_reconcile_finds_is_passed_on_as_it_is(module):
    """Lost: what was found on all nodes, to a look at it that knows it badly."""
    assert checked(ANSWERS[module], module) is ANSWERS[module]
    assert len(table(module, ANSWERS[module])) > 1


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: "-" if wrong is MISSING else f"{wrong!r:.9}")
@pytest.mark.parametrize("module", list(ANSWERS))
def test_any_value_of_another_type_is_the_nodes_fault_or_does_no_harm(module, wrong):
    """Lost: what was found on all other nodes."""
    refused = set()
    for path in places(ANSWERS[module]):
        said = checked(spoiled(ANSWERS[module], path, wrong), module)
        if said.get("failed"):
            assert f"what the node answers to {module} cannot be ({path[0]} is " in said["msg"]
            refused.add(path[0])
            continue
        try:
            table(module, said)
        except Exception as error:
            raise AssertionError(f"{path} as {wrong!r:.40}: {error!r}") from error
    if wrong != []:
        assert refused == set(ANSWERS[module])


@pytest.mark.parametrize(
    ("module", "answer"),
    [
        ("board_info", dict(NODE, boards=[dict(BOARD, note="x" * (LONGEST + 1))])),
        ("board_info", dict(NODE, boards=[dict(BOARD, events=[dict(EVENT, text="x" * (LONGEST + 1))])])),
        ("board_info", dict(NODE, claims=[dict(CLAIM, owner="x" * (LONGEST + 1))])),
        ("image_store", dict(table=["x" * (LONGEST + 1)])),
    ],
)
def test_a_text_without_end_is_the_nodes_fault(module, answer):
    """Lost: the terminal of who asks, to one text of one node."""
    result = checked(answer, module)
    assert result["failed"] is True
    assert len(result["msg"]) < 500


def test_what_a_failed_answer_shows_has_an_end():
    """Lost: the terminal of who asks; Ansible prints a failed answer whole."""
    failed = dict(failed=True, msg="x" * (LONGEST + 1), evidence=["x" * MOST_OF_FAILURE])
    assert checked(failed, "instance") == dict(failed=True, msg="x" * (LONGEST - 1) + "…")
    kept = dict(failed=True, msg="no", evidence=["x"])
    assert checked(kept, "instance") == kept


def test_a_line_has_an_end():
    """Lost: the terminal of who follows a verb, to one line of one node."""
    for line in ("x" * 10**6, dict(instance="jackie", node="board0", phase="power", text="x" * 10**6, seconds=None)):
        assert len(progress.as_text(line)) <= LONGEST


@pytest.mark.parametrize("said", [5, "x", dict(x=1), None])
def test_what_is_no_list_of_warnings_is_none(said):
    """Lost: the play's own words, to an error of what shows warnings."""
    assert only_data(dict(changed=False, warnings=said, deprecations=said)) == dict(changed=False)
    few = only_data(dict(warnings=["the database was lost"]))
    assert few == dict(warnings=["the database was lost"])
    assert len(only_data(dict(warnings=["x"] * 1000))["warnings"]) == WARNINGS


def summaries():
    """What ansible-core makes of warnings, notices and errors since 2.19; skips with an older one."""
    return pytest.importorskip("ansible.module_utils._internal._messages", reason="ansible-core before 2.19")


#: Clears the screen, and a line's end that is none of a text's own.
EVIL = "\x1b[2Jall is well\u2028"


def test_a_warning_is_printed_as_text_whatever_it_is_made_of():
    """Lost: the terminal of who runs a play, to a node: Ansible prints the text of a summary raw."""
    made = summaries()
    told = only_data(dict(warnings=[made.WarningSummary(event=made.Event(msg=EVIL + "x" * 10**6))]))["warnings"]
    assert told[0].startswith("\\x1b[2Jall is well")
    assert len(told[0]) == WARNING


def test_a_failure_is_printed_as_text_however_deep_it_lies():
    """Lost: the same, by the reason of a reason of a failure, which Ansible prints before the module's own words."""
    made = summaries()
    inner = made.Event(msg=EVIL)
    chain = made.EventChain(msg_reason=EVIL, traceback_reason="", event=inner)
    event = made.Event(msg="no", chain=chain, events=(inner,))
    shown = only_data(dict(failed=True, msg="no", exception=made.ErrorSummary(event=event)))["exception"]
    assert "\x1b" not in repr(shown).replace("\\\\x1b", "")
    assert shown.event.chain.event.msg == shown.event.events[0].msg == shown.event.chain.msg_reason
    assert shown.event.chain.event.msg.isprintable()


def test_a_notice_of_what_goes_with_a_release_is_shown():
    """Lost: a warning in time, to who calls a PDU's states by the module that no longer tells them with 1.0.0."""
    text = dict(msg="state=status: module pdu_info tells them", version="1.0.0", collection_name="hetero.compute")
    assert only_data(dict(deprecations=[text]))["deprecations"] == [text]
    odd = [5, "x", None, dict(msg=5, version="1"), dict(msg="x"), dict(msg="x", version=1, date=[])]
    assert only_data(dict(deprecations=odd))["deprecations"] == []
    evil = only_data(dict(deprecations=[dict(text, msg=EVIL, version=EVIL, collection_name="ansible.builtin")] * 1000))
    assert len(evil["deprecations"]) == WARNINGS
    assert evil["deprecations"][0]["msg"].isprintable()
    assert evil["deprecations"][0]["version"].isprintable()
    assert evil["deprecations"][0]["collection_name"] == "hetero.compute"


def test_a_notice_is_shown_whatever_it_is_made_of():
    """Lost: the same, since ansible-core 2.19."""
    made = summaries()
    (told,) = only_data(dict(deprecations=[made.DeprecationSummary(event=made.Event(msg="old"), version="1.0.0")]))[
        "deprecations"
    ]
    assert told == dict(msg="old", version="1.0.0", collection_name="hetero.compute")
