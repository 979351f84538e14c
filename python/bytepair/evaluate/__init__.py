"""Measure how good a tokenizer is, and compare it with well-known ones.

    >>> import bytepair
    >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
    >>> evaluation = bytepair.evaluate.measure(tok, against=[])
    >>> evaluation.compression[0].text, evaluation.languages[0].code
    ('news', 'en')

Everything is counted in bytes, and the bytes of a token are those of the vocabulary: nothing is
decoded to text and encoded again on the way.

The files: `texts` (what is encoded), `compression` (tokens for each text), `languages` (sixty of
them, on a parallel text), `parallel` (a parallel text of one's own), `vocabulary` (what is in it
and what is of use), `sizes` (all sizes from one training), `bits` (losses per byte of text),
`evaluation` (all of it at once), `table` (to read); and `comparison`, `sides` and `reasons` (where
two tokenizers differ, and why).
"""

from bytepair.evaluate.bits import bits_per_byte, nats_and_bytes, save_token_bytes
from bytepair.evaluate.comparison import Comparison, Difference, compare
from bytepair.evaluate.compression import Compression, compress
from bytepair.evaluate.evaluation import USUAL_RIVALS, Evaluation, measure
from bytepair.evaluate.languages import Language, by_language
from bytepair.evaluate.parallel import ParallelText, gini, measure_parallel
from bytepair.evaluate.sizes import Sweep, compression_curve, sweep
from bytepair.evaluate.table import Cell, Table, summary, tables, to_json, to_markdown
from bytepair.evaluate.terminal import to_terminal
from bytepair.evaluate.texts import declarations, documents, samples
from bytepair.evaluate.vocabulary import (
    Use,
    VocabularyReport,
    inspect,
    renyi_efficiency,
    unreachable,
    use,
)
from bytepair.properties.tokens import token_lengths

__all__ = [
    "USUAL_RIVALS",
    "Cell",
    "Comparison",
    "Compression",
    "Difference",
    "Evaluation",
    "Language",
    "ParallelText",
    "Sweep",
    "Table",
    "Use",
    "VocabularyReport",
    "bits_per_byte",
    "by_language",
    "compare",
    "compress",
    "compression_curve",
    "declarations",
    "documents",
    "gini",
    "inspect",
    "measure",
    "measure_parallel",
    "nats_and_bytes",
    "renyi_efficiency",
    "samples",
    "save_token_bytes",
    "summary",
    "sweep",
    "tables",
    "to_json",
    "to_markdown",
    "to_terminal",
    "token_lengths",
    "unreachable",
    "use",
]
