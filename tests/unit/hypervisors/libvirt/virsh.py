# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A libvirt for tests, as its command virsh shows it: `ROOT TESTS [-q] [-c URI] COMMAND …`, in a program (`program()`).

Below ROOT it keeps each domain's XML where libvirt does, does to the drivers of managed devices what libvirt does
(virHostdevPreparePCIDevices, virHostdevReAttachPCIDevices), and writes each command to the file `virsh`. A guest with a
disk is an sshd at the address on its kernel's command line, with the host key that lies in its disk, unless there is a
file `mute`; it ends with process TESTS at the latest. What is in the file `fail-COMMAND` is said as its error; with a
file `keeps`, a running guest keeps its devices while it is there; with a file `deaf`, a guest does not end when it is
asked to; with a file `forgot`, no domain is listed; with a file `snapshots` or `checkpoints`, each domain has one. A
word that is some domain's UUID is that domain, whatever others are called (virsh-util.c, virshLookupDomainInternal).
With a file `kill-at` that says N-before or N-after, whoever gives the Nth command from then on is killed before that is
done, or after it.

A verb asks it dozens of times. So what only looks is answered before there is a Python (looks.sh), and what takes
long to import is imported where it is needed: 1 and 12 ms a call, not 55.
"""

import os
import sys

ROOT, TESTS = (sys.argv[1], int(sys.argv[2])) if __name__ == "virsh" else ("", 0)
DEFINED = os.path.join(ROOT, "etc/libvirt/qemu")
RUNNING = os.path.join(ROOT, "run/libvirt/qemu")
AUTOSTART = os.path.join(DEFINED, "autostart")
FOUND = os.path.join(ROOT, "taken")
DRIVERS = os.path.join(ROOT, "sys/bus/pci/drivers")
SIGKILL = 9  # of module signal


def program(root, tests, python=sys.executable):
    """The text of a program `virsh`: of the libvirt below `root`, whose guests end with process `tests`.

    It begins in a shell (looks.sh). As a module, this file is compiled once only.
    """
    from shlex import join, quote

    folder, words = os.path.dirname(os.path.abspath(__file__)), [str(root), str(tests)]
    ready = f"sys.path.insert(0, {folder!r})\nsys.argv[1:1] = {words!r}"
    code = f"import sys\n{ready}\nimport virsh\nvirsh.main()\n"
    with open(os.path.join(folder, "looks.sh"), encoding="utf-8") as looks:
        return f'#!/bin/sh\nroot={quote(str(root))}\n{looks.read()}exec {join([python, "-IS", "-c", code])} "$@"\n'


def there(name):
    return os.path.exists(os.path.join(ROOT, name))


def fail(text):
    sys.stderr.write(f"error: {text}\n")
    sys.exit(1)


def path(folder, name):
    return os.path.join(folder, f"{name}.xml")


def text(folder, name):
    """A domain's XML; None where there is none."""
    if not os.path.exists(path(folder, name)):
        return None
    with open(path(folder, name)) as file:
        whole = file.read()
    return whole[whole.index("<domain") : whole.rindex("</domain>") + len("</domain>")]


def load(folder, name):
    from xml.etree import ElementTree

    found = text(folder, name)
    return None if found is None else ElementTree.fromstring(found)


def save(folder, name, domain):
    from xml.etree import ElementTree

    os.makedirs(folder, exist_ok=True)
    if folder == RUNNING:
        status = ElementTree.Element("domstatus")
        status.append(domain)
        domain = status
    whole = os.path.join(ROOT, f"new-{os.getpid()}")  # others read meanwhile
    ElementTree.ElementTree(domain).write(whole)
    os.replace(whole, path(folder, name))


def named(word):
    """The name of the domain that a word stands for."""
    for folder in (DEFINED, RUNNING):
        for one in os.listdir(folder) if os.path.isdir(folder) else []:
            if one.endswith(".xml") and f"<uuid>{word}</uuid>" in text(folder, one[:-4]):
                return one[:-4]
    return word


def must(name):
    if not any(os.path.exists(path(folder, name)) for folder in (DEFINED, RUNNING)):
        fail(f"failed to get domain '{name}'")


def address(hostdev):
    found = hostdev.find("source/address")
    parts = [int(found.get(part), 0) for part in ("domain", "bus", "slot", "function")]
    return "{:04x}:{:02x}:{:02x}.{:x}".format(*parts)


def hostdevs(domain):
    return list(domain.iterfind("devices/hostdev"))


def move(device, driver):
    link = os.path.join(ROOT, "sys/bus/pci/devices", device, "driver")
    if os.path.islink(link):
        os.unlink(link)
    if driver:
        os.makedirs(os.path.join(DRIVERS, driver), exist_ok=True)
        os.symlink(os.path.join(DRIVERS, driver), link)
    override = os.path.join(ROOT, "sys/bus/pci/devices", device, "driver_override")
    with open(override, "w") as file:
        file.write(f"{driver if driver == 'vfio-pci' else '(null)'}\n")


def driver(device):
    link = os.path.join(ROOT, "sys/bus/pci/devices", device, "driver")
    return os.path.basename(os.readlink(link)) if os.path.islink(link) else None


def give(hostdev):
    device = address(hostdev)
    for other in os.listdir(RUNNING) if os.path.isdir(RUNNING) else []:
        if any(address(one) == device for one in hostdevs(load(RUNNING, other[:-4]))):
            fail(f"Requested operation is not valid: PCI device {device} is in use by driver QEMU, domain {other[:-4]}")
    if driver(device) == "vfio-pci":
        return
    if hostdev.get("managed") != "yes":
        fail(f"unsupported configuration: PCI device {device} must be manually detached from the host")
    os.makedirs(FOUND, exist_ok=True)
    with open(os.path.join(FOUND, device), "w"):
        move(device, "vfio-pci")


def take(hostdev):
    device = address(hostdev)
    if os.path.exists(os.path.join(FOUND, device)):
        os.unlink(os.path.join(FOUND, device))
        with open(os.path.join(ROOT, "native", device)) as file:
            move(device, file.read().strip() or None)


def boot(name, domain):
    """What a guest's init does in the end."""
    import subprocess

    disk = domain.find("devices/disk/source")
    if disk is None or there("mute"):
        return
    for kernel in (domain.find("os/kernel"), domain.find("os/initrd")):
        if kernel is not None and not os.path.exists(kernel.text):
            fail(f"internal error: qemu: could not open kernel file '{kernel.text}'")
    ip = next(word[3:] for word in domain.findtext("os/cmdline").split() if word.startswith("ip=")).split(":")[0]
    folder = os.path.join(ROOT, "guests", name)
    os.makedirs(folder, exist_ok=True)
    for file in ("etc/ssh/ssh_host_ed25519_key", "root/.ssh/authorized_keys", "etc/hostname"):
        target = os.path.join(folder, os.path.basename(file))
        subprocess.run(
            ["debugfs", "-R", f"dump /{file} {target}", disk.get("file")], check=True, stderr=subprocess.DEVNULL
        )
        os.chmod(target, 0o600)
    options = [
        f"ListenAddress={ip}",
        "Port=22",
        "PidFile=none",
        f"AuthorizedKeysFile={folder}/authorized_keys",
        "UsePAM=no",
    ]
    argv = [
        "/usr/sbin/sshd",
        "-D",
        "-f",
        "/dev/null",
        "-h",
        os.path.join(folder, "ssh_host_ed25519_key"),
        "-o",
        "StrictModes=no",
    ]
    for option in options:
        argv += ["-o", option]
    os.makedirs("/run/sshd", exist_ok=True)
    tests = os.pidfd_open(TESTS)
    nothing = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process = subprocess.Popen(argv, start_new_session=True, **nothing)
    with open(os.path.join(folder, "pid"), "w") as file:
        file.write(str(process.pid))
    watch(os.pidfd_open(process.pid), tests)


def watch(guest, tests):
    """Have it end when the tests do, however they do."""
    import contextlib
    import select
    import signal

    if os.fork():
        return
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    select.select([guest, tests], [], [])
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(guest, signal.SIGKILL)
    os._exit(0)


def halt(name):
    pid = os.path.join(ROOT, "guests", name, "pid")
    if os.path.exists(pid):
        with open(pid) as file:
            os.kill(int(file.read()), SIGKILL)
        os.unlink(pid)


def end(name):
    domain = load(RUNNING, name)
    halt(name)
    os.unlink(path(RUNNING, name))
    for hostdev in hostdevs(domain):
        take(hostdev)


def change(words, attach):
    from xml.etree import ElementTree

    name, live = words[0], "--live" in words
    must(name)
    domain = load(RUNNING if live else DEFINED, name)
    if domain is None:
        fail("Requested operation is not valid: domain is not running")
    wanted = ElementTree.fromstring(sys.stdin.read())
    has = [one for one in hostdevs(domain) if address(one) == address(wanted)]
    if attach:
        if has:
            fail(f"Requested operation is not valid: device is already in the domain configuration: {address(wanted)}")
        if live:
            give(wanted)
        domain.find("devices").append(wanted)
    else:
        if not has:
            fail(f"device not found: host pci device {address(wanted)} not found")
        if live and there("keeps"):
            return
        domain.find("devices").remove(has[0])
        if live:
            take(has[0])
    save(RUNNING if live else DEFINED, name, domain)


def main():
    words = sys.argv[3:]
    while words and words[0].startswith("-"):
        words = words[2 if words[0] == "-c" else 1 :]
    with open(os.path.join(ROOT, "virsh"), "a") as file:
        file.write(" ".join(words) + "\n")
    kill("before")
    do(words)
    kill("after")


def kill(when):
    path = os.path.join(ROOT, "kill-at")
    if not os.path.exists(path):
        return
    with open(path) as file:
        number, _dash, wanted = file.read().partition("-")
    if when == "after":
        with open(path, "w") as file:
            file.write(f"{int(number) - 1}-{wanted}")
    if (int(number), wanted) == (1, when):
        os.unlink(path)
        os.kill(os.getppid(), SIGKILL)
        sys.exit(1)


def do(words):
    command, rest = words[0], words[1:]
    if there(f"fail-{command}"):
        with open(os.path.join(ROOT, f"fail-{command}")) as file:
            fail(file.read().strip())
    name = named(rest[0]) if rest else ""
    if command == "list" and there("forgot"):
        pass
    elif command == "list":
        folders = [folder for folder in (DEFINED, RUNNING) if os.path.isdir(folder)]
        names = {one[:-4] for folder in folders for one in os.listdir(folder) if one.endswith(".xml")}
        sys.stdout.write("\n".join([*sorted(names), ""]))
    elif command == "capabilities":
        with open(os.path.join(ROOT, "capabilities")) as file:
            sys.stdout.write(file.read())
    elif command == "define":
        from xml.etree import ElementTree

        domain = ElementTree.fromstring(sys.stdin.read())
        old = load(DEFINED, domain.findtext("name"))
        if old is not None and old.findtext("uuid") != domain.findtext("uuid"):
            fail(
                f"operation failed: domain '{domain.findtext('name')}' already exists with uuid {old.findtext('uuid')}"
            )
        save(DEFINED, domain.findtext("name"), domain)
    elif command in ("attach-device", "detach-device"):
        change([name, *rest[2:]], command.startswith("attach"))
    else:
        must(name)
        of_domain(command, name, rest)


def of_domain(command, name, rest):
    live, kept = text(RUNNING, name), text(DEFINED, name)
    if command == "domstate":
        sys.stdout.write("running\n\n" if live is not None else "shut off\n\n")
    elif command == "dominfo":
        sys.stdout.write(f"Name:           {name}\nPersistent:     {'yes' if kept is not None else 'no'}\n")
        enabled = os.path.exists(path(AUTOSTART, name))
        sys.stdout.write(f"Autostart:      {'enable' if enabled else 'disable'}\n")
    elif command == "dumpxml":
        shown = kept if "--inactive" in rest and kept is not None else live if live is not None else kept
        sys.stdout.write(shown)
    elif command == "start":
        if live is not None:
            fail("Domain is already active")
        domain = load(DEFINED, name)
        for hostdev in hostdevs(domain):
            give(hostdev)
        boot(name, domain)
        save(RUNNING, name, domain)
    elif command in ("shutdown", "destroy"):
        if live is None:
            fail("Requested operation is not valid: domain is not running")
        if command == "destroy" or not there("deaf"):
            end(name)
    elif command == "undefine":
        if live is None and there("snapshots") and "--snapshots-metadata" not in rest:  # qemuDomainUndefineFlags
            fail("Requested operation is not valid: cannot delete inactive domain with 1 snapshots")
        if live is None and there("checkpoints") and "--checkpoints-metadata" not in rest:
            fail("Requested operation is not valid: cannot delete inactive domain with 1 checkpoints")
        for folder in (DEFINED, AUTOSTART):
            if os.path.exists(path(folder, name)):
                os.unlink(path(folder, name))
    elif command == "autostart":
        if kept is None:
            fail("Requested operation is not valid: cannot set autostart for transient domain")
        os.makedirs(AUTOSTART, exist_ok=True)
        if "--disable" in rest:
            os.unlink(path(AUTOSTART, name))
        else:
            with open(path(AUTOSTART, name), "w"):
                pass
    else:
        fail(f"unknown command: '{command}'")
