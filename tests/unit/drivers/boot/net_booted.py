# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One emulated board with real firmware (iPXE, OVMF), in a network of its own with the role's DHCP, TFTP and HTTP.

Its boot entry loads kernel and initrd as every entry does, and in place of starting them asks for a file that is not
there, by which a boot is seen to be over.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.phases import Watcher, Wire
from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import rendered
from ansible_collections.hetero.compute.tests.unit.own_network import own_network

SERVER, MAC = "10.0.2.254", "00:1a:ca:00:57:90"
BOARD = dict(id=0, name="board0", ip="10.0.2.1", mac=MAC, near=True)
#: What is asked for when a boot is over.
OVER = "over_0"
PROGRAMS = ("dnsmasq", "in.tftpd", "nginx", "qemu-system-x86_64")
#: Firmware of UEFI for QEMU (package ovmf).
OVMF = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")


def missing():
    """The programs that are not here."""
    path = f"/usr/sbin:{os.environ['PATH']}"
    return [name for name in PROGRAMS if not shutil.which(name, path=path)]


class Proxy:
    """The role's servers in a network of their own, with a tap for one board.

    :param http: whether boards are given files by HTTP, and nginx runs.
    :param megabytes: size of the kernel; the initrd has a tenth of it.
    """

    def __init__(self, stack, folder, http=True, megabytes=1.0, **settings):
        self.folder, self.root, self._stack = folder, folder / "tftpboot", stack
        self.servers = {}
        self.settings = dict(tftp_proxy_boot_http=http, tftp_proxy_tftp_root=str(self.root), **settings)
        self.settings.update(tftp_proxy_dhcp_ra_prefix="fd00:1ab::", _tftp_proxy_uboot=[], _tftp_proxy_tilera=[])
        self._files(int(megabytes * 2**20))
        run = ["ip", "tuntap", "add", "tap0", "mode", "tap"]
        for argv in (run, *(["ip", *words.split()] for words in self._network)):
            subprocess.run(argv, check=True)
        dhcp = ["--keep-in-foreground", f"--conf-file={folder}/dnsmasq.conf", "--pid-file", "--user=root"]
        self._start("dnsmasq", *dhcp)
        rules = ["--secure", "--refuse", "timeout", "--refuse", "utimeout", "--map-file", f"{folder}/tftp.map"]
        self._start("in.tftpd", "--foreground", "--address", SERVER, *rules, str(self.root))
        if http:
            self._start("nginx", "-e", "stderr", "-c", f"{folder}/nginx.conf")

    _network = (
        f"address add {SERVER}/24 dev tap0",
        "link set tap0 up",
        "-6 address add fd00:1ab::1/64 dev tap0 nodad",
    )

    def _files(self, size):
        mine = self.root / BOARD["ip"]
        mine.mkdir(parents=True)
        (mine / "vmlinux_0").write_bytes(os.urandom(size))
        (mine / "initrd_0").write_bytes(os.urandom(size // 10))
        # UEFI's iPXE may have no `poweroff`, and an entry that ends is asked for again, by TFTP
        end = [f"imgfetch {OVER} ||", ":end", "sleep 1", "goto end"]
        steps = ["#!ipxe", "imgfetch vmlinux_0", "imgfetch initrd_0", *end]
        (mine / f"01-{MAC.replace(':', '-')}.ipxe").write_text("\n".join(steps) + "\n")
        (self.root / "boot.ipxe").write_text(self._text("boot.ipxe.j2"))
        for name in ("undionly.kpxe", "ipxe.efi"):
            shutil.copy(f"/usr/lib/ipxe/{name}", self.root / name)
        for name in ("tftp.map", "nginx.conf", "dnsmasq.conf"):
            (self.folder / name).write_text(self._text(f"{name}.j2"))
        (self.folder / "dhcp-hosts").write_text(self._text("dhcp-hosts.j2"))
        (self.folder / "run").mkdir()

    def _text(self, template):
        text = rendered(template, [BOARD], **self.settings)
        for old, new in (
            ("/run/hetero-http", f"{self.folder}/run"),
            ("/etc/hetero", str(self.folder)),
            ("eth0", "tap0"),
        ):
            text = text.replace(old, new)
        return text

    def _start(self, program, *arguments):
        log = self._stack.enter_context((self.folder / f"{program}.log").open("w"))
        path = shutil.which(program, path=f"/usr/sbin:{os.environ['PATH']}")
        process = subprocess.Popen([path, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.servers[program] = process
        self._stack.callback(self.stop, program)

    def stop(self, program):
        """End one of the servers."""
        self.servers[program].terminate()
        self.servers[program].wait(20)

    def boot(self, *firmware, seconds=120):
        """Boot the board once; what was seen of it, [(kind, name, seconds since power on)], to its end.

        :param firmware: QEMU's words for another firmware than the PXE of its network card.
        """
        seen, over = [], threading.Event()

        def see(_number, kind, name, at, _sender):
            seen.append((kind, name, at))
            if name == OVER:
                over.set()

        board = SimpleNamespace(**BOARD)
        # as the lab's boards: a machine that tests run on may have no KVM, or one that emulates
        argv = ["qemu-system-x86_64", "-machine", "pc", "-accel", "tcg", "-cpu", "qemu64,+rdrand", "-m", "512"]
        argv += ["-nodefaults", "-display", "none"]
        argv += ["-netdev", "tap,id=n,ifname=tap0,script=no,downscript=no"]
        argv += ["-device", f"virtio-net-pci,netdev=n,mac={MAC},bootindex=1", "-serial", f"file:{self.folder}/console"]
        with Watcher([board], see, wire=Wire("tap0", frozenset([0]), True, 80)):
            began = time.monotonic()
            qemu = subprocess.Popen([*argv, *firmware], stdin=subprocess.DEVNULL)
            try:
                over.wait(seconds)
            finally:
                qemu.terminate()
                qemu.wait(20)
        return [(kind, name, at - began) for kind, name, at in seen]


@contextmanager
def proxy(**options):
    """A Proxy that is there meanwhile; options as its own."""
    folder = Path(tempfile.mkdtemp(prefix="hetero-netboot-"))
    folder.chmod(0o755)
    try:
        with own_network(), ExitStack() as stack:
            yield Proxy(stack, folder, **options)
    finally:
        shutil.rmtree(folder)
