"""The API of `tokenizers` and `transformers`, with bytepair inside.

    from bytepair.compat import huggingface
    from transformers import AutoTokenizer

    huggingface.use()
    tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-8B")   # runs on bytepair

The ids, the encodings and the decoded text equal the original's. A tokenizer that bytepair cannot
reproduce exactly stays as it is, and the log says why. `wrap` is for one tokenizer, `undo` reverses
`use`, and `Tokenizer` is the class with the API of `tokenizers.Tokenizer`.
"""

from bytepair.compat.huggingface.encoding import Encoding
from bytepair.compat.huggingface.install import undo, use, wrap
from bytepair.compat.huggingface.tokenizer import Tokenizer

__all__ = ["Encoding", "Tokenizer", "undo", "use", "wrap"]
