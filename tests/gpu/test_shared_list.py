"""The list of lemons that clusters share."""

import re

import pytest

from sentinel.gpu.shared_list import BadList, Listed, read, written

KEY = b"the key that both teams have"
LEMON = Listed(uuid="GPU-1", judged="lemon", serial="165", score=7.5, why="diag fail", seen=1)


def test_what_is_written_is_read() -> None:
    """With a key and without; a signed list can be read by who has no key."""
    for signed, checked in ((b"", b""), (KEY, KEY), (KEY, b"")):
        found = read(written("h100", 5, [LEMON], signed), checked)
        assert (found.cluster, found.at, found.gpus) == ("h100", 5, (LEMON,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (written("h100", 5, [LEMON]), "is not signed"),
        (written("h100", 5, [LEMON], b"another key, as long"), "another key"),
        (written("h100", 5, [LEMON], KEY).replace("GPU-1", "GPU-2"), "was changed"),
        (written("h100", 5, [LEMON], KEY).replace('"h100"', '"b200"'), "was changed"),
        (re.sub('(signature": ")', r"\1é", written("h100", 5, [LEMON], KEY)), "another key"),
        ("", "no list"),
        ("[]", "no list"),
        ('{"form": "sentinel-gpus-9", "cluster": "", "at": 1}', "sentinel-gpus-1"),
        (written("h100", 5, [LEMON]).replace('"lemon"', '"peach"'), "no list"),
    ],
)
def test_a_list_that_is_not_what_it_should_be(text: str, words: str) -> None:
    """Nothing of it is taken over."""
    with pytest.raises(BadList, match=words):
        read(text, KEY)
