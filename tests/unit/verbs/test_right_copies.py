# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which copy of state.db is to be put back where a root is there and its claim is not known: the one that has just that
claim. If these fail, a running instance is given up for an older one of its name, or nobody is told how it comes back.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back


def done(results):
    assert not any(result.get("failed") for result in results), results


def restore(site, text):
    """Type what a text says to put a copy back, then that its word is taken."""
    command, word = re.search(r"run on node \S+: (.+?) and then, .+ -e adopt=(\w+) then$", text).groups()
    subprocess.run(["sh", "-ec", command], check=True, timeout=600)
    reconcile(site)
    reconcile(site, adopt=[word])


@pytest.fixture
def right(site):
    """The copy that has the claim with which jackie runs, whose record is gone; an older copy has an older claim."""
    done(site.provision())
    backups.make(site.params["state_db"])
    done([*site.terminate(), *site.provision()])
    right = backups.make(site.params["state_db"])
    record(site).unlink()
    return right


@pytest.mark.parametrize("of_record", ["gone", "damaged"])
@pytest.mark.parametrize("there", [True, False])
def test_a_root_of_which_no_claim_is_known(site, right, of_record, there):
    """Lost: the claim of a running instance, of which a copy knows that nobody names."""
    with site.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims")
    if of_record == "damaged":
        record(site).write_text("{")
    if not there:
        Path(right).unlink()
    ((text, _done),) = found(reconcile(site))
    assert text.count("as the copy ") == there, "an older claim of her name is another one"
    if there:
        assert f"as the copy {right} says that it is jackie's: run on node " in text
        restore(site, text)
    assert site.what_is_there()["power"] == {"1": "on", "2": "off"}
    if there:
        assert site.what_is_there() == site.running("jackie")
        reconcile(site, adopt=["jackie"])  # what feeds it is a word of its own
        assert found(reconcile(site)) == []


def test_a_root_that_is_anothers_than_an_older_database_says(site):
    """Lost: who comes after, ended or left out of use by an operator who is not told of the copy that knows her."""
    done(site.provision("bob"))
    older = backups.make(site.params["state_db"])
    done([*site.terminate("bob"), *site.provision()])
    right = backups.make(site.params["state_db"])
    record(site).unlink()
    put_back(site, older)
    ((text, _done),) = found(reconcile(site))
    assert "-e forget=bob ends bob's claim" in text
    assert f"; or, as the copy {right} says that it is jackie's: run on node " in text
    restore(site, text)
    assert site.what_is_there() == site.running("jackie")
