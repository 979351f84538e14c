"""Differential fuzzing of `tokenizer.json` against the library `tokenizers`; not run by pytest.

    python tests/fuzz_text_rules.py --seconds 3600 --seed 1

Each document is random over all supported forms (`json_documents`). The first differences are
printed with their seed, by which `--seed N --documents 1` repeats them. Documents that we refuse
are counted by the reason.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import json_documents
from against_tokenizers import differences
from bytepair import errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--documents", type=int, default=sys.maxsize)
    parser.add_argument("--texts", type=int, default=12)
    parser.add_argument(
        "--most", type=int, default=10, help="stop after this many documents that differ"
    )
    args = parser.parse_args()
    refused: Counter[str] = Counter()
    until, done, wrong = time.monotonic() + args.seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seed, args.seed + args.documents):
            if time.monotonic() > until or wrong >= args.most:
                break
            rng = random.Random(seed)
            document = json_documents.document(rng)
            texts = [json_documents.text(rng, document) for _ in range(args.texts)]
            try:
                lines = list(differences(document, texts, Path(folder)))
            except (errors.UnsupportedError, errors.FormatError) as error:
                refused[re.sub(r"'[^']*'|\d+", "_", str(error))[:150]] += 1
                continue
            done += 1
            if lines:
                wrong += 1
                print(f"seed {seed}: {len(lines)} differences, first {lines[0]}")
    for reason, times in refused.most_common():
        print(f"refused {times}: {reason}")
    print(f"{done:,} documents compared, {wrong} differ, {refused.total():,} refused")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
