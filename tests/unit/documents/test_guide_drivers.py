# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers that the guides for developers show. If these fail, who copies one from its page gets one that fails.

Each is taken out of its page, saved as a file of a site's own as the page says, and run by the modules.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import registry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide, named
from ansible_collections.hetero.compute.tests.unit.images.nfs_server import put_busctl
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, image_tar

PASSWORD = "relay-1957"
CPU = '{"vendor":"tilera","model":"TILEmpower","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'
FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 10, "cpu_arch": "tilepro64"}

#: A PDU of which each outlet feeds a board whose one service is sshd, with the host key that lies in its root.
PDU = """\
#!/bin/sh
cd "{folder}"
case $3 in
1) ip address add 10.0.2.1/24 dev lo
   {sshd} -h "{folder}/state/board-roots/fs_0/root/etc/ssh/ssh_host_ed25519_key" \\
     -f /dev/null -o ListenAddress=10.0.2.1 \\
     -o PidFile="{folder}/sshd.pid" -E "{folder}/sshd.log" ;;
2) kill "$(cat sshd.pid)"; while [ -e sshd.pid ]; do sleep 0.05; done
   ip address del 10.0.2.1/24 dev lo ;;
9) test -s sshd.pid && echo on || echo off ;;
esac
"""


#: Makes the folders of a site's own drivers on a node, for one process and those that it starts.
NODE = """\
mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work &&
mount -t overlay none -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc &&
mkdir -p /etc/hetero && cp -r "{folder}" /etc/hetero/"""


@pytest.fixture
def drivers(tmp_path):
    """A function that saves a guide's code as role tftp_proxy does, and returns the shell's words that put it there."""

    def save(page, kind, name):
        text = named(guide(page), kind)
        folder = tmp_path / name.partition("/")[0]
        folder.mkdir(mode=0o755)
        (tmp_path / name).write_text(json.dumps(yaml.safe_load(text)) if name.endswith(".json") else text)
        (tmp_path / name).chmod(0o644)
        return NODE.format(folder=folder)

    return save


def run(collections, name, params, prefix=(), **env):
    """The result of a module, run as the process that Ansible starts."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", f"ansible_collections.hetero.compute.plugins.modules.{name}"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": dict(params, _ansible_check_mode=False)}),
        env=dict(os.environ, PYTHONPATH=str(collections), PYTHONDONTWRITEBYTECODE="", **env),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.strip(), done.stderr
    return json.loads(done.stdout)


class Relays(ThreadingHTTPServer):
    """A relay board on the wire: relays by name, those that are stuck, the password it asks for."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.relays, self.stuck, self.orders = {"0": False, "1": False}, set(), []


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        path, _mark, order = self.path.partition("?")
        relay = path.rpartition("/")[2]
        word = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        if self.headers["Authorization"] != f"Basic {word}":
            return self.send_error(401)
        if relay not in self.server.relays:
            return self.send_error(404)
        if order:
            self.server.orders.append((relay, order))
            if relay not in self.server.stuck:
                self.server.relays[relay] = order == "turn=on"
        text = json.dumps({"ison": self.server.relays[relay]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        return None

    def log_message(self, *_words):
        """Nothing of it belongs into the tests' output."""


@pytest.fixture
def relays():
    server = Relays()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.dear
@pytest.mark.skipif(os.geteuid() != 0, reason="an /etc of one's own needs root: run as root")
def test_power_driver(drivers, relays, tmp_path):
    """On, off, cycled; what does not follow, and who may not."""
    prefix = ["unshare", "--mount", "sh", "-c", drivers("power_driver", "power-driver", "power_drivers/http_relay.py")]
    prefix[-1] += ' && exec "$@"'
    settings = {"driver": "http_relay", "host": "127.0.0.1", "port": relays.server_address[1]}
    config = {"run_folder": str(tmp_path / "run"), "credentials": str(tmp_path / "credentials.json")}
    config.update(pdus={"relays": settings}, boards={str(n): {"pdu": "relays", "outlet": n} for n in (0, 1)})
    (tmp_path / "proxy.json").write_text(json.dumps(config))
    secret = tmp_path / "credentials.json"
    secret.write_text(json.dumps({"relays": {"username": "admin", "password": PASSWORD}}))

    def told(timeout=20):
        params = dict(pdu="relays", config=str(tmp_path / "proxy.json"), timeout=timeout)
        return run(ROOT / "build", "pdu_info", params, [*prefix, "sh"])

    def power(state, *outlets, timeout=20):
        params = dict(pdu="relays", config=str(tmp_path / "proxy.json"), outlets=list(outlets), state=state)
        return run(ROOT / "build", "pdu_power", dict(params, timeout=timeout), [*prefix, "sh"])

    result = power("on", "0", "1")
    assert result["changed"] is True
    assert relays.relays == {"0": True, "1": True}
    assert power("on", "0")["changed"] is False
    del relays.orders[:]
    assert power("cycled", "0")["outlets"]["0"]["after"] == "on"
    assert relays.orders == [("0", "turn=off"), ("0", "turn=on")]
    assert {outlet: seen["after"] for outlet, seen in told()["outlets"].items()} == {"0": "on", "1": "on"}
    relays.stuck.add("1")
    assert "outlet 1 of relays: still on" in power("off", "0", "1", timeout=2)["msg"]
    assert relays.relays == {"0": False, "1": True}

    secret.write_text(json.dumps({"relays": {"username": "admin", "password": "wrong"}}))
    refused = told()
    assert "says 401" in refused["msg"]
    assert "correct its credential" in refused["msg"]
    settings["port"] = 1  # nobody listens there
    (tmp_path / "proxy.json").write_text(json.dumps(config))
    assert "relays: no answer" in told(timeout=0.5)["msg"]


#: What the archive of a release has not, as its galaxy.yml says.
LEFT_OUT = yaml.safe_load((ROOT / "galaxy.yml").read_text())["build_ignore"]


@pytest.mark.dear
@pytest.mark.skipif(os.geteuid() != 0, reason="an /etc of one's own needs root: run as root")
def test_an_upgrade_keeps_a_sites_driver(drivers, relays, tmp_path):
    """Lost: the driver of a site, or what `verify` is for: a collection that is as its maker released it."""
    prefix = ["unshare", "--mount", "sh", "-c", drivers("power_driver", "power-driver", "power_drivers/http_relay.py")]
    prefix[-1] += ' && PYTHONDONTWRITEBYTECODE=1 exec "$@"'  # as on a controller, where no module runs from there
    params = dict(host="127.0.0.1", port=relays.server_address[1], driver="http_relay", username="admin", outlets=["1"])
    shutil.copytree(ROOT, tmp_path / "source", ignore=shutil.ignore_patterns(".git", *LEFT_OUT), symlinks=True)
    about = (tmp_path / "source" / "galaxy.yml").read_text()
    where = ["-p", str(tmp_path / "collections")]
    for version, state in (("7.0.0", "on"), ("7.1.0", "off")):
        (tmp_path / "source" / "galaxy.yml").write_text(re.sub("(?m)^version: .*", f"version: {version}", about))
        galaxy("build", str(tmp_path / "source"), "--output-path", str(tmp_path))
        galaxy("install", str(tmp_path / f"hetero-compute-{version}.tar.gz"), "--offline", "--upgrade", *where)
        given = dict(params, password=PASSWORD, state=state, timeout=20)
        switched = run(tmp_path / "collections", "pdu_power", given, [*prefix, "sh"])
        assert (switched.get("msg"), switched["outlets"]["1"]["after"]) == (None, state)
        told = galaxy("verify", "hetero.compute", "--offline", *where)
        assert f"hetero.compute:{version}" in told
        assert "modified content" not in told
    assert relays.orders == [("1", "turn=on"), ("1", "turn=off")]


def galaxy(*words):
    """What ansible-galaxy says."""
    argv = [os.path.join(os.path.dirname(sys.executable), "ansible-galaxy"), "collection", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_power_table(drivers, tmp_path, monkeypatch):
    """Lost: a PDU for which the page says that no Python is needed."""
    drivers("power_driver", "power-table", "power_drivers/acme_pdu.json")
    monkeypatch.setattr(registry, "OWN_FOLDER", str(tmp_path / "power_drivers"))
    driver = registry.driver_of("acme_pdu", "pdu-a")
    given = yaml.safe_load(named(guide("power_driver"), "power-table"))["snmp_table"]
    assert (registry.kin(driver), driver.table) == ("snmp", given)
    assert list(driver.wrong("pdu-a", {"host": "10.0.100.7"})) == []


@pytest.mark.dear
@pytest.mark.skipif(os.geteuid() != 0, reason="a network and a root of one's own need root: run as root")
def test_boot_driver(drivers, tmp_path):
    """A claim, a root, power, the proof of the host key, and all of it gone at the end."""
    put = drivers("boot_driver", "boot-driver", "boot_drivers/sd_card.py")
    tmp_path.chmod(0o755)
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    script = tmp_path / "pdu"
    script.write_text(PDU.format(folder=tmp_path, sshd=sshd))
    script.chmod(0o755)
    config = dict(
        server="10.0.2.254",
        tftp_root=str(tmp_path / "tftpboot"),
        state_folder=str(tmp_path / "state"),
        run_folder=str(tmp_path / "run"),
        roots_overcommit=10000,  # the boards\' 917 GB each are more than a test machine has
        credentials=str(tmp_path / "credentials.json"),
        pdus={"pdu-a": {"driver": "command", "host": "10.0.100.1", "script": str(script)}},
        boards={"0": {"pdu": "pdu-a", "outlet": "5", "driver": "sd_card"}},
    )
    (tmp_path / "proxy.json").write_text(json.dumps(config))
    (tmp_path / "tilera_boards").write_text(f"0 10.0.2.1 00:1a:ca:00:57:90 10 16384 917 0 0 tilera_hv 1 {CPU}\n")
    (tmp_path / "ganesha.json").write_text("{}")
    (tmp_path / "bin").mkdir()
    put_busctl(tmp_path / "bin")
    about = {"image.json": '{"arch": "tilepro64"}'}
    ImageStore(str(tmp_path / "state" / "images")).import_image(image_tar(tmp_path / "debian.tar", **about), "debian")
    files = dict(config="proxy.json", boards_file="tilera_boards", state_db="state.db")
    files = {option: str(tmp_path / name) for option, name in files.items()}
    network = Network()
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "FAKE_GANESHA": str(tmp_path / "ganesha.json")}

    def module(name, **params):
        result = run(ROOT / "build", name, dict(files, **params), network.prefix, **env)
        assert not result.get("failed"), result
        return result

    try:
        subprocess.run([*network.prefix, "sh", "-c", put], check=True)
        module("board_claim", instance="jackie", owner="jo", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
        module("board_image", boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
        booted = module("tilera_boot", boards=[0], timeout=20, instance="jackie")
        assert [board["state"] for board in booted["boards"]] == ["running"]
        assert module("tilera_boot", boards=[0], timeout=20, instance="jackie")["changed"] is False
        assert not list((tmp_path / "tftpboot").rglob("*.ipxe"))
        module("tilera_boot", boards=[0], state="stopped", timeout=20, instance="jackie")
        module("board_image", boards=[0], state="absent", instance="jackie")
        freed = module("board_claim", instance="jackie", owner="jo", state="absent")
        assert freed["changed"] is True
        assert [board["state"] for board in module("board_info")["boards"]] == ["power off"]
    finally:
        network.remove()


class Network:
    """Namespaces of a test: the board has its address to itself, sshd a folder of its own, mounts last no longer."""

    def __init__(self):
        words = "ip link set lo up && mount -t tmpfs none /run && mkdir /run/sshd"
        argv = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c"]
        self._process = subprocess.Popen(
            [*argv, f"{words} && echo ready && exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout.readline() == "ready\n"
        children = f"/proc/{self._process.pid}/task/{self._process.pid}/children"
        with open(children, encoding="ascii") as file:
            self.prefix = ("nsenter", "--net", "--mount", "--pid", "--target", file.read().split()[0])

    def remove(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
