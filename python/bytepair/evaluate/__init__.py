"""Measure how good a tokenizer is, and compare it with well-known ones.

    >>> import bytepair
    >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
    >>> evaluation = bytepair.evaluate.measure(tok, against=[])
    >>> evaluation.compression[0].text, evaluation.languages[0].code
    ('news', 'en')

Everything is counted in bytes, and the bytes of a token are those of the vocabulary: nothing is
decoded to text and encoded again on the way.
"""

from bytepair.evaluate.comparison import Comparison, Difference, compare
from bytepair.evaluate.evaluation import (
    USUAL_RIVALS,
    Compression,
    Evaluation,
    Language,
    Sweep,
    by_language,
    compress,
    compression_curve,
    declarations,
    documents,
    gini,
    measure,
    parallel,
    samples,
    sweep,
)
from bytepair.evaluate.table import (
    Table,
    parity,
    summary,
    tables,
    to_json,
    to_markdown,
    to_terminal,
)
from bytepair.evaluate.vocabulary import (
    Use,
    VocabularyReport,
    bits_per_byte,
    glitch_candidates,
    inspect,
    nats_and_bytes,
    renyi_efficiency,
    save_token_bytes,
    split_tokens,
    use,
)
from bytepair.properties.tokens import token_lengths
from bytepair.tokenizer.pruning import unreachable

__all__ = [
    "USUAL_RIVALS", "Comparison", "Compression", "Difference", "Evaluation", "Language",
    "Sweep", "Table", "Use", "VocabularyReport", "bits_per_byte", "by_language", "compare",
    "compress", "compression_curve", "declarations", "documents", "gini", "glitch_candidates",
    "inspect", "measure", "nats_and_bytes", "parallel", "parity", "renyi_efficiency", "samples",
    "save_token_bytes", "split_tokens", "summary", "sweep", "tables", "to_json", "to_markdown",
    "to_terminal", "token_lengths", "unreachable", "use",
]  # fmt: skip
