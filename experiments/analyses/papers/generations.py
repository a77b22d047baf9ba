"""Claims per response, and responses that decline, by model: Self-Known's table 1."""

from __future__ import annotations

from calibration.self_knowledge import filter_refusals
from experiments.analyses.context import AnalysisContext
from experiments.analyses.user_data import SourceName, load_by_model
from experiments.findings.artifacts import Artifacts
from experiments.findings.table import Table, columns_as, data_frame
from experiments.settings.keyed import Keyed
from experiments.study.data import StudyData
from factormodels.errors import InputError


class Settings(Keyed):
    """Settings of the analysis."""

    data: SourceName = "generations"
    """Name of the responses with their claims, by model."""


def run(settings: Settings, context: AnalysisContext) -> Artifacts:
    """The table of claims per response that answers, and of the share that declines."""
    loaded, remark = load_by_model(settings.data, context)
    frame = data_frame([_row(each, settings.data) for each in loaded])
    columns = columns_as(
        "model | responses:0 | claims:1 claims per response | filtered:1 declined, %"
    )
    caption = f"Self-Known, table 1: claims per response, and responses that decline. {remark}"
    note = "Claims are counted in responses that answer. A response declines in its own words."
    return Artifacts({"table-1": Table(frame, columns, caption, note=note)}, remarks=(remark,))


def _row(data: StudyData, source: str) -> dict[str, object]:
    texts = {graph.id: graph.response for graph in data.graphs if graph.response.strip()}
    if not texts:
        raise InputError(f"{source}: no response of {data.name} has a text; give responses")
    kept = set(filter_refusals(texts).kept)
    counts = [len(graph.atoms) for graph in data.graphs if graph.id in kept]
    return {
        "model": data.name.removeprefix(f"{source}: "),
        "responses": len(texts),
        "claims": sum(counts) / len(counts) if counts else float("nan"),
        "filtered": 100 * (1 - len(kept) / len(texts)),
    }
