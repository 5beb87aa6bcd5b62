# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules with configuration files, boards files, credentials, flavors and arguments that have something wrong in them:
500 in `make test`, 10,000 in `make test-all`, always the same, and one in fifty as the process that Ansible starts.

Lost if they fail: a slip in a file is a traceback, a wait without end, or a screen full of what was pasted by mistake.
"""

from __future__ import annotations

import collections
import ctypes
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from random import Random
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host import config as host_config
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.module import run
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import proxy_config
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.flavors import flavors
from ansible_collections.hetero.compute.tests.unit.properties import mutated

MODULES = "ansible_collections.hetero.compute.plugins.modules."
CPU = '{"vendor":"tilera","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUmyQLPYmxFQCbDXOYrVHhQDnHRlHvZnLLhDmTv0Rdq jackie@desk"
FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 10, "cpu_arch": "tilepro64"}
REQUEST = dict(instance="jackie", owner="jo", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
#: Nothing here takes longer than a second, but on a machine that does other things too (seconds).
HANG = 600
#: More of an input than an error may show.
ECHO = re.compile(r"M{201}|(?:M ){101}")
#: An error that nobody foresaw, told in words (errors.told).
UNFORESEEN = re.compile(r"\((?:Key|Type|Value|Attribute|Index|Overflow|Unicode\w+|Recursion)Error: ")
#: One of so many calls is a process.
PROCESSES = 50

#: What is called: the module, whether in check mode, arguments beside the files'.
ON_PROXY = (
    ("board_info", False, dict(power=True, timeout=1.0)),
    ("board_info", False, dict(power=False, timeout=1.0, events=5)),
    ("board_claim", True, dict(REQUEST, instance="bob", timeout=1.0)),
    ("board_claim", True, dict(instance="jackie", owner="jo", state="absent", timeout=1.0)),
    ("board_lease", True, dict(instance="jackie", hours=2.0, timeout=1.0)),
    ("ticket", True, dict(REQUEST, kind="board", instance="bob", asked=time.time(), elsewhere=[[9.5, 1]], others=3)),
    ("board_maintenance", True, dict(boards=[1], state="on", reason="fan", timeout=1.0)),
    ("board_console_info", False, dict(board=0, all=True)),
    ("board_image", True, dict(boards=[0], image="debian", ssh_public_key=KEY, instance="jackie", timeout=1.0)),
    ("board_rebuild", True, dict(instance="jackie", timeout=1.0)),
    ("board_wipe", True, dict(boards=[1], timeout=1.0, limit=1.0)),
    ("tilera_boot", True, dict(boards=[0], state="running", timeout=1.0)),
    ("tilera_boot", True, dict(boards=[0], state="stopped", timeout=1.0)),
    ("board_cabling", True, dict(boards=[0], timeout=1)),
    ("board_check", True, dict(timeout=1)),
    ("board_check", True, dict(boards=[0, 1], timeout=1)),
    ("board_reconcile", True, dict(timeout=1.0)),
    ("pdu_info", False, dict(pdu="pdu-a", timeout=1.0)),
    ("pdu_power", False, dict(pdu="pdu-a", outlets=["1"], state="on", timeout=1.0)),
)
ON_HOST = (
    ("host_info", False, dict(events=5)),
    ("gpu_facts", False, {}),
    ("instance", True, dict(REQUEST, kind="container", state="present", timeout=1.0)),
    ("instance", True, dict(kind="container", instance="jackie", owner="jo", state="absent", timeout=1.0)),
    ("instance", True, dict(REQUEST, kind="guest", state="present", timeout=1.0)),
    ("ticket", True, dict(REQUEST, kind="container", asked=time.time(), elsewhere=[[9.5, 1]], others=3)),
    ("ticket", True, dict(REQUEST, kind="guest", asked=time.time(), lease_hours=2.0)),
    ("host_reconcile", True, {}),
)


CLONE_NEWNS = 0x20000  # linux/sched.h
LIBC = ctypes.CDLL(None, use_errno=True)


class Hang(BaseException):
    """A call took longer than HANG."""


class Ended(BaseException):
    """The module's end: not an error that it would catch."""


class Site:
    """The files of a proxy and of a compute host, all right, and one instance's claim."""

    def __init__(self, folder):
        self.folder = folder
        rows = [f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:9{n} 10 16218 917 476 1 tilera_hv 1 {CPU}" for n in range(2)]
        boards = {str(n): dict(pdu="pdu-a", outlet=n + 1, driver="fake", console=self.path("log")) for n in range(2)}
        boards["1"].update(disk=["/dev/sda"], cmdline="quiet", accept_unwiped=["sda-hpa"], address="10.0.2.9")
        fake = {"driver": "fake", "path": self.path("pdu.json"), "port": 23, "outlets": ["1", "2"], "legacy_ssh": False}
        self.proxy = dict(
            server="10.0.2.254", network="10.0.2.0/24", tftp_root=self.path("tftpboot"), exports="ganesha",
            state_folder=self.path("state"), run_folder=self.path("run"), credentials=self.path("credentials.json"),
            roots_overcommit=10000, ram_images={"tilepro64": "debian"}, wipe={"samples": 64}, dhcp=True, root_gb=1,
            pdus={"pdu-a": fake}, boards=boards,
        )  # fmt: skip
        section = dict(addresses=["10.0.80.10", "10.0.80.20"], gateway="10.0.80.1", bridge="hetero0", prefix_length=24)
        kvm = dict(section, aliases={"a1": {"vendor_id": "10de", "product_id": "11bf"}}, domain_type="qemu")
        self.host = dict(
            name="gpu1", state_folder=self.path("host"), run_folder=self.path("run"), memory_mb=65536, vcpus=8,
            local_gb=100, lxcpath=self.path("lxc"), guests_folder=self.path("guests"), libvirt_uri="test:///default",
            lxc=dict(section, unprivileged=True, pids=4096, gpu_overrides={"0": {"arch": "fermi"}}), kvm=kvm,
        )  # fmt: skip
        self.credentials = {"pdu-a": {"username": "apc", "password": "apc"}, "pdu-b": {"community": "private"}}
        self.flavors = {
            "mine.small": dict(FLAVOR, cpu_info={"geometry": "8x8"}, extra_specs={"gpus": "= 2"}, flavorid=7)
        }
        self.texts = {
            "proxy.json": json.dumps(self.proxy).encode(),
            "host.json": json.dumps(self.host).encode(),
            "credentials.json": json.dumps(self.credentials).encode(),
            "tilera_boards": "".join(f"{row}\n" for row in ["# boards", *rows]).encode(),
            "flavors.yml": json.dumps(self.flavors).encode(),
            "pdu.json": b'{"outlets": {"1": "off", "2": "off"}}',
            "log": b"login:\n",
        }
        for name in self.texts:
            self.write(name)
        for name in ("lxc", "guests", "run", "tftpboot"):
            (folder / name).mkdir()
        image = folder / "state" / "images" / ("1" * 64)
        image.mkdir(parents=True)
        (image / "image.json").write_text('{"arch": "tilepro64"}')
        (image / "kernel").write_text("")
        (image / "root").mkdir()
        (image.parent / "names").mkdir()
        (image.parent / "names" / "debian").write_text(f"{image.name}\n")
        result = self.called("board_claim", False, dict(REQUEST, timeout=1.0))
        assert result.get("boards"), result

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, text=None):
        (self.folder / name).write_bytes(self.texts[name] if text is None else text)

    def arguments(self, name, given):
        """All arguments of a module."""
        options = importlib.import_module(MODULES + name).SPEC.options
        files = dict(boards_file=self.path("tilera_boards"), state_db=self.path("state.db"))
        files["config"] = self.path("proxy.json" if "boards_file" in options or "pdu" in options else "host.json")
        there = {option: value for option, value in files.items() if option in options}
        return {**{option: spec.get("default") for option, spec in options.items()}, **there, **given}

    def called(self, name, check, given):
        """What a module ends with, in this process."""
        code, results = importlib.import_module(MODULES + name), []

        def end(**result):
            results.append(json.loads(json.dumps(result)))
            raise Ended

        spec = {key: value for key, value in code.SPEC.kwargs.items() if key != "supports_check_mode"}
        given = {key: value for key, value in self.arguments(name, given).items() if value is not None}
        taken = ModuleArgumentSpecValidator(**spec).validate(given)
        if taken.error_messages:
            return {"failed": True, "msg": "by Ansible itself"}
        params = taken.validated_parameters
        module = SimpleNamespace(params=params, check_mode=check, exit_json=end, fail_json=end, warn=lambda text: None)
        work = code.work if name != "gpu_facts" else lambda given, check: code.work(given, check, module.warn)
        try:
            run(module, work)
        except Ended:
            return results[0]
        raise AssertionError("it went on after its end")

    def started(self, name, check, given):
        """The same in the process that Ansible starts."""
        given = {key: value for key, value in self.arguments(name, given).items() if value is not None}
        done = subprocess.run(
            [sys.executable, "-m", f"{MODULES}{name}"],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": dict(given, _ansible_check_mode=check)}),
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        result = json.loads(done.stdout)
        assert "exception" not in result, result
        return result


def wrong_file(site, random):
    """A call with one file that has something wrong in it: (what was wrong, the call)."""
    name = random.choice(["proxy.json"] * 5 + ["host.json"] * 4 + ["tilera_boards"] * 2 + ["credentials.json"])
    if name == "tilera_boards":
        text = mutated.data(random, site.texts[name])
    else:
        whole, known = {
            "proxy.json": (site.proxy, [*proxy_config.FILE.keys, *proxy_config.WIRE.keys, *proxy_config.PDU.keys]),
            "host.json": (site.host, list(host_config.FILE.keys)),
            "credentials.json": (site.credentials, ["pdu-a", "username"]),
        }[name]
        text = mutated.text_of(random, mutated.document(random, whole, known))
    calls = ON_HOST if name == "host.json" else ON_PROXY
    module, check, given = random.choice(calls if name != "credentials.json" else calls[-2:])
    site.write(name, text)
    return name, text, (module, check, given)


def wrong_argument(site, random):
    """A call with arguments of which some are odd, and all files right."""
    name, check, given = random.choice(ON_PROXY + ON_HOST)
    options = dict(importlib.import_module(MODULES + name).SPEC.options)
    for taken in ("background", "host", "limit"):  # what asks for a real machine, or a longer wait
        options.pop(taken, None)
    if name in ("board_image", "instance"):
        options.pop("state")  # as it is: nothing is to be made
    changed = mutated.arguments(random, options, site.arguments(name, given))
    return "arguments", changed, (name, check, changed)


@pytest.fixture
def own_places():
    """What a configuration that lacks a path means: /var/lib and /run of this test's own, not the machine's."""
    if os.geteuid() != 0:
        yield  # the machine's are closed
        return
    before = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)
    LIBC.unshare(CLONE_NEWNS)
    try:
        mounts = "mount --make-rprivate / && mount -t tmpfs none /var/lib && mount -t tmpfs none /run"
        subprocess.run(mounts, shell=True, check=True)
        yield
    finally:
        deadline = Deadline(60.0)
        while LIBC.setns(before, 0) != 0:  # a thread of the test's may be about to end
            assert not deadline.passed, os.strerror(ctypes.get_errno())
            deadline.nap()
        os.close(before)


HOW_MANY = pytest.mark.parametrize("calls", [500, pytest.param(10000, marks=pytest.mark.long)])


@HOW_MANY
def test_modules(tmp_path, monkeypatch, capsys, own_places, calls):
    site = Site(tmp_path)
    # what was meant to be a path is made here, if anywhere
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    found, counts, ends = [], collections.Counter(), collections.Counter()
    began = time.monotonic()

    def give_up(*_signal):
        raise Hang

    before = signal.signal(signal.SIGALRM, give_up)
    try:
        for number in range(calls):
            random = Random(f"bad input {number}")
            what, given, call = (wrong_file if random.random() < 0.65 else wrong_argument)(site, random)
            # of half a character in an argument Ansible's own log makes a traceback, before a module begins
            whole = "\\ud" not in json.dumps(call[2])
            start = site.started if number % PROCESSES == 0 and whole else site.called
            counts[what] += 1
            signal.alarm(HANG)
            try:
                result = start(*call)
                ends["refused" if result.get("failed") else "done"] += 1
                # what Ansible itself says of an argument has no `failure`
                error = json.dumps([result["msg"], result["failure"]]) if "failure" in result else ""
                if ECHO.search(error) or UNFORESEEN.search(str(result)):
                    found.append(f"call {number}, {what}, {call[0]}: {error[:1000] or result}")
            except Hang:
                found.append(f"call {number}, {what}, {call[0]}: hangs\n{given!r:.2000}")
            except Exception:  # noqa: BLE001  each is a finding, and all are to be seen
                last = "".join(traceback.format_exc().splitlines(keepends=True)[-7:])
                found.append(f"call {number}, {what}, {call[0]}: {last}")
            finally:
                signal.alarm(0)
            if what in site.texts:
                site.write(what)
    finally:
        signal.signal(signal.SIGALRM, before)
    with capsys.disabled():
        told = ", ".join(f"{what} {count}" for what, count in sorted([*counts.items(), *ends.items()]))
        print(f"\n{calls} calls ({told}), {len(found)} findings, {time.monotonic() - began:.0f} s")
    assert not found, f"{len(found)} findings\n" + "\n".join(found[:40])
    assert ends["refused"] > calls / 5
    assert ends["done"] > calls / 20
    assert os.listdir(tmp_path / "here") == []


@HOW_MANY
def test_flavors(tmp_path, capsys, calls):
    """The file of flavors, which a play reads on the controller."""
    site, said = Site(tmp_path), collections.Counter()
    for number in range(calls):
        random = Random(f"flavors {number}")
        text = mutated.text_of(random, mutated.document(random, site.flavors, [*FLAVOR, "cpu_info", "local_gb"]))
        site.write("flavors.yml", text)
        try:
            flavors({}, file=site.path("flavors.yml"))
            said["taken"] += 1
        except AnsibleError as error:
            said["refused"] += 1
            assert not ECHO.search(str(error)), f"call {number}: {error}"
    with capsys.disabled():
        print(f"\n{calls} files of flavors: {dict(said)}")
    assert said["refused"] > calls / 5
