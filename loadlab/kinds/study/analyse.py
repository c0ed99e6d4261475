"""claims.json: every claim of a study or lesson, judged, and its published figures."""

from loadlab.kinds.study import sampling, source_figures
from loadlab.kinds.study.judge_claims import Control, Kind, judge
from loadlab.model import Claims, PlannedStudy, Summary


def build(summary: Summary, study: PlannedStudy) -> Claims:
    """Return claims.json: every claim of the study, judged by the cells of summary.json."""
    publication = study.publication
    cells = sampling.of_study(summary, study)
    controls = _controls(summary)
    kind: Kind = "lesson" if study.kind == "lesson" else "study"
    return Claims(
        run_id=summary.run_id,
        kind=kind,
        name=study.name,
        scale=study.scale,
        description=study.description,
        question=publication.question,
        source=publication.source,
        claims=[judge(claim, cells, kind, publication.figures, controls) for claim in study.claims],
        figures=[source_figures.beside(group, cells) for group in publication.figures],
        errata=[source_figures.erratum(erratum, cells) for erratum in publication.errata],
        unmeasured=sampling.unmeasured(summary, study),
    )


def _controls(summary: Summary) -> list[Control]:
    """Return the cells that have an A/A control, each with it."""
    measured = {cell.cell_id: cell for cell in summary.cells}
    pairs = dict.fromkeys((row.cell_id, row.control_id) for row in summary.noise_floor)
    return [(measured[a], measured[b]) for a, b in pairs if a in measured and b in measured]
