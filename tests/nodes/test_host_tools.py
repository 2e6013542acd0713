"""What chronyc, timedatectl, nvme and smartctl print, whole, as real programs and public reports show it.

The expectations were written before the first run."""

import shutil

import pytest

from sentinel.core.host_parts import ClockSync
from sentinel.nodes.probe import ProbeRequest, Unread
from tests.nodes.test_script import Host, host

__all__ = ["host"]
GITHUB = "https://github.com/"

TRACKING = """\
Reference ID    : {source}
Stratum         : {stratum}
Ref time (UTC)  : Sat Nov 28 06:57:22 2026
System time     : {offset} of NTP time
Last offset     : +0.000000000 seconds
RMS offset      : 0.000803415 seconds
Frequency       : 18.484 ppm slow
Residual freq   : -0.085 ppm
Skew            : 1.881 ppm
Root delay      : 0.011188857 seconds
Root dispersion : 0.001274664 seconds
Update interval : 129.2 seconds
Leap status     : {leap}
"""
NO_DAEMON = "echo '506 Cannot talk to daemon'; exit 1"  # chrony 4.3, run here
NO_SYSTEMD = (  # systemd 252, run here; microsoft/WSL issue 6739
    'echo "System has not been booted with systemd as init system (PID 1). Can\'t operate." >&2;'
    " echo 'Failed to connect to bus: Host is down' >&2; exit 1"
)
STATUS = """\
               Local time: Sat 2024-08-31 20:14:16 EDT
           Universal time: Sun 2024-09-01 00:14:16 UTC
                 RTC time: Sun 2024-09-01 00:13:59
                Time zone: America/New_York (EDT, -0400)
{words}
          RTC in local TZ: no
"""


def _track(source: str, stratum: int, offset: str, leap: str) -> str:
    text = TRACKING.format(source=source, stratum=stratum, offset=offset, leap=leap)
    return f"cat <<'END'\n{text}END"


def _status(words: str) -> str:
    return f"cat <<'END'\n{STATUS.format(words=words)}END"


CLOCKS: "dict[str, tuple[str, str, ClockSync | str]]" = {
    # chrony 4.3 without a source, run here
    "unsynchronised": (_track("00000000 ()", 0, "0.000000000 seconds fast", "Not synchronised"), "exit 9", ClockSync(word="Not synchronised", offset=0.0)),
    # chrony 4.3 with `local stratum 8`, run here
    "local": (_track("7F7F0101 ()", 8, "0.000000000 seconds fast", "Normal"), "exit 9", ClockSync(word="Normal", offset=0.0)),
    # rockstor/rockstor-core issue 2098
    "slow": (_track("55C7D664 (85.199.214.100)", 2, "0.000052616 seconds slow", "Normal"), "exit 9", ClockSync(word="Normal", offset=-0.000052616)),
    # kernelkit/infix issue 1458 prints wider columns
    "wide": ("printf 'System time         : 0.000025 seconds fast of NTP time\\nLeap status         : Normal\\n'", "exit 9", ClockSync(word="Normal", offset=0.000025)),
    # tens of seconds off
    "far": (_track("D9723B42 (192.0.2.1)", 3, "37.104922771 seconds slow", "Normal"), "exit 9", ClockSync(word="Normal", offset=-37.104922771)),
    "leap": (_track("B07E56F7 (192.0.2.1)", 3, "0.000024075 seconds fast", "Insert second"), "exit 9", ClockSync(word="Insert second", offset=0.000024075)),
    # balena-os/meta-balena issue 1852
    "balena": (NO_DAEMON, _status("System clock synchronized: no\n              NTP service: n/a"), ClockSync(word="no")),
    # systemd/systemd issue 34220
    "timesyncd": ("exit 127", _status("System clock synchronized: no\n              NTP service: active"), ClockSync(word="no")),
    # Ubuntu 18.04, systemd 237
    "237": ("exit 127", _status("      System clock synchronized: yes\nsystemd-timesyncd.service active: yes"), ClockSync(word="yes")),
    # CentOS 7, systemd 219
    "219": ("exit 127", _status("     NTP enabled: yes\nNTP synchronized: yes"), ClockSync(word="yes")),
    # chrony is installed, and its daemon is down: somebody has to look
    "down": (NO_DAEMON, NO_SYSTEMD, "failed"),
    # a node without systemd and chrony cannot tell, and nobody has to look
    "neither": ("", NO_SYSTEMD, "missing"),
    # systemd runs and its bus does not answer
    "bus": ("", "echo 'Failed to query server: Connection timed out' >&2; exit 1", "failed"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOCKS)
def test_clocks(host: Host, name: str) -> None:
    """In step, out of step, not known, or nobody there to ask."""
    chronyc, timedatectl, right = CLOCKS[name]
    if not chronyc and shutil.which("chronyc"):
        pytest.skip("this machine has the program")
    if chronyc:
        host.tool("chronyc", chronyc)
    host.tool("timedatectl", timedatectl)
    if timedatectl != NO_SYSTEMD:
        (host.folder / "run/systemd/system").mkdir(parents=True)
    told = host.probe(ProbeRequest(parts=("clock",)), run=str(host.folder / "run")).clock
    assert (told.kind if isinstance(told, Unread) else told) == right


NVME_1 = """\
Smart Log for NVME device:nvme0 namespace-id:ffffffff
critical_warning                        : {bits}
temperature                             : 42 C (315 Kelvin)
available_spare                         : 100%
available_spare_threshold               : 10%
percentage_used                         : 3%
endurance group critical warning summary: 0
data_units_read                         : 201,526,305
Critical Composite Temperature Time     : 0
"""
SMARTCTL = """\
smartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.44] (local build)
Copyright (C) 2002-22, Bruce Allen, Christian Franke, www.smartmontools.org

=== START OF SMART DATA SECTION ===
{text}
Temperature:                        40 Celsius
Available Spare:                    100%
Warning  Comp. Temperature Time:    0
Critical Comp. Temperature Time:    0
"""
DRIVES: "dict[str, tuple[str, str, int | None]]" = {
    # linux-nvme/nvme-cli issue 1037
    "nvme": ("nvme", NVME_1.format(bits="0"), 0),
    "nvme worn": ("nvme", NVME_1.format(bits="0x4"), 4),
    # nvme-cli 2.3, run here
    "nvme gone": ("nvme", "/dev/nvme0: No such file or directory\n", None),
    "nvme refuses": ("nvme", "NVMe status: Invalid Log Page: The log page indicated is invalid(0x4109)\n", None),
    # v-zhuravlev/zbx-smartctl issue 129
    "smartctl": ("smartctl", SMARTCTL.format(text="SMART/Health Information (NVMe Log 0x02)\nCritical Warning:                   0x00"), 0),
    # nix-community/infra issue 746: 7.3 failed, worn out
    "smartctl worn": ("smartctl", SMARTCTL.format(text="SMART/Health Information (NVMe Log 0x02)\nCritical Warning:                   0x04"), 4),
    # smartmontools/smartmontools issue 537: narrower columns
    "smartctl narrow": ("smartctl", SMARTCTL.format(text="SMART/Health Information (NVMe Log 0x02)\nCritical Warning:              0x04"), 4),
    # 7.5 names the name space
    "smartctl 7.5": ("smartctl", SMARTCTL.format(text="SMART/Health Information (NVMe Log 0x02, NSID 0xffffffff)\nCritical Warning:                   0x01"), 1),
    # smartctl 7.3, run here
    "smartctl gone": ("smartctl", SMARTCTL.partition("===")[0] + "Smartctl open device: /dev/nvme0 failed: No such device\n", None),
    "smartctl refuses": ("smartctl", SMARTCTL.format(text="Read NVMe SMART/Health Information failed: NVMe Status 0x4002"), None),
}  # fmt: skip


@pytest.mark.root
@pytest.mark.parametrize("name", DRIVES)
def test_drives(host: Host, name: str) -> None:
    """What the drive warns of, by whichever tool; None where it tells nothing."""
    tool, text, right = DRIVES[name]
    if tool == "smartctl" and shutil.which("nvme"):
        pytest.skip("this machine has the other program")
    drive = host.folder / "sys/class/nvme/nvme0"
    drive.mkdir(parents=True)
    (drive / "transport").write_text("pcie\n")
    host.tool(tool, f"cat <<'END'\n{text}END\nexit 4")
    probe = host.probe(ProbeRequest(parts=("smart",)), sys=str(host.folder / "sys"))
    assert probe.smart == {"nvme0": right}
