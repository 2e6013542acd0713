"""Mail to the user whose job it is: which address, and what if there is none."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from sentinel.channels.email import Email
from sentinel.channels.mail_owners import OPT_OUT, OwnerDirectory, find_opt_out
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Receipt
from tests.channels.samples import notification
from tests.lab.cluster import Lab
from tests.lab.fuse import Fuse
from tests.lab.smtp import SmtpServer

DOMAIN = "example.org"


def channel(smtp: SmtpServer, **more: Any) -> Email:
    return Email(
        to="owner",
        from_="sentinel@example.org",
        host=smtp.host,
        port=smtp.port,
        security="none",
        **{"owner_domain": DOMAIN, **more},
    )


def tell(smtp: SmtpServer, *users: str, **more: Any) -> Receipt:
    about = [notification(subject=f"{u}/train", labels={"user": u} if u else {}) for u in users]
    return asyncio.run(channel(smtp, **more).send(about))


def lookup(folder: Path, script: str) -> list[str]:
    """A program that is given the user's name as $1."""
    program = folder / "mail-of"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return [str(program)]


def test_each_user_gets_their_own_and_nothing_of_others(smtp: SmtpServer) -> None:
    """Even where several come at once."""
    tell(smtp, "ann", "bob", "ann")
    assert [mail.recipients for mail in smtp.mails] == [["ann@example.org"], ["bob@example.org"]]
    bodies = [str(mail.message.get_body(("plain",))) for mail in smtp.mails]
    assert ["ann/train" in body for body in bodies] == [True, False]
    assert ["bob/train" in body for body in bodies] == [False, True]


def test_an_owner_is_not_sent_to_a_place_that_is_an_administrators(smtp: SmtpServer) -> None:
    """Who may not read the state of sentinel, nor be root, is told whom to ask. The healthy control is
    who set it up: the same commands are theirs."""
    drain = "scontrol update NodeName=n1 State=DRAIN"
    theirs = {"labels": {"user": "ann"}, "acts": (drain,), "commands": ("tail /x",)}
    for setup in ("on login1, as sentinel", "on login1, as ann"):
        asyncio.run(channel(smtp).send([notification(setup_place=setup, **theirs)]))
    parts = [mail.message.get_body(("plain",)) for mail in smtp.mails]
    bodies = [part.get_content() for part in parts if part]
    assert ["(ask whoever runs sentinel: on login1, as sentinel):" in one for one in bodies] == [
        True,
        False,
    ]
    for body in bodies:
        assert "Act on it (ask an administrator: on a login node, as root):" in body
        assert "Look closer (on a login node, as ann):" in body
    assert channel(smtp).preview([notification(setup_place="on login1, as sentinel", **theirs)])


def test_a_lookup_goes_before_the_domain(smtp: SmtpServer, tmp_path: Path) -> None:
    """Where it prints nothing, the domain holds."""
    argv = lookup(tmp_path, '[ "$1" = ann ] && echo "Ann Example <a.example@uni.example>"; true')
    tell(smtp, "ann", "bob", owner_lookup=argv)
    assert [m.recipients for m in smtp.mails] == [["a.example@uni.example"], ["bob@example.org"]]


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("", "the alert names no user: it is about no job"),
        ("70123", "Slurm knows uid 70123, but no name for it"),
        ("-oops", "user -oops has no mail address"),
        ("a b", "user a b has no mail address"),
        ("x@evil.example,ann", "user x@evil.example,ann has no mail address"),
        ("ann\r\nBcc: eve", "user ann\\r\\nBcc: eve has no mail address"),
        ("\udcff", "has no mail address"),
    ],
)
def test_who_has_no_address_is_one_answer_for_good(smtp: SmtpServer, user: str, words: str) -> None:
    """The fallback then has it; nothing is sent to a guess."""
    with pytest.raises(ChannelError) as error:
        tell(smtp, user)
    assert words in str(error.value)
    assert (error.value.permanent, error.value.reason) == (True, "recipient")
    assert not smtp.mails


@pytest.mark.parametrize(
    ("script", "permanent", "words"),
    [
        ("true", True, "the lookup prints none"),
        ("echo 'no such user'", True, "is no mail address"),
        ("echo 'a@example.org, b@example.org'", True, "is no mail address"),
        ("echo LDAP is down >&2; exit 3", False, "exit code 3: LDAP is down"),
        ("exec sleep 60", False, "could not be looked up"),
    ],
)
def test_a_lookup_that_gives_no_address(
    tmp_path: Path, script: str, permanent: bool, words: str
) -> None:
    """No address is final; a lookup that fails is tried again."""
    limit = 0.5 if script == "exec sleep 60" else 30.0
    with pytest.raises(ChannelError, match=words) as error:
        OwnerDirectory("", tuple(lookup(tmp_path, script)), limit=limit).find_owner("ann")
    assert error.value.permanent is permanent


def test_the_name_of_a_user_is_an_argument_and_never_a_command(tmp_path: Path) -> None:
    """Nor an option of the lookup."""
    argv = lookup(tmp_path, f'echo "$#:$1" >> {tmp_path}/seen; echo a@example.org')
    OwnerDirectory("", tuple(argv)).find_owner("$(id);x")
    with pytest.raises(ChannelError):
        OwnerDirectory("", tuple(argv)).find_owner("--delete")
    assert (tmp_path / "seen").read_text() == "1:$(id);x\n"


def test_a_user_without_a_home_here_has_not_opted_out() -> None:
    """Accounts of the cluster need not be this host's."""
    assert find_opt_out("nobody-of-that-name") == ("", "")


def test_a_home_that_hangs_keeps_nobody_from_being_told(
    fresh: Lab, fuse: Fuse, smtp: SmtpServer
) -> None:
    """Whether they want mail cannot be told: they get it, and the receipt says so."""
    user = fresh.user("far", at=fuse.point)
    fuse.hold("lookup")
    owner = OwnerDirectory(DOMAIN, limit=0.5).find_owner(user.name)
    fuse.release()
    assert str(owner.address) == f"{user.name}@{DOMAIN}"
    assert owner.note.startswith(f"whether {user.name} wants none could not be seen: ")
    assert "does not answer" in owner.note


def test_no_mail_is_the_wish_of_the_user_alone(fresh: Lab) -> None:
    """A file that somebody else has put there decides nothing, nor does a link to one's own."""
    user = fresh.user("near")
    file = user.home / OPT_OUT
    file.parent.mkdir(parents=True)
    file.touch()
    assert find_opt_out(user.name) == ("", "")
    os.chown(file, user.uid, user.gid)
    assert find_opt_out(user.name) == (str(file), "")
    file.rename(user.home / "elsewhere")
    file.symlink_to(user.home / "elsewhere")
    assert find_opt_out(user.name) == ("", "")


def test_a_server_that_refuses_the_address_is_about_that_user_alone(smtp: SmtpServer) -> None:
    """For good or for now."""
    smtp.refuse("ann@example.org")
    smtp.greylist("bob@example.org")
    for user, permanent in (("ann", True), ("bob", False)):
        with pytest.raises(ChannelError) as error:
            tell(smtp, user)
        assert (error.value.reason, error.value.permanent) == ("recipient", permanent)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"owner_domain": ""}, "owner_domain"),
        ({"owner_domain": "not a domain"}, "owner_domain"),
        ({"owner_lookup": [""]}, "owner_lookup"),
        ({"per_day": 0}, "per_day"),
        ({"to": ["ann@example.org"]}, "owner_domain"),
        ({"to": "ann@example.org"}, "owner_domain"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], key: str) -> None:
    """At its key."""
    fields = {"to": "owner", "from_": "s@example.org", "host": "localhost", "owner_domain": DOMAIN}
    with pytest.raises(Invalid) as error:
        Email(**{**fields, **settings})
    assert error.value.path[0] == key
