"""A key that has another name now is still read."""

from msgspec import Struct

from sentinel.config.convert import FAILED, SettingsConverter
from sentinel.config.nodes import nodes_from_data
from sentinel.config.problems import ProblemCollector
from sentinel.config.renamed import RENAMED_KEYS, RenamedKey
from sentinel.config.sources import ConfigSources


class Wheel(Struct, frozen=True, kw_only=True):
    """As the settings of a kind."""

    spokes: int
    name: str = ""


RENAMED = (
    RenamedKey("Wheel", "rods", "spokes", "0.2.0"),
    RenamedKey("Wheel", "bell", "", "0.2.0"),
)


def read(**keys: object) -> tuple[object, list[str], str]:
    """The object, the warnings, and the errors."""
    collector = ProblemCollector("file")
    converter = SettingsConverter(collector, ConfigSources({}), RENAMED)
    found = converter.convert_node(nodes_from_data(keys), Wheel, ("wheel",))
    errors = ""
    try:
        collector.raise_if_errors()
    except Exception as error:
        errors = str(error)
    return found, [str(w) for w in collector.list_warnings()], errors


def test_the_old_name_is_read_with_a_warning() -> None:
    assert read(rods=32) == (
        Wheel(spokes=32),
        ["file: wheel.rods: is called spokes since 0.2.0; rename it"],
        "",
    )


def test_the_new_name_is_read_without_one() -> None:
    assert read(spokes=32) == (Wheel(spokes=32), [], "")


def test_a_key_that_ended_is_accepted_with_a_warning() -> None:
    """Whatever its value is."""
    warned = ["file: wheel.bell: does nothing since 0.2.0; remove it"]
    assert read(spokes=32, bell=[1]) == (Wheel(spokes=32), warned, "")


def test_both_names_are_an_error() -> None:
    """Nobody can tell which of them is meant."""
    found, _, errors = read(rods=32, spokes=36)
    assert "wheel.rods: is the old name of spokes, which is there too" in errors
    assert found is FAILED or isinstance(found, Wheel)


def test_each_row_leads_to_a_key_that_exists() -> None:
    """A row that is left over would read what nothing asks for."""
    assert len({(row.kind, row.old) for row in RENAMED_KEYS}) == len(RENAMED_KEYS)
