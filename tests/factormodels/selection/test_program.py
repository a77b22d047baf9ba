"""The integer program against enumeration, its ties, its limits and what it says of bad input."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from factormodels.selection import Program, SolverSettings, conflicts_of, solve
from factormodels.selection.enumeration import heaviest_set
from tests.factormodels.selection.cases import enumerated
from tests.refusals import refused

NO_TIME = SolverSettings(time_limit=1e-9)
"""Nothing is solved but components that are enumerated."""

PATIENT = SolverSettings(time_limit=120.0)
"""Far more than is needed, so that a busy machine cuts nothing short."""


def random_program(generator: random.Random, largest: int, smallest: int = 0) -> Program:
    n = generator.randint(smallest, largest)
    density = generator.random()
    kind = generator.choice(["uniform", "real", "few values"])
    weights = [1.0] * n
    if kind == "real":
        weights = [generator.uniform(-0.5, 3.0) for _ in range(n)]
    elif kind == "few values":
        weights = [generator.choice([-0.1, 0.0, 0.1, 0.2, 0.3, 1.0]) for _ in range(n)]
    conflicts = [(i, j) for i in range(n) for j in range(i) if generator.random() < density]
    return Program(
        weights=tuple(weights),
        conflicts=tuple(conflicts),
        faithful=tuple(generator.random() < generator.choice([0.2, 0.7]) for _ in range(n)),
        share=generator.choice([None, 0.0, 0.37, 0.5, 0.8, 1.0]),
    )


@pytest.mark.parametrize("batch", range(4))
def test_the_best_set_is_that_of_enumeration(batch: int) -> None:
    generator = random.Random(batch)
    for _ in range(100):
        program = random_program(generator, 18 if generator.random() < 0.1 else 11)
        solution = solve(program, PATIENT)
        assert solution.chosen == enumerated(program), program
        assert (solution.status, solution.gap) == ("optimal", 0.0)


def test_beyond_blocks_of_ties_the_earliest_of_many_equal_sets_is_chosen() -> None:
    # 40 pairs of equals in one component, too large to enumerate: 2^40 sets are heaviest, and one
    # is named. Each subclaim also excludes one of weight 0, which joins them.
    pairs = [(2 * k, 2 * k + 1) for k in range(40)]
    joined = [(i, 80) for i in range(80)]
    solution = solve(Program((1.0,) * 80 + (0.0,), tuple(pairs + joined)), PATIENT)
    assert solution.chosen == tuple(range(0, 80, 2))
    assert solution.status == "optimal"


def test_a_cycle_of_many_subclaims_is_decided_beyond_the_first_block() -> None:
    # Of the even and the odd members of an even cycle both are heaviest; the share excludes those
    # that begin earlier.
    n = 70
    cycle = tuple((i, (i + 1) % n) for i in range(n))
    faithful = tuple(i % 2 == 1 for i in range(n))
    assert solve(Program((1.0,) * n, cycle), PATIENT).chosen == tuple(range(0, n, 2))
    odd = solve(Program((1.0,) * n, cycle, faithful, 1.0), PATIENT)
    assert odd.chosen == tuple(range(1, n, 2))


@pytest.mark.parametrize("seed", range(4))
def test_enumeration_and_the_solver_name_the_same_set(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(seed)
    weights = tuple(generator.choice([0.1, 0.2, 0.3, 1.0]) for _ in range(26))
    conflicts = tuple((i, j) for i in range(26) for j in range(i) if generator.random() < 0.2)
    program = Program(weights, conflicts)
    enumerated_set = solve(program, PATIENT)
    monkeypatch.setattr("factormodels.selection.program.LARGEST", 0)
    solved_set = solve(program, PATIENT)
    assert enumerated_set == solved_set
    assert enumerated_set.status == "optimal"


def test_loading_the_solver_takes_nothing_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0

    def load(library: str) -> None:
        nonlocal seconds
        seconds += 60.0 if library == "scipy.optimize" else 0.0

    monkeypatch.setattr("factormodels.selection.program.import_module", load)
    monkeypatch.setattr("factormodels.selection.program.time.monotonic", lambda: seconds)
    monkeypatch.setattr("factormodels.selection.program.LARGEST", 0)
    conflicts = tuple((i, i + 1) for i in range(30))
    solution = solve(Program((1.0,) * 31, conflicts), SolverSettings(time_limit=30.0))
    assert seconds == 60.0
    assert (solution.status, len(solution.chosen)) == ("optimal", 16)


def test_the_solver_is_loaded_only_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr("factormodels.selection.program.import_module", loaded.append)
    path = ((0, 1), (1, 2), (2, 3))
    assert solve(Program((1.0, 2.0, 1.0, 2.0), path)).chosen == (1, 3)
    assert solve(Program((1.0, 2.0, 1.0, 2.0), path, (True,) * 4, 0.8)).chosen == (1, 3)
    assert not loaded
    assert solve(Program((1.0, 2.0, 1.0, 2.0), path, (True, False) * 2, 1.0)).chosen == (0, 2)
    assert loaded == ["scipy.optimize"]


def test_problems_too_large_to_enumerate_go_to_the_solver() -> None:
    # Sixty subclaims with conflicts at random: more subsets than the enumeration keeps.
    generator = random.Random(2)
    excluded = [0] * 60
    for i in range(60):
        for j in range(i):
            if generator.random() < 0.12:
                excluded[i] |= 1 << j
                excluded[j] |= 1 << i
    weights = [generator.uniform(1.0, 2.0) for _ in range(60)]
    assert heaviest_set(weights, excluded, 1e-9) is None


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_best_set_does_not_depend_on_the_unit_of_weights(scale: float) -> None:
    generator = random.Random(3)
    for _ in range(20):
        program = random_program(generator, 11)
        scaled = replace(program, weights=tuple(scale * w for w in program.weights))
        assert solve(scaled, PATIENT).chosen == solve(program, PATIENT).chosen


def test_search_cut_short_gives_a_legal_set_and_a_valid_gap() -> None:
    generator = random.Random(8)
    statuses = set()
    for _ in range(60):
        program = random_program(generator, 11)
        solution, best = solve(program, NO_TIME), solve(program, PATIENT)
        statuses.add(solution.status)
        chosen = set(solution.chosen)
        assert not any(chosen >= set(pair) for pair in program.conflicts), program
        if program.share is not None:
            faithful = sum((program.faithful or ())[i] for i in chosen)
            assert faithful >= Fraction(str(program.share)) * len(chosen), program
        assert solution.weight <= best.weight + 1e-9
        assert best.weight <= solution.bound + 1e-6, program
        if solution.status == "optimal":
            assert solution.chosen == best.chosen
    assert statuses == {"optimal", "limit"}


def test_a_long_chain_is_solved() -> None:
    # The chain is one component, and the search of it as deep as it is long.
    n = 300
    program = Program(
        tuple(float(3 + i % 7) for i in range(n)), tuple((i, i + 1) for i in range(n - 1))
    )
    taken, left = 0.0, 0.0
    for weight in program.weights:
        taken, left = left + weight, max(taken, left)
    solution = solve(program, SolverSettings(time_limit=60.0))
    assert (solution.status, solution.weight) == ("optimal", max(taken, left))


def test_ties_fall_to_fewer_subclaims_then_to_earlier_ones() -> None:
    square = ((0, 1), (1, 2), (2, 3), (0, 3))
    assert solve(Program((1.0,) * 4, square)).chosen == (0, 2)
    assert solve(Program((1.0, 1.0), ((0, 1),))).chosen == (0,)
    # 0.1 + 0.2 and 0.3 are equal as weights although they differ as binary numbers.
    assert solve(Program((0.1, 0.2, 0.3), ((0, 2), (1, 2)))).chosen == (2,)
    assert solve(Program((0.0, 1.0))).chosen == (1,)


def test_an_unfaithful_subclaim_is_carried_by_faithful_ones() -> None:
    weights, faithful = (5.0, 1.0, 1.0, 1.0, -0.25), (False, True, True, True, True)
    assert solve(Program(weights, (), faithful, 0.8)).chosen == (0, 1, 2, 3, 4)
    assert solve(Program(weights, (), faithful, 0.75)).chosen == (0, 1, 2, 3)
    assert solve(Program(weights, (), faithful, 0.81)).chosen == (1, 2, 3)


def clusters(n: int, k: int, n_conflicts: int, seed: int) -> list[tuple[int, int]]:
    """Paraphrases of k statements, and false entailments between any two until there are enough."""
    generator = random.Random(seed)
    statement = [generator.randrange(k) for _ in range(n)]
    pairs = {(i, j) for j in range(n) for i in range(j) if statement[i] == statement[j]}
    while len(pairs) < n_conflicts:
        i, j = sorted(generator.sample(range(n), 2))
        pairs.add((i, j))
    return sorted(pairs)


@pytest.mark.parametrize("weighted", [False, True])
def test_five_hundred_subclaims_with_ten_thousand_conflicts_are_solved(weighted: bool) -> None:
    generator = random.Random(0)
    weights = tuple(generator.uniform(0, 5) if weighted else 1.0 for _ in range(500))
    faithful = tuple(generator.random() < 0.8 for _ in range(500))
    for share in (None, 0.8):
        conflicts = clusters(500, 13, 10_000, 1)
        assert len(conflicts) == 10_000
        solution = solve(Program(weights, tuple(conflicts), faithful, share), PATIENT)
        assert (solution.status, solution.gap) == ("optimal", 0.0)


def test_without_structure_the_time_limit_gives_a_set_and_its_gap() -> None:
    conflicts = clusters(500, 500, 10_000, 1)
    program = Program((1.0,) * 500, tuple(conflicts), (True, False) * 250, 0.6)
    solution = solve(program, SolverSettings(time_limit=0.5))
    assert solution.status == "limit"
    assert solution.bound == pytest.approx(solution.weight + solution.gap)
    assert solution.gap > 0
    chosen = set(solution.chosen)
    assert not any(chosen >= {i, j} for i, j in conflicts)
    assert sum(i % 2 == 0 for i in chosen) >= 0.6 * len(chosen)


@pytest.mark.parametrize("seconds", [1e-9, 0.4])
def test_the_time_limit_leaves_a_faithful_set(seconds: float) -> None:
    generator = np.random.default_rng(0)
    n = 120
    program = Program(
        weights=tuple(generator.uniform(1, 4, n)),
        conflicts=tuple((i, j) for i in range(n) for j in range(i) if generator.random() < 0.1),
        faithful=tuple(generator.random(n) < 0.5),
        share=0.8,
    )
    solution = solve(program, SolverSettings(time_limit=seconds))
    assert solution.status == "limit"
    assert not solution.reason
    members = set(solution.chosen)
    assert not any({i, j} <= members for i, j in program.conflicts)
    faithful = program.faithful or ()
    assert sum(faithful[i] for i in members) >= 0.8 * len(members)
    # The greedy set without its lightest unfaithful subclaims weighs 57.2.
    assert 57.0 < solution.weight <= solution.bound


def test_an_empty_set_at_the_limit_is_not_said_to_be_proved() -> None:
    # The only faithful subclaim is worth less than what it excludes.
    program = Program((3.0, 3.0, 1.0), ((0, 2), (1, 2)), (False, False, True), share=1.0)
    assert solve(program, NO_TIME).reason == "no set was found within the time limit"
    assert solve(program, PATIENT).chosen == (2,)


def test_a_limit_that_cuts_several_components_short_bounds_their_sum() -> None:
    generator = random.Random(5)
    conflicts: set[tuple[int, int]] = set()
    for block in (0, 200):
        while len(conflicts) < 2000 * (1 + block // 200):
            i, j = sorted(generator.sample(range(block, block + 200), 2))
            conflicts.add((i, j))
    solution = solve(Program((1.0,) * 400, tuple(conflicts)), SolverSettings(time_limit=0.2))
    assert solution.components == (200, 200)
    assert solution.weight == len(solution.chosen)
    assert solution.bound >= solution.weight


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (Program(()), "no subclaims were given"),
        (Program((0.0, -1.0)), "no subclaim has a weight above 0"),
        (Program((1.0,), (), (False,), 0.5), "no set in which a share of 0.5 is faithful"),
    ],
)
def test_an_empty_selection_says_why(program: Program, reason: str) -> None:
    solution = solve(program)
    assert solution.chosen == ()
    assert solution.status == "optimal"
    assert reason in solution.reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": (1.0, float("nan"))}, "subclaim 1: its weight is nan"),
        ({"weights": (float("inf"),)}, "give a finite number"),
        ({"weights": (1.0,), "conflicts": ((0, 1),)}, "1 is not an index of one of 1 subclaim"),
        ({"weights": (1.0,), "conflicts": ((0, 0),)}, "conflicts with itself"),
        ({"weights": (1.0,), "faithful": ()}, "faithful has 0 values for 1"),
        ({"weights": (1.0,), "share": 0.5}, "unknown which are faithful"),
        ({"weights": (1.0,), "faithful": (True,), "share": 1.5}, "share of faithful"),
        ({"weights": (1.0, 1.0), "conflicts": ((0, True),)}, "True is not an index"),
    ],
)
def test_a_bad_program_is_named(arguments: dict[str, object], message: str) -> None:
    refused(message, Program, **arguments)


@pytest.mark.parametrize("value", [0, -1.0, True, float("nan"), "3"])
def test_a_bad_limit_is_named(value: object) -> None:
    refused("time_limit is", SolverSettings, time_limit=value)


def test_the_edge_rules_differ_on_one_way_entailment() -> None:
    entails = np.array([[1, 1, 1], [0, 1, 0], [1, 0, 1]], dtype=bool)
    assert conflicts_of(entails) == ((0, 1), (0, 2))
    assert conflicts_of(entails, "both") == ((0, 2),)
    refused("the edge rule 'none' is unknown", conflicts_of, entails, "none")
    refused("give a square matrix", conflicts_of, entails[:2])
