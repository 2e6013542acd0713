"""Ways in which people ran sentinel at `site.BEFORE`, and what each is told and refused afterwards."""

from __future__ import annotations

import grp
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from tests.lab.cluster import Lab
from tests.lab.postgres import Postgres
from tests.lab.smtp import SmtpServer
from tests.upgrade.site import Site

PASSWORD = "the-password"
PEER, SCRAM, CLEAR = "all owner peer map=m", "all owner scram-sha-256", "all owner password"
ADDRESS = "127.0.0.77"
RELAY = "  mail: {{kind: email, to: [ops@site.example], from: s@site.example, host: localhost, port: {0}, security: none{1}}}"


class World(Struct, frozen=True):
    """What a set-up may use besides its own folder."""

    lab: Lab
    smtp: Callable[..., SmtpServer]


def lend_to_group(world: World, path: Path) -> None:
    """A group of people may write it, and what is made in it is the group's."""
    os.chown(path, -1, grp.getgrnam(world.lab.group("team")).gr_gid)
    path.chmod(0o2775)


@contextmanager
def users_chain(site: Site, world: World) -> Iterator[None]:
    """Her own chain of jobs, in a folder of her group."""
    user = world.lab.user("alice")
    site.write()
    site.give_to(user)
    lend_to_group(world, site.folder / "bin")
    with _chain(site):
        yield


@contextmanager
def roots_chain(site: Site, world: World) -> Iterator[None]:
    """root's chain of jobs, with its configuration in a folder that a group may write."""
    etc = site.folder / "etc"
    etc.mkdir()
    site.file = etc / "sentinel.yaml"
    site.write()
    lend_to_group(world, etc)
    with _chain(site):
        yield


@contextmanager
def _chain(site: Site) -> Iterator[None]:
    """Slurm makes the passes; a link begins every two seconds."""
    done = site.call("cron", "install", "--every", "5s")
    assert done.returncode == 0, done.stdout + done.stderr
    site.pokes = [["cron", "status"]]
    try:
        yield
    finally:
        site.call("cron", "remove")


@contextmanager
def roots_service(site: Site, world: World) -> Iterator[None]:
    """A service of root's; nobody else may write anything."""
    site.write()
    yield


@contextmanager
def users_service(site: Site, world: World) -> Iterator[None]:
    """A service of a user's, whose folder his group may write."""
    user = world.lab.user("bob")
    site.write()
    site.give_to(user)
    lend_to_group(world, site.folder)
    yield


@contextmanager
def shared_scripts(site: Site, world: World) -> Iterator[None]:
    """A cron directory that a group may write; root submits the script and the program there."""
    scripts = site.folder / "cron/cron.daily"
    scripts.mkdir(parents=True)
    (scripts / "script").write_text("#!/bin/sh\nexit 0\n")
    shutil.copy("/bin/true", scripts / "program")
    (scripts / "script").chmod(0o755)
    site.write(checks=f"  scripts: {{kind: cron, base: {site.folder}/cron}}")
    lend_to_group(world, scripts)
    site.pokes = [["cron", "run"], ["tick", "--all"]]
    yield


@contextmanager
def shared_base(site: Site, world: World) -> Iterator[None]:
    """The same, and the group may write the base too."""
    with shared_scripts(site, world):
        lend_to_group(world, site.folder / "cron")
        yield


@contextmanager
def shared_state(site: Site, world: World) -> Iterator[None]:
    """The folder of root's state may be written by a group."""
    site.write()
    lend_to_group(world, site.folder / "state")
    yield


@contextmanager
def members_state(site: Site, world: World) -> Iterator[None]:
    """The same, and a member of the group has made what lies there."""
    with shared_state(site, world):
        site.call("tick", "--all")
        user = world.lab.user("alice", groups=(world.lab.group("team"),))
        for path in (site.folder / "state").iterdir():
            shutil.chown(path, user.name)
        yield


@contextmanager
def users_programs(site: Site, world: World) -> Iterator[None]:
    """root runs a plugin and a pager that belong to a user."""
    user = world.lab.user("alice")
    for name in ("plugin", "pager"):
        shutil.copy(site.folder / "bin" / name, site.folder / "bin" / f"her-{name}")
        shutil.chown(site.folder / "bin" / f"her-{name}", user.name)
    command = f"{site.folder}/bin/her-"
    site.write(
        checks=f"  hers: {{kind: exec, every: 1s, command: [{command}plugin, {site.folder}/flags/x]}}",
        channels=f"  hers: {{kind: exec, command: [{command}pager]}}",
    )
    yield


@contextmanager
def postgres_peer(site: Site, world: World) -> Iterator[None]:
    """PostgreSQL of this host, which asks the kernel who connects."""
    with Postgres() as server, server.owned_database(PASSWORD, f"local {PEER}") as url:
        site.write(state=url)
        yield


@contextmanager
def postgres_password(site: Site, world: World) -> Iterator[None]:
    """PostgreSQL of this host, with a password on its socket."""
    with Postgres() as server, server.owned_database(PASSWORD, f"local {SCRAM}") as url:
        site.write(state=url.replace("owner@", f"owner:{PASSWORD}@"))
        yield


@contextmanager
def postgres_clear_password(site: Site, world: World) -> Iterator[None]:
    """The same where the server asks for the password in clear."""
    with Postgres() as server, server.owned_database(PASSWORD, f"local {CLEAR}") as url:
        site.write(state=url.replace("owner@", f"owner:{PASSWORD}@"))
        yield


@contextmanager
def postgres_elsewhere(site: Site, world: World) -> Iterator[None]:
    """PostgreSQL of another address, by TCP without TLS."""
    with (
        Postgres(listen_addresses=ADDRESS) as server,
        server.owned_database(PASSWORD, f"host {SCRAM.replace('owner', 'owner all')}") as url,
    ):
        base = url.partition("?")[0].replace("owner@", f"owner:{PASSWORD}@{ADDRESS}")
        site.write(state=base)
        yield


@contextmanager
def relay(site: Site, world: World) -> Iterator[None]:
    """A relay on this host, without a login."""
    server = world.smtp()
    site.write(channels=RELAY.format(server.port, ""))
    yield


@contextmanager
def relay_login(site: Site, world: World) -> Iterator[None]:
    """A relay on this host with a login and without TLS."""
    server = world.smtp(logins={"me": PASSWORD})
    more = f", username: me, password: {PASSWORD}"
    site.write(channels=RELAY.format(server.port, more))
    yield


@contextmanager
def shared_book(site: Site, world: World) -> Iterator[None]:
    """The folder of a channel of kind `file` may be written by a group."""
    shared = site.folder / "shared"
    shared.mkdir()
    lend_to_group(world, shared)
    site.write(channels=f"  shared: {{kind: file, path: {shared}/book}}")
    yield


@contextmanager
def shared_program(site: Site, world: World) -> Iterator[None]:
    """A group may write the plugin of a check."""
    site.write()
    lend_to_group(world, site.folder / "bin")
    (site.folder / "bin/plugin").chmod(0o775)
    yield
