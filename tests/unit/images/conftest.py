# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy to try images on: real files, real mounts, and a `busctl` that answers as nfs-ganesha 4.3 does.

Owners and mounts need root; a run without it says so for each test that it skips.
"""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.nfs_server import put_busctl
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, image_tar
from ansible_collections.hetero.compute.tests.unit.images.stores import copy

#: <linux/sched.h>
CPU = '{"vendor":"tilera","model":"TILEmpower","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'


def pytest_collection_modifyitems(items):
    if os.geteuid() == 0:
        return
    for item in items:
        if "own_mounts" in item.fixturenames:
            item.add_marker(pytest.mark.skip(reason="owners and mounts of a root need root: run as root"))


@pytest.fixture(scope="session", autouse=True)
def own_mounts():
    """Mounts of roots, which need root; only this process sees them (tests/unit/conftest.py)."""


class Site:
    """A proxy's files in a temporary folder."""

    def __init__(self, folder):
        self.folder = folder
        self.state = folder / "state"
        self.tftp = folder / "tftpboot"
        self.exports_file = folder / "ganesha.json"
        self.boards(CPU)
        config = dict(
            server="10.0.2.254",
            tftp_root=str(self.tftp),
            state_folder=str(self.state),
            run_folder=str(folder / "run"),
            roots_overcommit=10000,  # the boards\' 917 GB each are more than a test machine has
            credentials=str(folder / "credentials.json"),
            # the image's arguments would reach no Tilera board, which these are by their vendor
            boards={str(number): {"driver": "pxe"} for number in range(4)},
        )
        (folder / "proxy.json").write_text(json.dumps(config))
        self.params = dict(
            boards_file=str(folder / "tilera_boards"),
            config=str(folder / "proxy.json"),
            state_db=str(self.state / "state.db"),
        )

    def boards(self, cpu):
        rows = [f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:9{n} 10 16218 917 476 1 tilera_hv 1 {cpu}" for n in range(4)]
        (self.folder / "tilera_boards").write_text("\n".join(rows) + "\n")

    def proxy(self):
        return Proxy(self.params, "test")

    def claim(self, proxy, instance="jackie", board=0, image="debian", key=KEY):
        return proxy.store.claim(instance, [instance], ClaimTerms("jackie", {"name": "tp64.8x8"}, image, key), [board])[
            0
        ]

    def exports(self):
        """{id: export} as the server has it."""
        return {int(number): found for number, found in json.loads(self.exports_file.read_text()).items()}

    def set_exports(self, exports):
        self.exports_file.write_text(json.dumps(exports))

    def clean(self):
        """Leave no mount behind, whatever a test did."""
        for point in reversed(mounts_below(str(self.folder))):
            unmount(point)


@pytest.fixture(scope="session")
def imported(tmp_path_factory):
    """An image store that holds one image, `debian`."""
    folder = tmp_path_factory.mktemp("imported")
    ImageStore(str(folder / "images")).import_image(image_tar(folder / "debian.tar"), "debian")
    return folder


@pytest.fixture
def image(imported, tmp_path):
    """Image `debian` in a store of this test's own, tmp_path/state/images."""
    (tmp_path / "state").mkdir(exist_ok=True)
    copy(imported / "images", tmp_path / "state" / "images")
    return ImageStore(str(tmp_path / "state" / "images")).get("debian")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A proxy whose NFS server is fake_busctl.pl, started as `busctl`."""
    tmp_path.chmod(0o755)
    place = Site(tmp_path)
    place.set_exports({})
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    put_busctl(bin_folder)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GANESHA", str(place.exports_file))
    yield place
    place.clean()


@pytest.fixture
def proxy(site, image):
    """A proxy with image `debian` in its store."""
    with site.proxy() as proxy:
        yield proxy


@pytest.fixture
def report():
    """What was reported, as (phase, text) pairs; callable as `report`."""
    said = []
    return SimpleNamespace(said=said, call=lambda phase, text, seconds=None: said.append((phase, text)))
