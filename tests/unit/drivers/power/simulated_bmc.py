# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine's BMC for tests: OpenIPMI's ipmi_sim on the loopback, whose chassis is a script that a test may replace."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline

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
{sol}chassis_control "{chassis}"
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
#: In one step: who asks meanwhile finds no empty file.
OBEY = 'echo "$3" >"$folder/power.new"; mv "$folder/power.new" "$folder/power"'


def _free(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((address, port or 0))
        return free.getsockname()[1]


class SimulatedBmc:
    """One ipmi_sim, its user and its power.

    :param within: what begins its command, nsenter where its address is one of another network.
    :param line: the device that is the serial line of its machine, for serial over LAN.
    """

    def __init__(self, folder, address="127.0.0.1", port=None, password="te'st$x=;", *, within=(), line=None):
        assert shutil.which("ipmi_sim"), "ipmi_sim (Debian: openipmi) is not installed: run tools/setup test"
        self.folder, self.address = folder, address
        self.secrets = {"username": "operator", "password": password}
        self.port = port if within else _free(address, port)
        more = {"chassis": folder / "chassis", "sol": f'sol "{line}" 115200\n' if line else ""}
        text = LAN.format(name=folder.name, address=address, port=self.port, **more, **self.secrets)
        (folder / "lan.conf").write_text(text)
        (folder / "controller").write_text(CONTROLLER)
        (folder / "state").mkdir()
        self.power = "off"
        self.does(OBEY)
        argv = [*within, "ipmi_sim", "-c", folder / "lan.conf", "-f", folder / "controller", "-s", folder / "state"]
        # a file, which is never full: it tells of each question
        with open(folder / "said", "wb") as said:
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT)
        (folder / "pid").write_text(str(self.process.pid))
        end = Deadline(60)
        while not (folder / "said").read_bytes().endswith(b"> "):  # its prompt, when it has read everything
            assert not end.passed, (folder / "said").read_text()
            end.nap(0.02)

    def does(self, obey):
        """What its chassis does with an order from now on, in the shell's words."""
        (self.folder / "chassis").write_text(CHASSIS.format(folder=self.folder, obey=obey))
        (self.folder / "chassis").chmod(0o755)

    @property
    def power(self):
        return {"0": "off", "1": "on"}[(self.folder / "power").read_text().strip()]

    @power.setter
    def power(self, state):
        (self.folder / "power.set").write_text({"off": "0", "on": "1"}[state])
        (self.folder / "power.set").rename(self.folder / "power")

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
