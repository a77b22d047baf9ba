"""The reliability diagram and the files it is saved in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from calibration import reliability_bins, reliability_diagram, save_figure
from calibration.curves import ReliabilityBins
from tests.calibration.drawn import legend_of
from tests.processes import run_python
from tests.refusals import refused


def bins_of(seed: int, n: int = 300, responses: bool = True) -> ReliabilityBins:
    generator = np.random.default_rng(seed)
    p = generator.random(n)
    ids = generator.integers(0, 30, n) if responses else None
    return reliability_bins(p, generator.random(n) < p, responses=ids, n_bootstrap=50)


def test_points_intervals_and_rug_are_those_of_the_bins() -> None:
    methods = {"exact": bins_of(0), "lbp": bins_of(1)}
    (panel,) = reliability_diagram(methods).axes
    diagonal = panel.lines[0]
    assert np.array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    rugs = [patch.get_data() for patch in panel.patches if isinstance(patch, StepPatch)]
    bars = np.array([values - baseline for values, _, baseline in rugs])
    containers: Any = panel.containers
    for drawn, heights, bins in zip(containers, bars, methods.values(), strict=True):
        points, _, (intervals,) = drawn.lines
        np.testing.assert_array_equal(
            points.get_xydata(), np.c_[bins.mean_predicted, bins.observed]
        )
        ends = np.array([segment[:, 1] for segment in intervals.get_segments()])
        np.testing.assert_allclose(ends, np.c_[bins.lower, bins.upper], atol=1e-15)
        # Heights are relative to the fullest bin.
        np.testing.assert_allclose(heights / heights.max(), bins.histogram / bins.histogram.max())


def test_shared_sentences_appear_once_and_others_for_each() -> None:
    shared = reliability_diagram({"exact": bins_of(0), "lbp": bins_of(1)})
    assert legend_of(shared.axes[0]) == ["exact", "lbp"]
    note = "300 claims. Bars: 95% intervals (bootstrap over 30 responses)."
    assert shared.caption == note
    naive = bins_of(1, n=1200, responses=False)
    mixed = reliability_diagram({"exact": bins_of(0), "lbp": naive})
    assert mixed.caption == "exact 300 claims; lbp 1,200 claims. Bars: intervals."
    alone = reliability_diagram({"lbp": naive}).caption
    assert alone == "1,200 claims. Bars: 95% intervals (Wilson, claims independent)."


def test_methods_whose_curves_coincide_are_drawn_once_and_named_together() -> None:
    p = np.random.default_rng(0).random(300)
    y = np.random.default_rng(1).random(300) < p
    near = np.clip(p + 0.004 * np.sin(np.arange(300)), 0, 1)
    methods = {
        name: reliability_bins(values, y, strategy="quantile")
        for name, values in {"exact": p, "lbp": near, "cavi": p**2}.items()
    }
    (panel,) = reliability_diagram(methods).axes
    assert legend_of(panel) == ["exact = lbp", "cavi"]


def test_more_than_three_curves_have_panels_which_share_their_axes() -> None:
    methods = {f"{view} {i}": bins_of(3 * n + i) for n, view in enumerate("ab") for i in range(2)}
    figure = reliability_diagram(methods, panels={name: name[0] for name in methods})
    assert [legend_of(panel) for panel in figure.axes] == [["a 0", "a 1"], ["b 0", "b 1"]]
    assert figure.get_size_inches()[0] == pytest.approx(6.9)
    by_threes = reliability_diagram({str(i): bins_of(i, n=40) for i in range(8)})
    sizes = [len(legend_of(panel)) for panel in by_threes.axes]
    assert sum(sizes) == 8
    assert max(sizes) <= 3
    for panel in by_threes.axes:
        looks = {(line.get_color(), line.get_marker()) for line in panel.lines[1:-1]}
        assert len(looks) == len(legend_of(panel))


def test_axes_are_named_and_a_unit_is_as_long_on_both() -> None:
    figure = reliability_diagram({f"method {i}": bins_of(i) for i in range(3)}, title="A title")
    (panel,) = figure.axes
    assert figure.get_supylabel() == "Observed frequency"
    assert figure.get_supxlabel() == "Predicted probability"
    assert figure.get_suptitle() == "A title"
    figure.draw_without_rendering()
    x, y = panel.transData.transform([[0, 0], [1, 1]]).T
    # In pixels at 100 per inch: equal to well under one.
    assert x[1] - x[0] == pytest.approx(y[1] - y[0], abs=0.01)


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    names = ["_hidden", "$x$ and $y", "wmb, i_bound=6"]
    methods = {name: bins_of(seed) for seed, name in enumerate(names)}
    figure = reliability_diagram(methods, title="cost $1, gain $2")
    assert legend_of(figure.axes[0]) == names
    save_figure(figure, tmp_path / "figure", ["png"])
    save_figure(reliability_diagram({"ключ": bins_of(0)}), tmp_path / "figure", ["png"])


def test_no_global_state_is_left_behind(tmp_path: Path) -> None:
    code = f"""
import sys
import matplotlib
matplotlib.rcParams["font.size"] = 31.0

def settings():
    # Asking for the backend would choose one, and load pyplot.
    return {{key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}}

before = settings()
from calibration import reliability_bins, reliability_diagram, save_figure
bins = reliability_bins([0.2, 0.7], [0, 1])
figure = reliability_diagram({{"exact": bins}})
save_figure(figure, {str(tmp_path / "figure")!r}, ["pdf", "png", "svg"])
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
assert figure.axes[0].yaxis.label.get_size() == 8.0
"""
    run_python(code)


def test_importing_calibration_loads_nothing_heavy() -> None:
    heavy = ["matplotlib", "scipy", "pandas", "sklearn", "statsmodels", "numba", "torch", "jax"]
    code = f"import sys, calibration; print([m for m in {heavy!r} if m in sys.modules])"
    assert run_python(code)[0].strip() == "[]"


def test_files_are_the_same_bytes_each_time_and_hold_no_time(tmp_path: Path) -> None:
    written = []
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        figure = reliability_diagram({"exact": bins_of(0)}, title="The same")
        paths = save_figure(
            figure,
            tmp_path / folder / "figure.v1",
            ["pdf", "png", "svg"],
            metadata={"Title": "Reliability", "study": "compare", "hash": "0f3a"},
        )
        assert [path.name for path in paths] == ["figure.v1.pdf", "figure.v1.png", "figure.v1.svg"]
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == sorted(
            path.name for path in paths
        )
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]
    pdf, _, svg = written[0]
    assert b"CreationDate" not in pdf
    assert b"<dc:date>" not in svg


def test_metadata_are_in_the_files(tmp_path: Path) -> None:
    from PIL import Image

    metadata = {"Title": "Reliability", "Keywords": "fr2", "study": "compare", "hash": "0f3a"}
    pdf, png, svg = save_figure(
        reliability_diagram({"exact": bins_of(0)}),
        tmp_path / "figure",
        ["pdf", "png", "svg"],
        metadata=metadata,
    )
    for path in (pdf, svg):
        content = path.read_bytes()
        assert b"Reliability" in content
        assert b"fr2; study=compare; hash=0f3a" in content
    with Image.open(png) as image:
        assert {key: image.info[key] for key in metadata} == metadata


def test_fonts_are_embedded_as_outlines_journals_accept(tmp_path: Path) -> None:
    (path,) = save_figure(reliability_diagram({"exact": bins_of(0)}), tmp_path / "f", ["pdf"])
    content = path.read_bytes()
    assert b"/Type3" not in content
    assert b"STIXGeneral" in content


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "figure.png"
    old.write_bytes(b"old")
    figure = reliability_diagram({"exact": bins_of(0)})
    figure.text(0.5, 0.5, "$\\nosuchcommand$")
    with pytest.raises(ValueError, match="nosuchcommand"):
        save_figure(figure, tmp_path / "figure", ["png"])
    assert old.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


@pytest.mark.parametrize(
    ("path", "settings", "message"),
    [
        ("figure", {"formats": ["eps"]}, r"formats is \['eps'\]; give some of pdf, png, svg"),
        ("figure", {"formats": "pdf"}, "formats is 'pdf'"),
        ("figure", {"formats": []}, r"formats is \[\]"),
        ("figure.pdf", {}, "the name ends in .pdf; leave the suffix out"),
        ("figure", {"metadata": {"seed": 3}}, r"metadata\['seed'\] is 3; give texts"),
        ("absent/figure", {}, "cannot be written"),
    ],
)
def test_bad_requests_are_named(
    path: str, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    figure = reliability_diagram({"exact": bins_of(0)})
    refused(message, save_figure, figure, tmp_path / path, **settings)
    assert not list(tmp_path.iterdir())
