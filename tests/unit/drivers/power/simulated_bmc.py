# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine's BMC for tests: OpenIPMI's ipmi_sim on the loopback, whose chassis is a script that a test may replace."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess

LAN = """\
name "{name}"
startlan 1
  addr {address} {port}
  priv_limit admin
  allowed_auths_callback none md2 md5 straight
  allowed_auths_user none md2 md5 straight
  allowed_auths_operator none md2 md5 straight
  allowed_auths_admin none md2 md5 straight
  guid a123456789abcdefa123456789abcdef
endlan
chassis_control "{chassis}"
user 2 true "{username}" "{password}" admin 10 none md2 md5 straight
"""
CONTROLLER = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_enable 0x20
"""
#: Called with `get power` or `set power 0|1`; $folder/power is the state, $folder/asked the orders that it was given.
CHASSIS = """\
#!/bin/sh
folder='{folder}'
case "$1 $2" in
"get power") echo "power:$(cat "$folder/power")" ;;
"set power") echo "$3" >>"$folder/asked"; {obey} ;;
esac
"""
OBEY = 'echo "$3" >"$folder/power"'


class SimulatedBmc:
    """One ipmi_sim, its user and its power."""

    def __init__(self, folder, address="127.0.0.1", port=None, password="te'st$x=;"):
        assert shutil.which("ipmi_sim"), "ipmi_sim (Debian: openipmi) is not installed: run tools/setup test"
        self.folder, self.address = folder, address
        self.secrets = {"username": "operator", "password": password}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind((address, port or 0))
            self.port = free.getsockname()[1]
        chassis = folder / "chassis"
        text = LAN.format(name=folder.name, address=address, port=self.port, chassis=chassis, **self.secrets)
        (folder / "lan.conf").write_text(text)
        (folder / "controller").write_text(CONTROLLER)
        (folder / "state").mkdir()
        self.power = "off"
        self.does(OBEY)
        argv = ["ipmi_sim", "-c", folder / "lan.conf", "-f", folder / "controller", "-s", folder / "state"]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        (folder / "pid").write_text(str(self.process.pid))
        said = b""
        while not said.endswith(b"> "):  # its prompt, when it has read everything
            more = os.read(self.process.stdout.fileno(), 4096)
            assert more, said
            said += more

    def does(self, obey):
        """What its chassis does with an order from now on, in the shell's words."""
        (self.folder / "chassis").write_text(CHASSIS.format(folder=self.folder, obey=obey))
        (self.folder / "chassis").chmod(0o755)

    @property
    def power(self):
        return {"0": "off", "1": "on"}[(self.folder / "power").read_text().strip()]

    @power.setter
    def power(self, state):
        (self.folder / "power").write_text({"off": "0", "on": "1"}[state])

    @property
    def asked(self):
        """The orders that it was given."""
        path = self.folder / "asked"
        return ["on" if word == "1" else "off" for word in path.read_text().split()] if path.exists() else []

    @property
    def settings(self):
        """As an operator configures it. Without a cipher suite ipmitool asks for a list, which ipmi_sim has not."""
        options = {"lanplus": 1, "cipher": 3, "power_wait": 0, "power_timeout": 2, "ipmitool_timeout": 10}
        return {
            "driver": "fence",
            "agent": "fence_ipmilan",
            "host": self.address,
            "port": self.port,
            "agent_options": options,
        }

    def fence(self, action):
        """(exit code, what it said) of Debian's fence_ipmilan."""
        agent = shutil.which("fence_ipmilan", path="/usr/sbin")
        assert agent, "fence_ipmilan (Debian: fence-agents) is not installed: run tools/setup test"
        settings = self.settings
        options = dict(settings["agent_options"], ip=settings["host"], ipport=settings["port"], action=action)
        given = "".join(f"{name}={value}\n" for name, value in {**options, **self.secrets}.items())
        done = subprocess.run([agent], input=given, capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stderr

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
