# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's view of a store. If these fail, an image is removed that somebody runs, or a dry run removes one.

Tests images/choice.py, nodes/images.py.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mount_overlay, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_root import root_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.images import work
from ansible_collections.hetero.compute.plugins.modules.image_store import SPEC
from ansible_collections.hetero.compute.tests.unit.images.packing import MEMBERS, image_tar


@pytest.fixture
def images(site, proxy, tmp_path):
    """A function that does what the module does on the proxy, whose claims are `proxy`'s."""
    del proxy
    config = tmp_path / "etc.json"
    config.write_text(json.dumps(dict(state_folder=str(site.state), ram_images={"arm": "ram"})))

    def run(check=False, **asked):
        given = {name: option.get("default") for name, option in SPEC.options.items()}
        return work(dict(given, node="proxy", config=str(config), **asked), check)

    return run


@pytest.fixture
def source(tmp_path):
    (tmp_path / "srv").mkdir()
    return lambda name, **changes: image_tar(tmp_path / "srv" / f"{name}.tar", **changes)


def names(result):
    return {image["name"]: image["used_by"] for image in result["images"]}


def test_the_life_of_an_image(images, source, site, proxy):
    """Imported, listed, used, replaced, removed; each again without a change, and each in a dry run before."""
    asked = dict(name="tile", source=source("tile", kernel="ONE"))
    dry = images(check=True, **asked)
    assert (dry["changed"], names(dry)) == (True, {"debian": []})
    done = images(**asked)
    hash = next(image["hash"] for image in done["images"] if image["name"] == "tile")
    assert [line["text"] for line in done["lines"]] == [f"tile (tilepro64) is in the store: sha256:{hash}"]
    again = images(**asked)
    assert (again["changed"], again["lines"], names(again)) == (False, [], {"debian": [], "tile": []})
    with pytest.raises(Refused, match=r"tile: stands for image .* add -e replace=true \(in a task: replace: true\)"):
        images(name="tile", source=source("other", kernel="TWO"))
    other = dict(name="tile", source=source("other", kernel="TWO"), replace=True)
    [said] = [line["text"] for line in images(check=True, **other)["lines"]]
    done = images(**other)
    assert done["changed"]
    new = next(image["hash"] for image in done["images"] if image["name"] == "tile")
    assert said.endswith(f"/other.tar: it stands for {new[:12]} then, no more for {hash[:12]}")
    assert done["lines"][0]["text"].endswith(f"sha256:{new}, no more {hash[:12]}")
    assert names(images()) == {"debian": [], "tile": [], None: []}
    assert any(hash in line and "used by nobody" in line for line in images()["table"])
    assert images(name=hash, state="absent")["changed"]
    dry = images(check=True, name="tile", state="absent")
    assert (dry["changed"], names(dry)) == (True, {"debian": [], "tile": []})
    assert images(name="tile", state="absent")["changed"]
    assert names(images()) == {"debian": []}
    gone = images(name="tile", state="absent")
    assert (gone["changed"], [line["text"] for line in gone["lines"]]) == (
        False,
        [f"there is no image tile on {os.uname().nodename}"],
    )
    with pytest.raises(BadInput, match=r"tile: no such image in the store \(known: debian\)"):
        images(name="tile")


def test_what_is_used_stays(images, source, site, proxy):
    """By its name, by a root that was made of it, as a default, as a RAM image; who it is, is said."""
    site.claim(proxy)
    no_root = dict.fromkeys(name for name in MEMBERS if name.startswith("root"))
    images(name="ram", source=source("ram", **no_root, **{"image.json": json.dumps({"arch": "arm", "ram": True})}))
    with pytest.raises(Refused, match="debian: is used by jackie: terminate or rebuild"):
        images(name="debian", state="absent")
    with pytest.raises(Refused, match="ram: is used by RAM image of arm"):
        images(name="ram", state="absent")
    old = next(image["hash"] for image in images()["images"] if image["name"] == "debian")
    proxy.store.put("jackie", image_hash=old)
    images(name="debian", source=source("new", kernel="NEW"), replace=True)
    # Before, it looked as if jackie ran the new one.
    row = next(image for image in images()["images"] if image["name"] == "debian")
    assert (row["used_by"], row["older"]) == (["jackie"], {"jackie": old})
    table = images()["table"]
    assert any(line.endswith(f"sha256:{row['hash']}  jackie (runs the older {old[:12]})") for line in table)
    assert any(line.endswith(f"sha256:{old}  jackie") for line in table)
    with pytest.raises(Refused, match=f"{old}: is used by jackie"):
        images(name=old, state="absent")
    proxy.store.release(0, proxy.store.record(0).claim)
    with pytest.raises(Refused, match="debian: is used by default"):
        images(name="debian", state="absent", defaults=["debian"])
    assert images(name=old, state="absent")["changed"]


def test_a_second_name_keeps_the_image(images, source, site, proxy):
    """One of two names goes: the image stays for the other, and who runs it is not in the way."""
    images(name="tile", source=source("tile"))
    images(name="again", source=source("tile"))
    hashes = {image["hash"] for image in images()["images"]}
    assert len(hashes) == 1, "the same as debian's"
    site.claim(proxy)
    proxy.store.put("jackie", image_hash=next(iter(hashes)))
    assert images(name="tile", state="absent")["changed"]
    with pytest.raises(BadInput, match="is image again, debian: remove it by that name"):
        images(name=next(iter(hashes)), state="absent")
    assert names(images()) == {"again": ["jackie"], "debian": ["jackie"]}


def test_what_nobody_uses_is_collected(images, source, site, proxy):
    """By no name and no root; what it took is said; a dry run takes nothing, and a second run finds nothing."""
    images(name="old", source=source("old", kernel="OLD"))
    images(name="tile", source=source("tile", kernel="ONE"))
    of = {image["name"]: image["hash"] for image in images()["images"]}
    images(name="old", source=source("newer", kernel="NEWER"), replace=True)
    images(name="tile", source=source("other", kernel="TWO"), replace=True)
    site.claim(proxy, image="old")
    proxy.store.put("jackie", image_hash=of["old"])
    archives = site.state / "archives"
    archives.mkdir()
    for hash in (of["tile"], of["debian"], "0" * 64):
        (archives / f"{hash}.tar.gz").write_bytes(b"x" * 8192)
        (archives / f"{hash}.tar.gz.json").write_text("{}")
    (archives / "notes").write_text("somebody's")
    before = sorted(os.listdir(archives))
    size = next(image["bytes"] for image in images()["images"] if image["hash"] == of["tile"])
    dry = images(check=True, state="collected")
    assert (dry["changed"], sorted(os.listdir(archives))) == (True, before)
    assert {image["hash"] for image in dry["images"]} >= {of["tile"], of["old"]}
    done = images(state="collected")
    assert (done["changed"], done["freed"]) == (True, dry["freed"])
    assert done["freed"] == size + 2 * 8192
    said = [line["text"] for line in done["lines"]]
    assert said[0] == f"sha256:{of['tile']} (tilepro64) removed: {size / 1e6:.1f} MB"
    assert said[-1] == f"{done['freed'] / 1e6:.1f} MB freed on {os.uname().nodename}"
    assert [entry["before_header"] for entry in done["diff"]] == [entry["before_header"] for entry in dry["diff"]]
    left = {image["hash"] for image in done["images"]}
    assert of["tile"] not in left
    assert {of["old"], of["debian"]} <= left, "jackie runs the one, and a name stands for the other"
    assert sorted(os.listdir(archives)) == sorted(
        ["notes", f"{of['debian']}.tar.gz", f"{of['debian']}.tar.gz.json"]
    )
    again = images(state="collected")
    assert (again["changed"], again["freed"]) == (False, 0)
    assert [line["text"] for line in again["lines"]] == [f"nothing to collect on {os.uname().nodename}"]


def test_what_is_mounted_is_not_collected(images, source, site, proxy):
    """A root whose claim is lost with the database: its mount is the last that tells of it."""
    images(name="tile", source=source("tile", kernel="ONE", **{"root/etc/hostname": "x" * (1 << 20)}))
    store = image_store(proxy)
    old = store.get("tile")
    images(name="tile", source=source("other", kernel="TWO"), replace=True)
    upper, work, root = (site.folder / name for name in ("upper", "work", "fs_7"))
    for folder in (upper, work, root):
        folder.mkdir()
    lower = root_of(old)
    assert mount_overlay("fs_7", str(root), f"lowerdir={lower},upperdir={upper},workdir={work}") == 0
    assert images(state="collected")["changed"] is False
    assert old.hash in store.hashes()
    assert unmount(str(root)) == 0
    files = [os.lstat(os.path.join(old.folder, name)) for name in os.listdir(old.folder) if name != "mounted"]
    done = images(state="collected")
    assert old.hash not in store.hashes()
    # its files, and not once more what is seen where they are mounted
    assert done["freed"] < sum(status.st_blocks * 512 for status in files) + (16 << 10)


def test_nothing_is_collected_where_the_database_is_lost(images, source, site, proxy):
    """What knows who uses what is gone, and a root lies there whose made.json tells nothing either."""
    images(name="tile", source=source("tile", kernel="ONE"))
    images(name="tile", source=source("other", kernel="TWO"), replace=True)
    (site.state / "board-roots" / "fs_0").mkdir(parents=True)
    (site.state / "board-roots" / "fs_0" / "made.json").write_text("")
    for file in site.state.glob("state.db*"):
        file.unlink()
    with pytest.raises(HeteroError, match=r"is not there, and instances were made on"):
        images(state="collected")
    assert len({image["hash"] for image in images()["images"]}) == 3


def test_what_may_be_being_made_is_not_collected(images, source, site, proxy):
    """Lost: the image that a root is being made of, whose name was given to another one meanwhile."""
    images(name="tile", source=source("tile", kernel="ONE"))
    site.claim(proxy, image="tile")
    old = image_store(proxy).get("tile")
    images(name="tile", source=source("other", kernel="TWO"), replace=True)
    why = "the root of jackie is yet to be made, and may be being made of it"
    for check in (True, False):
        done = images(check=check, state="collected")
        assert (done["changed"], done["freed"]) == (False, 0)
        assert done["lines"][0]["text"] == f"no image without a name is removed: {why}"
    with pytest.raises(Refused, match=why):
        images(name=old.hash, state="absent")
    assert old.hash in image_store(proxy).hashes()
    proxy.store.put("jackie", image_hash=image_store(proxy).get("tile").hash)
    assert images(state="collected")["changed"]
    assert old.hash not in image_store(proxy).hashes()


def test_the_archive_of_a_root_whose_image_is_gone_is_not_collected(images, site, proxy):
    """Lost by other hands: what is left of it is the instance's."""
    site.claim(proxy)
    proxy.store.put("jackie", image_hash="0" * 64)
    archive = site.state / "archives" / f"{'0' * 64}.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(b"x")
    assert images(state="collected")["changed"] is False
    assert archive.exists()
    proxy.store.release(0, proxy.store.record(0).claim)
    assert images(state="collected")["changed"]
    assert not archive.exists()


@pytest.mark.parametrize(
    "file", ["claims/board1.json", "board-roots/fs_1/made.json", "board-roots/fs_1/root.ext4", "disks/fs_1/made.json"]
)
def test_nothing_is_collected_while_something_does_not_say_whose_it_is(images, source, site, proxy, file):
    """The database may be older than it, and the image that nobody seems to use may be its."""
    images(name="tile", source=source("tile", kernel="ONE"))
    images(name="tile", source=source("other", kernel="TWO"), replace=True)
    stored = image_store(proxy).hashes()
    path = site.state / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{")
    thing = path if path.parent.name == "claims" else path.parent
    for check in (True, False):
        with pytest.raises(Refused, match=f"^{thing}: cannot be read, and may be of an instance"):
            images(check=check, state="collected")
    assert image_store(proxy).hashes() == stored
    path.unlink()
    assert images(state="collected")["changed"]


def test_a_state_folder_that_a_link_leads_to(tmp_path):
    """The table of mounts has the path without links: an image that was mounted could not be removed, nor imported any.
    """
    (tmp_path / "disk").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "disk")
    store = ImageStore(str(tmp_path / "state" / "images"))
    image = store.import_image(image_tar(tmp_path / "one.tar"), "one")
    root_of(image)
    with store.kept_still(False, Deadline(60)):
        store.forget("one", image.hash, Deadline(60))
    assert store.import_image(image_tar(tmp_path / "two.tar"), "two").name == "two"
