"""Infer the mixture of text that a vocabulary was trained on, given samples of its categories.

Training merges the pair with the highest count. So each merge implies that no other pair occurred
more often at that step: a linear inequality in the shares of the categories, for each step and each
other pair. The shares that violate these inequalities least are the solution of a linear program
(Hayase et al., arXiv 2407.16607). Most inequalities are redundant: the program starts without any,
and inequalities violated by its solution are added until none is violated or nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
        rounds: the number of linear programs solved.
        is_final: whether the shares have converged; False if the rounds did not suffice.
    """

    shares: dict[str, float]
    merges: int
    contradictions: int
    rounds: int
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
        is_final = program.solve(rounds, lambda done: bar.update("solve", done, rounds, "rounds"))
    shares = dict(zip(counts, program.shares.tolist(), strict=True))
    contradictions = int((program.slack > TOLERANCE_COUNT).sum())
    return InferredMixture(shares, len(first), contradictions, program.rounds, is_final)


class _Program:
    """A growing linear program that finds the shares with the smallest sum of slacks.

    Its variables are the share of each category, a slack for each step, and a slack for each pair
    that competes at some step: a pair that is more frequent in the samples than in the training
    text violates many steps, but is charged only once.
    """

    def __init__(self, history: _core.PairHistory, sizes: list[int]) -> None:
        texts = len(sizes)
        self._history = history
        self._scale = SCALE_BYTES / np.array(sizes, np.float64)
        self._merged = history.merged().reshape(-1, texts) * self._scale
        self.shares = np.full(texts, 1 / texts)
        self.slack = np.zeros(len(history))
        self._pair_slack: dict[int, float] = {}
        self._steps = np.empty(0, np.int64)
        self._pairs = np.empty(0, np.int64)
        #: For each inequality and category, the count of the merged pair minus that of its rival.
        self._margins = np.empty((0, texts))
        self.rounds = 0
        self._changes: list[float] = []  # the largest change of a share in each round
        self._costs: list[float] = []  # the sum of slacks after each round

    def solve(self, rounds: int, on_round: Callable[[int], object]) -> bool:
        """Add violated inequalities and solve again; False if the rounds do not suffice."""
        while self._add_violated():
            if self.rounds == rounds:
                return False
            self._solve()
            self.rounds += 1
            on_round(self.rounds)
            before, now = self._costs[:-ROUNDS_TO_SETTLE][-1:], self._costs[-1]
            change = max(self._changes[-ROUNDS_TO_SETTLE:])
            if before and change < MOST_SHARE_CHANGE and now - before[0] <= MOST_COST_GROWTH * now:
                return True
        return True

    def _add_violated(self) -> bool:
        slack = list(self._pair_slack.items())
        shares = self.shares * self._scale
        steps, pairs, counts = self._history.rivals(
            shares, self.slack, slack, RIVALS_PER_STEP, TOLERANCE_COUNT
        )
        counts = counts.reshape(len(steps), len(self.shares))
        margins = self._merged[steps] - counts * self._scale
        old = set(zip(self._steps.tolist(), self._pairs.tolist(), strict=True))
        places = zip(steps.tolist(), pairs.tolist(), strict=True)
        new = np.array([place not in old for place in places], bool)
        self._steps = np.concatenate([self._steps, steps[new]])
        self._pairs = np.concatenate([self._pairs, pairs[new]])
        self._margins = np.concatenate([self._margins, margins[new]])
        return bool(new.any())

    def _solve(self) -> None:
        from bytepair._internal.extras import scipy_optimize

        texts = len(self.shares)
        steps, step_of = np.unique(self._steps, return_inverse=True)
        pairs, pair_of = np.unique(self._pairs, return_inverse=True)
        size = texts + len(steps) + len(pairs)
        cost = np.ones(size)
        cost[:texts] = 0
        once = np.zeros((1, size))
        once[0, :texts] = 1
        solution = scipy_optimize.linprog(
            cost, self._matrix(texts + step_of, texts + len(steps) + pair_of, size),
            np.zeros(len(self._steps)), once, np.ones(1), bounds=(0, None), method="highs",
        )  # fmt: skip
        if solution.x is None:
            raise ArithmeticError(f"the linear program has no solution: {solution.message}")
        shares = np.clip(solution.x[:texts], 0, None)
        shares /= shares.sum()
        self._changes.append(float(abs(shares - self.shares).max()))
        self._costs.append(float(solution.fun))
        self.shares = shares
        self.slack[steps] = solution.x[texts : texts + len(steps)]
        of_pairs = solution.x[texts + len(steps) :].tolist()
        self._pair_slack = dict(zip(pairs.tolist(), of_pairs, strict=True))
        # Drop redundant inequalities to save time; they are added again if violated. Only while the
        # cost grows: otherwise the same programs could recur forever.
        before = self._costs[-2:-1]
        if before and self._costs[-1] > before[0] * (1 + LEAST_GROWTH) + TOLERANCE_COUNT:
            is_tight = solution.slack < MOST_MARGIN
            self._steps, self._pairs = self._steps[is_tight], self._pairs[is_tight]
            self._margins = self._margins[is_tight]

    def _matrix(self, step_of: NDArray[np.int64], pair_of: NDArray[np.int64], size: int) -> Any:
        """The inequalities `-margins · shares - slack of the step - slack of the pair <= 0`."""
        from bytepair._internal.extras import scipy_sparse

        rows, columns = np.nonzero(self._margins)
        every = np.arange(len(self._steps))
        values = np.concatenate([-self._margins[rows, columns], -np.ones(2 * len(every))])
        places = (
            np.concatenate([rows, every, every]), np.concatenate([columns, step_of, pair_of])
        )  # fmt: skip
        return scipy_sparse.csr_array((values, places), shape=(len(every), size))
