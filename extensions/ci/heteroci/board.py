# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that a job takes, and gives back. What is kept of it lies in a folder of its own: its key, the way in.

`take` may be called again: a job that is run again finds its own board. So may `give_back`, also where none was taken.
Another job of this owner may ask for the same name, on another machine: what is given back is what has this job's key.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess

from . import endings
from .endings import NoBoard, as_told, say
from .playbooks import Playbooks
from .private import private_folder

#: What the playbooks take for a name.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
#: A path that is the same to Python, to the configuration of ssh, and to a shell in `$HETERO_SSH uname`, where no
#: quotes help.
PLAIN_PATH = re.compile(r"[\w/.:,@+=-]+")
#: Hours of a lease where none are named, and minutes to wait for a node.
HOURS, WAIT = "2", "60"
#: Options of a request that count for what is done with it later.
OF_ANY_VERB, OF_ITS_END = ("owner", "without"), ("wipe", "wipe_verify")
#: Most lines of a command's output that are told where it failed.
SAID = 40
#: What is said of an instance that another job got by this name (site/key_prints.py of the collection).
ANOTHERS = "has another ssh key than only_key"
#: What is said of a request without a flavor, where the playbook would name an option of its own.
NO_FLAVOR = "name a flavor: HETERO_FLAVOR, or --flavor of board; ansible-playbook hetero.compute.flavors shows them"
#: The file in its folder that says that a `take` has it.
KEPT = "kept"
#: The file there that has a keeper's own words, the first one that is written (keeper.py).
LOG = "keeper.log"
#: What ssh reads, after the file that the playbook has written. A board that says nothing for two minutes ends a login.
SSH_CONFIG = """\
Include "{folder}/ssh/*"
Host *
  IdentityFile "{folder}/key"
  IdentitiesOnly yes
  BatchMode yes
  ServerAliveInterval 15
  ServerAliveCountMax 8
"""


def must_be_a_boards(folder):
    """Raise NoBoard for a folder that has files and none of a board's: it would be removed, as a board's is."""
    there = os.listdir(folder) if os.path.isdir(folder) else []
    if there and not {LOG, "asked.json", "board.json"}.intersection(there):
        what = f"{folder} has files, and none of a board, with which it would be removed"
        remedy = "give another name (--name, HETERO_NAME), or set HETERO_STATE (or --state)"
        raise NoBoard(endings.REQUEST, f"{what}: {remedy}")


class CommandFailed(subprocess.CalledProcessError, AssertionError):
    """A command on the board ended with another code than 0. Its message has the last lines that it printed."""

    def __str__(self):
        said = (self.output or "").rstrip("\n").splitlines()
        left_out = [f"… ({len(said) - SAID} lines before these)"] if len(said) > SAID else []
        return "\n".join([f"{self.cmd!r} ended with {self.returncode} on the board", *left_out, *said[-SAID:]])


class Request:
    """What a job asks for.

    :param name: of the instance (names.py).
    :param options: of provision_instance, as a person gives them by -e; owner is one of them.
    :param inventories: of the site; none for the one that ansible.cfg names.
    :param state: the folder in which each board has its own.
    """

    def __init__(self, name, options, inventories=(), state=None):
        if not NAME.fullmatch(name):  # it is a folder's name as well
            raise NoBoard(endings.REQUEST, f"{name!r} is no name of an instance: give 1 to 63 of a-z, 0-9 and -")
        self.name = name
        self.inventories = [os.path.abspath(one) if os.path.exists(one) else one for one in inventories]
        self.options = dict({"hours": HOURS, "wait": WAIT, "owner": "ci"}, **options)
        self.state = os.path.abspath(state or default_state())
        if not PLAIN_PATH.fullmatch(self.state):
            what = f"the folder for keys is {self.state!r}, and a shell would take no such path in $HETERO_SSH"
            raise NoBoard(endings.REQUEST, f"{what}: set HETERO_STATE (or --state) to one of letters, digits and . _ -")

    @property
    def folder(self):
        return os.path.join(self.state, self.name)


def default_state():
    """Return the folder in which boards have theirs where none is named."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.environ.get("HETERO_STATE") or os.path.join(home, "hetero-ci")


def lock_of(request):
    """Return the file that one process at a time has locked, who works on a board of this name (held.py)."""
    return f"{request.folder}.lock"


class Board:
    """An instance that a request has, or is to have.

    :ivar instances: what the playbook gave: name of the node, ip, phases of the boot and more of each.
    """

    def __init__(self, request, watch=None):
        self.request = request
        self._watch = watch
        self._key_before = ""
        self.instances = []

    @property
    def is_taken(self):
        """Return whether an earlier process of this job has it, and may use it."""
        return os.path.exists(os.path.join(self.request.folder, "board.json"))

    @property
    def is_kept(self):
        """Return whether a `take` has it for later steps of the job, which `give_back` ends."""
        return self.is_taken and os.path.exists(os.path.join(self.request.folder, KEPT))

    def keep(self):
        """Have it stay for later steps of the job."""
        self._write(KEPT, "")

    def take(self, keeps=False):
        """Ask for it, and wait until it runs; what failed is given back.

        :param keeps: whether it is not, because it may be in use already.
        :raises NoBoard: there is none, and why.
        """
        request = self.request
        was_cut_off = bool(self._own_key())  # then something may be claimed, whatever is said of this request
        try:
            outcome = self._ask()
        except (NoBoard, OSError) as error:  # nothing was asked of anybody
            if not was_cut_off:
                shutil.rmtree(request.folder, ignore_errors=True)
            raise as_told(error) from None
        if outcome["ending"] != endings.GIVEN:
            if not keeps and (was_cut_off or outcome["ending"] in (endings.BOOT, endings.OWNER, endings.OTHER)):
                stays = self.give_back()
                say(f"what there is of it was not given back: {stays.why}\n" if stays else "")
            elif not self.is_taken:
                shutil.rmtree(request.folder, ignore_errors=True)
            raise NoBoard(outcome["ending"], outcome["text"], outcome["blame"], outcome["console"])
        self.instances = outcome["instances"]
        self._write("board.json", json.dumps(dict(self._asked, instances=self.instances)))
        return self

    def _ask(self):
        request = self.request
        if request.options["hours"] in ("", "none"):
            raise NoBoard(endings.REQUEST, "hours is none: give some, as a job that is killed may leave its board")
        if not request.options.get("flavor"):
            raise NoBoard(endings.REQUEST, NO_FLAVOR)
        options = dict(request.options, instance=request.name, key=self._key(), hetero_ssh_folder=self._ssh_folder)
        if not self.is_taken:
            self._write("asked.json", json.dumps(self._asked))
        return Playbooks(request.folder, request.inventories, self._watch).play("provision_instance", options)

    def give_back(self):
        """Terminate it, and forget the way in; return why that failed as a NoBoard, None where it did not.

        It is asked for as its owner's and by its key, so another's of this name stays, and whatever fails ends with the
        lease. Where no key is, and none was, nothing was asked for by this job.
        """
        try:
            self.remember()
            key = self._key_before
            outcome = self._terminate(key) if key else {}
            is_given_back = not key or outcome["ending"] == endings.GIVEN
            if (is_given_back or ANOTHERS in outcome["text"]) and self._has_folder(key):
                shutil.rmtree(self.request.folder, ignore_errors=True)
        except (NoBoard, OSError) as error:  # such as a full disk
            return as_told(error)
        return None if is_given_back else NoBoard(outcome["ending"], outcome["text"])

    def _terminate(self, key):
        # of another's folder, and of one that can only be read any more, the playbook is to remove nothing
        is_read_only = os.path.isdir(self._ssh_folder) and not os.access(self._ssh_folder, os.W_OK)
        folder = self._ssh_folder if self._has_folder(key) and not is_read_only else ""
        name, options = "terminate_instance", dict(only_key=key, hetero_ssh_folder=folder)
        outcome = self._play(name, **options)
        if not outcome["told"]:
            # it was killed; or who reads this job's output has gone, or has no space for it, and Ansible ends where it
            # cannot write
            is_heard = say(f"{name} told no outcome: it is run once more\n")
            outcome = self._play(name, quiet=not is_heard, **options)
        return outcome

    def console(self, lines=40):
        """Return the last lines of its console as text; what cannot be read is said in place of them."""
        try:
            return self._play("console", quiet=True, lines=str(lines))["said"]
        except (NoBoard, OSError) as error:  # such as a board that was given back already
            return str(error)

    def _play(self, name, quiet=False, **more):
        """Run a playbook on it, as it was asked for: a later step of a job may have other variables."""
        asked = dict(self._asked, **(self._read("board.json") or self._read("asked.json")))
        kept = OF_ANY_VERB + (OF_ITS_END if name == "terminate_instance" else ())
        options = {key: value for key, value in asked["options"].items() if key in kept}
        playbooks = Playbooks(self.request.folder, asked["inventories"], self._watch)
        return playbooks.play(name, dict(options, instance=self.request.name, **more), quiet)

    @property
    def address(self):
        return self.instances[0]["ip"]

    @property
    def node(self):
        """The board's name, or its host's."""
        return self.instances[0]["name"]

    @property
    def phases(self):
        """Seconds of each phase of its boot; {} of an instance that ran already."""
        return self.instances[0].get("phases") or {}

    def ssh(self, *command, name=None):
        """Return the words of the command that logs in."""
        return ["ssh", "-F", self._ssh_config, name or self.instances[0]["instance"], *command]

    def run(self, command, check=True, timeout=None):
        """Run a command on the board; return its standard output as text, without the last line's end.

        :param command: a line for the board's shell, or a list of words.
        :param check: whether another exit code than 0 is an error, CommandFailed (a subprocess.CalledProcessError).
        :raises subprocess.TimeoutExpired: it took longer than `timeout` seconds.
        """
        __tracebackhide__ = True  # pytest shows the test's own line, and none of this file and of subprocess.py
        line, late = command if isinstance(command, str) else shlex.join(command), None
        try:
            own = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            done = subprocess.run(self.ssh(line), timeout=timeout, check=False, **own)
        except subprocess.TimeoutExpired as error:
            late = error
        if late is not None:  # not above, where its way through subprocess.py would be told, too
            raise subprocess.TimeoutExpired(line, timeout, late.output)
        if check and done.returncode:
            raise CommandFailed(done.returncode, line, done.stdout)
        return done.stdout.rstrip("\n")

    @property
    def environment(self):
        """Return what a command is told of it."""
        return dict(
            HETERO_INSTANCE=self.instances[0]["instance"],
            HETERO_INSTANCES=" ".join(one["instance"] for one in self.instances),
            HETERO_NODE=self.node,
            HETERO_ADDRESS=self.address,
            HETERO_ADDRESSES=" ".join(one["ip"] for one in self.instances),
            HETERO_SSH_CONFIG=self._ssh_config,
            HETERO_SSH=" ".join(self.ssh()),  # which a shell parts at blanks, and does nothing else with
        )

    def found(self):
        """Fill in what `take` kept, for another process of the same job; raise NoBoard where nothing was taken."""
        self.instances = self._read("board.json").get("instances", [])
        if not self.instances:
            raise NoBoard(endings.OTHER, f"nothing was taken for {self.request.name} on this machine")
        return self

    @property
    def _asked(self):
        return dict(options=self.request.options, inventories=self.request.inventories)

    # ---- its folder

    def remember(self, key=""):
        """Know its key, and return it, also where a command of the job removes the folder, with the job's home, and
        another job of this name has one of its own there since.
        """
        self._key_before = self._key_before or key or self._own_key()
        return self._key_before

    def _has_folder(self, key):
        """Return whether the folder is that of a board with this key, and not another's who has its name since."""
        return self._own_key() in ("", key)

    @property
    def _ssh_folder(self):
        return os.path.join(self.request.folder, "ssh")

    @property
    def _ssh_config(self):
        return os.path.join(self.request.folder, "ssh_config")

    def _own_key(self):
        """Return the public key of this job alone; "" where there is none."""
        path = os.path.join(self.request.folder, "key")
        try:
            if not all(os.path.getsize(one) for one in (path, f"{path}.pub")):
                return ""
            with open(f"{path}.pub", encoding="ascii") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def _key(self):
        """Return the same, which is made where it is not there; write what ssh reads."""
        path = os.path.join(self.request.folder, "key")
        private_folder(self._ssh_folder)
        if not self._own_key():
            for one in (path, f"{path}.pub"):  # half of one, of a process that was killed or had no space
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(one)
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.request.name, "-f", path]
            if subprocess.run(words, stdin=subprocess.DEVNULL, stdout=endings.errors(), check=False).returncode:
                raise NoBoard(endings.OTHER, f"{path}: ssh-keygen made no key, as is said above")
        self._write("ssh_config", SSH_CONFIG.format(folder=self.request.folder))
        self.remember()
        return self._own_key()

    def _read(self, name):
        """Return what a file of JSON in its folder has; {} where it is not there as a whole."""
        try:
            with open(os.path.join(self.request.folder, name), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    def _write(self, name, text):
        """Write a file in its folder, as a whole or not at all."""
        path = os.path.join(self.request.folder, name)
        new = f"{path}.new"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, path)
