# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's data for cloud-init. If these failed, a first boot would do nothing of what was asked, or what was asked
before, or a secret in them would lie where others read it.
"""

from __future__ import annotations

import os
import pathlib
import stat

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import board_images
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_root import root_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import cloud_init
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision import remove
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar

DATA = "#cloud-config\nwrite_files: [{path: /root/token, content: hunter2}]\n"
OTHER = "#!/bin/sh\necho hunter3\n"


@pytest.mark.parametrize(
    "text",
    [DATA, OTHER, "Content-Type: multipart/mixed; boundary=x\n", "MIME-Version: 1.0\n", "#cloud-config-archive\n[]\n"],
)
def test_what_cloud_init_takes_is_taken(text):
    cloud_init.must_be_user_data(text)
    cloud_init.must_be_user_data(text.ljust(cloud_init.MOST))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hunter2", "does not begin as data for cloud-init do"),
        ("", "does not begin"),
        (f" {DATA}", "does not begin"),
        ("#cloud-configuration of hunter2", "does not begin"),
        (DATA.ljust(cloud_init.MOST + 1), f"has {cloud_init.MOST + 1} bytes"),
        (f"{DATA}\0", "is no text"),
    ],
)
def test_what_it_would_not_take_is_refused_without_a_word_of_it(text, why):
    with pytest.raises(BadInput) as caught:
        cloud_init.must_be_user_data(text)
    assert why in str(caught.value)
    assert "hunter" not in str(caught.value)


def test_an_image_without_cloud_init_is_named(site, proxy):
    """Lost: a tenant's first boot, which does nothing of what was asked, and says nothing."""
    store = image_store(proxy)
    with pytest.raises(BadInput, match="image debian: has no cloud-init, which user_data is for: leave user_data out"):
        cloud_init.must_have_cloud_init(store.get("debian"))
    source = image_tar(site.folder / "cloud.tar", **{"root/usr/bin/cloud-init": "#!/bin/sh\n"})
    store.import_image(source, "cloud")
    cloud_init.must_have_cloud_init(store.get("cloud"))


def test_to_look_for_it_mounts_nothing_that_stays(site, proxy):
    """Lost: check mode, which would leave a mount on the node."""
    store = image_store(proxy)
    store.import_image(image_tar(site.folder / "cloud.tar", **{"root/usr/bin/cloud-init": "#!/bin/sh\n"}), "cloud")
    image = store.get("cloud")
    assert mounts_below(str(site.folder)) == {}
    cloud_init.must_have_cloud_init(image)
    with pytest.raises(BadInput, match="has no cloud-init"):
        cloud_init.must_have_cloud_init(store.get("debian"))
    assert mounts_below(str(site.folder)) == {}
    root_of(image)
    there = mounts_below(str(site.folder))
    assert list(there) == [image.root]
    cloud_init.must_have_cloud_init(image)
    assert mounts_below(str(site.folder)) == there


def test_the_folder_of_an_older_image_is_looked_at_as_it_is(site, proxy):
    """Lost: check mode, which would pack an image; and the word on one that has lost its files."""
    store = image_store(proxy)
    store.import_image(image_tar(site.folder / "cloud.tar", **{"root/usr/bin/cloud-init": "#!/bin/sh\n"}), "cloud")
    image = store.get("cloud")
    folder = pathlib.Path(image.folder)
    (folder / "root.ext4").unlink()
    with pytest.raises(HeteroError, match="image cloud: has lost its files: import it again"):
        cloud_init.must_have_cloud_init(image)
    (folder / "root" / "usr" / "bin").mkdir(parents=True)
    with pytest.raises(BadInput, match="has no cloud-init"):
        cloud_init.must_have_cloud_init(image)
    (folder / "root" / "usr" / "bin" / "cloud-init").write_text("#!/bin/sh\n")
    cloud_init.must_have_cloud_init(image)
    assert not (folder / "root.ext4").exists()


@pytest.fixture
def ask(site, proxy):
    """Make board 0 ready with these data, as often as called; (the module's result, texts that were said)."""
    site.claim(proxy)

    def once(user_data=DATA, check=False):
        request = board_images.ImageRequest(user_data=user_data)
        change = Change(check)
        result = board_images.present(proxy, [0], request, change, Deadline(60))
        assert not result.get("failed"), result
        assert "hunter" not in str(result), "what is in it is nobody else's"
        return result["boards"][0]["changed"], [line["text"] for line in result["lines"]]

    return once


def in_root(site, path):
    return site.state / "board-roots" / "fs_0" / "root" / path.lstrip("/")


def test_a_new_root_has_the_seed_for_root_alone(site, ask):
    assert ask(check=True)[1][-1] == "user_data would be there for cloud-init"
    assert ask()[1][-1] == "user_data is there for cloud-init"
    assert in_root(site, cloud_init.USER_DATA).read_text() == DATA
    modes = [(cloud_init.SEED, 0o700), (cloud_init.USER_DATA, 0o600), (cloud_init.META_DATA, 0o600)]
    for path, mode in modes:
        seen = os.stat(in_root(site, path))
        assert (stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid) == (mode, 0, 0), path
    meta = yaml.safe_load(in_root(site, cloud_init.META_DATA).read_text())
    assert meta["local-hostname"] == "jackie"
    kept = yaml.safe_load(in_root(site, cloud_init.SETTINGS).read_text())
    assert kept["ssh_deletekeys"] is False, "the host key is what the instance is known by"
    assert (kept["ssh_genkeytypes"], kept["network"]) == ([], {"config": "disabled"})
    assert ask() == (False, []), "it is there"


def test_each_root_is_another_instance_to_cloud_init(site, ask, proxy):
    """Lost: a first boot, which cloud-init takes for a later one of an instance that it has seen."""
    ask()
    first = yaml.safe_load(in_root(site, cloud_init.META_DATA).read_text())["instance-id"]
    remove(proxy, proxy.board(0), Change(), lambda *said: None)
    proxy.store.put("jackie", image_hash=None)
    ask()
    assert yaml.safe_load(in_root(site, cloud_init.META_DATA).read_text())["instance-id"] != first


def test_a_root_that_nothing_ran_from_gets_what_is_missing(site, ask):
    """Lost: the data, to a request that was killed between root and seed, or was corrected before the first boot."""
    ask(None)
    assert not in_root(site, cloud_init.SEED).exists()
    assert ask() == (True, ["user_data is there for cloud-init"])
    assert ask(OTHER)[0]
    assert in_root(site, cloud_init.USER_DATA).read_text() == OTHER


def test_a_request_without_data_has_none_of_an_earlier_one(site, ask):
    """Lost: a first boot that does what another try asked for, with its secrets."""
    ask()
    assert ask(None) == (False, []), "a start gives none, and takes none"
    assert in_root(site, cloud_init.USER_DATA).read_text() == DATA
    assert ask("", check=True) == (True, ["user_data of an earlier request would be taken out of its root"])
    assert in_root(site, cloud_init.USER_DATA).read_text() == DATA
    assert ask("") == (True, ["user_data of an earlier request was taken out of its root"])
    for name in (cloud_init.USER_DATA, cloud_init.META_DATA, cloud_init.SETTINGS):
        assert not in_root(site, name).exists()
    assert ask("") == (False, []), "none is there"
    assert ask()[0]
    assert in_root(site, cloud_init.USER_DATA).read_text() == DATA


def test_it_has_those_of_its_image_again(site, ask, proxy, tmp_path):
    """Lost: what an image brings for each first boot."""
    settings, _mode = cloud_init.files(OTHER, "image")[cloud_init.SETTINGS]
    brought = {cloud_init.SETTINGS: settings, cloud_init.USER_DATA: OTHER}
    source = image_tar(tmp_path / "brought.tar", **{f"root{name}": text for name, text in brought.items()})
    image_store(proxy).import_image(source, "brought")
    proxy.store.put("jackie", image="brought")
    ask(None)
    assert ask("") == (False, []), "they are the image's"
    assert ask()[0]
    assert in_root(site, cloud_init.USER_DATA).read_text() == DATA
    assert ask("")[0]
    assert not in_root(site, cloud_init.META_DATA).exists()
    for name, text in brought.items():
        assert in_root(site, name).read_text() == text
        assert stat.S_IMODE(os.stat(in_root(site, name)).st_mode) == 0o644, "as its image has it"
    assert ask("") == (False, [])


def test_data_that_somebody_put_there_by_hand_stay(site, ask):
    """Lost: what an administrator gave a root before its first boot."""
    ask(None)
    seed = in_root(site, cloud_init.USER_DATA)
    seed.parent.mkdir(parents=True)
    seed.write_text(OTHER)
    assert ask("") == (False, [])
    assert seed.read_text() == OTHER


@pytest.mark.parametrize("event", [("switch", "pdu-a outlet 1 is to be switched on"), None], ids=["was on", "is on"])
def test_what_a_system_may_have_seen_stays(site, ask, proxy, event):
    """Lost: the word that data of an earlier request are there, which may have been done."""
    ask()
    if event:
        proxy.store.event(0, *event, instance="jackie")
    else:
        proxy.store.power_seen(0, "on")
    assert ask("") == (False, [cloud_init.LEFT])
    assert in_root(site, cloud_init.USER_DATA).read_text() == DATA
    assert ask(OTHER) == (False, [cloud_init.SEEDED])


def test_a_root_that_ran_is_left_as_it_is(site, ask, proxy):
    """Lost: what a tenant has made of it; and the word on how another one gets there."""
    ask()
    proxy.store.event(0, "state", "booting → running", instance="jackie")
    assert ask() == (False, [])
    assert ask(OTHER) == (False, [cloud_init.SEEDED])
    assert ask("") == (False, []), "who asks again for what runs gives no data"
    assert in_root(site, cloud_init.USER_DATA).read_text() == DATA


def test_nothing_else_on_the_node_has_it(site, ask, proxy):
    """Lost: a secret, to who reads the database, a record or its copies."""
    ask()
    proxy.store.close()
    found = [path for path in site.folder.rglob("*") if path.is_file() and path.stat().st_size < 1 << 24]
    holding = {str(path) for path in found if b"hunter2" in path.read_bytes()}
    upper = {path for path in holding if "/board-roots/fs_0/" in path}
    assert upper
    assert holding == upper


def test_a_link_of_the_image_leads_nowhere_else(site, tmp_path):
    """Lost: a file of the node, to an image whose /var/lib/cloud/seed leads out of its root."""
    root, out = tmp_path / "fresh", tmp_path / "out"
    (root / "var" / "lib" / "cloud").mkdir(parents=True)
    out.mkdir()
    (root / "var" / "lib" / "cloud" / "seed").symlink_to(out)
    with pytest.raises(Exception, match=r"seed|No such file"):
        cloud_init.put_seed(str(root), DATA, "jackie")
    assert list(out.iterdir()) == []
