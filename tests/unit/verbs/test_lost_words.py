# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The word beside a root (made.json) that is lost, or cannot be read, on a proxy that is sound else. If these fail, all
that leads on for its tenant is a new, empty root.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import mount_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record, rewrite
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import root, verb

ANOTHER_KEY = " ".join(KEY.split()[:2])


@pytest.fixture(params=["gone", "damaged"])
def word(jackie, request):
    """Her made.json, with what it said before it was lost; her root has something of hers."""
    (root(jackie) / "root" / "data").write_text("work")
    path = root(jackie).parent / "made.json"
    said = json.loads(path.read_text())
    path.unlink() if request.param == "gone" else path.write_text("{")
    return path, said


def unmounted(site):
    for point in reversed(mounts_below(str(site.state / "board-roots"))):
        unmount(point)


def says(word):
    path, said = word
    return path.is_file() and path.read_text() == json.dumps(said)


@pytest.mark.parametrize("mounted", [True, False])
def test_it_is_written_anew_where_all_bears_it_out(jackie, word, mounted):
    """Lost: a healthy instance, of which is said that only a new root helps."""
    None if mounted else unmounted(jackie)
    (dry,) = found(reconcile(jackie, check=True))
    assert not says(word)
    (done,) = found(reconcile(jackie))
    missing = "missing: made.json" if mounted else "missing: made.json, mount"
    assert (dry[0].startswith(missing), dry[1], done) == (True, "would be put back", (missing, "put back"))
    assert says(word)
    assert (root(jackie) / "root" / "data").read_text() == "work"
    again = reconcile(jackie)
    assert (again["changed"], found(again)) == (False, [])
    assert jackie.what_is_there() == jackie.running("jackie")


@pytest.mark.parametrize("mounted", [True, False])
def test_who_starts_it_gets_it_back(jackie, word, mounted):
    """Lost: an instance that was stopped, which its tenant may not start again but with an empty root."""
    assert verb(jackie, "stopped")["changed"]
    None if mounted else unmounted(jackie)
    dry = jackie.module("board_image", boards=[0], instance="jackie", check=True)
    assert (dry.get("failed"), dry["changed"]) == (None, True), dry
    assert not says(word)
    assert not verb(jackie).get("failed")
    assert says(word)
    assert (root(jackie) / "root" / "data").read_text() == "work"
    assert jackie.what_is_there() == jackie.running("jackie")


@pytest.mark.parametrize("overlay", [False, True])
@pytest.mark.parametrize("first", ["reconcile", "start"])
def test_a_mount_that_was_cut_off_is_taken_up(jackie, word, overlay, first):
    """Lost: a healthy root, of which was said for ever that it can not be mounted, or told anew, by a kill while it was
    mounted to look at its host key.
    """
    assert verb(jackie, "stopped")["changed"]
    unmounted(jackie)
    one = Root(str(jackie.state), 0)
    mount_file(one.file, one.layers)
    if overlay:
        one._overlay(ImageStore(str(jackie.state / "images")).get("debian"))
    dry = jackie.module("board_image", boards=[0], instance="jackie", check=True)
    assert (dry.get("failed"), dry["changed"]) == (None, True), dry
    if first == "reconcile":
        ((_missing, done),) = found(reconcile(jackie))
        assert done == "put back"
    assert not verb(jackie).get("failed")
    assert says(word)
    assert (root(jackie) / "root" / "data").read_text() == "work"
    assert jackie.what_is_there() == jackie.running("jackie")


def other_key(site):
    (root(site) / "etc" / "ssh" / "ssh_host_ed25519_key.pub").write_text(f"{ANOTHER_KEY}\n")


def no_key(site):
    (root(site) / "etc" / "ssh" / "ssh_host_ed25519_key.pub").unlink()


def no_file(site):
    (root(site).parent / "root.ext4").unlink()


def folder_instead(site):
    path = root(site).parent / "made.json"
    path.unlink(missing_ok=True)
    path.mkdir()


def other_image(site):
    """The record and the database name an image, over whose files it is not mounted."""
    rewrite(site, image_hash=site.newer.hash)
    with site.proxy() as proxy:
        proxy.store._db.write("UPDATE claims SET image_hash = ?", (site.newer.hash,))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (other_key, "the host key in it is not jackie's"),
        (no_key, "there is no host key in it"),
        (no_file, "root.ext4 is not there"),
        (folder_instead, "made.json is a folder"),
        (other_image, "it is not mounted over the files of its image"),
    ],
)
@pytest.mark.parametrize("given", [{}, {"adopt": ["jackie"]}])
def test_what_does_not_bear_it_out_is_named_and_nothing_is_written(jackie, word, harm, why, given):
    """Lost: a root, by the word that it is somebody's whose it is not."""
    harm(jackie)
    before = jackie.what_is_there()
    result = reconcile(jackie, **given)
    ((text, done),) = found(result)
    assert "fs_0 is there, and what it says of whom it was made for cannot be read, nor be told anew: " in text
    assert f"{why}: nothing of it is touched: bring made.json in it back; or, to have it made anew, rebuild" in text
    assert (done, result["not_adopted"]) == (None, given.get("adopt", []))
    assert (jackie.what_is_there(), says(word)) == (before, False)
    assert "nor be told anew" in verb(jackie)["msg"]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("harm", [other_key, no_key, folder_instead])
def test_one_that_would_not_start_again_is_not_stopped(jackie, word, harm, check):
    """Lost: an instance that runs, by a stop that goes through and a start that is refused."""
    harm(jackie)
    before = jackie.what_is_there()
    result = verb(jackie, "stopped", check=check)
    assert (result["failed"], result["changed"]) == (True, False)
    assert "board0: jackie would not start again, so it is not stopped: " in result["msg"]
    assert "nor be told anew: " in result["msg"]
    assert "bring made.json in it back; or, to have it made anew, rebuild or terminate the instance" in result["msg"]
    assert jackie.what_is_there() == before
    if not check:
        assert not verb(jackie, "absent").get("failed")
        assert jackie.what_is_there() == jackie.clean()


def test_an_unmounted_root_with_anothers_key_is_left_unmounted(jackie, word):
    """Lost: the same, where it takes a mount to see that."""
    assert verb(jackie, "stopped")["changed"]
    other_key(jackie)
    unmounted(jackie)
    # the kernel lets go of a loop device some time after its last mount
    before = dict(jackie.what_is_there(), loops=None)
    result = reconcile(jackie, adopt=["jackie"])
    assert found(result)[0][0].count("the host key in it is not jackie's") == 1
    assert (result["not_adopted"], says(word)) == (["jackie"], False)
    assert dict(jackie.what_is_there(), loops=None) == before


def test_a_lease_that_only_the_record_knows_stays(jackie, word):
    """Lost: a lease, where the database is older besides: what bears out the root bears out the record."""
    rewrite(jackie, expires=9e9)
    assert found(reconcile(jackie))[0][1] == "adopted"
    reconcile(jackie)
    with jackie.proxy() as proxy:
        assert proxy.store.claim_of("jackie").expires == 9e9
    assert says(word)
    assert jackie.what_is_there() == jackie.running("jackie")


def test_without_a_record_its_own_comes_first(jackie, word):
    """Lost: the way out where both files are lost: the record is written anew, then the word by it."""
    record(jackie).unlink()
    assert [done for _text, done in found(reconcile(jackie)) if done] == ["written beside it, too", "put back"]
    assert says(word)


def test_one_that_is_not_whole_stays_as_it_is(jackie):
    """Lost: what nobody knows whether it is all there, taken for whole."""
    path = root(jackie).parent / "made.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), whole=False)))
    before = path.read_text()
    ((text, done),) = found(reconcile(jackie, adopt=["jackie"]))
    assert ("is not whole by its made.json" in text, done, path.read_text()) == (True, None, before)
