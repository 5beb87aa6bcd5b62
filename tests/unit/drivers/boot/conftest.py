# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole proxy in a temporary folder: real files and store, PDUs that are files, boots that are played."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import used_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import bystanders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.ownership import token_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import MADE, Root
from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import board0, network, ruled
from ansible_collections.hetero.compute.tests.unit.own_network import own_network

__all__ = ["board0", "network", "ruled"]

IMAGE = "ab" * 32
PACKAGES = "/var/cache/apt/archives/openssh-server_*.deb"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUmyQLPYmxFQCbDXOYrVHhQDnHRlHvZnLLhDmTv0Rdq"
CPU = '{"vendor":"tilera","model":"TILEmpower","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'


class Site:
    """A proxy's files, and hands that change them as people do."""

    def __init__(self, folder):
        self.folder = folder
        self.config = dict(
            server="127.0.0.1",
            tftp_root=str(folder / "tftpboot"),
            state_folder=str(folder / "state"),
            run_folder=str(folder / "run"),
            roots_overcommit=10000,  # the boards\' 917 GB each are more than a test machine has
            credentials=str(folder / "credentials.json"),
            pdus={name: {"driver": "fake", "path": str(folder / f"{name}.json")} for name in ("pdu-a", "pdu-b")},
            boards={
                str(number): dict(
                    pdu="pdu-a" if number < 2 else "pdu-b",
                    outlet=str(number + 5),
                    driver="fake",
                    console=str(folder / f"board{number}.log"),
                    fake={},
                )
                for number in range(4)
            },
        )
        rows = [f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:9{n} 10 16218 917 476 1 tilera_hv 1 {CPU}" for n in range(4)]
        (folder / "tilera_boards").write_text("\n".join(rows) + "\n")
        (folder / "state" / "images" / IMAGE / "root").mkdir(parents=True)
        (folder / "state" / "images" / IMAGE / "image.json").write_text('{"arch": "tilepro64", "cmdline": "quiet"}')
        for name in ("kernel", "initrd"):
            (folder / "state" / "images" / IMAGE / name).write_text(name)
        for name in ("pdu-a", "pdu-b"):
            self.pdu(name, {str(outlet): "off" for outlet in range(1, 9)})
        self.write()

    @property
    def params(self):
        return dict(
            boards_file=str(self.folder / "tilera_boards"),
            config=str(self.folder / "proxy.json"),
            state_db=str(self.folder / "state.db"),
        )

    def write(self):
        (self.folder / "proxy.json").write_text(json.dumps(self.config))

    def play(self, number, **fake):
        """How a board boots from now on."""
        self.config["boards"][str(number)]["fake"] = fake
        self.write()

    def later(self, number, seconds):
        """As if the board had been on for so many seconds more."""
        path = self.folder / "run" / "fake-boots" / f"board{number}"
        boot = json.loads(path.read_text())
        self._put(path, dict(boot, on=boot["on"] - seconds))

    @staticmethod
    def _put(path, data):
        """Replace a file that others may be reading just now."""
        new = path.with_suffix(".later")
        new.write_text(json.dumps(data))
        new.replace(path)

    def pdu(self, name, outlets=None, **faults):
        """Set outlets by hand, and how the PDU misbehaves."""
        path = self.folder / f"{name}.json"
        if outlets is None:
            outlets = json.loads(path.read_text())["outlets"]
        path.write_text(json.dumps({"outlets": outlets, "faults": faults}))

    def power(self, number):
        wiring = self.config["boards"][str(number)]
        return json.loads((self.folder / f"{wiring['pdu']}.json").read_text())["outlets"][wiring["outlet"]]

    def cut(self, number, state="off"):
        """Somebody turns the outlet by hand, and with it what it feeds."""
        wiring = self.config["boards"][str(number)]
        path = self.folder / f"{wiring['pdu']}.json"
        data = json.loads(path.read_text())
        data["outlets"][wiring["outlet"]] = state
        self._put(path, data)
        boot = self.folder / "run" / "fake-boots" / f"board{number}"
        if state == "off" and boot.exists():
            self._put(boot, dict(json.loads(boot.read_text()), on=None))

    def entry(self, number):
        return self.folder / "tftpboot" / f"10.0.2.{number + 1}" / f"01-00-1a-ca-00-57-9{number}.ipxe"

    def proxy(self):
        return Proxy(self.params, "test")

    def claim(self, *numbers, ready=True):
        with self.proxy() as proxy:
            for number in numbers:
                name = f"vm{number}"
                proxy.store.claim(name, [name], ClaimTerms("jo", {"name": "tp64.8x8"}, "demo", KEY), [number])
                if ready:
                    proxy.store.put(name, host_key=KEY, image_hash=IMAGE, boot_source="nfs")
                    self._root_of(proxy, proxy.store.record(number).claim)

    def claim_rack(self, count):
        """The boards 0 to count - 1 in one request, each ready. One by one, each claim would look at all before it."""
        names = [f"vm-{number + 1}" for number in range(count)]
        with self.proxy() as proxy:
            terms = ClaimTerms("jo", {"name": "tp64.8x8"}, "demo", KEY)
            proxy.store.claim("vm", names, terms, list(range(count)))
            for number, name in enumerate(names):
                proxy.store.put(name, host_key=KEY, image_hash=IMAGE, boot_source="nfs")
                self._root_of(proxy, proxy.store.record(number).claim)

    @staticmethod
    def _root_of(proxy, claim):
        """What says that its root was made; there is nothing in it."""
        made = Root(proxy.config.state_folder, claim.board)
        os.makedirs(made.folder, exist_ok=True)
        record = dict(claim=token_of(claim), image=claim.image_hash, kind="overlay", whole=True)
        with open(os.path.join(made.folder, MADE), "w", encoding="utf-8") as file:
            json.dump(record, file)

    def run(self, verb, *numbers, **options):
        """A verb as the module runs it; options as in lifecycle.Options."""
        with self.proxy() as proxy:
            return getattr(lifecycle, verb)(proxy, list(numbers), lifecycle.Options(**dict({"timeout": 60}, **options)))

    def record(self, number):
        with self.proxy() as proxy:
            return proxy.store.record(number)

    def events(self, number, phases=("power", "tftp", "nfs", "running", "error", "wait")):
        with self.proxy() as proxy:
            return [event for event in proxy.store.events(boards=[number]) if event.phase in phases]


@pytest.fixture(autouse=True)
def loopback():
    """A loopback interface of this test's own: some watch its packets, and would see other tests' too."""
    if os.geteuid() != 0:
        yield
        return
    with own_network():
        yield


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Its boards have no roots: a test says what is written into them; they live on no stored power."""
    monkeypatch.setattr(bystanders, "SETTLED", 0.05)
    monkeypatch.setattr(bystanders, "EACH", 0.02)
    monkeypatch.setattr(used_root, "used_since", lambda work, when: False)
    return Site(tmp_path)


@pytest.fixture(scope="module")
def sshd_program(tmp_path_factory):
    """The sshd of this machine, or the one in a package that lies in apt's cache."""
    found = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin")
    packages = sorted(glob.glob(PACKAGES))
    if not found and packages:
        folder = tmp_path_factory.mktemp("openssh-server")
        subprocess.run(["dpkg-deb", "-x", packages[-1], str(folder)], check=True)
        found = str(folder / "usr/sbin/sshd")
    if not found or os.geteuid() != 0:
        pytest.skip("needs root and sshd: apt-get install openssh-server (or only --download-only)")
    return found
