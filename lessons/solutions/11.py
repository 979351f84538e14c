"""Solutions of lesson 11."""


# %% bytes_per_token
def bytes_per_token(tok, texts):
    """The bytes of all texts, divided by the number of all their tokens."""
    size = sum(len(text.encode()) for text in texts)
    return size / sum(map(len, tok.encode_batch(texts)))


# %% documents_of
def documents_of(ids, bos):
    """The ids of each document, without the special token with which it begins."""
    _, *documents = np.split(ids, np.flatnonzero(ids == bos))
    return [document[1:] for document in documents]
