"""Solutions of lesson 12."""


# %% render
def render(tok, messages):
    """The ids of a conversation, and a mask: 1 on what the assistant must write."""
    special = tok.special_tokens
    ids, mask = [special["<|bos|>"]], [0]
    for message in messages:
        role, content = message["role"], tok.encode(message["content"])
        counts = int(role == "assistant")
        ids += [special[f"<|{role}_start|>"], *content, special[f"<|{role}_end|>"]]
        mask += [0, *[counts] * len(content), counts]
    return ids, mask


# %% labels_of
def labels_of(ids, mask):
    """The inputs of a model and the labels of its loss: the next id, or -100 where none counts."""
    labels = [id if counts else -100 for id, counts in zip(ids, mask, strict=True)]
    return ids[:-1], labels[1:]
