"""On whose behalf a file is opened. Pure."""

from msgspec import Struct


class Whose(Struct, frozen=True, kw_only=True):
    """The user whose rights are used to open a file: `sentinel.user_files.identity.decide_rights`
    has the rule."""

    user: str = ""
    """Name or uid of the user whose job names the file; empty where there is no job."""
    literal: bool = False
    """The operator wrote the path out: no symbol in it was filled by a job."""
    owned: bool = False
    """The file has to belong to the user as well."""
