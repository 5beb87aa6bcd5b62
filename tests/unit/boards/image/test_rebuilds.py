# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rebuild decides and says of one instance. Whole modules are in verbs/test_rebuild.py."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import rebuilds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Claim
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import (
    LEFT,
    LOOK,
    Instances,
    Report,
    Tenant,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY

BOARD = SimpleNamespace(id=0, name="board0", ip="10.0.2.1")
HASHES = {"debian": "a" * 64, "fedora": "b" * 64}
EVE = Claim(0, "eve-1", "eve", "jo", {"name": "big"}, "debian", KEY, 5.0, None, "host key", "a" * 64, "nfs")


@pytest.fixture
def node(monkeypatch, tmp_path):
    """A proxy with one claim; `done` is what was asked and written."""
    done = []

    @contextmanager
    def transaction(dry):
        done.append(("dry", dry))
        yield

    store = SimpleNamespace(record=lambda board: found.record, transaction=transaction, path="state.db")
    store.put = lambda instance, **fields: done.append((instance, fields))
    found = SimpleNamespace(store=store, done=done, config=ProxyConfig(state_folder=str(tmp_path)), claim=EVE)
    found.record = SimpleNamespace(state="running", note="", claim=EVE)
    found.asked = []
    events = SimpleNamespace(event=lambda board, phase, text, seconds, instance: done.append((phase, text)))

    def each(proxy, ids, verb, one, change, deadline, tenant):
        found.asked.append((ids, verb, deadline, tenant))
        lines = []
        report = Report(SimpleNamespace(store=events), BOARD, "eve-1", False, lines)
        return dict(boards=[dict(one(BOARD, found.claim, report, change), board=0)], lines=lines)

    def get(name):
        return SimpleNamespace(name=name, hash=HASHES[name])

    monkeypatch.setattr(rebuilds, "each", each)
    monkeypatch.setattr(rebuilds, "ids_of", lambda proxy, request, numbers, only_key: [request, *numbers])
    monkeypatch.setattr(rebuilds.last_outlet, "Feeds", lambda proxy: "feeds")
    monkeypatch.setattr(rebuilds, "image_store", lambda proxy: SimpleNamespace(get=get))
    monkeypatch.setattr(rebuilds, "check_arch", lambda board, image: done.append(("arch", image.name)))
    drivers = SimpleNamespace(means=lambda board: f"means of {board.name}")
    monkeypatch.setattr(rebuilds, "BootDrivers", lambda proxy: drivers)

    def delivery(proxy, board, image, means, source):
        done.append(("delivery", image.name, means, source))

    monkeypatch.setattr(rebuilds, "check_delivery", delivery)
    monkeypatch.setattr(rebuilds, "bring_after", lambda *given: None)
    monkeypatch.setattr(rebuilds, "_must_be_its_own", lambda *given: done.append("its own"))
    monkeypatch.setattr(rebuilds, "size_of", lambda proxy, board, flavor: 77)
    room = SimpleNamespace(check=lambda size, instead: done.append(("room", size, instead.split("/")[-2])))
    monkeypatch.setattr(rebuilds, "room_of", lambda proxy: room)
    return found


def rebuild(node, image=None, key=None, fresh=False, owner=None, check=False):
    change = Change(check)
    asked = Instances("eve", owner, (1,), (5.0,))
    result = rebuilds.rebuild(node, asked, rebuilds.RebuildRequest(image, key, fresh), change, "soon")
    assert node.asked == [(["eve", 1], "rebuild", "soon", Tenant("eve", (5.0,)))]
    return result, change.diff


@pytest.mark.parametrize(
    ("given", "text", "fields"),
    [
        (dict(image="fedora"), "debian → fedora bbbbbbbbbbbb", dict(image="fedora", ssh_public_key=KEY)),
        (dict(key=OTHER_KEY), "another key", dict(image="debian", ssh_public_key=OTHER_KEY)),
        (dict(fresh=True), "a fresh root from debian", dict(image="debian", ssh_public_key=KEY)),
        (
            dict(image="fedora", key=OTHER_KEY, owner="jo"),
            "debian → fedora bbbbbbbbbbbb, another key",
            dict(image="fedora", ssh_public_key=OTHER_KEY),
        ),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_what_is_to_be_is_written_down(node, given, text, fields, check):
    """Lost: the image or the key that was asked for, or what goes with the old root, said before it goes."""
    result, diff = rebuild(node, check=check, **given)
    (_arch, delivered, own, room, dry, put, (phase, said)) = node.done
    assert delivered == ("delivery", fields["image"], "means of board0", "nfs")
    assert (own, room[:2], dry) == ("its own", ("room", 77), ("dry", check))
    assert put == ("eve-1", dict(fields, image_hash=None, host_key=None))
    gone = "all that is in the root of eve-1 goes; its name, board0, address and lease stay"
    assert (phase, said) == ("rebuild", f"{text}; {gone}")
    assert result["to_rebuild"] == [0]
    assert result["boards"] == [dict(changed=True, image=fields["image"], board=0)]
    assert [one["before_header"] for one in diff] == ["eve-1"]
    assert ("root" in diff[0]["after"]) == given.get("fresh", False)
    assert set(diff[0]["before"]) - {"root"} == {"image", "hash", "keys"}
    assert diff[0]["before"]["keys"]


@pytest.mark.parametrize("given", [{}, dict(image="debian"), dict(key=KEY), dict(key=f"{KEY}-elsewhere")])
def test_what_is_so_already_is_left(node, given):
    """Lost: a root and the work in it, to a play that was run once more."""
    result, diff = rebuild(node, **given)
    assert node.done == [("arch", "debian")]
    (line,) = result["lines"]
    assert (line["instance"], line["node"], line["phase"], line["seconds"]) == ("eve-1", "board0", "rebuild", None)
    assert line["text"].startswith(f"nothing to rebuild: eve-1 has image debian {'a' * 12}")
    assert (result["to_rebuild"], result["boards"][0]["changed"], diff) == ([], False, [])


def test_a_root_on_its_own_disk_needs_no_room(node):
    node.claim = rebuilds.replace(EVE, boot_source="disk")
    rebuild(node, fresh=True)
    assert not any(one[0] == "room" for one in node.done)
    assert ("delivery", "debian", "means of board0", "disk") in node.done
    assert "all that is in the root of eve-1 on its own disk goes" in node.done[-1][1]


@pytest.mark.parametrize(
    ("claim", "state", "given", "why"),
    [
        (None, "running", {}, f"board0: {LEFT.format(request='eve')}: {LOOK.format(request='eve')}"),
        (EVE, "running", dict(owner="bob"), "eve-1: belongs to jo"),
        (EVE, "error", {}, "board0: is in error: without a note: terminate eve-1 and ask for it anew"),
        (EVE, "maintenance", {}, "board0: is in maintenance: without a note: terminate eve-1"),
        (
            rebuilds.replace(EVE, ssh_public_key="x"),
            "running",
            {},
            "board0: the ssh key of eve-1's claim in state.db",
        ),
    ],
)
def test_what_is_refused_changes_nothing(node, claim, state, given, why):
    node.claim, node.record.state = claim, state
    with pytest.raises(Refused) as refused:
        rebuild(node, fresh=True, **given)
    assert str(refused.value).startswith(why)
    assert [one for one in node.done if one[0] != "arch"] == []


@pytest.mark.parametrize("by", ["removed", "replaced"])
def test_an_image_that_goes_while_its_board_is_looked_at_leaves_the_root(node, monkeypatch, by):
    """Lost: a root with all that is in it, which counts as yet to be made of an image that is no more."""

    def get(name):
        if any(one[0] == "eve-1" for one in node.done):
            if by == "removed":
                raise BadInput("no such image in the store (known: debian)", name)
            return SimpleNamespace(name=name, hash="c" * 64)
        return SimpleNamespace(name=name, hash=HASHES[name])

    monkeypatch.setattr(rebuilds, "image_store", lambda proxy: SimpleNamespace(get=get))
    with pytest.raises(HeteroError, match=r"fedora: (no such image|was replaced meanwhile)"):
        rebuild(node, image="fedora")
    before = dict(image="debian", ssh_public_key=KEY, image_hash="a" * 64, host_key="host key")
    assert node.done[-1] == ("eve-1", before)


def test_damaged_keys_can_be_given_anew(node):
    """Lost: the way out of them that is printed."""
    node.claim = rebuilds.replace(EVE, ssh_public_key="x")
    assert rebuild(node, key=KEY)[0]["to_rebuild"] == [0]
    with pytest.raises(Refused, match="rebuild_instance -e instance=eve-1 -e key_file=FILE"):
        rebuilds.must_have_keys(SimpleNamespace(store=SimpleNamespace(path="state.db")), BOARD, node.claim)


def test_how_much_goes_is_said(tmp_path):
    """Lost: a look at what is thrown away, by who asked for it by mistake."""
    node = SimpleNamespace(config=ProxyConfig(state_folder=str(tmp_path)))
    file = rebuilds.root_of_board(node, 0).file
    rebuilds.os.makedirs(rebuilds.os.path.dirname(file), exist_ok=True)
    with open(file, "wb") as root:
        root.write(b"x" * (3 << 20))
        root.flush()
        rebuilds.os.fsync(root.fileno())
    size = rebuilds.size_text(512 * rebuilds.os.stat(file).st_blocks)
    assert f"the root of eve-1 ({size}) goes; its name, board0" in rebuilds._goes(node, BOARD, EVE)
    assert size.endswith(" MiB"), "three days' results are not nothing"
    assert [rebuilds.size_text(one) for one in (0, 1, 5 << 20, 1 << 30, 11 << 30)] == [
        "0 MiB", "1 MiB", "5 MiB", "1.0 GiB", "11 GiB",
    ]  # fmt: skip


def test_a_claim_as_a_rebuild_leaves_it():
    """Lost: what the dry run of a whole rebuild says."""
    anew = rebuilds.replace(EVE, image_hash=None, host_key=None)
    assert rebuilds.rebuilt_claim(EVE) == anew
    assert rebuilds.rebuilt_claim(EVE, "fedora") == rebuilds.replace(anew, image="fedora")


@pytest.mark.parametrize(
    ("state", "others", "refused"),
    [("running", True, True), ("booting", True, True), ("power off", True, False), ("running", False, False)],
)
def test_a_board_that_shows_anothers_key_is_not_stopped(monkeypatch, state, others, refused):
    """Lost: the power of whoever is on that board in truth; or a board whose outlet feeds another."""
    asked = []

    class Work:
        def __init__(self, proxy, board, change):
            self.proxy = proxy

    for name in ("refuse_anothers", "refuse_changed", "refuse_unproven", "refuse_to_remove", "must_know_the_lease"):
        monkeypatch.setattr(rebuilds, name, lambda *given, name=name: asked.append(name))
    monkeypatch.setattr(rebuilds, "BoardWork", Work)
    monkeypatch.setattr(rebuilds, "BootDrivers", lambda proxy: SimpleNamespace(of=lambda board: "driver"))
    monkeypatch.setattr(rebuilds, "is_others", lambda work: others and (work.record, work.driver) == (record, "driver"))
    last_outlet = rebuilds.last_outlet
    monkeypatch.setattr(
        last_outlet, "settle", lambda works, feeds: asked.append((works[0].pdu, works[0].outlet, feeds))
    )
    monkeypatch.setattr(last_outlet, "must_be_settled", lambda work: asked.append("settled"))
    record = SimpleNamespace(state=state, claim=EVE)
    node = SimpleNamespace(outlet=lambda board: ("pdu-a", "5"))
    first = ["refuse_anothers", "refuse_changed", "refuse_unproven", "refuse_to_remove", "must_know_the_lease"]
    if refused:
        with pytest.raises(Refused, match="board0: "):
            rebuilds._must_be_its_own(node, BOARD, record, None, "feeds")
        assert asked == first
    else:
        rebuilds._must_be_its_own(node, BOARD, record, None, "feeds")
        assert asked == [*first, ("pdu-a", "5", "feeds"), "settled"]
