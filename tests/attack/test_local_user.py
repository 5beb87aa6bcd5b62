# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody with an account on a node, and no more, looks at and touches all that the product has there."""

from __future__ import annotations

import json
import re

import pytest

#: Where the product's files lie on nodes.
FOLDERS = """
/etc/dbus-1/system.d /etc/ganesha /etc/hetero /etc/exports.d /etc/modprobe.d /etc/systemd/system /etc/tmpfiles.d
/etc/udev/rules.d /etc/xinetd.d /run/hetero /tftpboot /usr/lib/hetero /usr/local/sbin /var/lib/hetero /var/lib/lxc
/var/lib/misc /var/log/ganesha /var/log/hetero
"""
#: What everybody may read: how the node is set up, its own programs, what TFTP gives to everyone.
OPEN = re.compile(
    r"/etc/(dbus-1|exports\.d|ganesha|modprobe\.d|systemd|tmpfiles\.d|udev|xinetd\.d)/.*"
    r"|/etc/hetero/(proxy\.json|host\.json|tftp\.map|dhcp-hosts|dnsmasq\.conf|neighbours|[a-z]+\.nft)"
    r"|/usr/lib/hetero/.*|/usr/local/sbin/.*"
    r"|/tftpboot/(tilera_boards|boot\.ipxe|boot\.scr\.uimg|ipxe\.efi|undionly\.kpxe|pdu_mgr)"
)
#: Run as the account. Opens what it may, also with a name that it knows; prints {what it may: [paths]}.
LOOK = """
import json, os, stat, sys
found = {"read": [], "write": []}
def look(path):
    try:
        status = os.lstat(path)
    except OSError:
        return
    if stat.S_ISLNK(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        if os.access(path, os.W_OK):
            found["write"].append(path)
        return
    for mode, flags in (("read", os.O_RDONLY), ("write", os.O_WRONLY)):
        try:
            os.close(os.open(path, flags | os.O_NONBLOCK))
            found[mode].append(path)
        except OSError:
            pass
for path in json.load(sys.stdin):
    look(path)
print(json.dumps(found))
"""
#: All names there are, as root sees them: the account is told each, so that a folder that hides them is no protection.
NAMES = """
import json, os, sys
names = []
for top in sys.argv[1:]:
    names.append(top)
    for folder, folders, files in os.walk(top):
        if folder.count("/") > 9 or folder.startswith("/var/lib/lxc") and "/rootfs/" in folder:
            folders[:] = []
        names += [os.path.join(folder, name) for name in folders + files]
print(json.dumps(names))
"""
#: Run as the account. Serves where the NFS server is not, and says when somebody asks.
TAKE = """
import selectors, socket
doors = selectors.DefaultSelector()
for port in (2049, 20048):
    door = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    doors.register(door, selectors.EVENT_READ)
print("taken", flush=True)
while True:
    for key, _mask in doors.select():
        print("asked by", key.fileobj.accept()[1], flush=True)
"""
ACCOUNT = "nosy"
AS = f"setpriv --reuid={ACCOUNT} --regid={ACCOUNT} --clear-groups"


@pytest.fixture(scope="module")
def looked(two):
    """{node: what a local account may there}; tenants have boards meanwhile."""
    found = {}
    for node in ("proxy1", "gpu1"):
        two.on_node(node, f"id {ACCOUNT} > /dev/null 2>&1 || useradd -m {ACCOUNT}")
        program = f"python3 -c '{NAMES}' {' '.join(FOLDERS.split())} > /root/names; cd /"
        program += f"; {AS} python3 -c '{LOOK}' < /root/names"
        found[node] = json.loads(two.on_node(node, program).stdout.splitlines()[-1])
    yield found
    for node in found:
        two.on_node(node, f"userdel -r {ACCOUNT} > /dev/null 2>&1; rm -f /root/names")


@pytest.mark.parametrize("node", ["proxy1", "gpu1"])
def test_nothing_of_tenants_and_no_secret_can_be_read(looked, node):
    """Lost: PDU passwords, keys and tenants' files, to whoever has an account on a node."""
    assert looked[node]["read"], "it saw nothing at all, not even what is for everyone"
    assert [path for path in looked[node]["read"] if not OPEN.fullmatch(path)] == []


@pytest.mark.parametrize("node", ["proxy1", "gpu1"])
def test_nothing_can_be_written(looked, node):
    """Lost: the node, to whoever can replace what root runs or reads there."""
    assert looked[node]["write"] == []


def test_what_is_open_holds_no_secret(two):
    """Lost: the PDUs, to whoever reads the configuration."""
    said = two.on_proxy("cat /etc/hetero/proxy.json /tftpboot/tilera_boards /etc/hetero/dnsmasq.conf")
    assert not re.search(r"password|community|PRIVATE", said)


def test_the_nfs_server_obeys_root_alone(two):
    """Lost: every root and the proxy's own files, to an account that has the NFS server export them."""
    two.on_node("proxy1", f"id {ACCOUNT} > /dev/null 2>&1 || useradd -m {ACCOUNT}")
    export = "EXPORT { Export_Id = 4242; Path = /; Pseudo = /nosy; Access_Type = RO; FSAL { Name = VFS; } }"
    call = "call org.ganesha.nfsd /org/ganesha/nfsd/ExportMgr org.ganesha.nfsd.exportmgr AddExport ss"
    file = f"printf '%s' '{export}' > /tmp/nosy.conf"
    ask = f"{AS} busctl --system {call} /tmp/nosy.conf 'EXPORT(Export_Id=4242)'; said=$?; rm /tmp/nosy.conf; exit $said"
    done = two.on_node("proxy1", f"{file}; {ask}", check=False)
    shown = two.on_proxy(f"busctl --system {call.replace('AddExport ss', 'ShowExports')}")
    assert "nosy" not in shown, "exported by an account that is not root's"
    assert done.returncode


def test_the_nfs_servers_ports_are_taken(two):
    """Lost: the roots of all boards that run, to an account that has the ports while nfs-ganesha restarts."""

    def on(command, check=True):
        return two.on_node("proxy1", command, check=check)

    def until(command):
        on(f"timeout 500 sh -c 'until {command}; do sleep 0.2; done'")

    on(f"id {ACCOUNT} > /dev/null 2>&1 || useradd -m {ACCOUNT}")
    two.ssh("victim", "rm -f /stop; (while [ ! -e /stop ]; do date > /tick; sync; sleep 0.2; done) > /dev/null 2>&1 &")
    on("systemctl stop nfs-ganesha")
    try:
        on(f"systemd-run --quiet --unit nosy-nfs --uid {ACCOUNT} python3 -c '{TAKE}'")
        until("journalctl -u nosy-nfs -o cat | grep -q taken")
        assert on("systemctl start nfs-ganesha", check=False).returncode
        assert re.search("held by another program.*python3", on("journalctl -u nfs-ganesha -o cat -n 40").stdout)
        until('nft list chain inet hetero connections | grep -q "sport { 2049, 20048 } counter packets [1-9]"')
        assert "asked" not in on("journalctl -u nosy-nfs -o cat").stdout
    finally:
        on("systemctl stop nosy-nfs", check=False)
        on("systemctl start nfs-ganesha")
    two.ssh("victim", "touch /stop")
