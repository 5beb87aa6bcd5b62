# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers whose folders were moved by hand: into the place of another, or to a name of any bytes. If these fail, it
is said that nobody wants them, or that a new one may be made, while they are all that a tenant has.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import found_by_reconcile, top, two

__all__ = ["two"]

#: What ends it, or makes a new one in its place.
NOT_SAID = ("commands of LXC", "nobody wants it", "nobody has it", "fresh=true", "provision_instance", "be made anew")
VERBS = (lifecycle.running, lifecycle.rebooted, lifecycle.stopped, lifecycle.absent)


def folder(site, name):
    return Path(site.container(name).folder)


def others(site):
    with site.host() as host:
        found = reconciliation.reconcile(host, Change(False), 5.0)["others"]
    json.dumps(found, ensure_ascii=False).encode()
    return found


def moved(site, name, path, taken=False):
    """What is said of a container in another folder."""
    way = ", once what lies there now is in its own place" if taken else ""
    own = folder(site, name)
    return f"{path} is the container of {name}, moved: not touched: end nothing of it, and move it back to {own}{way}"


def all_say(site, name, words):
    """Reconcile and each verb of an instance say these words, and no way that ends anything or makes it anew."""
    (found,) = found_by_reconcile(site, name)
    for said in (found, *(site.do(verb, name)["msg"] for verb in VERBS)):
        assert words in said
        assert not [word for word in NOT_SAID if word in said]


@pytest.mark.parametrize("b", ["claimed", "gone", "never ran"])
def test_one_in_the_place_of_another_is_said_to_be_whose_it_is(two, b):
    """Lost: a's only root, to who ends what lies in b's place "by the commands of LXC", or makes a anew, as printed; or
    to b, which is made there: nothing says that a ever ran, where its console's log is gone.
    """
    if b == "gone":
        folder(two, "b").rename(two.folder / "lost")
    else:
        two.do(lifecycle.absent, "b")
        two.claim("b", flavor=SMALL, owner="bo", key=OTHER_KEY)
    if b == "never ran":
        (folder(two, "a") / "console.log").unlink()
    folder(two, "a").rename(folder(two, "b"))
    words = moved(two, "a", folder(two, "b"))
    for name in "ab":
        all_say(two, name, words)
    assert others(two) == []
    assert (two.do(lifecycle.rebuilt, "b", fresh=True)["failed"], folder(two, "a").exists()) == (True, False)
    folder(two, "b").rename(folder(two, "a"))  # as printed
    assert two.up("a")["instances"][0]["state"] == "running"
    assert top(two, "a").joinpath("own").read_text() == "a's"
    if b != "gone":
        assert two.up("b")["instances"][0]["state"] == "running"


def test_two_in_each_others_places_are_said_to_be_that(two):
    """Lost: one of the two, to who looks "into it" and makes it anew; or into the other's folder, by a mv of one."""
    a, b, aside = folder(two, "a"), folder(two, "b"), two.folder / "aside"
    a.rename(aside)
    b.rename(a)
    aside.rename(b)
    all_say(two, "a", moved(two, "b", a, taken=True))
    all_say(two, "b", moved(two, "a", b, taken=True))


@pytest.mark.parametrize("name", ["a old", "a\nold", os.fsdecode(b"a\xff"), "a-old", "-rf"])
def test_one_under_any_name_is_said_to_be_whose_it_is(two, name):
    """Lost: reconcile and status of a whole host, to a traceback, for one folder that was moved aside; or its root, to
    the way that status, or a verb on the name that it has now, prints for what nobody wants.
    """
    aside = two.lxcpath / name
    folder(two, "a").rename(aside)
    words = moved(two, "a", str(aside).replace("\udcff", "\\udcff"))
    assert others(two) == [words]
    assert [one["text"] for one in two.info()["unclaimed"]] == [words]
    (found,) = found_by_reconcile(two, "a")
    assert f"/a/config: is gone, and a has run: nothing is made in its place: {words}" in found
    assert two.up("b")["instances"][0]["state"] == "running"
    if name == "a-old":
        with pytest.raises(Refused) as refused:
            two.do(lifecycle.absent, name)
        assert words in str(refused.value)
        with pytest.raises(NoneFree) as refused:
            two.claim(name, flavor=SMALL)
        assert words in str(refused.value)
    aside.rename(folder(two, "a"))
    assert two.up("a")["instances"][0]["state"] == "running"


def test_one_that_was_moved_aside_before_a_rebuild_is_said_to_have_been_that_instances(two):
    """Lost: whose the root is that reconcile and status call nobody's; or a's new root, which the old configuration
    names, to the commands of LXC.
    """
    aside = two.lxcpath / "a-old"
    folder(two, "a").rename(aside)
    assert not two.do(lifecycle.rebuilt, "a", fresh=True).get("failed")
    assert not two.do(lifecycle.rebuilt, "b", fresh=True).get("failed")
    (said,) = others(two)
    assert said.startswith(f"container a-old of {two.lxcpath}, of no instance any more (by the event of 20")
    assert " it was a's): see who made it, and whose root lxc.rootfs.path in its config names" in said
    assert [one["text"] for one in two.info()["unclaimed"]] == [said]
    with two.host() as host:
        texts = [event.text for event in host.store.events() if "its container no more" in event.text]
    assert len(texts) == 1, "an event of the one that was not in its place, and none of b's"
    two.do(lifecycle.absent, "a")
    assert others(two) == [said]


def test_one_that_cannot_be_read_is_said_to_be_that(two):
    """Lost: a's root, to a rebuild that is printed as the way for one whose configuration is "gone"."""
    config = folder(two, "a") / "config"
    config.rename(two.folder / "config")
    config.symlink_to("config")
    for verb in (*VERBS, lifecycle.rebuilt):
        said = two.do(verb, "a", fresh=True)["msg"]
        assert f"{config}: cannot be read as a container's configuration (" in said
        assert not [word for word in NOT_SAID if word in said]
    (found,) = found_by_reconcile(two, "a")
    assert f"{config}: cannot be read" in found
    assert disks.has(two.container("a"))
    config.unlink()
    (two.folder / "config").rename(config)
    assert two.up("a")["instances"][0]["state"] == "running"
