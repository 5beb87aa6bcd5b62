# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's boot entry: when it is written and removed, and what a dry run shows of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_entry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_entry import (
    ensure_entry,
    remove_entry,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import System

TEXT = "#!ipxe\nboot demo\n"


def claim_of(**more):
    return SimpleNamespace(**{"instance": "jackie", "host_key": "key", "image_hash": "ab", **more})


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Make the work of a board whose entry lies at `entry`, claimed, with its root made."""
    entry = tmp_path / "board0.ipxe"
    monkeypatch.setattr(boot_entry, "is_gone", lambda proxy, board, claim: claim.instance == "gone")
    monkeypatch.setattr(boot_entry, "image_of", lambda proxy, claim: f"image of {claim.instance}")
    monkeypatch.setattr(boot_entry, "image_store", lambda proxy: SimpleNamespace(get=lambda name: f"image {name!r}"))

    def make(claim=None, check=False):
        change = Change(check)
        driver = SimpleNamespace(
            entry_paths=lambda board: [str(entry)],
            entry=lambda board, system: {str(entry): TEXT.replace("demo", f"{system.image} for {system.host_key}")},
        )
        one = SimpleNamespace(
            wanted=None,
            claim=claim,
            change=change,
            proxy=None,
            board=SimpleNamespace(name="board0"),
            driver=driver,
            system=System(None, host_key="key"),
            as_rebuilt=False,
        )
        one.note = lambda *given: change.note(*given) and not change.check
        one.path = entry
        return one

    return make


WANTED = "#!ipxe\nboot image of jackie for key\n"


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("there", [None, "#!ipxe\nboot another\n", WANTED])
def test_an_entry_that_is_missing_or_other_than_wanted_is_written(work, check, there):
    """Lost: a board boots what it was to boot last; or a dry run changes what it boots."""
    one = work(claim_of(), check)
    if there is not None:
        one.path.write_text(there)
    ensure_entry(one)
    found = one.path.read_text() if one.path.exists() else None
    assert found == (there if check else WANTED)
    assert one.change.changed is (there != WANTED)
    if there != WANTED:
        before = {} if there is None else {"lines": there.splitlines()}
        (diff,) = one.change.diff
        assert (diff["before_header"], diff["before"], diff["after"]) == (
            str(one.path),
            before,
            {"lines": WANTED.splitlines()},
        )


def test_a_dry_run_after_that_of_a_rebuild_takes_the_entry_as_gone(work):
    """Lost: that a rebuild writes it anew."""
    one = work(claim_of(), check=True)
    one.path.write_text(WANTED)
    one.as_rebuilt = True
    ensure_entry(one)
    assert one.change.diff[0]["before"] == {}


@pytest.mark.parametrize(
    ("claim", "what"),
    [
        (None, "is claimed by nobody"),
        (claim_of(host_key=None), "has no root for jackie yet"),
        (claim_of(image_hash=None), "has no root for jackie yet"),
        (claim_of(instance="gone"), "has no root for gone any more"),
    ],
)
def test_a_board_that_nothing_was_made_ready_for_gets_no_entry(work, claim, what):
    """Lost: a board gets power and boots into nothing, or into what was removed; a dry run shows what it can."""
    one = work(claim)
    with pytest.raises(Refused, match=what):
        ensure_entry(one)
    assert not one.path.exists()
    dry = work(claim, check=True)
    ensure_entry(dry, "demo")
    name = f"image of {claim.instance}" if claim else "image 'demo'"
    assert dry.change.diff[0]["after"] == {"lines": ["#!ipxe", f"boot {name} for key"]}
    if claim is None:
        nameless = work(None, check=True)
        ensure_entry(nameless)
        assert nameless.change.diff[0]["after"]["lines"][1] == "boot image '' for key"


def test_an_instance_that_another_request_gave_back_is_to_be_asked_for_again(work):
    """Lost: what a user is to do, who asked by two plays."""
    one = work(None)
    one.wanted = "jackie"
    with pytest.raises(Refused, match=r"another request was for jackie as well, .*: ask for jackie again"):
        ensure_entry(one)


@pytest.mark.parametrize("check", [False, True])
def test_an_image_that_only_the_real_run_imports(work, monkeypatch, check):
    """Lost: a dry run ends in an error for an image that the real run would bring."""

    def image_of(*given):
        raise BadInput("no such image", "demo", "import it")

    monkeypatch.setattr(boot_entry, "image_of", image_of)
    one = work(claim_of(), check)
    if not check:
        with pytest.raises(BadInput):
            ensure_entry(one)
        return
    ensure_entry(one)
    (diff,) = one.change.diff
    assert diff["after"] == {"lines": [boot_entry.UNKNOWN]}
    assert "depend on the image" in boot_entry.UNKNOWN


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_an_entry_is_removed(work, check, there):
    """Lost: a board that is switched on by hand boots what its last tenant had."""
    one = work(claim_of(), check)
    if there:
        one.path.write_text(TEXT)
    remove_entry(one)
    assert one.path.exists() is (there and check)
    assert one.change.changed is there
    if there:
        assert one.change.diff[0]["before"] == {"lines": ["#!ipxe", "boot demo"]}
        assert one.change.diff[0]["after"] == {}
