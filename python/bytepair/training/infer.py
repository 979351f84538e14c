"""Infer the mixture of text that a vocabulary was trained on, given samples of its categories.

Training merges the pair with the highest count. So each merge implies that no other pair occurred
more often at that step: a linear inequality in the shares of the categories, for each step and each
other pair. The shares that violate these inequalities least are the solution of a linear program
(Hayase et al., arXiv 2407.16607). Most inequalities are redundant: the program starts without any,
and inequalities violated by its solution are added until none is violated or nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_whole
from bytepair._internal.progress import Bar, Callback
from bytepair.corpus.source import Reading
from bytepair.errors import CorpusError
from bytepair.tokenizer import Tokenizer
from bytepair.training.counting import CountOptions
from bytepair.training.options import Groups, check_groups, count_groups, splitting

#: Counts are scaled to occurrences per this many bytes of a sample, because solvers have absolute
#: tolerances and need numbers around 1.
SCALE_BYTES: Final = 1e6

#: A difference below this number of occurrences is not a violation.
TOLERANCE_COUNT: Final = 1e-5

#: How many violated inequalities are added per step of the vocabulary.
RIVALS_PER_STEP: Final = 2

#: An inequality with a larger margin is dropped from the next program.
MOST_MARGIN: Final = 1.0

#: Inequalities are dropped only while the cost grows by at least this fraction.
LEAST_GROWTH: Final = 1e-3

#: Convergence: within ROUNDS_TO_SETTLE no share changes by more than MOST_SHARE_CHANGE, and the sum
#: of slacks grows by at most the fraction MOST_COST_GROWTH.
MOST_SHARE_CHANGE: Final = 1e-3
MOST_COST_GROWTH: Final = 0.01
ROUNDS_TO_SETTLE: Final = 3

#: A pair with fewer occurrences in a sample is not compared with merges.
LEAST_COUNT: Final = 3


@dataclass(frozen=True)
class InferredMixture:
    """The result of `infer_mixture`.

    Attributes:
        shares: the share of each category in the bytes, by name; they add up to 1.
        merges: the number of merges used.
        contradictions: the number of merges that contradict the inferred mixture.
        is_final: whether the shares have converged; False if the rounds did not suffice.
    """

    shares: dict[str, float]
    merges: int
    contradictions: int
    is_final: bool

    def __str__(self) -> str:
        """The shares in decreasing order, and the number of merges used."""
        widest = max(map(len, self.shares))
        ordered = sorted(self.shares.items(), key=lambda item: -item[1])
        lines = [f"{name:<{widest}}  {share:7.2%}" for name, share in ordered]
        end = "" if self.is_final else "; not converged, more rounds may change this"
        last = f"from {self.merges:,} merges; {self.contradictions:,} of them contradict{end}"
        return "\n".join([*lines, last])


def infer_mixture(
    tokenizer: Tokenizer,
    sources: Groups,
    *,
    merges: int = 3000,
    rounds: int = 100,
    reading: Reading = Reading(),
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> InferredMixture:
    """Infer the mixture of text that a vocabulary was trained on.

    The samples must cover all categories of the training text: text of a missing category is
    attributed to the most similar one. Requires scipy (the extra `infer`).

    Args:
        tokenizer: any tokenizer whose `merges` are in the order of training.
        sources: a sample of each category by name: sources as in `bytepair.train`, or counts with
            the pattern of the tokenizer. A few megabytes each are enough.
        merges: use this many of the first merges; later ones are rarer and cost the same time.
        rounds: the maximum number of linear programs to solve.
        reading: which text of each sample is read; None as its split means "all".
        threads: as in `bytepair.train`.
        progress: as in `bytepair.train`; the stages are "count", "merge" and "solve".

    Raises:
        ArgumentError: if there are no samples by name, or `merges` or `rounds` is below 1.
        CorpusError: if a sample cannot be read, or has no text.
        CountsError: if counts have a different pattern, or a merge has parts that no earlier merge
            produces.
        ImportError: if scipy is not installed.

    Example:
        >>> import bytepair
        >>> files = [path for path in bytepair.sample.paths() if path.stem in ("de", "en")]
        >>> texts = {path.stem: path for path in files}
        >>> recipe = bytepair.training.Mixture({"en": 0.8, "de": 0.2})
        >>> tok = bytepair.train(texts, 500, recipe=recipe)
        >>> round(bytepair.training.infer_mixture(tok, texts).shares["en"], 1)
        0.8
    """
    check_whole("merges", merges, least=1)
    check_whole("rounds", rounds, least=1)
    from bytepair._internal.extras import scipy_optimize  # noqa: F401 - said before the work

    # Nothing is trained, so files are read as they are named.
    how = replace(reading, split=reading.split or "all")
    count = CountOptions(splitting(tokenizer), how, threads)
    groups = check_groups(sources, count, "infer_mixture")
    first = tokenizer.merges()[:merges]
    with Bar(progress) as bar:
        counts = count_groups(groups, count, bar)
        for name, sample in counts.items():
            if not sample.text_bytes:
                raise CorpusError(f"the sample {name!r} has no text", hint="check its path")
        history = _core.PairHistory(
            first, [sample.core for sample in counts.values()], least=LEAST_COUNT,
            on_progress=lambda done, total: bar.update("merge", done, total, "merges"),
        )  # fmt: skip
        program = _Program(history, [sample.text_bytes for sample in counts.values()])
        is_final = not program.add_violated()
        while not is_final and len(program.costs) < rounds:
            program.solve()
            bar.update("solve", len(program.costs), rounds, "rounds")
            is_final = program.has_settled or not program.add_violated()
    shares = dict(zip(counts, program.shares.tolist(), strict=True))
    contradictions = int((program.slack > TOLERANCE_COUNT).sum())
    return InferredMixture(shares, len(first), contradictions, is_final)


class _Program:
    """A growing linear program that finds the shares with the smallest sum of slacks.

    Its variables are the share of each category, a slack for each step, and a slack for each pair
    that competes at some step: a pair that is more frequent in the samples than in the training
    text violates many steps, but is charged only once.
    """

    def __init__(self, history: _core.PairHistory, sizes: list[int]) -> None:
        self._history = history
        self._scale = SCALE_BYTES / np.array(sizes, np.float64)
        self._merged = history.merged().reshape(-1, len(sizes)) * self._scale
        self.shares = np.full(len(sizes), 1 / len(sizes))
        self.slack = np.zeros(len(history))
        self._pair_slack: list[tuple[int, float]] = []
        self._places = np.empty(0, np.int64)  # of inequalities: the step, and in 32 bits the pair
        #: For each inequality and category, the count of the merged pair minus that of its rival.
        self._margins = np.empty((0, len(sizes)))
        self._changes: list[float] = []  # the largest change of a share in each round
        self.costs: list[float] = []  # the sum of slacks after each round

    def add_violated(self) -> bool:
        """Add the inequalities that the solution violates; False if there are no new ones."""
        steps, pairs, counts = self._history.rivals(
            self.shares * self._scale, self.slack, self._pair_slack, RIVALS_PER_STEP,
            TOLERANCE_COUNT,
        )  # fmt: skip
        places = steps.astype(np.int64) << 32 | pairs
        new = ~np.isin(places, self._places)
        merged = self._merged[steps]
        margins = merged - counts.reshape(merged.shape) * self._scale
        self._places = np.concatenate([self._places, places[new]])
        self._margins = np.concatenate([self._margins, margins[new]])
        return bool(new.any())

    def solve(self) -> None:
        """Solve the program with the present inequalities; drop redundant ones."""
        from bytepair._internal.extras import scipy_optimize, scipy_sparse

        def selecting(index: NDArray[np.intp]) -> Any:
            return scipy_sparse.csr_array((np.ones(len(index)), index, np.arange(len(index) + 1)))

        steps, step_of = np.unique(self._places >> 32, return_inverse=True)
        pairs, pair_of = np.unique(self._places & 0xFFFF_FFFF, return_inverse=True)
        # margins · shares + slack of the step + slack of the pair >= 0, and the shares add up to 1
        margins = scipy_sparse.csr_array(self._margins)
        matrix = scipy_sparse.hstack([margins, selecting(step_of), selecting(pair_of)])
        is_slack = np.arange(matrix.shape[1]) >= len(self.shares)
        solution = scipy_optimize.linprog(
            is_slack, -matrix, np.zeros(len(self._places)), [~is_slack], [1], bounds=(0, None),
            method="highs",
        )  # fmt: skip
        if solution.x is None:
            raise ArithmeticError(f"the linear program has no solution: {solution.message}")
        shares, of_steps, of_pairs = np.split(
            solution.x, [len(self.shares), len(self.shares) + len(steps)]
        )
        shares = np.clip(shares, 0, None) / np.clip(shares, 0, None).sum()
        self._changes.append(float(abs(shares - self.shares).max()))
        self.costs.append(float(solution.fun))
        self.shares, self.slack[steps] = shares, of_steps
        self._pair_slack = list(zip(pairs.tolist(), of_pairs.tolist(), strict=True))
        # Drop redundant inequalities to save time; they are added again if violated. Only while the
        # cost grows: otherwise the same programs could recur forever.
        before = self.costs[-2:-1]
        if before and self.costs[-1] > before[0] * (1 + LEAST_GROWTH) + TOLERANCE_COUNT:
            is_tight = solution.slack < MOST_MARGIN
            self._places, self._margins = self._places[is_tight], self._margins[is_tight]

    @property
    def has_settled(self) -> bool:
        """Whether the last rounds have changed little."""
        before, now = self.costs[:-ROUNDS_TO_SETTLE][-1:], self.costs[-1]
        change = max(self._changes[-ROUNDS_TO_SETTLE:])
        grown = now - before[0] if before else inf
        return change < MOST_SHARE_CHANGE and grown <= MOST_COST_GROWTH * now
