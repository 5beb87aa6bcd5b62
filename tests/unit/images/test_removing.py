# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's view of a store. If these fail, an image is removed that somebody runs, or a dry run removes one."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
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
