# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of images whose file is damaged: the images that they stand for are not known, and are not lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.image_removal import collect
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar


@pytest.fixture
def store(tmp_path):
    return ImageStore(str(tmp_path / "images"))


def take(store, tmp_path, name, kernel, **more):
    return store.import_image(str(image_tar(tmp_path / f"{kernel}.tar", kernel=kernel)), name, **more).hash


def cut_short(store, name):
    file = Path(store.folder, "names", name)
    file.write_text(file.read_text()[:40])
    return file


def collected(store, tmp_path):
    return [row["what"] for row in collect(store, list, str(tmp_path / "disks"), Change(False), Deadline(30.0))]


def test_no_image_without_a_name_is_collected_until_each_name_can_be_read(store, tmp_path):
    """Lost: the image of a name whose file a full disk cut short."""
    one = take(store, tmp_path, "box", "ONE")
    file = cut_short(store, "box")
    [said] = collected(store, tmp_path)
    assert said.startswith(f"no image without a name is removed: {file} cannot be read, and may be the name of one (")
    assert store.hashes() == [one]
    take(store, tmp_path, "box", "ONE", replace=True)
    assert collected(store, tmp_path) == []
    assert store.names() == {"box": one}


def test_a_folder_beside_the_names_holds_nothing_up(store, tmp_path):
    """Lost: every collection, to a folder that somebody made there."""
    take(store, tmp_path, "box", "ONE")
    Path(store.folder, "names/box").unlink()
    Path(store.folder, "names/old").mkdir()
    assert len(collected(store, tmp_path)) == 1
    assert store.hashes() == []


def test_such_a_name_is_given_to_another_image_only_where_that_is_asked_for(store, tmp_path):
    """Lost: what the name stood for, to an import that does not ask to replace anything."""
    one = take(store, tmp_path, "box", "ONE")
    file = cut_short(store, "box")
    with pytest.raises(Refused, match=rf"its name cannot be read: {file} .*: give .* or add -e replace=true"):
        take(store, tmp_path, "box", "TWO")
    two = take(store, tmp_path, "box", "TWO", replace=True)
    assert store.names() == {"box": two}
    assert store.hashes() == sorted([one, two])
