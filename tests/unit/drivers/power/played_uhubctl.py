# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Program uhubctl on hubs that are a JSON file: `played_uhubctl.py FILE [-l HUB] [-p PORT] [-a on|off]`.

Output, order and exit codes are uhubctl's (its source, version 2.6): it looks only at hubs that switch each port,
takes a hub's USB 2 and USB 3 together, and ends with 0 whether or not a port followed.

The file: {"hubs": [{"at": "1-1.4", "usb": 2, "ports": {"1": {"power": true, "device": "…"}}, "twin": "2-1.4", "each":
true}], "faults": {"stuck": ["1-1.4:1"], "unread": […], "denied": true, "hang": true, "broken": true}}.
"""

import json
import sys
import time
from pathlib import Path

path, words = Path(sys.argv[1]), sys.argv[2:]
given = dict(zip(words[::2], words[1::2]))
assert [*given] == [word for word in ("-l", "-p", "-a") if word in given], words
data = json.loads(path.read_text())
hubs, faults = data["hubs"], data.get("faults", {})
with path.with_suffix(".log").open("a") as log:
    log.write(f"{' '.join(words)}\n")

if faults.get("hang"):
    print("Current status for hub", flush=True)
    time.sleep(600)


def found():
    """Hubs that are looked at, in the order in which USB lists them."""
    smart = [hub for hub in hubs if hub.get("each", True)]
    chosen = [hub for hub in smart if given.get("-l", hub["at"]) == hub["at"]]
    twins = {hub.get("twin") for hub in chosen}
    return [hub for hub in smart if hub in chosen or hub["at"] in twins]


def described(hub):
    usb, each = {2: "2.10", 3: "3.20"}[hub["usb"]], "ppps" if hub.get("each", True) else "ganged"
    return f"05e3:06{hub['usb']}0 GenesysLogic USB{usb} Hub, USB {usb}, {len(hub['ports'])} ports, {each}"


def show(hub, title):
    print(f"{title} status for hub {hub['at']} [{described(hub)}]")
    for number, port in hub["ports"].items():
        if number != given.get("-p", number):
            continue
        if f"{hub['at']}:{number}" in faults.get("unread", ()):
            sys.stdout.flush()
            print(f"cannot read port {number} status, No such device (19)", file=sys.stderr)
            return
        device = port.get("device") if port["power"] else None
        if hub["usb"] == 2:
            bits, said = 0x0100 * port["power"], " power" * port["power"]
            bits, said = (bits | 0x0403, f"{said} highspeed") if device else (bits, said or " off")
        else:
            bits, said = (0x0203, " power 5gbps U0") if device else (0x02A0, " power 5gbps Rx.Detect")
            bits, said = (bits, said) if port["power"] else (0x0080, " off")
        print(f"  Port {number}: {bits:04x}{said}" + (f" enable connect [{device}]" if device else ""))


if "-p" in given and not 1 <= int(given["-p"]) <= 14:
    print(f"Bad port spec {given['-p']}-{given['-p']}, port numbers must be from 1 to 14", file=sys.stderr)
    sys.exit(1)
if faults.get("broken"):
    print("Error initializing USB!", file=sys.stderr)
    sys.exit(1)
looked_at = [] if faults.get("denied") else found()
if not any(hub["usb"] == 2 for hub in looked_at):
    if faults.get("denied"):
        print("There were permission problems while accessing USB.", file=sys.stderr)
        print("Follow https://git.io/JIB2Z for a fix!", file=sys.stderr)
    where = f" at location {given['-l']}" if "-l" in given else ""
    print(f"No compatible devices detected{where}!\nRun with -h to get usage info.", file=sys.stderr)
    sys.exit(1)
for hub in looked_at:
    show(hub, "Current")
    if "-a" in given:
        for number, port in hub["ports"].items():
            if number == given.get("-p", number) and f"{hub['at']}:{number}" not in faults.get("stuck", ()):
                port["power"] = given["-a"] == "on"
        path.write_text(json.dumps(data))
        print(f"Sent power {given['-a']} request")
        show(hub, "New")
