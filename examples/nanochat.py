"""From text to what a training run reads: a tokenizer, its evaluation, and token shards.

    python nanochat.py                                       # the sample texts, in seconds
    python nanochat.py ~/.cache/bytepair/base_data run 65536

The folder is that of `bytepair download`, whose last file is for validation. The second argument
is the folder to write, and the third the size of the vocabulary.
"""

import sys
from pathlib import Path

import bytepair
from bytepair import evaluate, shards
from bytepair.corpus import Paths, list_files


def main(data: str | None = None, out: str = "run", vocab_size: str = "4096") -> None:
    """Train, evaluate, save, shard and read."""
    files = list_files(data) if data else [str(path) for path in bytepair.sample.paths()]
    parts = {"train": Paths(files[:-1]), "val": Paths(files[-1:])}
    folder = Path(out)
    folder.mkdir(exist_ok=True)

    tok = bytepair.train(
        parts["train"],
        vocab_size=int(vocab_size),
        reading=bytepair.Reading(max_chars=2_000_000_000, doc_cap=10_000),
    )
    tok.save(folder / "tokenizer")

    heldout = evaluate.documents(parts["val"])
    evaluation = evaluate.measure(tok, against=[], texts={"validation": heldout})
    print(evaluate.to_markdown(evaluation))

    for name, some in parts.items():
        shards.write(some, tok, folder / name, split="all")
        print(shards.verify(folder / name))

    inputs, _ = next(shards.Dataset(folder / "train").batches(4, 128))
    print(f"a batch for training: {inputs.shape}, beginning with {tok.decode(inputs[0][:16])!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
