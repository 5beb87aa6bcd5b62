# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several records of one board beside its place, or one that is older than the database. If these fail, the newest word
of a lease goes by commands that were printed, typed one after the other.
"""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, lose, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_records import commands, hours, texts, type_all


class Lent:
    """Jackie, whose lease was of an hour, and then of a hundred: what her record said of each, and a copy of the
    database in between.
    """

    def __init__(self, site):
        self.site = site
        site.lease(1)
        self.old, self.copy = record(site).read_text(), backups.make(site.params["state_db"])
        site.lease(100)
        self.new = record(site).read_text()
        record(site).unlink()

    def put(self, name, text, written=None):
        """A file beside the records."""
        path = record(self.site).with_name(name)
        path.write_text(text)
        if written:
            os.utime(path, (written, written))
        return path

    def said_of(self, path):
        (text,) = (text for text in reconcile(self.site, check=True)["others"] if text.startswith(f"file {path}: "))
        return text


@pytest.fixture
def lent(jackie):
    return Lent(jackie)


def typed_once(site):
    """The commands of one run of reconcile, typed one after the other."""
    for command in dict.fromkeys(commands(texts(reconcile(site)))):
        subprocess.run(["sh", "-ec", command], check=True, timeout=600)


NEW_FIRST = pytest.mark.parametrize(("new", "old"), [("board0.json.a", "board0.json.b"), ("board0.b", "board0.a")])


@NEW_FIRST
@pytest.mark.parametrize("database", ["as the newer one", "as the older one"])
def test_of_two_records_of_a_claim_one_is_to_be_moved(lent, new, old, database):
    """Lost: a lease of a hundred hours for one of an hour, and the only file that knew of it."""
    newest = lent.put(new, lent.new, written=1)  # whoever copied the other one did so later
    older = lent.put(old, lent.old)
    if database == "as the older one":
        put_back(lent.site, lent.copy)
    keep = "look at this one, and keep it"
    why = f"what goes to its place is {newest}" if "older" in database else "the database knows more than it (lease "
    assert why in lent.said_of(older)
    assert lent.said_of(older).endswith(keep)
    assert len(dict.fromkeys(commands(texts(reconcile(lent.site, check=True))))) == 1
    typed_once(lent.site)
    assert record(lent.site).read_text() == lent.new
    type_all(lent.site)
    assert hours(lent.site, "jackie") == 100
    assert lent.said_of(older).endswith(" left): remove this one once nobody wants it")
    assert lent.site.what_is_there()["claims"] == {"jackie": 0}


def test_an_older_record_is_not_offered_for_a_lost_one(lent):
    """Lost: the same, by the one copy that somebody made a week ago; the database had the lease."""
    copy = lent.put("board0.json.bak", lent.old)
    result = reconcile(lent.site)
    said = found(result)[0][0]
    assert commands(texts(result)) == []
    assert f"{copy} is one of that claim, by which its lease is until " in said
    assert "nothing is touched: the database knows more than it (lease until " in said
    assert said.endswith("reconcile -e adopt=jackie has it written anew")
    assert lent.site.module("board_info")["boards"][0]["note"] == said
    assert "the database knows more than it (lease until " in lent.said_of(copy)
    assert reconcile(lent.site, adopt=["jackie"])["changed"]
    assert hours(lent.site, "jackie") == 100
    assert lent.said_of(copy).endswith("each knows what the other does not: look at this one, and keep it")
    reconcile(lent.site, adopt=["jackie"])  # the outlet, too
    assert lent.said_of(copy).endswith(" left): remove this one once nobody wants it")
    assert (commands(texts(reconcile(lent.site))), hours(lent.site, "jackie")) == ([], 100)


@pytest.mark.parametrize("made", ["host_key", "image_hash"])
def test_a_record_from_before_its_root_was_made_is_not_offered(jackie, made):
    """Lost: what is known of a root that runs, by a copy of the record that is from before it was made."""
    text = record(jackie).read_text()
    with jackie.proxy() as proxy:
        value = vars(proxy.store.claim_of("jackie"))[made]
    record(jackie).unlink()
    copy = record(jackie).with_name("board0.bak")
    copy.write_text(text.replace(f'"{value}"', "null"))
    result = reconcile(jackie)
    assert commands(texts(result)) == []
    assert "the database knows more than it (lease without end): look at this one, and keep it" in found(result)[0][0]


def test_an_older_copy_beside_a_good_record_is_not_offered(lent):
    """Lost: the same, where the copy was brought from elsewhere, so that its file is the newer one."""
    lent.put("board0.json", lent.new, written=1)
    copy = lent.put("board0.json.bak", lent.old)
    assert lent.said_of(copy).endswith(" left): remove this one once nobody wants it")
    assert "its place has one that knows as much or more (lease until" in lent.said_of(copy)


@pytest.mark.parametrize("database", ["as the newer one", "as the older one"])
def test_one_that_knows_more_is_not_to_be_removed_for_a_later_file(lent, database):
    """Lost: the longer lease, where it is the older copy that was brought from elsewhere, into the place."""
    if database == "as the older one":
        put_back(lent.site, lent.copy)
    lent.put("board0.json", lent.old)
    newest = lent.put("board0.json.~1~", lent.new, written=1)
    said = lent.said_of(newest)
    if database == "as the older one":  # or it is a lease that was made shorter since
        assert "its place has one that was written later, and does not know all of it (lease until " in said
        assert said.endswith(" 1 h left): look at this one, and keep it")
        return
    subprocess.run(["sh", "-ec", commands([said])[0]], check=True, timeout=600)
    reconcile(lent.site)
    assert hours(lent.site, "jackie") == 100
    left = record(lent.site).with_name("board0.json.~2~")
    assert lent.said_of(left).endswith(" left): remove this one once nobody wants it")


def test_what_came_to_the_place_since_is_kept(lent):
    """Lost: the newer record, by a command that was printed before it was there."""
    lent.put("board0.bak", lent.old)
    put_back(lent.site, lent.copy)
    (command,) = set(commands(texts(reconcile(lent.site))))
    lent.put("board0.json", lent.new)
    subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    assert record(lent.site).read_text() == lent.old
    assert record(lent.site).with_name("board0.json.~1~").read_text() == lent.new
    type_all(lent.site)
    assert hours(lent.site, "jackie") == 100


def test_of_one_in_another_s_place_and_one_in_none_one_is_to_be_moved(lent):
    """Lost: the same, where one of both lies in the place of a board that somebody else has."""
    site = lent.site
    assert not any(result.get("failed") for result in site.provision("bob"))
    bobs = record(site, 1).read_text()
    lent.put("board1.json", lent.old)
    newest = lent.put("board0.bak", lent.new)
    put_back(site, lent.copy)
    said = texts(reconcile(site, check=True))
    assert any(f"what goes to its place is {newest}: look at this one, and keep it" in text for text in said)
    assert len(dict.fromkeys(commands(said))) == 1
    typed_once(site)
    reconcile(site)
    assert hours(site, "jackie") == 100
    lent.put("board1.json", bobs)
    type_all(site)
    assert site.what_is_there() == site.running("jackie", "bob")


@pytest.mark.parametrize("names", [("board0.a", "board0.b"), ("board0.b", "board0.a")])
def test_the_record_that_a_root_bears_out_goes_before_one_of_an_ended_claim(site, names):
    """Lost: who has a board, where the database that knew of the end of the claim before is lost."""
    assert not any(result.get("failed") for result in site.provision("jackie"))
    old = record(site).read_text()
    assert not any(result.get("failed") for result in [*site.terminate("jackie"), *site.provision("carol")])
    lose(site)
    record(site).with_name(names[0]).write_text(old)
    newest = record(site).rename(record(site).with_name(names[1]))
    result = reconcile(site, check=True)
    (command,) = set(commands(texts(result)))
    assert str(newest) in command
    for name in ("jackie", "carol"):
        assert str(newest) in site.module("board_info", instance=name)["unclaimed"][0]["text"]
    typed_once(site)
    reconcile(site)
    assert site.board_of("carol") == 0
    assert any("remove it once nobody wants it" in text or "later claim" in text for text in reconcile(site)["others"])


def test_what_is_asked_for_names_the_newest_of_its_records(lent):
    """Lost: the same, by whoever asks for an instance of which no claim is known, and types what is said."""
    lose(lent.site)
    lent.put("board0.a", lent.old)
    newest = lent.put("board0.b", lent.new, written=1)
    (one,) = lent.site.module("board_info", instance="jackie")["unclaimed"]
    assert f"mv --backup=numbered {newest} {record(lent.site)}" in one["text"]


def test_the_end_of_a_lease_that_an_adopted_record_changes_is_said(lent):
    """Lost: the knowledge that a lease is another by now."""
    lent.put("board0.json", lent.new)
    put_back(lent.site, lent.copy)
    ((text, done),) = found(reconcile(lent.site))
    assert done == "adopted"
    assert re.search(r"; its lease, by the database until .* 1 h left, is until .* 4 d 4 h left$", text)
    assert hours(lent.site, "jackie") == 100
