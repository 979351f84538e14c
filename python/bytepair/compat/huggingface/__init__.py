"""The API of `tokenizers` and `transformers`, with bytepair inside.

    from bytepair.compat import huggingface
    from transformers import AutoTokenizer

    huggingface.use()
    tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-8B")   # runs on bytepair

The ids, the encodings and the decoded text are those of the original. Where bytepair cannot do
exactly what a tokenizer asks for, it stays as it is, and the log says why. `wrap` is for one
tokenizer, `undo` ends `use`, and `Tokenizer` is the class with the face of
`tokenizers.Tokenizer`.
"""

from bytepair.compat.huggingface.encoding import Encoding
from bytepair.compat.huggingface.install import undo, use, wrap
from bytepair.compat.huggingface.tokenizer import Tokenizer

__all__ = ["Encoding", "Tokenizer", "undo", "use", "wrap"]
