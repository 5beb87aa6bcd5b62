# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nginx with the role's configuration gives to whom: boards are addresses of the loopback interface."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.phases import Watcher, Wire
from ansible_collections.hetero.compute.tests.unit.drivers.boot.proxy_network import rendered
from ansible_collections.hetero.compute.tests.unit.own_network import own_network

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("nginx", path="/usr/sbin:/usr/bin"), reason="needs root and nginx-light"
)

SERVER, BOARD, OTHER, STRANGER, LINKED = "127.0.0.254", "127.0.0.2", "127.0.0.3", "127.0.0.9", "127.0.0.4"
SECRET = b"of somebody else"


class Served:
    """A proxy's nginx, and what boards' firmware may send it."""

    def __init__(self, folder, log):
        self.folder, self._log = folder, log

    def raw(self, request, source=BOARD):
        """All that comes for these bytes: the answer's first line and its body."""
        with socket.create_connection((SERVER, 80), 10, (source, 0)) as asked:
            asked.settimeout(10)
            asked.sendall(request)
            said = b"".join(iter(lambda: asked.recv(65536), b""))
        head, _end, body = said.partition(b"\r\n\r\n")
        return head.split(b"\r\n")[0].decode(), body

    def ask(self, path, source=BOARD, method="GET", more=""):
        asked = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n"
        line, body = self.raw(asked.encode(), source)
        return int(line.split()[1]), body

    def logged(self, ask):
        """The line of the log that comes for what `ask` does. Those before it are thrown away."""
        self._log.setblocking(False)
        with suppress(BlockingIOError):
            for _line in range(1000):
                self._log.recv(4096)
        self._log.settimeout(10)
        ask()
        return self._log.recv(4096).decode()


def _configured(folder):
    """The role's configuration, with the folders of this test."""
    text = rendered("nginx.conf.j2", tftp_proxy_boot_http=True, tftp_proxy_server=SERVER, tftp_proxy_tftp_root=folder)
    path = folder.parent / "nginx.conf"
    path.write_text(text.replace("/run/hetero-http", str(folder.parent / "run")).replace("/dev/log", f"{folder}.log"))
    return path


@pytest.fixture(scope="module")
def served():
    """A TFTP root with the files of two boards, and things that are nobody's to fetch, served by nginx."""
    base = Path(tempfile.mkdtemp(prefix="hetero-http-"))
    base.chmod(0o755)
    folder = base / "tftpboot"
    files = {
        f"{BOARD}/vmlinux_0": b"kernel of board 0",
        f"{BOARD}/pxelinux.cfg/01-00": b"its entry",
        f"{BOARD}/.vmlinux_0.new": SECRET,
        f"{BOARD}/.hidden/key": SECRET,
        f"{BOARD}/index.html": b"a file like others",
        f"{OTHER}/vmlinux_1": SECRET,
        "linked/vmlinux_2": SECRET,
        "boot.ipxe": b"#!ipxe",
        "ipxe.efi": b"MZ",
        "tilera_boards": SECRET,
        "log_0": SECRET,
        "vmlinux_0": SECRET,
        "fs_0/etc/shadow": SECRET,
        "../elsewhere/boot.ipxe": SECRET,
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / LINKED).symlink_to("linked")
    (folder / BOARD / "up").symlink_to("..")
    (folder / BOARD / "vmlinux_1").symlink_to(f"../{OTHER}/vmlinux_1")
    (folder / BOARD / "shadow").symlink_to("/etc/passwd")
    (folder / "undionly.kpxe").symlink_to("../elsewhere/boot.ipxe")
    (base / "run").mkdir()
    nginx = None
    with own_network(), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(f"{folder}.log")
        os.chmod(f"{folder}.log", 0o666)
        log.settimeout(10)
        try:
            argv = ["/usr/sbin/nginx", "-e", "stderr", "-c", _configured(folder)]
            nginx = subprocess.Popen(argv, stderr=subprocess.PIPE, start_new_session=True)
            until = time.monotonic() + 20
            while time.monotonic() < until and nginx.poll() is None:
                try:
                    socket.create_connection((SERVER, 80), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            else:
                pytest.fail(nginx.stderr.read().decode() if nginx.poll() is not None else "nginx does not answer")
            yield Served(folder, log)
        finally:
            if nginx:
                os.killpg(nginx.pid, signal.SIGTERM)
                nginx.wait(20)
                nginx.stderr.close()
            shutil.rmtree(base)


@pytest.fixture(autouse=True)
def loopback():
    """In place of conftest's network for each test: nginx has the module's own one."""


def test_a_board_gets_its_own_files_and_the_loaders(served):
    """Lost: all boots by HTTP."""
    assert served.ask("/vmlinux_0") == (200, b"kernel of board 0")
    assert served.ask("/pxelinux.cfg/01-00") == (200, b"its entry")
    assert served.ask("/vmlinux_0", method="HEAD") == (200, b"")
    for source in (BOARD, STRANGER):
        assert served.ask("/boot.ipxe", source) == (200, b"#!ipxe")
        assert served.ask("/ipxe.efi", source) == (200, b"MZ")


ATTACKS = [
    f"/{OTHER}/vmlinux_1",
    f"/../{OTHER}/vmlinux_1",
    f"/x/../../{OTHER}/vmlinux_1",
    f"/%2e%2e/{OTHER}/vmlinux_1",
    f"/..%2f{OTHER}/vmlinux_1",
    f"/.%2e/{OTHER}/vmlinux_1",
    f"//..//{OTHER}/vmlinux_1",
    f"/..\\{OTHER}\\vmlinux_1",
    f"/%252e%252e/{OTHER}/vmlinux_1",
    f"http://{OTHER}/vmlinux_1",
    f"http://x/../{OTHER}/vmlinux_1",
    "/vmlinux_1",
    "/shadow",
    "/up/tilera_boards",
    f"/up/{OTHER}/vmlinux_1",
    "/undionly.kpxe",
    "/tilera_boards",
    "/tftpboot/tilera_boards",
    "/log_0",
    "/fs_0/etc/shadow",
    "/../fs_0/etc/shadow",
    "/etc/passwd",
    "/.vmlinux_0.new",
    "/%2evmlinux_0.new",
    "/.hidden/key",
    "/./.hidden/key",
    "/",
    "",
    "//",
    "/.",
    "/pxelinux.cfg/",
    "/pxelinux.cfg",
    "/vmlinux_0/",
    "/vmlinux_0%00.ipxe",
    "/vmlinux_0?x",
    "/vmlinux_0#x",
    "/%76mlinux_0",
    "/boot.ipxe/../tilera_boards",
    "/boot.ipxe/../../etc/passwd",
]


@pytest.mark.parametrize("path", ATTACKS)
def test_nothing_else_is_given(served, path):
    """Lost: other tenants' kernels and keys, the boards file, and files of the proxy node, to any board."""
    status, body = served.ask(path)
    assert status >= 300, body
    for word in (SECRET, b"root:", b"kernel of", b"Index of", b"a file like"):
        assert word not in body


@pytest.mark.parametrize("source", [OTHER, STRANGER, LINKED, SERVER])
def test_files_are_of_the_address_that_asks(served, source):
    """Lost: a board's kernel, and the key of its RAM system, to any machine on its network."""
    for path in ("/vmlinux_0", "/vmlinux_2", f"/{BOARD}/vmlinux_0", "/linked/vmlinux_2"):
        for more in ("", f"X-Forwarded-For: {BOARD}\r\n", f"X-Real-IP: {BOARD}\r\nForwarded: for={BOARD}\r\n"):
            assert served.ask(path, source, more=more)[0] == 404
    for host in (BOARD, f"../{BOARD}", "localhost"):
        asked = f"GET /vmlinux_0 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        line, body = served.raw(asked.encode(), source)
        assert int(line.split()[1]) >= 400, body


@pytest.mark.parametrize(
    "method", ["PUT", "POST", "DELETE", "MKCOL", "MOVE", "COPY", "PROPFIND", "OPTIONS", "TRACE", "CONNECT", "PATCH"]
)
def test_nothing_is_written(served, method):
    """Lost: a kernel that a board writes for the next tenant."""
    more = f"Destination: http://{SERVER}/new\r\nContent-Length: 1\r\n"
    before = sorted(path for path in served.folder.rglob("*"))
    line, _body = served.raw(
        f"{method} /vmlinux_0 HTTP/1.1\r\nHost: x\r\n{more}Connection: close\r\n\r\nx".encode()
    )
    assert int(line.split()[1]) in (400, 405, 413)
    assert sorted(path for path in served.folder.rglob("*")) == before
    assert (served.folder / BOARD / "vmlinux_0").read_bytes() == b"kernel of board 0"


def test_a_file_that_is_taken_away_is_given_no_more(served):
    """Lost: the key of a RAM system, which is there only until the board has it."""
    (served.folder / BOARD / "initrd_0").write_bytes(b"key")
    assert served.ask("/initrd_0") == (200, b"key")
    (served.folder / BOARD / "initrd_0").unlink()
    assert served.ask("/initrd_0")[0] == 404


def test_one_board_does_not_have_all_connections(served):
    """Lost: other boards' boots, to one that opens connections and asks for nothing."""
    asking = b"GET /vmlinux_0 HTTP/1.1\r\nHost: x\r\n"
    held = [socket.create_connection((SERVER, 80), 10, (STRANGER, 0)) for _number in range(40)]
    try:
        for one in held:
            one.sendall(asking)
        assert served.ask("/vmlinux_0") == (200, b"kernel of board 0")
    finally:
        for one in held:
            one.close()
    said = [served.ask("/vmlinux_0", STRANGER)[0] for _time in range(120)]
    assert 503 in said
    assert served.ask("/vmlinux_0", OTHER)[0] == 404


@pytest.mark.parametrize("asked", ["GET /vmlinux_0", "GET /vmlinux_0?x", "GET /", "PUT /vmlinux_0", "HEAD /vmlinux_0"])
def test_a_connection_has_one_request(served, asked):
    """Lost: the proxy's disk, to a board that asks a thousand times by each connection for what is refused at once, and
    so before it is counted: each is a line in the log. How many connections a board opens, the filter bounds.
    """
    said = b""
    with socket.create_connection((SERVER, 80), 10, (BOARD, 0)) as one:
        one.settimeout(10)
        with suppress(ConnectionError):
            one.sendall(f"{asked} HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n".encode() * 20)
            said = b"".join(iter(lambda: one.recv(65536), b""))
    assert said.count(b"HTTP/1.1 ") <= 1


def test_what_is_asked_for_is_seen_at_once_and_only_that(served):
    """Lost: phases of boots by HTTP; who asks for a RAM system's key in parts; or the watch, to acknowledgements."""
    (served.folder / BOARD / "initrd_0").write_bytes(bytes(8 << 20))
    board, seen = SimpleNamespace(id=0, ip=BOARD, mac="00:1a:ca:00:57:90"), []
    with Watcher([board], lambda *what: seen.append(what), wire=Wire(http_port=80)):
        for path in ("/01-00-1a-ca-00-57-90.ipxe", "/vmlinux_0", "/initrd_0"):
            served.ask(path)
            served.ask(path, STRANGER)
        with socket.create_connection((SERVER, 80), 10, (BOARD, 0)) as asked:
            asked.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in (b"GET /ini", b"trd_0 HTTP/1.0\r\n\r\n"):
                asked.sendall(part)
            assert asked.recv(9, socket.MSG_WAITALL) == b"HTTP/1.1 "
    names = [(number, kind, name) for number, kind, name, _at, _sender in seen]
    # the loopback shows each packet twice
    assert list(dict.fromkeys(names)) == [
        (0, "http", "01-00-1a-ca-00-57-90.ipxe"),
        (0, "http", "vmlinux_0"),
        (0, "http", "initrd_0"),
        (0, "http", "?"),
    ]
    assert len(names) <= 10
    assert len({sender for *_what, sender in seen}) == 4


def test_without_http_its_port_is_nothing_to_watch(served):
    """Lost: where a boot by TFTP is, to what a board asks a web server of the site for."""
    board, seen = SimpleNamespace(id=0, ip=BOARD, mac="00:1a:ca:00:57:90"), []
    with Watcher([board], lambda *what: seen.append(what)):
        served.ask("/vmlinux_0")
    assert seen == []


def test_what_was_asked_is_in_the_journal(served):
    """Lost: who fetched what, and when, once a boot went wrong."""
    line = served.logged(lambda: served.ask("/vmlinux_0", OTHER, more="User-Agent: \x1b[2J\r\n"))
    assert f"hetero_http: {OTHER} port " in line
    assert '"GET /vmlinux_0 HTTP/1.1" 404' in line
    line = served.logged(lambda: served.ask("/\x1b[2J", OTHER))
    assert "\x1b" not in line
