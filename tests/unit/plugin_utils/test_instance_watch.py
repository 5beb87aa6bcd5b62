# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody who watches an instance is told. If these fail, a boot is followed that is over, or left that goes on.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.instance_watch import CALM, Watched

NOW = 1000.0


def event(number, phase, time, instance="lab-1", text="said"):
    return dict(id=number, time=time, phase=phase, instance=instance, text=text, seconds=0.5)


def board(number, state, seconds, *events, instance="lab-1", note=""):
    """A board that is in its state for so many seconds, by a clock of its own that shows 5000."""
    own = dict(instance=instance, name=f"board{number}", state=state, note=note, events=list(events))
    return dict(own, since=5000.0 - seconds, since_seconds=float(seconds))


def boards(*those):
    return dict(boards=list(those))


def told(lines):
    return [(one["instance"], one["node"], one["phase"], one["text"]) for one in lines]


def test_each_phase_is_told_once_and_none_of_another_tenants():
    """Lost: what happens, or trust in it."""
    seen = Watched("lab", NOW)
    first = [event(1, "tftp", 4000.0), event(2, "power", 4999.0, "old"), event(3, "power", 4999.0, text="on")]
    assert told(seen.look(boards(board(0, "booting", 2, *first)), NOW)) == [("lab-1", "board0", "power", "on")]
    more = [*first, event(4, "claim", 5000.0), event(5, "tftp", 5000.0, text="fetched")]
    assert told(seen.look(boards(board(0, "booting", 4, *more)), NOW + 2)) == [("lab-1", "board0", "tftp", "fetched")]
    assert seen.look(boards(board(0, "booting", 6, *more)), NOW + 4) == []
    assert not seen.settled(NOW + 4)
    assert told(seen.look(boards(board(0, "booting", 14, *more)), NOW + 12)) == [
        ("lab-1", "board0", "", "booting since 14 s")
    ], "silence is never long"
    assert seen.look(boards(board(0, "booting", 16, *more)), NOW + 14) == []
    assert told(seen.look(boards(board(0, "running", 0, *more, event(6, "running", 5001.0))), NOW + 16)) == [
        ("lab-1", "board0", "running", "said")
    ]
    assert seen.settled(NOW + 16)
    assert seen.parts == [dict(instance="lab-1", node="board0", state="running", note="")]


def test_of_one_that_runs_already_nothing_is_told():
    """Lost: the answer, among yesterday's phases."""
    seen = Watched("lab", NOW)
    assert seen.look(boards(board(0, "running", 90, event(1, "power", 4950.0))), NOW) == []
    assert seen.settled(NOW)


def test_a_state_between_two_steps_of_a_verb_is_not_the_end():
    """Lost: the boot after a rebuild, or on the next board; or minutes, of one that was stopped an hour ago."""
    for state in ("power off", "error"):
        seen = Watched("lab", NOW)
        seen.look(boards(board(0, state, 1)), NOW)
        assert not seen.settled(NOW), state
        seen.look(boards(board(0, state, 1 + CALM)), NOW + CALM)
        assert seen.settled(NOW + CALM), state
        seen = Watched("lab", NOW)
        seen.look(boards(board(0, state, 3600)), NOW)
        assert seen.settled(NOW), state
    claimed = Watched("lab", NOW)
    claimed.look(boards(board(0, "power off", 3600, event(1, "claim", 4999.0))), NOW)
    assert not claimed.settled(NOW), "it is about to boot"
    for state in ("booting", "shutting down"):
        seen = Watched("lab", NOW)
        seen.look(boards(board(0, state, 3600)), NOW)
        assert not seen.settled(NOW + 600)
        assert seen.quiet(NOW + 600) == 600


def test_all_of_a_request_are_waited_for_and_what_is_gone_is_said():
    """Lost: the second one of two; or the end of a watch of what was given back."""
    seen = Watched("lab", NOW)
    running, other = board(0, "running", 90), board(1, "booting", 5, instance="lab-2")
    seen.look(boards(running, other), NOW)
    assert not seen.settled(NOW)
    seen.look(boards(running), NOW + 2)
    assert seen.settled(NOW + 2)
    assert [(one["instance"], one["state"]) for one in seen.parts] == [("lab-1", "running"), ("lab-2", "gone")]
    none = Watched("lab", NOW)
    none.look(boards(), NOW)
    assert none.settled(NOW)


def test_containers_and_guests_are_followed_too():
    """Lost: half of the site."""
    one = dict(instance="ml-7", name="gpu1", state="building", note="", since=4990.0, since_seconds=10.0, gpus=[])
    events = [event(1, "image", 4995.0, "ml-7", "root ready"), event(2, "gpu", 4999.0, "ml-7")]
    seen = Watched("ml-7", NOW)
    answer = dict(instances=[dict(one, events=events)])
    assert told(seen.look(answer, NOW)) == [("ml-7", "gpu1", "", "root ready")]
    assert not seen.settled(NOW + 60)
    seen.look(dict(instances=[dict(one, state="running", events=events)]), NOW + 61)
    assert seen.settled(NOW + 61)


def test_what_a_node_says_of_others_than_it_was_asked_for_is_not_heard():
    """Lost: where another's instance is, on another node, to the words of a stranger who is root of this one."""
    seen = Watched("lab", NOW)
    others = [board(1, "running", 5, instance="alice"), board(2, "booting", 5, event(9, "tftp", 4999.0), instance="")]
    assert told(seen.look(boards(board(0, "booting", 1), *others), NOW)) == []
    stands = [["alice", "board1", "running", "", None], [None, "board2", "error", "", None], [7, "b", "error", "", 1]]
    stands.append(["lab-1", "board0", "running", "", None])
    seen.hear(dict(stands=stands, events=[], time=NOW), (), NOW + 1)
    assert seen.settled(NOW + 1)
    assert [one["instance"] for one in seen.parts] == ["lab-1"]


def test_what_a_node_says_in_other_types_ends_nothing():
    """Lost: the watch, to a node that answers nonsense."""
    odd = dict(board(0, "booting", 1), since=None, since_seconds=None, events=[dict(event(1, "tftp", 1.0), id="x")])
    seen = Watched("lab", NOW)
    assert seen.look(boards(odd), NOW) == []
    assert told(seen.look(boards(odd), NOW + 10)) == [("lab-1", "board0", "", "booting")]
    assert not seen.settled(NOW + 10)
