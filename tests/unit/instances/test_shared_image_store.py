# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that is proxy node and compute host: both have one folder of images, and each knows who uses one."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.images import work
from ansible_collections.hetero.compute.plugins.modules.image_store import SPEC
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL


@pytest.fixture
def store(claims):
    return Path(claims.settings["state_folder"]) / "images"


@pytest.fixture
def images(claims):
    proxy = claims.folder / "proxy.json"
    proxy.write_text(json.dumps(dict(state_folder=claims.settings["state_folder"])))
    config = {"proxy": str(proxy), "host": str(claims.config)}

    def run(node, check=False, **asked):
        given = {name: option.get("default") for name, option in SPEC.options.items()}
        return work(dict(given, node=node, config=config[node], **asked), check)

    return run


def rows(result):
    return {image["name"]: image for image in result["images"]}


def test_an_image_of_the_hosts_instances_is_not_removed_as_the_proxys(claims, images):
    """Lost: the image that an instance uses, which the proxy's list said that nobody uses."""
    claims.claim("a", flavor=SMALL)
    assert rows(images("proxy"))["box"]["used_by"] == ["a"]
    with pytest.raises(Refused, match="box: is used by a"):
        images("proxy", name="box", state="absent")
    assert "box" in rows(images("host"))


def test_nor_is_it_collected_while_a_container_is_made_of_it(claims, images, store):
    """Lost: the files that a container is being made of, to the proxy's timer."""
    claims.claim("a", flavor=SMALL)
    name = store / "names/box"
    hash = name.read_text().strip()
    name.unlink()
    [said, _total] = images("proxy", state="collected")["lines"]
    assert said["text"].startswith("no image without a name is removed: the root of a is yet to be made")
    assert (store / hash).is_dir()


@pytest.mark.parametrize("check", [False, True])
def test_an_archive_that_boards_have_is_taken_in_for_containers_as_another_image(images, store, tmp_path, check):
    """Lost: the packed files below boards' roots, to a set-up of the host that imports the same archive."""
    source = str(image_tar(tmp_path / "both.tar"))
    images("proxy", name="both", source=source)
    hash = (store / "names/both").read_text().strip()
    before = {file.name: file.stat().st_ino for file in (store / hash).iterdir()}
    with pytest.raises(Refused, match=r"is in the store as one for boards.*: give arch too, and a name of its own"):
        images("host", name="both", source=source, check=check)
    assert {file.name: file.stat().st_ino for file in (store / hash).iterdir()} == before
    assert "damaged" not in rows(images("proxy"))["both"]["arch"]
    images("host", name="box-of-both", source=source, arch=platform.machine())
    assert "damaged" not in rows(images("host"))["box-of-both"]["arch"]
