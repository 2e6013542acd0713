"""The files that a job check reads: whether a file exists, and its last lines."""

from sentinel.checks.text_child import TextReader
from sentinel.user_files.files import UserFiles as UserFiles
from sentinel.user_files.whose import Whose


class JobFiles(UserFiles):
    """See user_files.files."""

    LATE = "does not answer"
    MAX_OUTPUT = 2**21
    reader = TextReader(in_child=False)
    """The reader that interprets texts. The service gives each run a reader with a child process.
    """

    def path_exists(self, path: str, whose: Whose) -> bool:
        """Whether the path exists. Links are followed. Raises CannotTell."""
        return self.file_status(path, whose) is not None
