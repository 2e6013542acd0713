"""Tables of nvidia-smi dmon, as they are printed and as a recorder keeps them."""

import pytest

from sentinel.gpu import dmon
from sentinel.gpu.errors import Unreadable

PLAIN = """\
# gpu    pwr  gtemp  mtemp     sm    mem  rxpci  txpci
# Idx      W      C      C      %      %   MB/s   MB/s
    0    652     61     70     99     40   1200     15
    1     71     38      -      0      0      -      -
# gpu    pwr  gtemp  mtemp     sm    mem  rxpci  txpci
# Idx      W      C      C      %      %   MB/s   MB/s
    0    650     61     70    100     41  21000     15
"""
DATED = """\
#Date       Time        gpu    pwr     sm
#YYYYMMDD   HH:MM:SS    Idx      W      %
 20261120   21:15:00      0    652     99
"""
COMMAS = "#gpu, pwr, sm\n#Idx, W, %\n0, 652, 99\n"


def test_columns_are_known_by_their_header() -> None:
    """It comes again and again; what a GPU does not support is left out."""
    first, second, third = dmon.parse(PLAIN)
    assert (first.gpu, first.values["pwr"], first.values["sm"]) == (0, 652, 99)
    assert second.gpu == 1
    assert set(second.values) == {"pwr", "gtemp", "sm", "mem"}
    assert third.values["rxpci"] == 21000


def test_times_and_commas() -> None:
    """As with -o DT, and as with --format csv."""
    (sample,) = dmon.parse(DATED)
    assert (sample.at, sample.gpu, sample.values) == (
        "20261120 21:15:00",
        0,
        {"pwr": 652, "sm": 99},
    )
    (sample,) = dmon.parse(COMMAS)
    assert sample.values == {"pwr": 652, "sm": 99}


def test_a_last_line_that_is_being_written_is_left_out() -> None:
    """The recorder is at work; any other line that does not fit is an error."""
    assert len(dmon.parse(PLAIN + "    1     7")) == 3
    with pytest.raises(Unreadable, match="line 4"):
        dmon.parse(PLAIN.replace("    1     71", "    1 oops 71", 1))


@pytest.mark.parametrize("text", ["", "0 1 2\n", "# Idx W\n", "No devices were found\n"])
def test_without_a_header_nothing_is_known(text: str) -> None:
    """Numbers without names are no samples."""
    with pytest.raises(Unreadable):
        dmon.parse(text)
