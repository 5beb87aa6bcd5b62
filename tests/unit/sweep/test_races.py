# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many who ask at once. If these fail, two users are given one board, or a user's board is switched off, or opened for
somebody else, by a play that looked a moment too early.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.modules import board_claim
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points, run
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, Site

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="overlay mounts need root: run as root")

PROCESSES, CLAIMS_EACH, BOARDS = 20, 10, 10


def all_at_once(workers):
    """Run functions in processes of their own, let go at one moment; what each returned (of JSON's types)."""
    gate, opener = os.pipe()
    answers = []
    for worker in workers:
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                os.close(opener)
                os.close(reader)
                os.read(gate, 1)  # ends when the opener is closed
                os.write(writer, json.dumps(worker(), default=str).encode())
            finally:
                os._exit(0)
        os.close(writer)
        answers.append(reader)
    os.close(gate)
    os.close(opener)
    results = []
    for reader in answers:
        with open(reader, "rb") as answer:
            results.append(json.loads(answer.read() or '"died"'))
    for _worker in workers:
        os.wait()
    return results


def claimer(params, number):
    """Ask for CLAIMS_EACH instances; the board or the reason of each."""
    options = {name: spec.get("default") for name, spec in board_claim.SPEC.options.items()}

    def ask():
        got = {}
        for turn in range(CLAIMS_EACH):
            name = f"user-{number}-{turn}"
            request = dict(instance=name, owner=f"user-{number}", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
            try:
                got[name] = board_claim.work({**options, **params, **request}, False)["boards"][0]["board"]
            except NoneFree:
                got[name] = "none free"
            except HeteroError as error:
                got[name] = f"error: {error}"
        return got

    return ask


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.long)])
def test_two_hundred_claims_at_once_on_ten_boards(tmp_path, capsys, rounds):
    tally = Counter()
    site = Site(tmp_path, Points(), boards=BOARDS)
    for turn in range(rounds):
        site.params["state_db"] = str(site.state / f"state-{turn}.db")
        shutil.rmtree(site.state / "claims", ignore_errors=True)  # else it is a node whose database is lost
        got = all_at_once([claimer(site.params, number) for number in range(PROCESSES)])
        answers = {name: answer for one in got for name, answer in one.items()}
        assert len(answers) == PROCESSES * CLAIMS_EACH
        won = {name: board for name, board in answers.items() if isinstance(board, int)}
        assert sorted(won.values()) == list(range(BOARDS))
        assert set(answers.values()) - set(won.values()) == {"none free"}
        with site.proxy() as proxy:
            assert {claim.instance: claim.board for claim in proxy.store.claims()} == won
            assert sum(event.phase == "claim" for event in proxy.store.events()) == BOARDS
        tally.update("won" if isinstance(answer, int) else answer for answer in answers.values())
    with capsys.disabled():
        print(f"\n{rounds} rounds of {PROCESSES * CLAIMS_EACH} claims on {BOARDS} boards: {dict(tally)}")


@pytest.mark.parametrize("rounds", [4, pytest.param(40, marks=pytest.mark.long)])
def test_terminate_against_provision_of_one_name_and_of_another(site, capsys, rounds):
    """Whoever is first, each play ends well or says why, and the board is somebody's whole or nobody's and clean."""
    tally = Counter()
    for turn in range(rounds):
        if turn % 2:
            site.provision()
        plays = [site.provision, site.terminate, site.terminate, lambda: site.provision("bob")]
        ends = all_at_once(plays[turn % 2 :] if turn % 4 else plays)
        for results in ends:
            assert results != "died"
            assert not any(result is None or result.get("broken") for result in results), results
            failed = [result["msg"] for result in results if result.get("failed")]
            tally["said why" if failed else "done"] += 1
        for name in ("jackie", "bob"):
            board = site.board_of(name)
            if board is not None and site.root_is_whole(board):
                root = site.state / "board-roots" / f"fs_{board}" / "root" / "etc" / "hostname"
                assert root.read_text() == f"{name}\n"
        for name in ("jackie", "bob"):
            assert not any(result.get("failed") for result in site.terminate(name))
        assert site.what_is_there() == site.clean()
    with capsys.disabled():
        print(f"\n{rounds} rounds of terminate against provision: {dict(tally)}")


def test_a_board_that_was_given_to_another_meanwhile_is_not_touched(site):
    """Jackie's play looked up board 0; then it was bob's. Neither his power nor his root are jackie's any more."""
    assert not any(result.get("failed") for result in site.provision("bob"))
    before = site.what_is_there()
    key = site.state / "board-roots" / "fs_0" / "root" / "root" / ".ssh" / "authorized_keys"
    keys = key.read_text()
    late = (
        ("board_image", dict(image="debian", ssh_public_key=OTHER_KEY)),
        ("board_image", dict(state="absent")),
        ("tilera_boot", dict(state="stopped")),
        ("tilera_boot", dict(state="rebooted")),
        ("tilera_boot", dict(state="running")),
    )
    for module, given in late:
        result = run(site.points, module, **site.params, boards=[0], instance="jackie", **given)
        assert "is not jackie's any more, it was given to bob meanwhile" in result["msg"], module
        assert not result["changed"]
    assert site.what_is_there() == before == site.running("bob")
    assert key.read_text() == keys
