"""A throw-away PostgreSQL server on a Unix socket; Debian's packages, nothing of the system's."""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from tests.lab.tied import tied
from tests.lab.waiting import wait_until

EMPTY = """\
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid();
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)' LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', name);
  END LOOP;
END $$;
CREATE SCHEMA public;
"""
SETTINGS = {"listen_addresses": "", "fsync": "off", "max_connections": "40"}


def programs() -> Path | None:
    """Where initdb and postgres are (Debian keeps them off the PATH); None: not installed."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: _version(path))
    if versions:
        return versions[-1]
    found = shutil.which("initdb")
    return Path(found).parent if found else None


def why_no_postgres() -> str | None:
    """None where a server can be started, else one line that says what is missing."""
    return None if programs() else "the store's contract needs Debian's postgresql"


class Postgres:
    """Running inside `with`; `database()` gives the URL of a fresh database. `settings`: further
    ones of its configuration."""

    def __init__(self, **settings: str) -> None:
        self._settings = SETTINGS | settings
        bin_folder = programs()
        assert bin_folder is not None, why_no_postgres()
        self._bin = bin_folder
        self._user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self._numbers, self._free = itertools.count(), list[str]()

    @contextmanager
    def database(self) -> Iterator[str]:
        """An empty database as `postgresql://…`; emptied afterwards for the next one, which costs a
        quarter of dropping it and making another."""
        if not self._free:
            self._free.append(f"test{next(self._numbers)}")
            self._sql(f"CREATE DATABASE {self._free[0]}")
        name = self._free.pop()
        try:
            yield f"postgresql://{self._user}@/{name}?host={self._folder}"
        finally:
            self._sql(EMPTY, name)
            self._free.append(name)

    @contextmanager
    def owned_database(self, password: str, rule: str) -> Iterator[str]:
        """A database of the user `owner`, who has to log in by this rule of pg_hba.conf, such as
        `local all owner peer map=m`; the map `m` knows root as the owner."""
        with self.database() as url:
            name = url.partition("@/")[2].partition("?")[0]
            self._sql(f"CREATE ROLE owner LOGIN PASSWORD '{password}'")
            self._sql(f"ALTER DATABASE {name} OWNER TO owner")
            self._sql("ALTER SCHEMA public OWNER TO owner", name)
            (self._folder / "data/pg_ident.conf").write_text("m root owner\n")
            (self._folder / "data/pg_hba.conf").write_text(f"local all postgres peer\n{rule}\n")
            self._sql("SELECT pg_reload_conf()")
            yield f"postgresql://owner@/{name}?host={self._folder}"

    def stop(self) -> None:
        """Immediate shutdown, as after a crash; `start` recovers."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(20)

    def start(self) -> None:
        argv = [str(self._bin / "postgres"), "-D", str(self._folder / "data")]
        argv += ["-k", str(self._folder)]
        argv += [word for key, value in self._settings.items() for word in ("-c", f"{key}={value}")]
        become = [f"--reuid={self._user}", f"--regid={self._user}", "--init-groups"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                tied([*(become if self._as() else []), *argv], "QUIT"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        wait_until(self._answers, lambda: (self._folder / "log").read_text(), 30.0)

    def __enter__(self) -> "Postgres":
        self._folder = Path(tempfile.mkdtemp(prefix="sentinel-postgres-"))
        shutil.chown(self._folder, self._user)
        self._do("initdb", "-D", str(self._folder / "data"), "--auth=trust", "--no-sync")
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        asked = self._run("pg_isready", "--quiet", "-h", str(self._folder))
        return asked.returncode == 0

    def _sql(self, statement: str, database: str = "postgres") -> None:
        self._do(
            "psql",
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            str(self._folder),
            "-d",
            database,
            "-c",
            statement,
        )

    def _do(self, program: str, *argv: str) -> None:
        done = self._run(program, *argv)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stderr.strip()}")

    def _run(self, program: str, *argv: str) -> subprocess.CompletedProcess[str]:
        command: Sequence[str] = [str(self._bin / program), *argv]
        return subprocess.run(
            command, capture_output=True, text=True, user=self._as(), cwd="/", check=False
        )

    def _as(self) -> str | None:
        """PostgreSQL refuses to run as root."""
        return self._user if os.geteuid() == 0 else None


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in path.parent.name.split("."))
