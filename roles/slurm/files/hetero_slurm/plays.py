# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's playbooks, as a person runs them, and how they ended, by callback hetero.compute.outcome."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from site_file import AGAIN, Pool, Site, SiteError

#: Seconds for questions that change nothing.
QUESTION = 300.0
#: Seconds that a play has to end by itself after Ctrl-C.
LAST = 60.0
#: What writes a file of how a play ended, and the folder for these.
CALLBACK, OUTCOMES = "hetero.compute.outcome", "outcomes"
#: What a shell ends with where there is no such program.
NO_PROGRAM = 127
#: Seconds after which no play of a killed program writes there any more.
OLD = 86400.0


@dataclass(frozen=True)
class Ended:
    """A play that ended: its exit code, what it printed, and its outcome; {} of one that was ended."""

    rc: int
    output: str
    outcome: Mapping[str, Any] = field(default_factory=dict)

    def running(self) -> dict[str, str]:
        """Return {instance: its node} of those that the play handed over."""
        return {one["instance"]: one["name"] for one in self.outcome.get("instances", ())}

    def why(self, instance: str) -> str:
        """Return why an instance did not come up: the last word on it, which blame has, else the play's."""
        own = re.findall(rf"^{re.escape(instance)} +(\S+) +error +(.*?)(?: +[\d.]+ s)?$", self.output, re.M)
        if own:
            return ": ".join(own[-1])
        last = self.output.strip().rpartition("\n")[2]
        return self.outcome.get("text") or last or f"the play ended with {self.rc} and said nothing"


class Plays:
    """Runs plays of this site."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def provision(self, pool: Pool, numbers: Iterable[int], seconds: float) -> Ended:
        """Bring up what there is for these slots, in one play."""
        more = {"flavor": pool.flavor, "count": max(2, pool.count), "partial": "true", "image": pool.image}
        more["user_data"] = self.site.user_data if pool.slurmd else ""
        more["key_file"] = os.path.join(self.site.folder, ".ssh", "id_ed25519.pub")
        return self._play("provision_instance", seconds, **self._slots(pool, numbers), **more)

    def terminate(self, pool: Pool, numbers: Iterable[int], seconds: float) -> Ended:
        """End the instances of these slots, in one play."""
        return self._play("terminate_instance", seconds, **self._slots(pool, numbers))

    def free(self) -> dict[str, tuple[int, int]]:
        """Return {flavor: (instances of it that could be had now, and at most)}."""
        said = self._json("flavors")
        return {one["name"]: (one["free"], one["most"]) for one in said["flavors"]}

    def held(self) -> dict[str, dict[str, Any]]:
        """Return {instance: its claim} of all nodes."""
        said = self._json("status", events="0")
        nodes = [*said["proxies"].values(), *said["hosts"].values()]
        return {claim["instance"]: claim for node in nodes for claim in node["claims"]}

    def _slots(self, pool: Pool, numbers: Iterable[int]) -> dict[str, str]:
        return {"instance": pool.name, "numbers": ",".join(map(str, numbers))}

    def _json(self, playbook: str, **options: Any) -> Any:
        ended = self._play(playbook, QUESTION, json="true", **options)
        found = re.findall(r"^\{.*\}$", ended.output, re.M)
        if ended.rc or not found:
            raise SiteError(f"hetero.compute.{playbook} failed: {ended.output.strip()[-500:]}")
        return json.loads(found[-1])  # a node's own words are before it

    def _play(self, playbook: str, seconds: float, **options: Any) -> Ended:
        """Run a play to its end; after `seconds` it is ended as by Ctrl-C, which ends nothing on the nodes."""
        words = [word for key, value in options.items() if value != "" for word in ("-e", f"{key}={value}")]
        try:
            folder = tempfile.mkdtemp(dir=self._outcomes())
        except OSError as error:  # such as a full disk
            output = f"{error.filename}: {error.strerror}: no playbook can be run without a folder there"
            logging.info("%s: %s", playbook, output)
            return Ended(NO_PROGRAM, output)
        try:
            path = os.path.join(folder, "outcome.json")
            rc, output = self._run([*self.site.play, f"hetero.compute.{playbook}", *words], path, seconds)
            outcome = _read(path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        told = [f"{key}={options[key]}" for key in ("instance", "numbers", "flavor") if key in options]
        logging.info("%s: %d", " ".join([playbook, *told]), rc)
        if rc:
            logging.info("%s", output.strip()[-2000:])
        return Ended(rc, output, outcome)

    def _outcomes(self) -> str:
        """Return the folder for outcomes, without what killed programs have left there."""
        path = os.path.join(self.site.folder, OUTCOMES)
        os.makedirs(path, exist_ok=True)
        with os.scandir(path) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another program's, or it has done this
                    if entry.stat().st_mtime < time.time() - OLD:
                        shutil.rmtree(entry.path, ignore_errors=True)
        return path

    def _run(self, argv: list[str], outcome: str, seconds: float) -> tuple[int, str]:
        """Run a program that writes its outcome to a file; return (exit code, what it printed)."""
        try:
            process = subprocess.Popen(
                argv,
                cwd=self.site.folder,
                env=self._environment(outcome),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:  # such as an Ansible that was moved away
            return NO_PROGRAM, f"{argv[0]} cannot be started: {error.strerror}: {AGAIN}"
        try:
            output, _none = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            output = _interrupted(process)
            output += f"\nended after {seconds:.0f} s, Slurm's own limit for it"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, output

    def _environment(self, outcome: str) -> dict[str, str]:
        own = {"PATH": self.site.path, "HOME": self.site.folder, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        own.update(self.site.environment, HETERO_OUTCOME=outcome)
        enabled = self.site.environment.get("ANSIBLE_CALLBACKS_ENABLED", "")
        return dict(own, ANSIBLE_CALLBACKS_ENABLED=",".join(filter(None, [enabled, CALLBACK])))


def _read(path: str) -> dict[str, Any]:
    """Return what a play has written of its outcome; {} where it was ended before."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        return dict(json.load(file))
    return {}


def _interrupted(process: subprocess.Popen[str]) -> str:
    """End a play as by Ctrl-C, or, where it does not obey, with all that it has begun here; returns what it printed."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.communicate(timeout=LAST)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]
