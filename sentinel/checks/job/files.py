"""What a job check asks the file system for: whether a file is there, and its end."""

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decoded
from sentinel.core.text import shortened, visible
from sentinel.proc.files import Files as Bounded
from sentinel.proc.files import absent


class Files(Bounded):
    """See proc.files: what hangs is asked no more, and after eight nothing is."""

    LATE = "does not answer"
    MOST_STUCK = 8
    MOST_OUTPUT = 2**21

    def there(self, path: str) -> bool:
        """Whether anything is there, links followed. Raises CannotTell."""
        done = self.ask(["stat", "-L", "-c", "%F", "--", path], path)
        if not done.code or absent(done.err):
            return not done.code
        raise CannotTell(f"cannot look at {visible(path)}: {_one_line(done)}")

    def tail(self, path: str, size: int) -> str:
        """The last `size` bytes as text, or "" where there is no file. Raises CannotTell."""
        if not self.there(path):
            return ""
        done = self.ask(["tail", "-c", str(size), "--", path], path)
        if done.code:
            raise CannotTell(f"cannot read {visible(path)}: {_one_line(done)}")
        return decoded(done.out)


def _one_line(done: proc.Done) -> str:
    return shortened(visible(done.err.decode("utf-8", "backslashreplace").strip()), 200)
