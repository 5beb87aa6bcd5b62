# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's network namespace: bridges, taps of boards, links of nodes, ways to what lies behind nodes."""

from __future__ import annotations

import json
import os

from processes import run


def few(kind, names):
    """Says what was made within a line: one by its name, several by their number."""
    return f"{kind} {names[0]}" if len(names) == 1 else f"{len(names)} {kind}s"


class Network:
    """The namespace, its bridges with their addresses, a tap for each board, a veth pair for each node's network."""

    def __init__(self, lab):
        self.lab = lab
        self.path = f"/run/netns/{lab['namespace']}"

    @property
    def exists(self):
        return os.path.exists(self.path)

    def inside(self, *argv, check=True):
        return run("nsenter", f"--net={self.path}", *argv, check=check)

    def links(self):
        return {link["ifname"] for link in json.loads(self.inside("ip", "-j", "link").stdout or "[]")}

    def up(self):
        lab, changed = self.lab, []
        new: dict[str, list[str]] = {"bridge": [], "tap": [], "link": []}
        if not self.exists:
            run("ip", "netns", "add", lab["namespace"])
            self.inside("ip", "link", "set", "lo", "up")
            changed.append(f"namespace {lab['namespace']}")
        links, lines = self.links(), []
        for bridge in lab["bridges"]:
            if bridge["name"] not in links:
                lines += [f"link add {bridge['name']} type bridge stp_state 0 forward_delay 0"]
                lines += [f"addr add {address} dev {bridge['name']}" for address in bridge["addresses"]]
                lines += [f"link set {bridge['name']} up"]
                new["bridge"].append(bridge["name"])
        for board in lab["boards"]:
            if board["tap"] not in links:
                lines += [
                    f"tuntap add {board['tap']} mode tap",
                    f"link set {board['tap']} master {board['bridge']} up",
                ]
                if board["behind"]:
                    lines += [f"route add {board['behind']} via {board['ip']}"]
                new["tap"].append(board["tap"])
        for name, node in lab["nodes"].items():
            for number, network in enumerate(node["networks"]):
                outer = f"{name}-{number}"
                if outer not in links:
                    made = f"tuntap add {outer} mode tap"
                    if node["kind"] == "container":
                        mac = f" address {network['mac']}" if "mac" in network else ""
                        made = f"link add {outer} type veth peer name {outer}i{mac}"
                    lines += [made, f"link set {outer} master {network['bridge']} up"]
                    new["link"].append(outer)
                    if node["behind"] and number == 0:
                        lines += [f"route add {node['behind']} via {network['address'].split('/')[0]}"]
        if lines:
            batch = os.path.join(lab["folder"], "run", "network.batch")
            with open(batch, "w", encoding="ascii") as file:
                file.write("\n".join(lines) + "\n")
            self.inside("ip", "-batch", batch)
        return changed + [few(kind, names) for kind, names in new.items() if names]

    def down(self):
        if not self.exists:
            return []
        run("ip", "netns", "del", self.lab["namespace"])
        return [f"namespace {self.lab['namespace']}"]

    def leftovers(self):
        return [f"namespace {self.lab['namespace']}"] if self.exists else []
