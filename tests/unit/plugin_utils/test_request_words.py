# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers and words of a request. If these fail, `force=maybe` or `hours=-1` goes on as if nothing had been said."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk.wipe_disk import METHODS, PROOFS
from ansible_collections.hetero.compute.plugins.plugin_utils.request_values import Requested
from ansible_collections.hetero.compute.plugins.plugin_utils.request_words import NO_PROXY, WORDS

GROUPS = dict(all=["p1", "p2"], proxies=["p1", "p2"])
#: Options that say true or false.
TRUTHS = ("all", "back", "force", "fresh", "json", "partial", "replace")
#: Of each other option: what it takes, and what it does not.
TAKEN = dict(
    attempts=(["1", 2, "9999"], ["0", "10000", "1.5", "x", -1]),
    boot_source=(["nfs", "disk"], ["dsk", "NFS"]),
    count=([1, "10000"], [0, "10001", "2.5", "many"]),
    events=(["0", "999999"], ["1000000", "all", "-1"]),
    hours=(["1", ".5", "87600", "none", 24], ["0", "87601", "long", "-1", "1e3", "nan", True]),
    how=(["auto", "soft", "hard"], ["gentle"]),
    lines=(["1", "10000"], ["0", "10001", "many"]),
    numbers=(["1", "2,5", [3, 4]], ["0", "2;5", "x"]),
    only_key=(["ssh-ed25519 " + "A" * 20, "x ecdsa-sha2 " + "A" * 20 + " me"], ["AAAA", "ssh-rsa AB"]),
    placement=(["spread", "pack"], ["packed"]),
    proxy=(["p1", "p2"], ["p3", "p1,p2"]),
    seconds=(["1", 86400, "0.5"], ["0", "86401", "soon", "inf", "nan"]),
    soft_timeout=(["1", 600], ["0", "601", "soon"]),
    wait=(["0.5", 10080], ["-1", "10081", "nan", "inf", "abc"]),
    wipe=(METHODS, ["zreo"]),
    wipe_verify=(PROOFS, ["half"]),
)


def problem(word, **variables):
    return WORDS[word](Requested(dict(dict(groups=GROUPS), **variables).get))


def all_said():
    """Every text that a word can get, as it is said."""
    said = [problem(word, **{word: "maybe"}) for word in (*TRUTHS, "html", "proxy")]
    said += [problem(word, **{word: value}) for word, (_taken, refused) in TAKEN.items() for value in refused]
    return [*said, problem("html", html=True), problem("numbers", numbers="3", _numbers_need_count=True)]


@pytest.mark.parametrize("word", TRUTHS)
def test_a_word_says_true_or_false(word):
    for value in (True, False, "yes", "No", "ON", "off", "1", 0, "", None, "true", "False"):
        assert problem(word, **{word: value}) == ""
    for value in ("maybe", "2", 2, "tru", [1]):
        assert problem(word, **{word: value}) == f"{word} is {value}: give true or false"


@pytest.mark.parametrize("word", TAKEN)
def test_each_option_takes_what_it_says_and_nothing_else(word):
    taken, refused = TAKEN[word]
    assert [value for value in (*taken, "", None) if problem(word, **{word: value})] == []
    said = [problem(word, **{word: value}) for value in refused]
    assert all(text.startswith(word) and (" give " in text or "give" in text) for text in said), said


def test_every_option_is_looked_at_here():
    """Lost: an option that nobody looks at, as no test names it."""
    assert sorted((*TRUTHS, *TAKEN, "html")) == sorted(WORDS)


def test_what_an_error_repeats_is_short():
    """Lost: the screen, to a file that was given in place of a number."""
    for word in (*TRUTHS, *(set(TAKEN) - {"only_key"}), "html"):
        assert len(problem(word, **{word: f"{'x' * 10_000}/x"})) < 500, word


def test_sites_defaults_are_looked_at_too():
    """Lost: the wipe of an inventory with a slip in it, when the board is freed."""
    assert problem("wipe", hetero_wipe_method="nuke") == "wipe is nuke: give discard, zero or secure_erase"
    assert problem("wipe_verify", hetero_wipe_verify="no") == "wipe_verify is no: give full, sample or none"
    assert problem("placement", hetero_placement="") == "", "which is none"
    assert [Requested(dict(hetero_placement=none).get).placement for none in ("", None)] == ["spread", "spread"]
    assert problem("placement", hetero_placement="packed") == "placement is packed: give spread or pack"


def test_numbers_of_a_request_for_several():
    """Lost: NAME-5 of a request for three, which no list of NAME-1 to NAME-3 ever shows."""
    need = dict(_numbers_need_count=True)
    assert problem("numbers", numbers="2,5", count=9, **need) == ""
    assert problem("numbers", numbers="2,5") == ""
    for count in (3, None):
        assert problem("numbers", numbers="2,5", count=count, **need).endswith(
            f"count {count or 1}: give count=5 or more, the highest number that there may be"
        )
    assert "give count=2 or more" in problem("numbers", numbers="1", **need)


def test_a_page_is_written_where_there_is_a_folder(tmp_path, monkeypatch):
    """Lost: the page, after all nodes have been asked."""
    monkeypatch.chdir(tmp_path)
    assert problem("html", html="boards.html") == problem("html", html=str(tmp_path / "x.html")) == ""
    assert problem("html", html=str(tmp_path)) == (
        f"html is {str(tmp_path)[:60]}: give the name of a file, such as -e html=boards.html"
    )
    assert problem("html", html=True).startswith("html is True: give the name of a file")
    assert problem("html", html="no/x.html") == f"html is no/x.html: there is no folder {tmp_path}/no"


def test_which_proxy_nodes_there_are_is_said():
    """Lost: the way on, for who wrote p3, left it out, or has no inventory."""
    assert problem("proxy", proxy="p3") == "proxy: the inventory has no proxy node p3: give one of p1, p2"
    assert problem("proxy", proxy="p1", without="p1") == "proxy is p1, which without leaves out: name another"
    assert problem("proxy", proxy="p1", groups=dict(all=[])) == f"proxy: {NO_PROXY}"
