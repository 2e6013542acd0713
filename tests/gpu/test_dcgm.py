"""dcgmi diag of every generation, and what each ending proves."""

import copy
import json
from dataclasses import replace

import pytest

from sentinel.gpu.advice import Advice
from sentinel.gpu.dcgm import Ran, Verdict, judge, parse, policy
from sentinel.gpu.errors import Unreadable
from tests.lab.gpus import PERSISTENCE, Failure, dcgmi_json, dcgmi_table

GENERATIONS = ["2", "3", "4", "table 3", "table 4"]


def document(generation: str, *failures: Failure) -> str:
    """One run of eight GPUs in the form of that generation."""
    if generation.startswith("table"):
        return dcgmi_table(failures, version=generation[-1])
    return dcgmi_json(generation, failures)


def verdict(text: str, code: int | None = 0, level: int = 2, **more: object) -> Verdict:
    return judge(Ran(out=text, code=code, level=level, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_all_passed_is_a_pass(generation: str) -> None:
    """Every test on every GPU."""
    found = verdict(document(generation))
    assert (found.outcome, found.blames) == ("pass", ())


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("bad", [[0], [5], [2, 7], list(range(8))])
@pytest.mark.parametrize("code", [0, 226, 205])
def test_a_hardware_failure_is_found_on_every_gpu(
    generation: str, bad: list[int], code: int
) -> None:
    """On the first, on one alone further down, on two; whatever the exit code claims."""
    found = verdict(document(generation, *(Failure(gpu=i) for i in bad)), code)
    assert (found.outcome, found.confirmed) == ("fail", True)
    assert [b.index for b in found.blames] == bad
    assert all("stuck bit" in b.text and b.kind == "hardware" for b in found.blames)
    assert found.advice is Advice.DIAGNOSE


@pytest.mark.parametrize("generation", ["2", "3", "4"])
def test_a_wrong_setting_is_no_broken_gpu(generation: str) -> None:
    """Persistence mode: neither pass nor fail, whatever severity this version gives it."""
    for severity in (2, 5):
        found = verdict(document(generation, replace(PERSISTENCE, severity=severity)), 226)
        assert (found.outcome, found.confirmed) == ("inconclusive", False)
        assert found.why.startswith("configuration: GPU 0: software: Persistence mode")


@pytest.mark.parametrize("generation", ["2", "3", "4"])
def test_a_wrong_setting_hides_no_failure(generation: str) -> None:
    """Both in one document: the hardware counts."""
    found = verdict(document(generation, PERSISTENCE, Failure(gpu=6)), 226)
    assert found.outcome == "fail"
    assert {b.index for b in found.blames if b.kind == "hardware"} == {6}


@pytest.mark.parametrize(
    ("error_id", "kind", "advice"),
    [
        (29, "config", Advice.MONITOR),
        (55, "config", Advice.MONITOR),
        (80, "hardware", Advice.REPLACE),
        (85, "hardware", Advice.RESET),
        (101, "unknown", Advice.CONTACT),
        (38, "unknown", Advice.CONTACT),
        (47, "environment", Advice.MONITOR),
        (51, "unknown", Advice.CONTACT),
        (112, "config", Advice.MONITOR),
        (117, "none", Advice.MONITOR),
        (118, "hardware", Advice.DIAGNOSE),
        (120, "hardware", Advice.REBOOT),
        (126, "hardware", Advice.REBOOT),
        (128, "hardware", Advice.RESET),
        (130, "none", Advice.MONITOR),
        (99_999, "unknown", Advice.CONTACT),
    ],
)
def test_a_number_decides_where_nothing_else_is_told(
    error_id: int, kind: str, advice: Advice
) -> None:
    """Numbers of the future are a failed test of unknown cause."""
    rule = policy.rule(error_id, "")
    assert (rule.kind, rule.advice) == (kind, advice)


def test_every_error_that_dcgm_knows_has_a_rule() -> None:
    """dcgmError_t of 4.6.0 has 1 to 132 (dcgmlib/dcgm_errors.h)."""
    assert set(policy.RULES) == set(range(1, 133))


def test_what_each_error_says_is_pinned() -> None:
    """A broken GPU that is called a setting goes on to break jobs: who moves a number here says why
    in the table's docstring."""
    kinds = {
        "config": {12, 18, 22, 23, 28, 29, 55, 60, 61, 72, 89, 90, 96, 108, 112, 122, 123, 124},
        "environment": {
            *(11, 17, 19, 21, 24, 25, 26, 27, 32, 37, 44, 47, 48, 49, 53, 56, 64, 67, 68, 69),
            *(73, 74, 75, 76, 77, 78, 82, 91, 92, 93, 94, 97),
        },
        "none": {117, 130},
        "unknown": {1, 2, 51, 54, 59, 65, 66, 33, 34, 35, 36, 38, 39, 101, 129},
    }
    kinds["hardware"] = set(range(1, 133)).difference(*kinds.values())
    for number, rule in policy.RULES.items():
        assert number in kinds[rule.kind], number
    advice = {
        Advice.MONITOR: {5, 102, 105},
        Advice.RESET: {6, 83, 84, 85, 125, 128, 131},
        Advice.REBOOT: {120, 126},
        Advice.REPLACE: {80},
    }
    advice[Advice.DIAGNOSE] = kinds["hardware"].difference(*advice.values())
    for number in kinds["hardware"]:
        assert number in advice[policy.RULES[number].advice], number


NEW = Failure(gpu=3, error_id=500, text="something new")


@pytest.mark.parametrize("words", ["something new", "GPU 3 has fallen off the bus"])
@pytest.mark.parametrize(("severity", "category"), [(2, 10), (4, 1), (6, 15), (3, 0), (2, 77)])
def test_a_number_that_is_not_known_proves_nothing(
    words: str, severity: int, category: int
) -> None:
    """Whatever stands beside it: it may be a new meaning. It is neither a drain nor a pass, and
    somebody hears of it."""
    new = replace(NEW, text=words, severity=severity, category=category)
    found = verdict(dcgmi_json("4", [new]), 226)
    assert (found.outcome, found.confirmed) == ("inconclusive", False)
    assert found.why == f"unknown fault: GPU 3: memory: {words}"
    assert [b.needs_a_person for b in found.blames] == [True]


def test_words_stand_for_a_number_that_is_not_told() -> None:
    """In tables and before 3.2.5 there is none; 0 to 2 say nothing."""
    for text in (
        "GPU 1 has fallen off the bus",
        "There were thermal violations",
        "Row remapping failed",
    ):
        assert policy.rule(None, text).kind == "hardware"
        assert policy.rule(0, text) == policy.rule(1, text) == policy.rule(None, text)


STRESS = ["diagnostic", "memory_bandwidth", "targeted_stress", "targeted_power"]


@pytest.mark.parametrize("generation", ["2", "3", "4"])
@pytest.mark.parametrize(
    ("level", "skipped", "words"),
    [
        (3, STRESS, "skipped: diagnostic ran on no GPU"),
        *((3, [name], f"skipped: {name} ran on no GPU") for name in STRESS),
        (2, ["memory"], "skipped: memory ran on no GPU"),
        (2, ["pcie"], "skipped: pcie ran on no GPU"),
        (2, ["software"], "skipped: software ran on no GPU"),
        (4, ["memtest"], "skipped: memtest ran on no GPU"),
    ],
)
def test_a_pass_takes_every_test_of_the_level(
    generation: str, level: int, skipped: list[str], words: str
) -> None:
    """A level whose stress tests were skipped proves what a lower level does."""
    assert verdict(dcgmi_json(generation, level=level), level=level).outcome == "pass"
    found = verdict(dcgmi_json(generation, level=level, skipped=skipped), level=level)
    assert (found.outcome, found.why.startswith(words)) == ("inconclusive", True), found.why


def test_a_level_of_which_tests_are_missing_is_no_pass() -> None:
    """What was run as level 2 is no level 3, whoever says so."""
    found = verdict(dcgmi_json("4", level=2), level=3)
    assert (found.outcome, found.why) == (
        "inconclusive",
        "diagnostic, a test of level 3, did not run",
    )


def test_what_dcgm_leaves_out_for_a_model_is_told_and_no_doubt() -> None:
    """diag-skus.yaml allows nvbandwidth and pulse_test on some GPUs only."""
    text = dcgmi_json("4", level=4, skipped=["nvbandwidth", "pulse_test"])
    found = verdict(text, level=4)
    assert (found.outcome, found.why) == (
        "pass",
        "8 tests passed, not run there: nvbandwidth, pulse_test",
    )


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("gone", [0, 6])
def test_each_test_of_the_level_ran_on_each_gpu(level: int, gone: int) -> None:
    """One GPU left out of one test, or listed and in no result at all."""
    whole = json.loads(dcgmi_json("4", level=level))
    for category in whole["DCGM Diagnostic"]["test_categories"]:
        for test in category["tests"]:
            other = copy.deepcopy(test["results"])
            test["results"][gone]["status"] = "Skip"
            found = verdict(json.dumps(whole), level=level)
            assert found.why == f"skipped: {test['name']} did not run on GPU {gone}"
            test["results"] = [r for r in other if r["entity_id"] != gone]
            assert verdict(json.dumps(whole), level=level).why == found.why
            test["results"] = other


def warned(
    error_id: int, text: str, status: str = "Pass", where: str = "result", severity: int = 2
) -> str:
    """A run in which nothing failed, with one warning in it."""
    whole = json.loads(dcgmi_json("4"))
    test = whole["DCGM Diagnostic"]["test_categories"][1]["tests"][0]
    entry = test["results"][5] if where == "result" else test["test_summary"]
    entry["status"] = status
    entry["warnings"] = [
        {
            "warning": text,
            "error_id": error_id,
            "error_severity": severity,
            "error_category": 10,
        }
    ]
    return json.dumps(whole)


@pytest.mark.parametrize(
    "error_id",
    [4, 32, 5, 29, 51],
)
@pytest.mark.parametrize("where", ["result", "summary"])
def test_a_pass_with_a_warning_is_none(error_id: int, where: str) -> None:
    """DCGM prints `Pass` above some warnings: the device, or the summary alone, has it. What passed
    did not fail, whatever the warning says; somebody hears of it."""
    found = verdict(warned(error_id, "it says", where=where), 205)
    assert found.outcome == "inconclusive"
    assert "it says" in found.why
    assert any(b.needs_a_person for b in found.blames) == (error_id != 32)


@pytest.mark.parametrize("code", [0, 205, 226])
def test_a_remark_above_a_pass_leaves_it_a_pass(code: int) -> None:
    """Severity MONITOR: "can perform workload". nvbandwidth of DCGM 4.5 remarks so that the copy
    engine was not idle, with a number of severity ISOLATE, for which dcgmi ends with 205
    (WaitForMemoryCopyIdle in NVBandwidthPlugin.cpp, GetFailureResult in dcgmi/Diag.cpp)."""
    text = "GPU 5 memory copy utilization (12%) did not reach idle threshold (<= 10%) in time."
    found = verdict(warned(38, text, severity=1), code)
    assert (found.outcome, found.confirmed) == ("pass", False)
    assert found.why == f"3 tests passed; it remarks: GPU 5: memory: {text}"
    assert verdict(warned(38, text, severity=3), code).outcome == "inconclusive"
    assert verdict(warned(500, text, severity=1), code).outcome == "inconclusive"


def test_a_copy_engine_that_was_not_idle_is_no_broken_gpu() -> None:
    """nvbandwidth says it with number 38 and severity ISOLATE; of an error counter the same number
    is a fault of the hardware."""
    busy = "The memory copy utilization for the GPU: 3 is greater than 10%."
    lines = "nvlink_flit_crc_error_count_total met or exceeded the threshold of 100 per second: 120"
    for text, outcome in ((busy, "inconclusive"), (lines, "fail")):
        failure = Failure(gpu=3, test="nvbandwidth", text=text, error_id=38)
        assert verdict(dcgmi_json("4", [failure], level=3), 226, level=3).outcome == outcome


@pytest.mark.parametrize(
    ("code", "outcome", "advice"),
    [
        (79, "fail", Advice.REBOOT),
        (48, "fail", Advice.DIAGNOSE),
        (119, "fail", Advice.RESET),
        (145, "inconclusive", Advice.IGNORE),
        (31, "inconclusive", Advice.IGNORE),
        (63, "inconclusive", Advice.IGNORE),
        (154, "inconclusive", Advice.IGNORE),
        (999, "inconclusive", Advice.IGNORE),
    ],
)
def test_the_xid_inside_decides(code: int, outcome: str, advice: Advice) -> None:
    """Number 101 wraps them all (CheckXIDs in nvvs/src/DcgmRecorder.cpp); before 3.3 a field did."""
    for text in (f"Detected XID {code} for GPU 0 Please consult", f"Detected {code} xid_errors"):
        failure = Failure(gpu=0, text=text, error_id=101, severity=4, category=5)
        found = verdict(dcgmi_json("4", [failure]), 226)
        assert (found.outcome, found.advice) == (outcome, advice)


def test_a_failed_test_of_nccl_is_no_broken_gpu() -> None:
    """It reports whatever it did not expect as 129, with severity RESET and category hardware
    (NcclTestsPlugin.cpp): a network that is not up says the same."""
    text = "Output missing expected result lines"
    failure = Failure(gpu=0, text=text, error_id=129, severity=6, category=15)
    assert verdict(dcgmi_json("4", [failure]), 226).outcome == "inconclusive"


def test_a_message_below_a_row_that_passed_belongs_to_it() -> None:
    """Also in a table: it is no failure."""
    text = dcgmi_table([Failure(gpu=0)], version="4").replace("Fail", "Pass")
    found = verdict(text, 226)
    assert found.outcome == "inconclusive"
    assert [(b.index, b.failed) for b in found.blames] == [(0, False)]


@pytest.mark.parametrize("error_id", [117, 130])
def test_a_test_that_was_skipped_or_is_to_run_again_is_no_fault(error_id: int) -> None:
    """Neither does it prove anything: memory belongs to the level."""
    for status in ("Pass", "Fail", "Skip"):
        found = verdict(warned(error_id, "later", status))
        assert (found.outcome, found.confirmed) == ("inconclusive", False)
        assert "later" in found.why


def test_a_document_of_a_future_major_version() -> None:
    """Of a known shape: its failures count, its passes prove nothing. Else: what it says failed."""
    new = dcgmi_json("4").replace('"4.2.3"', '"5.0.1"')
    assert verdict(new).outcome == "inconclusive"
    assert verdict(new).why.startswith("DCGM 5.0.1 is newer than what sentinel knows (2 to 4)")
    bad = dcgmi_json("4", [Failure(gpu=5)]).replace('"4.2.3"', '"5.0.1"')
    assert (verdict(bad).outcome, verdict(bad).confirmed) == ("fail", True)
    table = dcgmi_table(version="4").replace("4.2.3", "5.0.1")
    assert verdict(table).why.startswith("DCGM 5.0.1 is newer")
    whole = json.loads(bad)
    root = whole["DCGM Diagnostic"]
    for strange in (
        {**whole, "DCGM Diagnostic": {"test_categories": {"all": root["test_categories"]}}},
        {"DCGM Report": root, "metadata": whole["metadata"]},
        {"schema": {"version": "5.0.1"}, "DCGM Report": root},
    ):
        found = verdict(json.dumps(strange))
        assert found.outcome == "inconclusive"
        assert "DCGM 5.0.1" in found.why
        assert "stuck bit" in found.why


def test_serials_come_with_the_blame() -> None:
    """There is no UUID in a document; hidden serials are none."""
    assert verdict(dcgmi_json("4", [Failure(gpu=5)])).blames[0].serial == "1650000000005"
    assert verdict(dcgmi_json("3", [Failure(gpu=5)])).blames[0].serial == "1650000000005"
    hidden = dcgmi_json("4", [Failure(gpu=5)]).replace("1650000000005", "<<<NOT_SUPPORTED>>>")
    assert verdict(hidden).blames[0].serial == ""


def test_repeated_warnings_count_once() -> None:
    """Since 4.5 the summary of a test has all warnings of its GPUs again."""
    assert len(verdict(dcgmi_json("4", [Failure(gpu=5)])).blames) == 1


def test_a_summary_that_fails_alone_is_a_failure() -> None:
    """Also where there are no results at all."""
    whole = json.loads(dcgmi_json("4"))
    test = whole["DCGM Diagnostic"]["test_categories"][1]["tests"][0]
    test["test_summary"] = {
        "status": "Fail",
        "warnings": [{"warning": "Row remapping failed", "error_id": 80}],
    }
    assert verdict(json.dumps(whole)).advice is Advice.REPLACE
    del test["results"]
    assert verdict(json.dumps(whole)).outcome == "fail"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (235, "host engine"),
        (217, "busy"),
        (222, "busy"),
        (124, "too long"),
        (137, "killed"),
        (245, "time limit"),
        (1, "exit code 1"),
        (139, "dcgmi crashed: segmentation fault (exit code 139)"),
        (127, "exit code 127"),
        (199, "dcgmi ended with exit code 199"),
    ],
)
@pytest.mark.parametrize("out", ["", "something else\n"])
def test_what_did_not_run_proves_nothing(code: int, words: str, out: str) -> None:
    """No host engine, busy, ended from outside: inconclusive, and why."""
    found = verdict(out, code)
    assert found.outcome == "inconclusive"
    assert words in found.why


def test_a_lost_gpu_is_a_failure_by_its_exit_code() -> None:
    """238: there is no document then."""
    found = verdict("Error: GPU is lost", 238)
    assert (found.outcome, found.confirmed, found.advice) == ("fail", True, Advice.REBOOT)


def test_no_host_engine_in_words() -> None:
    """Whatever the exit code says."""
    text = "Error: unable to establish a connection to the specified host: localhost"
    assert "host engine" in verdict(text, 1).why


def test_a_run_that_failed_to_run() -> None:
    """A root with a runtime_error and nothing else."""
    text = '{"DCGM Diagnostic": {"runtime_error": "Diagnostic is already running", "version": "4.2.3"}}'
    found = verdict(text, 226)
    assert (found.outcome, found.why) == ("inconclusive", "busy: another diagnostic runs there")


def test_ended_from_outside_is_inconclusive_even_when_all_that_ran_passed() -> None:
    """And a failure that was seen before stays one."""
    assert verdict(dcgmi_json("4"), 0, late=True).outcome == "inconclusive"
    assert verdict(dcgmi_json("4", [Failure(gpu=1)]), 124, late=True).outcome == "fail"


def test_skipped_is_not_passed() -> None:
    """All skipped, all but the software, one GPU left out; at level 1 software is all there is."""
    none = dcgmi_json("4", skipped=["memory", "pcie"])
    assert verdict(none).outcome == "inconclusive"
    assert verdict(none, level=1).outcome == "pass"
    nothing = dcgmi_json("4", skipped=["software", "memory", "pcie"])
    assert verdict(nothing, level=1).why == "skipped: no test ran"


def test_a_gpu_that_was_not_tested_is_missed() -> None:
    """Seven passed where eight should be."""
    assert verdict(dcgmi_json("4", gpus=7), gpus=8).why == "only 7 of 8 GPUs were tested"
    assert verdict(dcgmi_json("4", gpus=8), gpus=8).outcome == "pass"


@pytest.mark.parametrize("code", [226, 205])
def test_an_exit_code_that_contradicts_is_believed(code: int) -> None:
    """It says that a test failed, and the document only passes: somebody is wrong."""
    found = verdict(dcgmi_json("4"), code)
    assert (found.outcome, found.confirmed) == ("inconclusive", False)
    assert found.why == f"exit code {code} says that a test failed, its output does not"


@pytest.mark.parametrize("word", ["Weird", "", None, 7])
def test_an_unknown_status_is_no_pass(word: object) -> None:
    """Whatever a later version calls it, and however many others passed."""
    whole = json.loads(dcgmi_json("4"))
    whole["DCGM Diagnostic"]["test_categories"][1]["tests"][0]["results"][0]["status"] = word
    found = verdict(json.dumps(whole))
    assert found.outcome == "inconclusive"
    assert found.why == "a test ended in a way that is not known"


def test_a_fault_of_the_hardware_is_told_although_its_test_was_skipped() -> None:
    """What did not run did not fail; what was skipped for another reason is no fault."""
    found = verdict(warned(80, "Row remapping failed", "Skip"))
    assert found.outcome == "inconclusive"
    assert [b.needs_a_person for b in found.blames] == [True]
    assert verdict(warned(55, "ECC is disabled", "Skip")).blames == ()


def test_a_test_that_failed_without_a_word_is_told_and_proves_nothing() -> None:
    """On one device it is named alone, on several they are counted."""
    whole = json.loads(dcgmi_json("4"))
    results = whole["DCGM Diagnostic"]["test_categories"][1]["tests"][0]["results"]
    results[0]["status"] = "Fail"
    found = verdict(json.dumps(whole))
    assert (found.outcome, found.blames[0].needs_a_person) == ("inconclusive", True)
    assert found.why == "unknown fault: GPU 0: memory: the test failed, without a word"
    results[2]["status"] = "Fail"
    assert verdict(json.dumps(whole)).why == f"{found.why} (and 1 more)"


def test_each_exit_code_has_its_words() -> None:
    """As dcgmReturn_t has them (dcgmlib/dcgm_structs.h): 256 minus its number."""
    told = {code: verdict("", code).why for code in range(256)}
    named = {code: why for code, why in told.items() if "exit code" not in why}
    assert {
        code: why.partition(":")[0] for code, why in named.items() if code not in (0, 205, 226)
    } == {
        124: "it was ended for taking too long",
        137: "it was killed",
        143: "it was ended",
        198: "there is no such test",
        202: "DCGM is paused",
        203: "its worker was killed",
        204: "its worker (nvvs) is not installed",
        217: "busy",
        222: "busy",
        235: "no host engine (nv-hostengine) answers",
        238: "a GPU is lost (it does not answer any more)",
        242: "it has no data",
        245: "it ran into its own time limit",
        254: "it met an exception",
        255: "it refused its parameters",
    }


@pytest.mark.parametrize("generation", ["2", "3", "4"])
def test_text_around_the_json_and_several_documents(generation: str) -> None:
    """Warnings before and after; a failure in any of them counts; iterations are unwrapped."""
    good, bad = dcgmi_json(generation), dcgmi_json(generation, [Failure(gpu=1)])
    noisy = f"WARNING: {{this}} should not happen\n{good}\nand {{more}}\n"
    assert verdict(noisy).outcome == "pass"
    assert verdict(good + "\n" + bad).outcome == "fail"
    wrapped = '{"iterations": [' + good + "," + bad + '], "Overall Result": "Fail"}'
    assert verdict(wrapped).outcome == "fail"


def test_nulls_are_passed_over() -> None:
    """DCGM 3 leaves holes in its lists."""
    whole = json.loads(dcgmi_json("3", [Failure(gpu=2)]))
    categories = whole["DCGM GPU Diagnostic"]["test_categories"]
    categories.insert(0, None)
    categories[1]["tests"].append(None)
    assert verdict(json.dumps(whole)).outcome == "fail"


def test_a_table_cut_short_is_no_pass() -> None:
    """But a failure in the part that is there is one."""
    text = dcgmi_table()
    assert verdict(text[: text.rindex("+--")]).outcome == "inconclusive"
    failing = dcgmi_table([Failure(gpu=0, test="pcie")])
    cut = failing[: failing.index("+-----  Hardware")]
    assert verdict(cut).outcome == "fail"


def test_messages_of_a_table_are_joined_across_their_lines() -> None:
    """They are cut every 45 characters, within words."""
    text = "Thermal violations totaling 13.3 seconds started at 9.7 seconds into the test."
    found = verdict(dcgmi_table([Failure(gpu=0, text=text)]))
    assert found.blames[0].text == f"GPU 0 {text}"


def test_each_message_of_a_table_is_told_of_the_gpu_that_it_names() -> None:
    """To DCGM 3 one row has all that failed, and all messages stand below; GPU 0 is not to blame for
    what is said of GPU 3, nor without a word for what is said of itself below a row of the skipped."""
    heat, memory = "Thermal violations totaling 13.3 seconds.", "Memory error: a stuck bit."
    failures = [Failure(gpu=0, text=heat), Failure(gpu=3, text=memory)]
    text = dcgmi_table(failures)
    row = next(line for line in text.splitlines() if "Fail - GPUs: 0, 3" in line)
    skipped = text.replace(row, row + "\n" + row.replace("Fail - GPUs: 0, 3", "Skip - GPUs: 1, 2"))
    for table in (text, skipped):
        found = [(b.index, b.text) for b in verdict(table, 226).blames]
        assert found == [(0, f"GPU 0 {heat}"), (3, f"GPU 3 {memory}")]


def test_a_gpu_that_failed_and_is_not_spoken_of_is_blamed_too() -> None:
    """Of two in a row, with a message about one."""
    text = dcgmi_table([Failure(gpu=0), Failure(gpu=3)])
    silent = "\n".join(line for line in text.splitlines() if "GPU 3 " not in line)
    found = verdict(silent, 226)
    assert [b.index for b in found.blames] == [0, 3]
    assert found.blames[1].text == "the test failed, without a word"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("'system not yet initialized'", "config"),
        ("'CUDA driver version is insufficient for CUDA runtime version'", "config"),
        ("'all CUDA-capable devices are busy or unavailable'", "environment"),
        ("'out of memory'", "environment"),
        ("'uncorrectable ECC error encountered'", "hardware"),
        ("'unspecified launch failure'", "unknown"),
    ],
)
def test_a_call_to_cuda_that_failed_is_judged_by_what_cuda_says(words: str, kind: str) -> None:
    """With DCGM's number for such calls and in a table, which has none: a fabric manager that does not
    run is said to be an error of each GPU, and is a setting of the node."""
    text = f"Error using CUDA API cuInit {words}. Check DCGM and system logs for errors. Reset GPU."
    failures = [Failure(gpu=i, error_id=51, text=text) for i in range(8)]
    for document in (dcgmi_json("4", failures), dcgmi_table(failures)):
        blames = verdict(document, 226).blames
        assert [(b.index, b.kind) for b in blames] == [(i, kind) for i in range(8)]


def test_an_internal_error_of_the_diagnostic_is_no_broken_gpu() -> None:
    """Met with a helper program of DCGM 4.4 that does not run on older GPUs."""
    text = "There was an internal error during the test: 'A child process exited with status 1'"
    assert verdict(dcgmi_table([Failure(gpu=2, text=text)]), 226).outcome == "inconclusive"


@pytest.mark.parametrize("generation", ["2", "3", "4"])
def test_truncated_documents_are_unreadable_everywhere(generation: str) -> None:
    """Wherever the pipe broke: never a pass, and never another error."""
    text = dcgmi_json(generation)
    for end in range(0, len(text) - 2, 97):
        assert verdict(text[:end]).outcome == "inconclusive"
    with pytest.raises(Unreadable):
        parse(text[:-2])


def test_ten_megabytes_of_noise() -> None:
    """Read once, believed not at all."""
    noise = '{"DCGM" [ | x \n' * 700_000
    assert verdict(noise).outcome == "inconclusive"
    assert verdict(noise + dcgmi_json("4", [Failure(gpu=1)])).outcome != "pass"


def test_a_key_that_comes_twice_is_refused() -> None:
    """The second could hide the first."""
    text = '{"DCGM Diagnostic": {"test_categories": []}, "DCGM Diagnostic": {}}'
    with pytest.raises(Unreadable, match="twice"):
        parse(text)
