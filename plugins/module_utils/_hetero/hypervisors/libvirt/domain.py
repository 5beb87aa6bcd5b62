# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's domains by its command virsh. Each call has a time limit, and each error says what to do.

Callers know what is in a domain's XML.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Callable, Sequence
from xml.etree import ElementTree

from ...core.command import Limits, ended
from ...core.errors import BadInput, HeteroError, Refused, TimedOut
from ...core.plays import play

if TYPE_CHECKING:
    from ...core.deadline import Deadline

URI = "qemu:///system"
#: Seconds for one call of virsh. Taking a device from its driver, or a domain's start, may take long; so does the first
#: question for capabilities, when each QEMU of the host is asked (on a busy host under TCG over a minute).
CALL_TIME = 120.0
#: Names that virsh takes for a domain's number or UUID (virsh-util.c, virshLookupDomainInternal).
NO_NAME = re.compile(r"[0-9]+|[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
RUNNING, PAUSED, SHUT_OFF = "running", "paused", "shut off"
#: libvirt's words (src/util/virerror.c, virhostdev.c, virpci.c, and QEMU's own) → (error, what, remedy).
SAID = (
    (r"failed to get domain|Domain not found", BadInput, "there is no such domain", "see: virsh list --all"),
    (
        r"failed to connect to the hypervisor|Failed to connect socket",
        HeteroError,
        "libvirt does not answer",
        f"see: systemctl status libvirtd (or virtqemud); {play('kvm_host')} installs it",
    ),
    (
        r"must be manually detached from the host",
        Refused,
        "with managed no, libvirt takes a device only where it is on vfio-pci already",
        "bind it first (module hetero.compute.pci_driver), or attach it with managed: true",
    ),
    (r"is in use by driver .*, domain (?P<who>[^ ]+)", Refused, "domain {who} has it", "stop that domain first"),
    (
        r"group (?P<who>\d+) is not viable",
        Refused,
        "IOMMU group {who} is not viable: another device in it is on a driver of the host's",
        "see module hetero.compute.pci_info, and bind the whole group",
    ),
    (
        r"No more available PCI slots|no more PCI slots",
        Refused,
        "the machine has no free slot for a device while it runs",
        "give it a pcie-root-port more, or attach with live: false and restart it",
    ),
    (
        r"does not support passthrough|VFIO.*not supported|IOMMU.*(?:disabled|not supported)",
        HeteroError,
        "this host cannot give devices to guests",
        f"switch its IOMMU on: {play('kvm_host')}",
    ),
)

#: What libvirt keeps of a domain beside its definition, and refuses to leave behind (virDomainUndefineFlags).
UNDEFINED_WITH = ("--managed-save", "--nvram", "--snapshots-metadata")


def must_be_name(name: str) -> None:
    """Raise BadInput for a name that virsh would take for another domain's number or UUID."""
    if NO_NAME.fullmatch(name):
        raise BadInput("virsh takes it for a domain's number or UUID", f"domain {name}", "choose another name")


class Libvirt:
    """virsh, for one libvirt.

    :param deadline: limits all calls.
    """

    def __init__(self, deadline: Deadline, uri: str = URI) -> None:
        self.deadline = deadline
        self.uri = uri

    def domain(self, name: str) -> Domain:
        return Domain(name, self)

    def names(self) -> list[str]:
        """Return the names of all domains, running or not."""
        return self.call(["list", "--all", "--name"], "libvirt").splitlines()

    def domain_types(self) -> list[str]:
        """Return the types of domains that run here, such as ["kvm", "qemu"], from libvirt's capabilities."""
        tree = _parsed(self.call(["capabilities"], "libvirt"), "libvirt")
        machine = tree.findtext("host/cpu/arch")
        guests = [guest for guest in tree.iterfind("guest/arch") if guest.get("name") == machine]
        return [domain.get("type", "") for guest in guests for domain in guest.iterfind("domain")]

    def define(self, xml: str) -> None:
        """Define a domain. If one has its name and UUID, that is changed, which counts from its next start."""
        self.call(["define", "/dev/stdin"], "libvirt", stdin=xml)

    def call(self, words: Sequence[str], thing: str, stdin: str = "") -> str:
        """Run virsh and return its output.

        :param words: its arguments.
        :raises TimedOut: it did not answer. libvirt may go on with what it was told.
        :raises HeteroError: it failed; known errors (SAID) come in better words.
        """
        limits = Limits(min(CALL_TIME, max(1.0, self.deadline.left)))
        remedy = "see: systemctl status libvirtd, and whether a driver does not let go of a device (dmesg)"
        argv = ["virsh", "-q", "-c", self.uri, *words]
        try:
            done = ended(argv, thing, remedy, limits, stdin, env={"LC_ALL": "C"})
        except TimedOut as error:
            if limits.seconds == CALL_TIME:
                raise
            # it had only what was left
            what = f"virsh {words[0]} did not end (gave up after {self.deadline.seconds:g} s)"
            raise TimedOut(what, thing, remedy, **error.facts) from error
        if done.returncode == 0:
            return done.stdout
        raise named(done.stderr, thing, words[0])


class Domain:
    """One domain by its name. It need not exist."""

    def __init__(self, name: str, libvirt: Libvirt) -> None:
        self.name = name
        self.libvirt = libvirt
        self.thing = f"domain {name}"

    @property
    def defined(self) -> bool:
        return self.name in self.libvirt.names()

    @property
    def state(self) -> str:
        """Return RUNNING, PAUSED, SHUT_OFF or another word of virsh; raise BadInput if there is no such domain."""
        return self._call("domstate").strip()

    @property
    def active(self) -> bool:
        """Return whether the guest holds its devices, which it also does while it is paused or shutting down."""
        return self.state not in (SHUT_OFF, "crashed")

    @property
    def ended(self) -> bool:
        """Return whether its guest has ended. A domain that was undefined while it ran is gone once it has."""
        must_be_name(self.name)
        try:
            return not self.active
        except BadInput:
            if self.defined:
                raise
            return True

    @property
    def persistent(self) -> bool:
        """Return whether libvirt keeps the domain when its guest ends."""
        found = re.search(r"^Persistent:\s+(\S+)", self._call("dominfo"), re.M)
        return found is not None and found[1] == "yes"

    def xml(self, live: bool, whole: bool = False) -> ElementTree.Element:
        """Return its description, of the running guest (`live`) or of its next start.

        :param whole: with its passwords too, to be defined again.
        """
        more = [*([] if live else ["--inactive"]), *(["--security-info"] if whole else [])]
        return _parsed(self._call("dumpxml", *more), self.thing)

    def described(self, live: bool = False) -> ElementTree.Element | None:
        """Return its description as `xml` does, or None if there is no such domain: one question where there is one."""
        try:
            return self.xml(live)
        except BadInput:
            if self.defined:
                raise
            return None

    def attach(self, xml: str, live: bool) -> None:
        """Give it a device, at once (`live`) or from its next start on."""
        self._call("attach-device", "/dev/stdin", _where(live), stdin=xml)

    def detach(self, xml: str, live: bool) -> None:
        """Take a device away. A running guest is only asked to release it."""
        self._call("detach-device", "/dev/stdin", _where(live), stdin=xml)

    def start(self) -> None:
        self._call("start")

    def shutdown(self, timeout: float) -> None:
        """Ask the guest to end and wait for that; raise TimedOut if it does not end."""
        self._call("shutdown")
        end = self.libvirt.deadline.within(timeout)
        whole = f"(gave up after {self.libvirt.deadline.seconds:g} s)"
        its = f"within {timeout:g} s" if end.seconds == timeout else whole
        error = TimedOut(f"its guest did not end {its}", self.thing, "does its init know ACPI's power button?")
        self.wait(lambda: self.ended, end, error)

    def wait(self, is_done: Callable[[], bool], end: Deadline, error: TimedOut) -> None:
        """Ask libvirt again until something is done; raise `error` if it is not in time.

        That is what was read last, also where the deadline of all calls cut off the next answer.
        """
        answered = False
        while True:
            try:
                if is_done():
                    return
                answered = True
            except TimedOut:
                if not (answered and self.libvirt.deadline.passed):
                    raise
            if end.passed:
                raise error
            end.nap()

    def stop(self) -> None:
        """End it by force. It may have ended by itself."""
        if not self.ended:
            try:
                self._call("destroy")
            except HeteroError:
                if not self.ended:
                    raise

    def autostart(self, wanted: bool) -> bool:
        """Have it start with the host, or not; return whether that was changed. One not kept has no next start."""
        said = self._call("dominfo")
        found = re.search(r"^Autostart:\s+(\S+)", said, re.M)
        if re.search(r"^Persistent:\s+no", said, re.M) or (found and (found[1] == "enable") == wanted):
            return False
        self._call("autostart", *([] if wanted else ["--disable"]))
        return True

    def undefine(self) -> None:
        """Have libvirt know it no more, nor what it has noted of its snapshots and checkpoints, whose files stay. One
        that was undefined while it ran was gone with its end.
        """
        try:
            try:
                self._call("undefine", *UNDEFINED_WITH)
            except HeteroError as error:
                if "checkpoints" not in str(error):
                    raise
                # virsh before libvirt 5.6 has neither them nor the word for them
                self._call("undefine", *UNDEFINED_WITH, "--checkpoints-metadata")
        except BadInput:
            if self.defined:
                raise

    def _call(self, word: str, *more: str, stdin: str = "") -> str:
        must_be_name(self.name)
        return self.libvirt.call([word, self.name, *more], self.thing, stdin)


def named(said: str, thing: str, word: str) -> HeteroError:
    """Return the error for what virsh printed on standard error."""
    lines = [line.partition("error: ")[2] or line for line in said.splitlines() if line.strip()]
    text = "; ".join(lines) or f"virsh {word} failed without a word"
    for pattern, kind, what, remedy in SAID:
        found = re.search(pattern, text)
        if found:
            return kind(what.format(**found.groupdict()), thing, remedy, said=text)
    return HeteroError(f"virsh {word}: {text}", thing, "see: journalctl -u libvirtd")


def _where(live: bool) -> str:
    return "--live" if live else "--config"


def _parsed(text: str, thing: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise HeteroError(f"virsh did not answer in XML ({error})", thing, "see: virsh dumpxml") from error
