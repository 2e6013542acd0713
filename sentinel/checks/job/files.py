"""What a job check asks the file system for: whether a file is there, and its end."""

from sentinel.user_files.files import UserFiles as UserFiles
from sentinel.user_files.whose import Whose


class JobFiles(UserFiles):
    """See user_files.files: what hangs is asked no more, and after eight nothing is."""

    LATE = "does not answer"
    MOST_STUCK = 8
    MAX_OUTPUT = 2**21

    def path_exists(self, path: str, whose: Whose) -> bool:
        """Whether anything is there, links followed. Raises CannotTell."""
        return self.file_status(path, whose) is not None
