# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The task that asks a node what it has. If these fail, a node is asked by the module of another kind, or believed."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.hetero.compute.plugins.action import node_info
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import job_watch
from ansible_collections.hetero.compute.plugins.plugin_utils import progress
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import unpacked
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_answers import HOST, NODE

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFirst jo@laptop"


@pytest.fixture
def ask(monkeypatch):
    """A function that runs the task on a node that answers `answer`; returns (module, its arguments, result)."""

    def run(answer, task_vars=None, **args):
        called = []

        def execute(plugin, **_how):
            called.append((plugin.module, dict(plugin._task.args)))
            return answer() if callable(answer) else answer

        monkeypatch.setattr(node_info.ActionModule, "_execute_module", execute)
        task = SimpleNamespace(args=args, async_val=0, check_mode=False, action="hetero.compute.node_info")
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
        templar = SimpleNamespace(template=lambda value: value)
        result = node_info.ActionModule(task, connection, None, None, templar, None).run(None, task_vars or {})
        run.left = connection._shell.tmpdir
        return (*called[0], result)

    return run


@pytest.mark.parametrize(("kind", "module", "answer"), [("proxy", "board_info", NODE), ("host", "host_info", HOST)])
def test_each_kind_of_node_has_its_module(ask, kind, module, answer):
    """Lost: all nodes of one kind; the module refuses options that it does not have."""
    called, args, result = ask(answer, node=kind, instance="jackie", events=5)
    assert called == f"hetero.compute.{module}"
    assert args == dict(instance="jackie", events=5)
    assert result == answer


@pytest.mark.parametrize(("name", "module", "answer"), [("p1", "board_info", NODE), ("gpu1", "host_info", HOST)])
def test_a_node_is_what_its_group_says(ask, name, module, answer):
    """Lost: each question of a play, which leaves that to the inventory; and what the play asks."""
    known = dict(inventory_hostname=name, groups=dict(proxies=["p1"], hypervisor_lxc=["gpu1"]))
    called, args, _result = ask(answer, known, asks=dict(instance="jackie", events=5))
    assert (called, args) == (f"hetero.compute.{module}", dict(instance="jackie", events=5))
    assert ask(answer, known, asks={})[1] == {}


def test_what_is_asked_comes_from_a_variable(ask):
    """Lost: what a play asks, of each of a hundred nodes."""
    known = dict(_asks=dict(instance="jackie"), hetero_ask_timeout="7")
    called, args, _result = ask(NODE, known, node="proxy", asks_in="_asks", limit_in="hetero_ask_timeout")
    assert args == dict(instance="jackie")
    assert ask(NODE, {}, node="proxy", asks_in="_asks", limit_in="hetero_ask_timeout")[1] == {}


def test_an_answer_comes_as_one_text(ask):
    """Lost: seconds of each play of many boards, or what a node has; a failure is to be read by Ansible itself."""
    *_called, result = ask(dict(NODE, warnings=["old"]), node="proxy", packed=True)
    assert sorted(result) == ["changed", "packed", "warnings"]
    assert (result["changed"], unpacked(result)) == (False, NODE)
    *_called, failed = ask(dict(failed=True, msg="no"), node="proxy", packed=True)
    assert failed == dict(failed=True, msg="no")


def test_a_node_that_does_not_answer_in_time_is_left(ask):
    """Lost: hours, to one node whose disk is gone."""
    known = dict(hetero_ask_timeout=1)
    *_called, result = ask(lambda: time.sleep(60), known, node="proxy", limit_in="hetero_ask_timeout")
    assert result == dict(failed=True, changed=False, msg="Timed out after 1 second(s).", timedout=dict(period=1))
    assert ask.left is None  # nothing more is asked of it, also not to remove a folder
    for seconds in (0, 10**12):
        assert ask(NODE, dict(hetero_ask_timeout=seconds), node="proxy", limit_in="hetero_ask_timeout")[2] == NODE


@pytest.mark.parametrize("seconds", ["soon", -1, True, [1], float("inf")])
def test_seconds_that_are_none_are_refused(ask, seconds):
    with pytest.raises(AnsibleActionFail, match=r"^hetero_ask_timeout is .+: give whole seconds, 0 for no limit$"):
        ask(NODE, dict(hetero_ask_timeout=seconds), node="proxy", limit_in="hetero_ask_timeout")


@pytest.mark.parametrize(("kind", "module", "answer"), [("proxy", "board_info", HOST), ("host", "host_info", NODE)])
def test_an_answer_is_checked_as_that_of_its_module(ask, kind, module, answer):
    """Lost: what all others say, to a node that answers as another kind of node, which the scheduler believes."""
    *_called, result = ask(answer, node=kind)
    assert result["failed"] is True
    assert f"what the node answers to {module} cannot be (" in result["msg"]


def test_no_lines_of_a_node_that_is_only_asked_are_shown(ask, monkeypatch):
    """Lost: who trusts and pastes them: "bob is running on board7: ssh root@…" among the collection's own."""
    shown = []
    monkeypatch.setattr(progress, "tell", shown.append)
    ask(dict(NODE, lines=["bob is running on board7: ssh root@192.0.2.66"]), node="proxy")
    assert shown == []


@pytest.mark.parametrize("kind", ["board", ["proxy"], "x" * 10**6])
def test_what_is_no_kind_of_node_is_refused(ask, kind):
    with pytest.raises(AnsibleActionFail, match=r"^node is .{0,300}: give proxy or host$"):
        ask(NODE, node=kind)


@pytest.fixture
def watch(monkeypatch, tmp_path):
    """A function that watches an instance that boots on board 0 of a proxy node, of which each look finds the next of
    `steps` done, functions of the store; returns (result, lines, the seconds of each look, module calls).
    """

    def run(*steps, limit=600.0, answer=None, reads=lambda: True, later=(), unclaimed=()):
        now, told, looks, calls, left = [1000.0], [], [], [], list(steps)
        with Store(str(tmp_path / "state.db"), "jo pid 7") as store:
            store.claim("jackie", ["jackie"], ClaimTerms("jo", {"name": "tp64.8x8"}, "debian", KEY), [0])
            store.move(0, "booting")

            def execute(plugin, **_how):
                calls.append(dict(plugin._task.args))
                if calls[1:] and later:
                    return later.pop(0)
                return answer or dict(told_of(store), unclaimed=list(unclaimed))

            def look(_plugin, job, _lines):
                looks.append(job["wait"])
                if left:
                    left.pop(0)(store)
                else:
                    now[0] += job["wait"]
                return job_watch.watch(dict(job, wait=0))

            monkeypatch.setattr(node_info.ActionModule, "_execute_module", execute)
            monkeypatch.setattr(node_info.ActionModule, "_look", look)
            monkeypatch.setattr(node_info, "time", SimpleNamespace(monotonic=lambda: now[0]))
            monkeypatch.setattr(node_info, "is_read", reads)
            monkeypatch.setattr(progress, "tell", told.append)
            args = dict(node="proxy", instance="jackie", events=50, watch=limit)
            task = SimpleNamespace(args=args, async_val=0, check_mode=False, action="hetero.compute.node_info")
            connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
            plays = SimpleNamespace(timeout=10)
            result = node_info.ActionModule(task, connection, plays, None, None, None).run(
                None, dict(inventory_hostname="p1")
            )
        return result, told, looks, calls

    return run


def told_of(store):
    """What the node answers."""
    record, events = store.record(0), [dict(vars(one)) for one in store.newest_events(0, 50)]
    mine = dict(instance=record.claim and record.claim.instance, state=record.state, note=record.note, events=events)
    (board, *_others) = NODE["boards"]
    age = dict(since=record.since, since_seconds=max(0.0, time.time() - (record.since or 0.0)))
    return dict(NODE, boards=[dict(board, **mine, **age)], follow=dict(store.followed(), python="/usr/bin/python3"))


def happens(phase, text):
    return lambda store: store.event(0, phase, text, instance="jackie")


def becomes(state, note=""):
    return lambda store: store.move(0, state, note)


def test_who_watches_is_told_as_it_happens(watch):
    """Lost: what happens, or the end; or each is told when the node is asked the next time."""
    steps = [happens("tftp", "kernel"), happens("claim", "no phase"), happens("nfs", "mounted"), becomes("running")]
    result, told, looks, calls = watch(*steps)
    assert [line.split()[3] for line in told] == ["kernel", "mounted"]
    assert len(looks) == len(steps), "each ended a look"
    assert calls == [dict(instance="jackie", events=50, follow=True)] * 2, "asked at the beginning and at the end"
    assert [(one["instance"], one["state"]) for one in result["watched"]] == [("jackie", "running")]


def test_a_watch_ends_where_nothing_happens_or_the_node_fails(watch):
    """Lost: a shell, or a job of AWX, that watches for ever."""
    result, told, looks, _calls = watch(limit=60)
    assert result["watched"][0]["note"] == "nothing has happened for 60 s"
    assert len(told) == 6, told
    assert len(looks) < 20
    result, told, _looks, _calls = watch(answer=dict(failed=True, msg="no route"))
    assert (result["msg"], told, "watched" in result) == ("no route", [], False)
    result, *_others = watch(answer=dict(NODE, boards="none"))
    assert "what the node answers to board_info cannot be (" in result["msg"]


def test_a_board_that_boots_for_ever_is_watched_for_a_day(watch, monkeypatch):
    """Lost: a job of AWX, which a board that never comes up keeps for good."""
    monkeypatch.setattr(node_info, "LONGEST", 90.0)
    often = [becomes(state) for state in ("error", "shutting down", "power off", "booting") * 2]
    result, *_others = watch(*often, limit=80)
    assert result["watched"][0]["note"] == "nothing has happened for 80 s"
    result, *_others = watch(*often, limit=90)
    assert result["watched"][0]["note"] == "it was watched for 90 s"


def ends(store):
    store.move(0, "shutting down")
    store.event(0, "error", "kept out of use", instance="jackie")
    store.release(0, store.claim_of("jackie"))


def test_what_ends_meanwhile_is_told(watch):
    """Lost: why it was given back."""
    result, told, *_others = watch(ends)
    assert [line.split(None, 3)[3] for line in told] == ["kept out of use"]
    assert [(one["instance"], one["state"]) for one in result["watched"]] == [("jackie", "gone")]


def test_a_watch_ends_with_who_reads_it(watch):
    """Lost: a node that is asked for ten minutes more, for `watch | head`; or a script that goes on with a board that
    does not run, as the watch ended with 0.
    """
    result, told, looks, _calls = watch(reads=lambda: False)
    ((state, note),) = [(one["state"], one["note"]) for one in result["watched"]]
    assert (state, note, told, looks) == ("booting", "nobody reads any more what is told of it", [], [])


def fails(_store):
    raise AnsibleActionFail("cannot follow the work: sqlite3.OperationalError: unable to open database file")


def test_a_node_whose_database_goes_says_what_becomes_of_it(watch):
    """Lost: what to do, to an error of sqlite: the node knows whether its database is lost, and who makes it anew."""
    is_lost = dict(failed=True, msg="state.db: is not there: hetero.compute.reconcile makes it anew")
    answers = [is_lost]
    result, *_others = watch(fails, later=answers)
    assert (result["msg"], answers, "watched" in result) == (is_lost["msg"], [], False)
    result, told, *_others = watch(fails, happens("tftp", "kernel fetched"), becomes("running"))
    assert [one["state"] for one in result["watched"]] == ["running"], "it was busy for a moment"
    assert any("kernel fetched" in line for line in told)
    with pytest.raises(AnsibleActionFail, match="unable to open database file"):
        watch(fails, fails)


def test_what_a_restored_database_does_not_know_is_not_told_as_ended(watch):
    """Lost: an instance, given up by its owner, that runs on: its node's database is of a time before it."""
    result, *_others = watch(ends, unclaimed=[dict(instance="jackie", name="board0", text="no claim: run reconcile")])
    assert [(one["state"], one["note"]) for one in result["watched"]] == [("gone", "no claim: run reconcile")]


@pytest.mark.parametrize("news", [{}, dict(stands=7), dict(stands=[], events=[7]), dict(stands=[[1]], events=[])])
def test_news_that_are_none_are_an_answer_that_is_none(watch, monkeypatch, news):
    """Lost: the reason, to a traceback; or what the others say."""
    monkeypatch.setattr(job_watch, "watch", lambda _job: dict(news))
    result, *_others = watch()
    assert "what the node answers to board_info cannot be (" in result["msg"]


@pytest.mark.parametrize("limit", ["soon", 0, -1, 1e9, [1]])
def test_a_watch_has_an_end(watch, limit):
    with pytest.raises(AnsibleActionFail, match=r"^watch is .{0,300}: give seconds, at most 86400$"):
        watch(limit=limit)
