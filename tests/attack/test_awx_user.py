# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user of AWX who may launch the users' templates and nothing else, by ansible-runner as AWX runs them.

She also is root on a board, so that a part of the proxy's files is hers to write.
"""

from __future__ import annotations

import tarfile
from io import BytesIO

import pytest
from labs import FLAVOR
from turns import in_turns

from ansible_collections.hetero.compute.tests.awx import jobs

IMAGE = "debian-12"
NAMES = f"cat /var/lib/hetero/images/names/{IMAGE}"
#: What she writes into her root on the proxy.
ROOT = "/var/lib/hetero/board-roots/fs_0/root"
USER = "mallory"
OURS = "provide an instance"


@pytest.fixture(scope="module")
def awx(two, tmp_path_factory):
    return jobs.on_lab(two, tmp_path_factory.mktemp("awx"))


@pytest.fixture(scope="module")
def form(two):
    """What her form says where nothing else is tried."""
    key = (two.folder / "ssh" / "id_ed25519.pub").read_text().strip()
    return dict(instance="eve", flavor=FLAVOR, key=key)


def no_claims_but(lab, *names):
    return sorted(claim["instance"] for claim in lab.module("board_info")["claims"]) == sorted(names)


def image_of_hers(folder):
    """A tar that is an image by all the store's rules, with a root of her own."""
    path = folder / f"{IMAGE}.tar"
    with tarfile.open(path, "w") as tar:
        for name, text in (("image.json", '{"arch": "tilepro64"}'), ("kernel", "hers"), ("root/etc/motd", "hers")):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, BytesIO(text.encode()))
    return path


def test_the_sites_default_image(two, awx, form, tmp_path):
    """Lost: everybody who asks for the default image gets one that she made, with whatever she put into it."""
    before = two.on_proxy(NAMES)
    two.ssh("mallory", f"cat > /root/{IMAGE}.tar", stdin=image_of_hers(tmp_path).read_bytes())
    two.ssh("mallory", f"mkdir -p /root/a; ln -sf ../{IMAGE}.tar /root/a/{IMAGE}.tar")
    assert two.on_proxy(f"ls {ROOT}/root/{IMAGE}.tar"), "what she wrote lies where she says it does"
    paths = [
        f"{ROOT}/root/{IMAGE}.tar",
        f"{ROOT}/root/a/{IMAGE}.tar",
        f"file://{ROOT}/root/{IMAGE}.tar",
        f"../board-roots/fs_0/root/root/{IMAGE}.tar",
    ]
    said = [awx.run(OURS, user=USER, **dict(form, image=path)) for path in paths]
    said.append(awx.run("rebuild an instance", user=USER, instance="mallory", image=paths[0]))
    assert two.on_proxy(NAMES) == before
    for job in said:
        assert job.rc != 0
        assert "image is no name for an image" in job.output, job.output
        assert job.changed == 0, job.output
    assert no_claims_but(two, "mallory", "victim")


def test_an_operator_who_is_told_a_path(two, tmp_path):
    """Lost: the same, by an operator who imports what somebody asked to have imported, from where she can write it."""
    before = two.on_proxy(NAMES)
    two.ssh("mallory", f"cat > /root/{IMAGE}.tar", stdin=image_of_hers(tmp_path).read_bytes())
    two.on_proxy(
        f"mkdir -p /srv/bind /srv/whole && ln -sfn {ROOT}/root /srv/link && mount --bind {ROOT}/root /srv/bind"
        " && mount --rbind /var/lib/hetero /srv/whole && mount --make-rprivate /srv/whole"
    )
    try:
        for path in (
            f"{ROOT}/root/{IMAGE}.tar",
            f"/srv/link/{IMAGE}.tar",
            f"/srv/bind/{IMAGE}.tar",
            f"/srv/whole/board-roots/fs_0/root/root/{IMAGE}.tar",
            f"/proc/1/root{ROOT}/root/{IMAGE}.tar",
            "/var/lib",
        ):
            played = two.play("image", 2, nodes="proxy1", image=IMAGE, src=path, replace="true")
            assert "where tenants' files are kept" in played.output, played.output
    finally:
        two.on_proxy("umount -R /srv/whole && umount /srv/bind && rmdir /srv/bind /srv/whole && rm /srv/link")
    assert two.on_proxy(NAMES) == before


@pytest.mark.parametrize("asked", in_turns(["a file", "a template"], 2))
def test_what_the_jobs_container_holds(two, awx, form, tmp_path, asked):
    """Lost: whatever the execution environment can read, such as other credentials of the site, in the job's events."""
    (tmp_path / "secret").write_text("s3cret-of-the-site\n")
    path = tmp_path / "secret"
    key = str(path) if asked == "a file" else f"{{{{ lookup('ansible.builtin.file', '{path}') }}}}"
    said = [
        awx.run(OURS, user=USER, **dict(form, key=key)),
        awx.run("rebuild an instance", user=USER, instance="mallory", key=key),
    ]
    for job in said:
        assert "s3cret" not in job.everything
        assert job.rc != 0
        assert "key is no OpenSSH public key" in job.output, job.output
    assert no_claims_but(two, "mallory", "victim")


def test_the_name_of_another(two, awx, form):
    """Lost: victim's owner cannot stop, rebuild or end victim any more, as half of what has that name is hers."""
    for more in (dict(instance="victim", count=2), dict(instance="victim")):
        job = awx.run(OURS, user=USER, **dict(form, **more))
        assert job.rc != 0
        assert "victim: belongs to" in job.output, job.output
    assert no_claims_but(two, "mallory", "victim")
