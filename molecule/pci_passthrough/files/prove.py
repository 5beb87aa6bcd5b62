# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On the host itself: what the kernel does and the unit tests' kernel only plays. Ends with an error at a surprise.

`prove.py set_up` is for a host that was just set up, `prove.py booted` for the same after a boot. PYTHONPATH names the
folder that holds the collection's module_utils as package `hetero`. One process for all of it: under emulation a
module takes seconds to start.
"""

import os
import subprocess
import sys
import time

from hetero.core.changes import Change
from hetero.core.deadline import Deadline
from hetero.core.errors import Refused, StepFailed
from hetero.devices.pci import info, sysfs
from hetero.devices.pci.binding_change import change_driver
from hetero.devices.pci.paths import Paths

CARD = ["0000:01:00.0", "0000:01:00.1", "0000:01:00.2"]
ALONE = ["0000:85:00.0", "0000:86:00.0"]
NATIVE = ["bochs-drm", "snd_hda_intel", "xhci_hcd"]
PATHS = Paths()
LIMIT = 6.0


def ask(names, driver="vfio-pci", timeout=120.0, persistent=True, force=False):
    change = Change()
    asked = dict(devices=names, driver=driver, persistent=persistent, force=force)
    start = time.monotonic()
    result = change_driver(asked, change, Deadline(timeout), PATHS)
    seconds = time.monotonic() - start
    print(f"{driver} {' '.join(names)}: {seconds:.1f} s, {change.seconds}")
    return result, change.changed, seconds


def refused(*arguments, kind=Refused, **more):
    try:
        ask(*arguments, **more)
    except kind as error:
        print(f"{kind.__name__}: {error}")
        return str(error)
    raise SystemExit(f"{arguments} was done")


def drivers(addresses=tuple(CARD)):
    return [sysfs.driver_of(address, PATHS) for address in addresses]


def expect(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"{what}: {found}, not {wanted}")
    print(f"{what}: {found}")


def strangers():
    """A bridge and two cards behind it in one IOMMU group: one alone is refused, both together go."""
    said = refused(["0000:04:02.0"])
    expect("the stranger is named", "0000:04:01.0 (8086:100e) in it is on the host's e1000" in said, True)
    ask(["0000:04:02.0", "8086:100e"], persistent=False)
    expect("both on vfio-pci", drivers(["0000:04:01.0", "0000:04:02.0"]), ["vfio-pci", "vfio-pci"])
    expect("the bridge is refused", "is a bridge" in refused(["0000:03:00.0"]), True)
    ask(["0000:04:02.0", "0000:04:01.0"], "default")
    expect("both back", drivers(["0000:04:01.0", "0000:04:02.0"]), ["e1000", None])


def own_network():
    """The card that this machine's root comes over."""
    said = refused(["0000:00:05.0"], force=True)
    expect("the root's network is kept", "/ (mounted from 10.0.2.254) goes over eth0" in said, True)


def rollback():
    """The second function cannot be unbound (its attribute is mounted read-only): the card is as before."""
    ask(CARD, "default")
    expect("before", drivers(), NATIVE)
    attribute = "/sys/bus/pci/drivers/snd_hda_intel/unbind"
    subprocess.run(["mount", "--bind", attribute, attribute], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", attribute], check=True)
    try:
        said = refused(CARD, kind=StepFailed)
    finally:
        subprocess.run(["umount", attribute], check=True)
    expect("said so", "all devices are as they were" in said, True)
    expect("after", drivers(), NATIVE)
    expect("overrides", [sysfs.override_of(address, PATHS) for address in CARD], [None] * 3)
    expect("journal", os.path.exists(PATHS.journal), False)


def persistenced():
    """A daemon of NVIDIA's name that has the display open: refused, and with force stopped and started again."""
    subprocess.run(["cp", "/bin/sleep", "/run/nvidia-persistenced"], check=True)
    card = next(name for name in os.listdir(f"/sys/bus/pci/devices/{CARD[0]}/drm") if name.startswith("card"))
    with open("/run/systemd/system/nvidia-persistenced.service", "w", encoding="ascii") as file:
        file.write(UNIT.format(node=f"/dev/dri/{card}"))
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    subprocess.run(["systemctl", "start", "nvidia-persistenced"], check=True)
    first = main_pid()
    wait(lambda: named(first) == "nvidia-persiste", "the daemon to start")
    said = refused(CARD)
    expect("the daemon is named", "nvidia-persistenced has it open" in said, True)
    ask(CARD, force=True)
    expect("bound all the same", drivers(), ["vfio-pci"] * 3)
    expect("started again", main_pid() not in ("0", first), True)
    subprocess.run(["systemctl", "stop", "nvidia-persistenced"], check=True)
    os.unlink("/run/systemd/system/nvidia-persistenced.service")


UNIT = """\
[Service]
ExecStart=/bin/sh -c '[ ! -e {node} ] || exec < {node}; exec /run/nvidia-persistenced 600'
"""


def main_pid():
    argv = ["systemctl", "show", "--value", "--property=MainPID", "nvidia-persistenced"]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def named(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


def wait(condition, what):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited 60 s for {what}")
        time.sleep(0.1)


def outlived():
    """A guest that has the card longer than the limit: an answer in time, and one run after it has left repairs it."""
    ask(CARD)
    expect("for guests", drivers(), ["vfio-pci"] * 3)
    group = str(sysfs.look(CARD[0], PATHS).group)
    holder = [sys.executable, os.path.join(os.path.dirname(__file__), "hold.py"), group, CARD[0]]
    guest = subprocess.Popen(holder, stdout=subprocess.PIPE)
    try:
        guest.stdout.readline()
        expect("the guest is named", f"(pid {guest.pid})" in refused(CARD, "default"), True)
        result, _changed, seconds = ask(CARD, "default", timeout=LIMIT, force=True)
        expect("pending", result["pending"], [CARD[0]])
        expect("failed", result["failed"], True)
        print(result["msg"])
        print(f"returned after {seconds:.2f} s of {LIMIT:g}")
        expect("in time", seconds <= LIMIT + 1, True)
        shown = {device["address"]: device for device in info.information(PATHS)["devices"]}
        expect("shown as pending", [shown[address]["pending"] for address in CARD], [True] * 3)
    finally:
        guest.kill()
    result, changed, _seconds = ask(CARD, "default")
    expect("one run repairs it", (drivers(), changed, result["pending"]), (NATIVE, True, []))
    print(result["notes"])


def again():
    """Bound for good, as they were found; and a second run changes nothing."""
    ask(CARD)
    _result, changed, _seconds = ask(CARD)
    expect("changed by the second run", changed, False)


def set_up():
    """What the role wrote is what systemd reads; then all that the kernel may do to a change."""
    with open("/etc/modules-load.d/hetero-pci.conf", encoding="ascii") as file:
        expect("modules", file.read().splitlines()[1:], ["vfio-pci"])
    strangers()
    own_network()
    rollback()
    outlived()
    persistenced()
    again()


def booted():
    """All are on vfio-pci as before the boot, with nothing left to do; and a card goes back to the host's drivers."""
    seen = info.information(PATHS, lambda device: device.address in CARD + ALONE)
    for device in seen["devices"]:
        print(f"{device['address']} {device['description']}: {device['driver']}, {device['state']}")
    expect("after the boot", [device["driver"] for device in seen["devices"]], ["vfio-pci"] * 5)
    expect("states", [device["state"] for device in seen["devices"]], ["available"] * 5)
    expect("for good", [device["persistent"] for device in seen["devices"]], ["vfio-pci"] * 5)
    expect("pools", [pool["count"] for pool in seen["pools"]], [1] * 5)
    expect("NUMA nodes", [device["numa_node"] for device in seen["devices"][3:]], [1, 1])
    expect("problems", seen["problems"], [])
    result, changed, _seconds = ask([CARD[1]], "default")
    expect("back on the host's drivers", (drivers(), changed), (NATIVE, True))
    expect("not bound at the next boot", [device["persistent"] for device in result["devices"]], [None] * 3)


{"set_up": set_up, "booted": booted}[sys.argv[1]]()
