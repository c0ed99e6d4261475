from loadlab.model import Disturbance, Reason, Validity
from loadlab.reasons.validity_reasons import FINDINGS, VOID
from loadlab.report.words import disturbances
from tests.unit import builders

DOWN = Reason(code="link_down", value=2, facts={"hosts": ["client"]})
KILLED = Reason(code="killed", value=3, facts={"hosts": ["server"]})


def failed(text: str) -> Validity:
    return Validity(valid=False, reasons=[Reason(code="failed", value=text)], findings=[])


def test_one_void_measurement_is_told_as_one() -> None:
    whole = disturbances.whole(
        Disturbance(measured=4, void=1, outside=0, repeats_s=9, repeats_max_s=9, withheld=1)
    )
    assert whole.startswith("1 of 4 measurements is void. ")
    assert whole.endswith("planned load); 1 was not repeated.")


def test_accidents_of_machines_are_told_with_their_remedy() -> None:
    repetitions = [
        builders.repetition(validity=validity)
        for validity in (
            builders.valid(),
            Validity(valid=False, reasons=[DOWN], findings=[]),
            builders.void("steal"),
            Validity(valid=False, reasons=[DOWN], findings=[]),
            Validity(valid=True, reasons=[], findings=[KILLED]),
            failed("server: was booted\nduring the load."),
            *[failed(f"client: error {number}") for number in (2, 3, 3, 4, 5, 6)],
        )
    ]
    cells = [builders.cell_summary("one", repetitions), builders.cell_summary("two", [])]
    assert disturbances.accidents(cells) == [
        "In 1 measurement: failed: server: was booted during the load.",
        "In 1 measurement: failed: client: error 2.",
        "In 2 measurements: failed: client: error 3.",
        "In 1 measurement: failed: client: error 4.",
        "In 2 measurements: other errors, which the report has.",
        "In 2 measurements: link_down: the test link was down 2 times on client. "
        f"{VOID['link_down'].remedy}.",
        "In 1 measurement: killed: the kernel of server killed a process 3 times because "
        f"memory was used up; journalctl -k names them. {FINDINGS['killed'].remedy}.",
    ]
    assert disturbances.accidents(cells[1:]) == []
